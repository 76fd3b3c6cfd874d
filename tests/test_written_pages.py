"""Pages that scripts of docs/numbers write: their tables are made of the kept numbers, their sentences quote these."""

from __future__ import annotations

from types import ModuleType

import pandas as pd
import pytest

from docs.numbers import penalty, points
from docs.numbers.marked import marked
from docs.numbers.part import ROOT
from tests.test_paragraphs import numbers_in, quoted


@pytest.mark.parametrize("made", [penalty, points])
def test_what_a_script_writes_is_made_of_its_numbers(made: ModuleType) -> None:
    numbers = pd.read_csv(made.NUMBERS, dtype={"penalty": str})
    assert marked(made.PAGE, made.MARK) == made.table(numbers)
    page = str(made.PAGE.relative_to(ROOT))
    said = numbers_in(quoted(page, made.MARK))
    assert said
    assert said - {"2", "2019"} <= numbers_in(made.table(numbers))
    assert f"{made.PICTURE.name})" in made.PAGE.read_text(encoding="utf-8")
    assert made.PICTURE.is_file()


def test_the_penaltys_figure_says_which_way_words_went() -> None:
    numbers = pd.read_csv(penalty.NUMBERS, dtype={"penalty": str})
    lower = penalty.finding(numbers)
    assert "words are less alike: their mean cosine" in lower
    by_hand = numbers[(numbers.penalty == "1") & (numbers.curve == "anisotropy/mean_cosine") & (numbers.x > 0)]
    first, second = by_hand.groupby("model").value.mean()
    assert f"is {first:.2f} in place of" in lower
    assert f"bert, {second:.2f} in place of" in lower

    swapped = numbers.assign(penalty=numbers.penalty.replace({"0": "1", "1": "0"}))
    assert "words are more alike: their" in penalty.finding(swapped)
    one = swapped.assign(penalty=numbers.penalty.where(numbers.model == "bert", swapped.penalty))
    assert "words are less alike in bert, more alike in gpt2: their" in penalty.finding(one)
