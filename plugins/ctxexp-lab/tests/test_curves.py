"""Layers measured in the midst of a training: as `ctxexp steps` has them afterwards, and nothing else is moved."""

from __future__ import annotations

import logging
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ctxexp_lab import LayerCurves
from ctxexp_lab.curves.rule import StopRule

import ctxexp
from ctxexp.command import Experiment, configured
from ctxexp.errors import ConfigError
from ctxexp.results import Estimates
from tests.planted import PlantedEncoder, vector_of

from .tiny_recipes import network, tokenizer

MEASURES = ("contextuality", "anisotropy", "effective_rank")


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    return [one.text for one in Experiment(configured("gpt2")).corpus.sentences[::40]]


def train(model: Any, n: int, curves: LayerCurves | None = None) -> None:
    """So many steps of a plain loop, with dropout and random text."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(n + 1):
        if curves is not None:
            curves.step(model, step)
        if step < n:
            ids = torch.randint(0, 1000, (2, 12))
            model(input_ids=ids, labels=ids).loss.backward()
            optimiser.step()
            optimiser.zero_grad()


def states() -> tuple[Any, ...]:
    """Every generator that a training may draw from."""
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()


def test_a_training_goes_on_as_if_nobody_measured(
    sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXEXP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    plain, model, logged = network(), network(), {}
    model.transformer.h[0].eval()
    plain.transformer.h[0].eval()
    curves = LayerCurves(
        sentences, every=2, tokenizer=tokenizer(), log=lambda values, step: logged.update({step: values})
    )
    torch.manual_seed(1)
    train(plain, 4)
    after = states()
    torch.manual_seed(1)
    with torch.autocast("cpu", torch.bfloat16, enabled=False):
        train(model, 4, curves)
    assert states() == after
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), model.parameters(), strict=True))
    assert [one.training for one in plain.modules()] == [one.training for one in model.modules()]
    assert torch.is_grad_enabled()
    assert list(logged) == [0, 2, 4] == list(curves.results)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {name.split("/")[1] for name in logged[4]} == set(MEASURES)
    assert 0 < logged[4]["layers/effective_rank/02"] < logged[4]["layers/effective_rank/chance"] < 16


def test_values_are_those_of_the_saved_weights(
    sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXEXP_CACHE", str(tmp_path / "cache"))
    model, curves = network(), LayerCurves(sentences, every=1, tokenizer=tokenizer())
    text = tmp_path / "text.txt"
    text.write_text("\n".join(one.text for one in curves.corpus.sentences), encoding="utf-8")
    with torch.autocast("cpu", torch.bfloat16):  # as an own loop may measure inside of it
        for step in (0, 1):
            curves.step(model, step)
            for part in (model, tokenizer()):
                part.save_pretrained(tmp_path / f"step{step}")
            with torch.no_grad():
                model.transformer.wte.weight.mul_(1.1).add_(0.01)
    for step, live in curves.results.items():  # what `ctxexp steps` measures
        later = ctxexp.measure(tmp_path / f"step{step}", text, metrics=MEASURES, bootstrap=0, min_contexts=2)
        for measure in MEASURES:
            np.testing.assert_allclose(*(curves.curve(one, measure).value for one in (live, later)), rtol=0, atol=1e-6)
    one, other = (curves.curve(results, "anisotropy").value for results in curves.results.values())
    assert not np.allclose(one, other, atol=1e-3)


def test_the_text_is_bounded_and_fills_the_bands(caplog: pytest.LogCaptureFixture) -> None:
    curves = LayerCurves(measures=["self_similarity"], tokenizer=tokenizer())
    curves.step(network(), 0)
    assert len(curves.corpus.sentences) == 256
    assert all(curves.results[0].info.mix.filled)
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert [len(LayerCurves(["A dog ran.", "A dog sat.", "A dog ate."], sentences=n).corpus.sentences)
            for n in (2, None)] == [2, 3]  # fmt: skip


def test_a_rule_stops_only_where_the_whole_interval_is_beyond() -> None:
    curve = Estimates(np.array([0.5, 0.97, 0.96]), np.array([0.4, 0.96, 0.94]), np.array([0.6, 0.98, 0.98]))
    for rule, reason in {
        "anisotropy > .95": "",
        "anisotropy>.93": "anisotropy 0.960 [0.940, 0.980] > 0.93 in layer 2",
        "anisotropy > 0.95 in any layer": "anisotropy 0.970 [0.960, 0.980] > 0.95 in layer 1",
        "anisotropy < 6.5e-1 in layer 0": "anisotropy 0.500 [0.400, 0.600] < 0.65 in layer 0",
        "anisotropy < .55 in layer 0": "",
        "anisotropy > .93 after step 6": "anisotropy 0.960 [0.940, 0.980] > 0.93 in layer 2",
        "anisotropy > .93 in layer 2 after step 7": "",
    }.items():
        assert StopRule.parse(rule).breach(curve, 7) == reason
    none = np.full(1, np.nan)
    assert StopRule.parse("effective_rank < 3").breach(Estimates(np.array([2.5]), none, none), 1).startswith("eff")
    assert not StopRule.parse("effective_rank < 3").breach(Estimates(none, none, none), 1)
    with pytest.raises(ConfigError, match="layers 0 to 2"):
        StopRule.parse("anisotropy > .95 in layer 3").breach(curve, 0)


class Collapsing(PlantedEncoder):
    """Vectors of words with some context, and what a training may make of them at its steps 1 to 3: a cone, which loses
    nothing; two dimensions; vectors that have forgotten their words."""

    name, n_layers, dim, step = "collapsing", 1, 32, 0

    def layers_of(self, sentence: ctxexp.Sentence) -> list[np.ndarray]:
        words = np.stack([vector_of(word, 32) for word in sentence.words])
        context = vector_of(sentence.text, words.size).reshape(words.shape)
        x = words * (self.step != 3) + context / 2 + 30 * (self.step == 1)
        x[:, 2:] *= self.step != 2
        return [x]


def test_a_rule_tells_a_collapse_from_a_cone() -> None:
    reasons = {}
    for step in range(4):
        curves, encoder = LayerCurves(every=1, stop_when="effective_rank < 3 or contextuality > .9"), Collapsing()
        encoder.step = step
        values = curves.step(encoder, step)
        reasons[step] = curves.reason.partition(": ")[2].partition(" ")[0]
        assert (values["layers/anisotropy/00"] > 0.95) == (step == 1)
    assert reasons == {0: "", 1: "", 2: "effective_rank", 3: "contextuality"}


@pytest.mark.parametrize("rule", ["anisotropy = 1", "anisotropy > x", "anisotropy > .9 in layer -1"])
def test_a_rule_that_cannot_be_read_is_refused(rule: str) -> None:
    with pytest.raises(ConfigError, match="stop_when"):
        StopRule.parse(rule)


def test_a_measurement_that_fails_ends_no_training(caplog: pytest.LogCaptureFixture) -> None:
    text, model = ["The dog ran home.", "The dog sat."], network()
    curves = LayerCurves(text, every=1, measures=["anisotropy"], tokenizer=tokenizer())
    assert curves.step(model, 0)
    with torch.no_grad():
        model.transformer.h[0].attn.c_attn.weight.fill_(float("nan"))
    assert curves.step(model, 1) == {"layers/not_measured": 1.0}
    assert "step 1 isn't measured" in caplog.text


def test_what_can_t_be_measured_is_said_at_the_first_step_not_at_the_first_measured_one() -> None:
    text = ["The dog ran home.", "The dog sat."]
    with pytest.raises(ConfigError, match="tokenizer"):
        LayerCurves(text, every=500).step(network(), 1)
    curves = LayerCurves(text, measures=["anisotropy"], tokenizer=tokenizer(), stop_when="anisotropy > 1 in layer 9")
    with pytest.raises(ConfigError, match="layers 0 to 2"):
        curves.step(network(), 1)


def test_another_training_begins_with_nothing_of_the_one_before(tmp_path: Path) -> None:
    text, model = ["The dog ran home.", "The dog sat.", "A dog ran."], network()
    curves = LayerCurves(
        text, every=1, measures=["anisotropy"], tokenizer=tokenizer(), stop_when="anisotropy > -1 after step 0",
        folder=tmp_path / "live",
    )  # fmt: skip
    for step in (0, 1):
        curves.step(model, step)
    assert curves.should_stop
    assert curves.step(model, 1) == {}
    curves.step(model, 0)  # a lower step
    assert (curves.should_stop, curves.reason, list(curves.results)) == (False, "", [0])
    assert curves.step(network(seed=1), 0)  # another model at the same one
    assert list(curves.results) == [0]
    saved = [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.glob("*/*"))]
    assert saved == ["live/step0", "live/step1", "live-2/step0", "live-3/step0"]
