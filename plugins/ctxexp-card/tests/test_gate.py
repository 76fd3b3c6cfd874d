"""The gate: a model never drifts from itself, planted drifts are found; statuses, intervals, refusals."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ctxexp_card.command import report
from ctxexp_card.gate import diff

import ctxexp
from ctxexp.command.cli import command
from ctxexp.errors import ConfigError, CtxexpError, DataError, MetricError
from ctxexp.results import Results
from docs.numbers.marked import marked
from tests.made import results_with, told

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
    return results_with(curves, replicates=replicates, info=told(**{**said, **info}))


def test_one_model_over_two_texts_fails_at_the_stated_level() -> None:
    """200 pairs of runs of one truth, at a margin of 0: at most 5% (and three standard errors, 9.6%) fail."""
    failed = sum(bool(diff(run(2 * i), run(2 * i + 1), margin=0, same_text=False).moved) for i in range(200))
    assert failed <= 19
    assert sum(bool(diff(run(2 * i), run(2 * i + 1), same_text=False).moved) for i in range(200)) <= 1


def test_a_run_against_itself_is_equal_everywhere() -> None:
    one = run(0)
    found = diff(one, one, margin=0)
    assert not found.moved
    assert not found.open
    assert all(value.low == value.high == 0 for value in found.values)
    assert len(found.values) == 2 * LAYERS


def test_a_shift_beyond_the_margin_is_found_where_it_is_and_one_below_it_is_not() -> None:
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
    assert frame.curve.tolist()[0] == "anisotropy/mean_cosine"


def test_what_both_owe_to_the_same_sentences_cancels() -> None:
    """Noise that both runs share says nothing of their difference."""
    a = run(3)
    b = run(3, shift=0.03)  # the same noise
    assert {v.layer for v in diff(a, b, margin=0.029).moved} == {3}
    assert not diff(a, b, margin=0.029, same_text=True).open
    apart = diff(a, run(3, shift=0.03, fingerprint="g"), margin=0.029, same_text=False)
    assert not apart.moved
    assert apart.open


def test_what_is_defined_in_one_run_alone_has_moved() -> None:
    a, b = run(4), run(4)
    b.held[next(iter(b.held))].value[2] = np.nan
    [one] = diff(a, b).moved
    assert one.layer == 2


def test_the_report_names_what_moved_and_what_else_differs() -> None:
    a, b = run(5, spread=1e-4), run(6, spread=1e-4, shift=0.1, transform="center")
    said = report(diff(a, b), a, b)
    assert "2 of 14 values moved by more than 0.01" in said
    assert "transform differs: none and center" in said
    assert said.count("| moved") == 2
    assert "all 14 are within 0.01" in report(diff(a, a), a, a)


def bare() -> Results:
    return results_with({CURVES[0]: np.zeros(2)}, info=told(n_layers=2, measures=MEASURES, fingerprint="f"))


REFUSED: list[tuple[Callable[[], object], type[CtxexpError], str]] = [
    (lambda: diff(run(0), run(0), margin=-1), ConfigError, "margin=-1: expected 0 or more"),
    (lambda: diff(run(0), run(1, fingerprint="g")), ConfigError, "the texts differ"),
    (lambda: diff(run(0), run(1, bootstrap=5)), ConfigError, "resamples differ (seed 0 and 0, bootstrap 250 and 5"),
    (lambda: diff(run(0), bare()), ConfigError, "7 layers against 2: curves of equally deep models are compared"),
    (lambda: diff(bare(), bare()), DataError, "no curve of these runs has bootstrap replicates"),
    (lambda: diff(run(0), run(0), measures=["sts"]), MetricError, "no measure 'sts' in both runs"),
    (lambda: diff(results_with({}), results_with({})), DataError, "these runs have no measure in common"),
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
    for name, results in made.items():
        results.save(tmp_path / name)
        folders[name] = str(tmp_path / name)
    assert command(["diff", folders["a"], folders["a"]]) == 0
    assert command(["diff", folders["a"], folders["moved"], f"out={tmp_path / 'values.csv'}"]) == 1
    assert len((tmp_path / "values.csv").read_text().splitlines()) == 1 + 2 * LAYERS
    assert command(["diff", folders["a"], folders["open"], "margin=0.03"]) == 0
    assert command(["diff", folders["a"], folders["open"], "margin=0.03", "strict=true"]) == 3
    assert command(["diff", folders["a"], str(tmp_path / "nowhere")]) == 2
    assert "name a finished run's folder" in capsys.readouterr().err
    assert command(["diff", "bert 'x", folders["a"]]) == 2
    assert command(["diff", "bert gpt2", folders["a"]]) == 2
    assert "expected a run's folder, or one model" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_planted_drifts_of_a_trained_model_are_found_and_rounding_is_none(tmp_path: Path) -> None:
    """The BERT mini with two layers swapped and with wrong norms moves; in bfloat16 and by dynamic int8 it doesn't
    by the default margin."""
    import copy

    import torch
    from transformers import AutoModel, AutoTokenizer

    from ctxexp.datasets.polysemy import polysemy
    from ctxexp.models import minis
    from docs.numbers.drift import DRIFTS

    os.environ["CTXEXP_CACHE"] = str(tmp_path)
    base = AutoModel.from_pretrained(minis.folder("bert"), dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(minis.folder("bert"))
    corpus = ctxexp.Corpus("part", polysemy().sentences[:70])

    def measured(change: Callable[[Any], Any]) -> Results:
        encoder = ctxexp.from_transformers(change(copy.deepcopy(base)), tokenizer)
        return ctxexp.measure(encoder, corpus, options=["min_contexts=3", "bootstrap=300"], progress=False)

    plain = measured(lambda model: model)
    wrong = ("two layers swapped", "a norm's weights 1", "a norm left out")
    kinds = (*wrong, "bfloat16", "int8, dynamic")
    changed = {what: measured(DRIFTS[what]) for what in kinds}
    found = {what: diff(plain, results) for what, results in changed.items()}
    moved = {what: len(gate.moved) for what, gate in found.items()}
    assert [what for what in kinds if moved[what]] == [*wrong], moved
    assert {value.layer for value in found["a norm's weights 1"].moved} == {4}
    assert diff(plain, changed["int8, dynamic"], margin=1e-3).moved  # smaller margins find these
    assert diff(plain, changed["bfloat16"], margin=1e-5).moved
    assert not diff(plain, plain, margin=0).moved


def test_what_the_readme_says_of_planted_drifts_its_table_shows() -> None:
    from docs.numbers.drift import MARK, README

    _, _, *lines = marked(README, MARK).splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    found = {(model, what): not moved.startswith("0 of") for model, what, moved, *_ in rows}
    assert {model for model, _ in found} == {"bert", "gpt2", "minilm"}
    for (model, what), seen in found.items():
        if what in ("two layers swapped", "a norm's weights 1", "a norm left out", "norms' epsilon 0.1"):
            assert seen, (model, what)
        elif what != "int8, dynamic":
            assert not seen, (model, what)
    assert not found["gpt2", "int8, dynamic"]
    below = {(model, what): cells[1] for model, what, *cells in rows}
    assert all(float(below[model, "bfloat16"]) > 5e-5 for model in ("bert", "gpt2", "minilm"))
