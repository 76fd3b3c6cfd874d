"""The minis' card: what its script measures and makes of it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from docs.numbers import card
from docs.numbers.marked import marked
from tests.made import results_with

TABLES = marked(card.CARD, card.MARK)
COLUMNS = [(model, weights) for model in card.MODELS for weights in card.WEIGHTS]
STATISTICS = ("raw", "baseline", "adjusted", "share_of_room")
KEYS = (*(f"self_similarity/{name}" for name in STATISTICS), "sense_separation/raw", "sts/all")


@pytest.mark.parametrize("model", card.MODELS)
def test_the_first_sentences_give_what_the_card_says(model: str, tmp_path: Path) -> None:
    found = card.beginning(model, "mini", f"cache.folder={tmp_path}", "bootstrap=0")
    (row,) = re.findall(rf"^\| self-similarity, raw, first {card.FIRST} sentences alone \| (.*) \|$", TABLES, re.M)
    said = [float(number) for number in row.split(" | ")[COLUMNS.index((model, "mini"))].split()]
    assert said == pytest.approx(found.by_name["self_similarity/raw"].tolist(), abs=0.0011)  # its three figures


def test_tables_are_made_of_curves_intervals_and_words() -> None:
    curves = {f"{key}{end}": np.array([0.5, 36.44]) for key in KEYS for end in ("", "_ci_low", "_ci_high")}
    table = pd.DataFrame({"word": ["the", "a", "cat", "Are"], "mean": [0.9, 0.2, 0.5, 0.1]})
    one = results_with(curves=curves, tables={"self_similarity": table})
    found = {column: dict.fromkeys(("words", "first", "sts", "whitened"), one) for column in COLUMNS}
    made = card.section(found)
    assert f"\n| self-similarity, raw | {' | '.join(['.500 36.4'] * 6)} |\n" in made
    assert f"\n| STS-B test | {' | '.join(['36.4 [36.4, 36.4]'] * 6)} |\n" in made
    assert f"\n| STS-B test, last layer | {' | '.join(['.000 [nan, nan]'] * 3)} |\n" in made  # it has no resamples
    assert "\n| elmo, untrained | 75% | - | - | - | 25% | Are, a, cat, the |\n\n" in made
    assert made.endswith("\n\nEach model is one training run: intervals are over the text, not over trainings.")
    heads = [table.splitlines()[0] for table in made.split("\n\n")]
    assert heads == [table.splitlines()[0] for table in TABLES.strip().split("\n\n")]


def test_a_folder_without_the_benchmark_is_said_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert card.main(["--sts", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path} (dataset.path) should hold")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.6701, ".670"),
        (1.0, "1"),
        (0.9996, "1"),
        (-0.002, "-.002"),
        (-0.0001, ".000"),
        (36.44, "36.4"),
        (9.7219, "9.72"),
        (1.0004, "1"),
    ],
)
def test_numbers_have_three_figures(value: float, said: str) -> None:
    assert card.number(value) == said
