"""The flow: volume by autograd's Jacobian, steps of plain Adam, densities of known entropy, planted spaces."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ctxexp_measures.calibration.flow.network import AdditiveFlow
from ctxexp_measures.calibration.flow.transform import Flow

from ctxexp import Corpus
from ctxexp.command import Experiment
from ctxexp.errors import TransformError
from ctxexp.testing import check
from tests.composed import composed, of


def network(dim: int, *, levels: int = 2, width: int = 8) -> AdditiveFlow:
    """A flow whose weights are all away from their start, further than an epoch at the default rate takes them."""
    generator = torch.Generator().manual_seed(0)
    flow = AdditiveFlow(dim, levels=levels, depth=3, width=width, generator=generator)
    with torch.no_grad():
        for weight in flow.parameters():
            weight += 0.15 * torch.randn(weight.shape, generator=generator)
        flow.center += torch.randn(dim, generator=generator)
    return flow


def cloud(n: int, d: int, *, far: float = 3.0) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.normal(size=(n, d)) @ (rng.normal(size=(d, d)) + np.eye(d)) + far).astype(np.float32)


# -- the network


@pytest.mark.parametrize(("dim", "levels"), [(6, 1), (7, 2), (12, 3)])
def test_the_log_determinant_is_that_of_autograds_jacobian(dim: int, levels: int) -> None:
    flow = network(dim, levels=levels).double()
    x = torch.randn(5, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    for row in x:
        jacobian = torch.autograd.functional.jacobian(lambda r: flow(r[None])[0][0], row)
        _, log_det = torch.linalg.slogdet(jacobian)
        assert float(log_det) == pytest.approx(float(flow(x)[1].detach()), abs=1e-12)
    assert abs(float(log_det)) > 0.1


def test_initialised_actnorms_give_columns_of_mean_0_and_variance_1() -> None:
    x = torch.from_numpy(cloud(500, 13, far=1000.0))
    x[:, 4] = 0.1  # one value: becomes 0, without blowing up
    flow = AdditiveFlow(13, levels=3, depth=2, width=4, generator=torch.Generator().manual_seed(0))
    flow.initialise(x)
    z = flow(x)[0].detach().double()
    spread = z.var(dim=0, correction=0)
    torch.testing.assert_close(z.mean(dim=0), torch.zeros(13, dtype=torch.float64), rtol=0, atol=1e-5)
    assert int((spread < 1e-12).sum()) == 1
    assert float((spread[spread > 1e-12] - 1).abs().max()) < 1e-4


# -- learning


def test_on_a_gaussian_the_loss_comes_near_its_entropy() -> None:
    rng = np.random.default_rng(1)
    mix = rng.normal(size=(6, 6)) + np.eye(6)
    train, test = ((rng.normal(size=(4096, 6)) @ mix.T + 5).astype(np.float32) for _ in range(2))
    covariance = mix @ mix.T
    entropy = 0.5 * float(np.linalg.slogdet(2 * math.pi * math.e * covariance)[1]) / 6
    independent = 0.5 * float(np.log(2 * math.pi * math.e * np.diag(covariance)).mean())
    fitted = Flow(rate=5e-3, epochs=15, batch=256, device="cpu").fit(train)
    found = float(fitted.network.loss(torch.from_numpy(test)).detach())
    assert independent - entropy > 0.4  # what only the couplings can learn
    assert entropy - 0.02 < found < entropy + 0.03
    assert fitted.loss_curve[0] == pytest.approx(independent, abs=0.1)


# -- the transform


def test_the_contract_of_transforms_holds() -> None:
    report = check("transform", lambda: Flow(width=2, depth=2, batch=20, device="cpu"))
    assert not report.failures


def test_equal_rows_and_seed_give_an_equal_flow() -> None:
    x = cloud(300, 8)
    state = torch.get_rng_state()
    first = Flow(seed=3, width=8, depth=3, epochs=2, device="cpu").fit(x)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(5)
    with torch.inference_mode():
        again = Flow(seed=3, width=8, depth=3, epochs=2, device="cpu").fit(
            x[np.random.default_rng(0).permutation(len(x))]
        )
    other = Flow(seed=4, width=8, depth=3, epochs=2, device="cpu").fit(x)
    assert again.loss_curve == first.loss_curve
    for a, b in zip(first.network.state_dict().values(), again.network.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    assert np.array_equal(first.apply(x), again.apply(x))
    assert not np.allclose(first.apply(x), other.apply(x))


def test_fractional_epochs_and_max_rows_limit_what_is_seen() -> None:
    x = cloud(1000, 8)

    def steps(**arguments: Any) -> int:
        return len(Flow(width=4, batch=50, device="cpu", **arguments).fit(x).loss_curve)

    assert steps(epochs=0.15) == 3
    assert steps(epochs=0.001) == 1
    assert steps(epochs=2.5) == 50
    assert steps(max_rows=220) == 4
    few = Flow(width=4, batch=50, max_rows=220, device="cpu").fit(x)
    assert not np.array_equal(few.apply(x), Flow(width=4, batch=50, device="cpu").fit(x).apply(x))


def test_a_run_measures_through_the_flow_and_keeps_its_loss(tmp_path: Path) -> None:
    words = ["model=elmo", "transform=flow", "metric=anisotropy", "baseline=b100", "bootstrap=10", "device=cpu"]
    config = composed(*words, "seed=3", f"cache.folder={tmp_path}")
    assert config.transform.name == "flow"
    assert config.transform.arguments == {
        **{name: p.default for name, p in inspect.signature(Flow).parameters.items()},
        "seed": 3,
        "device": "cpu",
    }
    corpus = Corpus("small", Experiment(config).corpus.sentences[:60])
    results = Experiment(of(config, corpus)).run(tmp_path)
    assert np.abs(results.by_name["anisotropy/mean_cosine"]).max() < 0.05
    table = results.tables["transform_fit"]
    assert sorted(set(table["at"])) == ["layer 0", "layer 1", "layer 2"]
    assert set(table["over"]) == {"words"}
    assert np.isfinite(table["loss"]).all()


# -- refusals


def test_too_few_rows_are_refused_with_the_number_needed() -> None:
    weights = sum(w.numel() for w in network(8, width=4).parameters())
    least = max(64, math.ceil(weights / 8))
    assert len(Flow(width=4, device="cpu").fit(cloud(least, 8)).loss_curve) == 2
    message = (
        rf"{least - 1} rows of 8 columns are too few .* needs {least}: two batches of 32, .* its {weights} weights"
    )
    with pytest.raises(TransformError, match=message):
        Flow(width=4, device="cpu").fit(cloud(least - 1, 8))
    with pytest.raises(TransformError, match=r"100 rows of 128 columns .* it needs 207: "):
        Flow(max_rows=100, device="cpu").fit(cloud(5000, 128))


def test_rows_that_are_not_finite_are_refused() -> None:
    x = cloud(500, 6)
    x[77, 2] = np.nan
    with pytest.raises(TransformError, match="rows hold NaN or infinite values"):
        Flow(width=4, device="cpu").fit(x)
