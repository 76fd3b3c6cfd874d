"""The minis' card: what its script makes of what it measures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from docs.numbers import card
from docs.numbers.marked import marked
from docs.numbers.part import without_leading_zero
from tests.sample_results import results_with

TABLES = marked(card.CARD, card.MARK)
COLUMNS = [(model, weights) for model in card.MODELS for weights in card.WEIGHTS]
STATISTICS = ("raw", "baseline", "adjusted")
KEYS = ("contextuality/raw", *(f"self_similarity/{name}" for name in STATISTICS), "sense_separation/raw", "sts/all")


def test_tables_are_made_of_curves_intervals_and_words() -> None:
    curves = {f"{key}{end}": np.array([0.5, 36.44]) for key in KEYS for end in ("", "_ci_low", "_ci_high")}
    table = pd.DataFrame({"word": ["the", "a", "cat", "Are"], "mean": [0.9, 0.2, 0.5, 0.1]})
    one = results_with(curves=curves, tables={"self_similarity": table})
    made = card.section({column: dict.fromkeys(("words", "sts", "whitened"), one) for column in COLUMNS})
    assert f"\n| self-similarity, raw | {' | '.join(['.500 36.4'] * 6)} |\n" in made
    assert f"\n| STS-B test, last layer | {' | '.join(['.000 [nan, nan]'] * 3)} |\n" in made  # it has no resamples
    assert "\n| elmo, untrained | 75% | - | - | - | 25% | Are, a, cat, the |\n\n" in made
    heads = [table.splitlines()[0] for table in made.split("\n\n")]
    assert heads == [table.splitlines()[0] for table in TABLES.strip().split("\n\n")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.67, ".670"), (-0.0361, "-.036"), (-20.149, "-20.149"), (10.25, "10.250"), (-0.9999, "-1.000")],
)
def test_only_a_leading_zero_is_left_out(value: float, expected: str) -> None:
    assert without_leading_zero(value) == expected


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.6701, ".670"), (0.9996, "1"), (-0.0001, ".000"), (36.44, "36.4"), (9.7219, "9.72"), (1.0004, "1")],
)
def test_numbers_have_three_figures(value: float, said: str) -> None:
    assert card.number(value) == said
