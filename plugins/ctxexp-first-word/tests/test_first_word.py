"""With and without first words: pairs of runs, what is said of their numbers, the figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ctxexp_first_word import words
from ctxexp_first_word.effects import effects, frame
from ctxexp_first_word.figure import figure
from ctxexp_first_word.table import table

from ctxexp.results import Results
from tests.composed import composed
from tests.made import results_with, told

ROOT = Path(__file__).resolve().parents[3]
ISS, STS = "intra_sentence_similarity", "sts"
SAID = {
    ISS: {"name": ISS, "variant": "", "title": "Intra-sentence similarity", "unit": "cosine", "definition": "cosine"},
    STS: {"name": STS, "variant": "", "title": "STS", "unit": "Spearman × 100", "main": "all", "definition": "rho"},
}


def made(measure: str, curve: list[float], *, control: str = "none", spread: float = 0.01, **info: Any) -> Results:
    """A run of one measure whose replicates are the curve and noise that both runs of a pair share, less `spread`."""
    said = {
        "n_layers": len(curve),
        "measures": {measure: SAID[measure]},
        "name": "smol",
        "title": "smol",
        "encoder": "e",
    }
    said |= {"fingerprint": measure, "seed": 0, "bootstrap": 50, "control": control}
    said |= {"corpus": "sts_b" if measure == STS else "polysemy"}
    key = f"{measure}/{'all' if measure == STS else 'adjusted'}"
    noise = 5 * np.random.default_rng(1).normal(size=50)  # the same sentences are drawn in both
    own = spread * np.random.default_rng(len(control)).normal(size=50)
    replicates = {key: (np.array(curve)[:, None] + noise + own).astype(np.float32)}
    return results_with({key: np.array(curve)}, {}, replicates=replicates, info=told(**{**said, **info}))


def runs() -> list[tuple[str, Results]]:
    """smol's words are alike without first words in layers 1 and 2, its sentences in layer 1; nothing moves plain."""
    without = {"control": "no first word"}
    found = [made(ISS, [0.3, 0.0, -0.01, 0.3]), made(ISS, [0.3, 0.21, 0.24, 0.31], **without)]
    found += [made(STS, [50, 9.9, 50, 36]), made(STS, [50, 51.5, 50, 36], **without)]
    plain = {"name": "plain", "title": "plain", "encoder": "p"}
    found += [made(ISS, [0.2, 0.2], **plain), made(ISS, [0.2, 0.21], **plain, **without)]
    found.append(made(ISS, [0.2, 0.2], encoder="alone", title="alone"))
    found.append(made(ISS, [0.2, 0.2], control="shuffled", encoder="alone", title="alone"))
    return [(r.info.title if r.info.control == "none" else f"{r.info.title} ({r.info.control})", r) for r in found]


def test_pairs_differ_in_the_first_word_alone_and_are_compared_on_the_same_resamples() -> None:
    found = effects(runs())
    assert [(e.metric, e.model, str(e.key)) for e in found] == [
        (ISS, "smol", f"{ISS}/adjusted"), (ISS, "plain", f"{ISS}/adjusted"), (STS, "smol", "sts/all"),
    ]  # fmt: skip
    moved = found[0].moved
    np.testing.assert_allclose(moved.value, [0, 0.21, 0.25, 0.01])
    assert (moved.high - moved.low).max() < 0.1  # the noise of 5 that both share is gone
    assert frame(found).columns.tolist() == [
        "measure", "model", "corpus", "layer", "with_first", "without_first", "difference", "low", "high",
        "with_first_matched", "without_first_matched",
    ]  # fmt: skip


def test_what_is_said_is_what_the_numbers_are() -> None:
    numbers = frame(effects(runs()))
    assert words.title(numbers) == (
        "smol without the first word of each sentence: intra-sentence similarity −0.01 → 0.24 (layer\u00a02), "
        "STS-B 9.9 → 51.5 (layer\u00a01)"
    )
    still = frame(effects([run for run in runs() if run[1].info.title == "plain"]))
    assert words.title(still) == "The first word of each sentence moves no curve by more than chance could"


def test_the_table_has_each_curve_where_it_moves_most() -> None:
    made_table = table(runs())
    assert made_table is not None
    assert [row[:5] for row in made_table.shown] == [
        ["intra-sentence similarity", "smol", "2", "−0.01", "0.24"],
        ["intra-sentence similarity", "plain", "1", "0.20", "0.21"],
        ["STS-B", "smol", "1", "9.9", "51.5"],
    ]
    assert table(runs()[:1]) is None


def test_the_figure_has_a_panel_a_measure_a_hue_a_model_and_dashes_without() -> None:
    drawn = figure(runs())
    assert drawn is not None
    left, right = drawn.axes
    lines = [line for line in left.lines if len(np.atleast_1d(line.get_xdata())) > 1 and line.get_marker() == "o"]
    assert [line.get_linestyle() for line in lines] == ["-", "--", "-", "--"]
    assert lines[0].get_color() == lines[1].get_color() != lines[2].get_color()
    assert right.get_title(loc="left") == "STS"
    assert (
        figure([run for run in runs() if run[1].info.corpus.name == "polysemy"]) is not None
    )  # without pairs, one panel
    assert figure(runs()[:1]) is None


@pytest.mark.parametrize(("dataset", "metric"), [("polysemy", ISS), ("sts_b_given", STS)])
def test_the_experiment_measures_what_its_data_has(
    dataset: str, metric: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STS", str(tmp_path))
    config = composed("experiment=first_word", f"dataset={dataset}", "model=bert")
    assert list(config.metric) == [metric]
    assert config.dataset.arguments.get("path") == (str(tmp_path) if metric == STS else None)
