"""The metrics as classes: merging, statistics, settings, registration."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf

from ctxexp import Block, Group, GroupMean, Metric
from ctxexp.errors import MetricError
from ctxexp.maths import mean_cosine
from tests.composed import registry_of
from tests.shipped import Anisotropy, IntraSentenceSimilarity, MaxExplainableVariance, SelfSimilarity, WordNorm

EACH: list[Callable[[], Metric]] = [
    SelfSimilarity, IntraSentenceSimilarity, WordNorm, Anisotropy, MaxExplainableVariance,
    partial(MaxExplainableVariance, definition="centred"), partial(MaxExplainableVariance, definition="released"),
]  # fmt: skip


def groups(n: int = 12) -> list[tuple[int, np.ndarray]]:
    rng = np.random.default_rng(0)
    return [(i, (rng.normal(size=(2 + i % 4, 8)) + 0.5).astype(np.float32)) for i in range(n)]


@pytest.mark.parametrize("factory", EACH)
def test_the_order_of_groups_never_shows_to_the_last_bit(factory: Callable[[], Metric]) -> None:
    forth, back = factory(), factory()
    for key, x in groups():
        forth.update(Group(key, x))
    for key, x in reversed(groups()):
        back.update(Group(key, x))
    assert forth.compute() == back.compute()


@pytest.mark.parametrize("factory", EACH)
def test_a_block_equals_its_groups(factory: Callable[[], Metric]) -> None:
    x = np.random.default_rng(0).normal(size=(5, 7, 8)).astype(np.float32)
    block, single = factory(), factory()
    block._update_block(Block(range(5), x))
    for key, group in enumerate(x):
        single.update(Group(key, group))
    assert block.compute() == pytest.approx(single.compute(), abs=1e-6, nan_ok=True)


def test_statistics_of_a_group_mean() -> None:
    metric = SelfSimilarity()
    for key, x in [*groups(), (99, np.ones((1, 8), np.float32)), (98, np.zeros((3, 8), np.float32))]:
        metric.update(Group(key, x))
    values = np.array([mean_cosine(x) for _, x in groups()])
    expected = {"raw": values.mean(), "median": np.median(values), "sd": values.std(ddof=1), "n": 12, "undefined": 2}
    assert metric.compute() == pytest.approx(expected, abs=1e-7)
    assert np.isnan(SelfSimilarity().compute()["raw"])


def test_chance_levels() -> None:
    x = groups()[3][1]
    assert SelfSimilarity().baseline_value(x) == pytest.approx(float(mean_cosine(x)))
    assert IntraSentenceSimilarity().baseline_value(x) == pytest.approx(
        float(mean_cosine(x))
    )  # the paper's, not the score
    for definition in ("uncentred", "centred", "released"):
        metric = MaxExplainableVariance(definition=definition)  # type: ignore[arg-type]
        assert metric.baseline_value(x) == pytest.approx(float(metric.score(x[None])[0]), abs=1e-7)
        assert metric.baselines == ("size_matched",)
    assert np.isnan(SelfSimilarity().baseline_value(x[:1]))
    assert np.isnan(WordNorm().baseline_value(x))


GROUP_MEANS: dict[str, Callable[[], GroupMean]] = {
    "": SelfSimilarity, "mean": IntraSentenceSimilarity, "unit_norm": partial(IntraSentenceSimilarity, unit_norm=True),
    "share": MaxExplainableVariance, "centred": partial(MaxExplainableVariance, definition="centred"),
    "released": partial(MaxExplainableVariance, definition="released"),
}  # fmt: skip


@pytest.mark.parametrize("name", GROUP_MEANS)
def test_invariances_are_exactly_the_declared_ones(name: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9, 6)) + 1
    changed = {
        "rotation": x @ np.linalg.qr(rng.normal(size=(6, 6)))[0],
        "scale": 7 * x,
        "row_scale": x * rng.uniform(0.5, 2, (9, 1)),
        "permutation": x[rng.permutation(9)],
        "shift": x + 3,
    }
    metric = GROUP_MEANS[name]()
    same = {change for change, y in changed.items() if metric.score(y) == pytest.approx(metric.score(x), abs=1e-9)}
    assert metric.invariances == same
    assert metric.variant == (name if name in ("unit_norm", "centred", "released") else "")
    assert ("norm 1" in metric.definition) == (name == "unit_norm")


def test_without_a_group_there_is_no_value() -> None:
    for metric in (WordNorm(), Anisotropy()):
        values = metric.compute()
        assert values.pop("n") == 0
        assert np.isnan(list(values.values())).all()


def test_unit_norm_keeps_a_long_word_from_ruling_its_sentence() -> None:
    x = np.eye(4, dtype=np.float32)
    x[0] *= 1000
    paper, scaled = IntraSentenceSimilarity(), IntraSentenceSimilarity(unit_norm=True)
    assert float(paper.score(x)) == pytest.approx(0.25, abs=1e-2)
    assert float(scaled.score(x)) == pytest.approx(0.5)
    assert "scaled to norm 1" in scaled.definition


def test_anisotropy_takes_the_first_sample() -> None:
    metric = Anisotropy()
    rng = np.random.default_rng(0)
    samples = [rng.normal(size=(50, 4)) + 1 for _ in range(3)]
    for key, x in reversed(list(enumerate(samples))):
        metric.update(Group(key, x))
    assert metric.compute()["mean_cosine"] == float(mean_cosine(samples[0]))
    assert metric.compute()["n"] == 50
    assert np.isnan(Anisotropy().compute()["mean_cosine"])


def test_names_and_their_settings() -> None:
    registry = registry_of()
    settings = {
        n: list(inspect.signature(registry.find("metric", n).factory).parameters) for n in registry.names("metric")
    }
    assert settings == {
        "anisotropy": [],
        "intra_sentence_similarity": ["sample", "unit_norm", "baselines"],
        "max_explainable_variance": ["definition", "baselines", "sample"],
        "self_similarity": ["sample", "baselines"],
        "sense_separation": ["sample", "permutations", "seed"],
        "sts": ["similarity"],
        "word_norm": [],
    }  # fmt: skip
    assert registry.names("baseline") == ["one_per_sentence", "size_matched", "uniform"]
    for kind in ("metric", "baseline"):
        for name in registry.names(kind):
            parameters = inspect.signature(registry.find(kind, name).factory).parameters.values()
            assert all(p.kind is p.KEYWORD_ONLY for p in parameters)


CONF = Path(__file__).parents[2] / "conf"
CHANGED = {
    "baseline/b100": {"size"}, "baseline/b10k": {"size"}, "baseline/exact": {"exact"}, "baseline/uniform": {"exact"},
    "metric/intra_sentence_similarity": {"baselines"}, "metric/max_explainable_variance_centred": {"definition"},
    "metric/max_explainable_variance_released": {"definition"}, "transform/center_unit_norm": {"centred"},
}  # fmt: skip
FILES = [
    f"{kind}/{path.stem}"
    for kind in ("baseline", "control", "metric", "transform")
    for path in sorted((CONF / kind).glob("*.yaml"))
    if "name" in OmegaConf.load(path)
]


def settings_of(thing: object) -> dict[str, object]:
    """The plain values among an object's attributes, and those of its parts."""
    plain = (int, float, str, frozenset, tuple, type(None))
    parts = {name: value if isinstance(value, plain) else settings_of(value) for name, value in vars(thing).items()
             if isinstance(value, plain) or hasattr(value, "__dict__")}  # fmt: skip
    return {"class": type(thing).__name__, **parts}


@pytest.mark.parametrize("file", FILES)
def test_values_on_file_are_the_defaults_in_python(file: str) -> None:
    """Files repeat the factories' defaults, so that they can be read; those of CHANGED are there to change one."""
    config = OmegaConf.create(
        {"seed": OmegaConf.load(CONF / "ctxexp.yaml").seed, "of": OmegaConf.load(CONF / f"{file}.yaml")}
    )
    options = OmegaConf.to_container(config.of, resolve=True)
    assert isinstance(options, dict)
    factory = registry_of().find(file.split("/")[0], options.pop("name")).factory  # type: ignore[arg-type]
    default = settings_of(factory())
    assert {name for name in options if settings_of(factory(**{name: options[name]})) != default} == CHANGED.get(
        file, set()
    )


def test_a_score_a_group_is_expected() -> None:
    class Scalar(GroupMean):
        over = "word"

        def score(self, x: np.ndarray) -> np.ndarray:
            return np.array(0.5)

    with pytest.raises(MetricError, match=r"Scalar.score gave shape \(\) for 3 groups; expected one score per group"):
        Scalar()._update_block(Block("abc", np.ones((3, 2, 2))))


@pytest.mark.parametrize(("name", "expected"), [("line", "reading = Reading"), ("update_block", "_update_block")])
def test_what_nothing_would_read_is_refused(name: str, expected: str) -> None:
    with pytest.raises(MetricError, match=rf"Mine\.{name}: expected {expected}"):
        type("Mine", (GroupMean,), {name: 0.05})
