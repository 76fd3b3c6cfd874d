"""The gate: a model never drifts from itself, planted drifts are found; statuses, intervals, refusals."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ctxexp_compare.gate import MARGIN, CurveDifference, Gate, diff
from ctxexp_compare.gate import diff as compared

import ctxexp
from ctxexp import CtxexpError, Results
from ctxexp.errors import ConfigError, DataError, MetricError
from ctxexp.maths import Curve, Resamples
from ctxexp.results import Key
from tests.composed import run_command_line
from tests.sample_results import results_with, run_info

LAYERS, R = 7, 250
CURVES = ("anisotropy/mean_cosine", "self_similarity/adjusted")
MEASURES = {
    "anisotropy": {"name": "anisotropy", "main": "mean_cosine", "title": "Anisotropy", "unit": "cosine"},
    "self_similarity": {"name": "self_similarity", "title": "Self-similarity", "unit": "cosine"},
}


def run(seed: int, *, spread: float = 0.01, shift: float = 0.0, layer: int = 3, **info: Any) -> Results:
    """A run of two flat curves with error of its own, of which its replicates know the spread; one value is shifted."""
    rng = np.random.default_rng(seed)
    curves, replicates = {}, {}
    for key in CURVES:
        value = 0.4 + spread * rng.normal(size=LAYERS)
        value[layer] += shift
        curves[key] = value
        replicates[key] = (value[:, None] + spread * rng.normal(size=(LAYERS, R))).astype(np.float32)
    said = {"n_layers": LAYERS, "measures": MEASURES, "fingerprint": "f", "seed": 0, "bootstrap": R, "title": "m"}
    said |= {"corpus": "text", "resampled": "document", "n_resampled": 200}
    return results_with(curves, replicates=replicates, info=run_info(**{**said, **info}))


def planted(
    rng: np.random.Generator, unit: str, *, documents: int = 40, shift: float = 0.0, spread: float = 0.05
) -> list[Results]:
    """Two runs over one text of documents of 5 sentences, resampled by `unit` with the code of every run.

    Sentences' scores of the second differ by an effect of their document (normal, of `spread`), half as much by one of
    their own, and by `shift` in layer 3.
    """
    document = np.repeat(np.arange(documents), 5)
    n = len(document)
    draws = Resamples.of_clusters(document if unit == "document" else np.arange(n), 500, np.random.default_rng(0))
    curves: list[dict[str, np.ndarray]] = [{}, {}]
    replicates: list[dict[str, np.ndarray]] = [{}, {}]
    for key in CURVES:
        scores = 0.4 + 0.1 * rng.normal(size=(LAYERS, n))
        effect = rng.normal(size=(LAYERS, documents))[:, document] + 0.5 * rng.normal(size=(LAYERS, n))
        effect = spread * effect
        effect[3] += shift
        for i, own in enumerate((scores, scores + effect)):
            value = own.mean(axis=1)
            influence = np.stack([draws.by_block(row) for row in (own - value[:, None]) / n])
            curves[i][key], replicates[i][key] = value, draws.of(Curve(value, influence))
    said = {"n_layers": LAYERS, "measures": MEASURES, "fingerprint": "planted", "seed": 0, "bootstrap": 500}
    info = run_info(**said, title="planted", corpus="text", resampled=unit, n_resampled=draws.clusters.n)
    return [results_with(c, replicates=r, info=info) for c, r in zip(curves, replicates, strict=True)]


@pytest.mark.nightly
def test_equal_models_fail_at_the_nominal_share() -> None:
    """At a margin of 0, of 200 texts: 5% and three standard errors are 19. Without documents most fail: refused."""
    rng = np.random.default_rng(1)
    told_of = [diff(*planted(rng, "document"), margin=0).verdict for _ in range(200)]
    assert told_of.count("moved") <= 19
    assert "held" not in told_of
    untold = [diff(*planted(rng, "sentence"), margin=0, independent_sentences=True) for _ in range(50)]
    assert sum(found.verdict == "moved" for found in untold) >= 25
    pair = planted(rng, "sentence")
    with pytest.raises(ConfigError, match="the documents of text are not known, so that its sentences"):
        diff(*pair)


@pytest.mark.nightly
def test_the_smallest_move_is_found_as_often_as_it_says() -> None:
    """What texts name for one value on average, planted there, is found in 80% of them, the largest named oftener."""
    rng = np.random.default_rng(3)

    def texts(n: int, shift: float) -> list[CurveDifference]:
        found = [diff(*planted(rng, "document", shift=shift, spread=0.02)) for _ in range(n)]
        assert all(gate.smallest == max(gate.values, key=lambda one: one.smallest) for gate in found)
        return [one for gate in found for one in gate.values if one.layer == 3]

    smallest = float(np.mean([one.smallest for one in texts(20, 0)]))
    assert 0.01 < smallest < 0.05
    seen = [one.verdict == "moved" for one in texts(150, smallest)]
    assert len(seen) == 300
    assert 0.72 <= np.mean(seen) <= 0.88


def test_a_run_against_itself_is_equal_everywhere() -> None:
    one = run(0)
    found = diff(one, one, margin=0)
    assert not found.outside
    assert found.verdict == "held"
    assert all(value.low == value.high == 0 for value in found.values)
    assert len(found.values) == 2 * LAYERS


def test_a_shift_is_found_only_beyond_the_margin() -> None:
    for shift, verdict in ((0.1, "moved"), (0.004, "held")):
        found = diff(run(1, spread=0.001), run(2, spread=0.001, shift=shift), same_text=False)
        assert {(v.key.measure, v.layer) for v in found.values if v.verdict != "held"} == (
            {("anisotropy", 3), ("self_similarity", 3)} if verdict == "moved" else set()
        )
    near = diff(run(1), run(2, shift=0.012), same_text=False)
    assert near.open
    frame = near.frame
    assert (frame.low < frame.difference).all()
    assert (frame.difference < frame.high).all()
    assert set(frame.curve) == set(CURVES)


def test_what_both_owe_to_the_same_sentences_cancels() -> None:
    """Noise that both runs share says nothing of their difference."""
    a = run(3)
    b = run(3, shift=0.03)  # the same noise
    assert {v.layer for v in diff(a, b, margin=0.029).outside} == {3}
    assert not diff(a, b, margin=0.029, same_text=True).open
    apart = diff(a, run(3, shift=0.03, fingerprint="g"), margin=0.029, same_text=False)
    assert not apart.outside
    assert apart.open


def test_what_is_defined_in_one_run_alone_has_moved() -> None:
    a, b = run(4), run(4)
    b.by_key[next(iter(b.by_key))].value[2] = np.nan
    [one] = diff(a, b).outside
    assert one.layer == 2


def without(kind: str) -> Results:
    """A run without the second curve (`value`), or without its replicates."""
    made = run(0)
    second = Key.of(*CURVES[1].split("/"))
    if kind == "replicates":
        return replace(made, replicates={key: drawn for key, drawn in made.replicates.items() if key != second})
    return replace(made, frame=made.frame[made.frame.measure != second.measure])


REFUSED: list[tuple[Callable[[], object], type[CtxexpError], str]] = [
    (lambda: diff(run(0), run(1, fingerprint="g")), ConfigError, "the texts differ"),
    (lambda: diff(run(0), run(0, layers=(2, 3))), ConfigError, "layers differ (model.layers: all and [2, 3])"),
    (lambda: diff(*[run(0, resampled="sentence")] * 2), ConfigError, "say independent_sentences=true if no two"),
    (lambda: diff(*[run(0, n_resampled=19)] * 2), DataError, "text has 19 documents: expected 20 or more"),
    (lambda: diff(run(0), without("value")), MetricError, "only one of the runs has self_similarity/adjusted: measure"),
    (lambda: diff(run(0), without("replicates")), DataError, "self_similarity/adjusted: no bootstrap replicates"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED, ids=[words[:30] for _, _, words in REFUSED])
def test_runs_that_cannot_be_compared_are_refused(
    call: Callable[[], object], error: type[CtxexpError], words: str
) -> None:
    with pytest.raises(error) as refused:
        call()
    assert words in str(refused.value)


def test_statuses_are_those_that_the_docs_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = {}
    made = {"a": run(7, spread=1e-4), "moved": run(7, spread=1e-4, shift=0.1), "open": run(8, spread=0.008)}
    made |= {"untold": run(7, resampled="sentence"), "layers": run(7, layers=(0, 3))}
    for name, results in made.items():
        results.save(tmp_path / name)
        folders[name] = str(tmp_path / name)
    assert run_command_line(["diff", folders["a"], folders["a"]]) == 0
    assert run_command_line(["diff", folders["a"], folders["moved"], f"out={tmp_path / 'values.csv'}"]) == 1
    assert len((tmp_path / "values.csv").read_text().splitlines()) == 1 + 2 * LAYERS
    assert run_command_line(["diff", folders["a"], folders["open"], "margin=0.03"]) == 3
    assert run_command_line(["diff", folders["a"], folders["open"], "margin=0.03", "test=difference"]) == 0
    assert run_command_line(["diff", folders["a"], folders["moved"], "test=difference"]) == 1
    assert run_command_line(["diff", folders["a"], folders["open"], "margin=0.2"]) == 0
    assert run_command_line(["diff", folders["untold"], folders["untold"]]) == 2
    assert "the documents of text are not known" in capsys.readouterr().err
    assert run_command_line(["diff", folders["untold"], folders["untold"], "independent_sentences=true"]) == 0
    assert run_command_line(["diff", folders["a"], folders["layers"]]) == 2
    assert run_command_line(["diff", folders["a"], str(tmp_path / "nowhere")]) == 2
    assert "expected a run's or a sweep's results" in capsys.readouterr().err
    assert run_command_line(["diff", "bert 'x", folders["a"]]) == 2
    assert run_command_line(["diff", "bert gpt2", folders["a"]]) == 2
    assert "'bert gpt2': expected a run's folder, or one model" in capsys.readouterr().err


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_planted_drifts_are_found_and_rounding_is_not(tmp_path: Path) -> None:
    """The BERT mini with two layers swapped and with wrong norms moves; in bfloat16 and by dynamic int8 it doesn't
    by the default margin."""
    import copy

    import torch
    from transformers import AutoModel, AutoTokenizer

    from tests.shipped import mini, polysemy

    os.environ["CTXEXP_CACHE"] = str(tmp_path)
    base = AutoModel.from_pretrained(mini("bert"), dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(mini("bert"))
    corpus = ctxexp.Corpus("part", polysemy().sentences[:70])

    def measured(change: Callable[[Any], Any]) -> Results:
        model = copy.deepcopy(base)
        change(model)
        encoder = ctxexp.from_transformers(model, tokenizer)
        return ctxexp.measure(encoder, corpus, options=["min_contexts=3", "bootstrap=300"], progress=False)

    def diff(a: Results, b: Results, margin: float = MARGIN) -> Gate:
        return compared(a, b, margin=margin, independent_sentences=True)  # each was written by itself

    def swap_layers(model: Any) -> None:
        layers = model.encoder.layer
        layers[1], layers[2] = layers[2], layers[1]

    plain = measured(bool)
    wrong = ("two layers swapped", "a norm's weights 1", "a norm left out")
    drifts: dict[str, Callable[[Any], Any]] = {
        "two layers swapped": swap_layers,
        "a norm's weights 1": lambda model: model.encoder.layer[-1].output.LayerNorm.weight.data.fill_(1.0),
        "a norm left out": lambda model: setattr(model.encoder.layer[0].output, "LayerNorm", torch.nn.Identity()),
        "bfloat16": lambda model: model.to(torch.bfloat16).float(),
        "int8, dynamic": lambda model: torch.ao.quantization.quantize_dynamic(  # type: ignore[no-untyped-call]
            model, {torch.nn.Linear}, torch.qint8, inplace=True
        ),
    }
    kinds = tuple(drifts)
    changed = {what: measured(change) for what, change in drifts.items()}
    found = {what: diff(plain, results) for what, results in changed.items()}
    moved = {what: len(gate.outside) for what, gate in found.items()}
    assert [what for what in kinds if moved[what]] == [*wrong], moved
    assert {value.layer for value in found["a norm's weights 1"].outside} == {4}
    assert diff(plain, changed["int8, dynamic"], margin=1e-3).outside  # smaller margins find these
    assert diff(plain, changed["bfloat16"], margin=1e-5).outside
    assert not diff(plain, plain, margin=0).outside
