"""A marked block of a page is what the kept numbers make, and each number of the prose after it stands there; the
README prints those of the known model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from docs.numbers import atlas, card
from docs.numbers.marked import marked
from docs.numbers.part import ROOT, Part
from docs.numbers.steps import STEPS

PARTS = {step.mark: step for step in STEPS.values() if isinstance(step, Part)}
MADE = {
    **{(ROOT / part.page, part.mark): lambda part=part: part.table(part.read()) for part in PARTS.values()},  # type: ignore[misc]
    (ROOT / atlas.PAGE, atlas.MARK): lambda: atlas.table(atlas.rows()),
}
PAGES = [ROOT / "README.md", card.CARD, *(p for top in ("docs", "plugins") for p in sorted((ROOT / top).rglob("*.md")))]
BLOCKS = [
    pytest.param(page, mark, id=mark)
    for page in PAGES
    for mark in re.findall(r"<!-- ([\w ]+): begin -->", page.read_text(encoding="utf-8"))
]

ELSEWHERE = {
    "known model": "0 1,493 95%",
    "measured": "30%",
    "atlas": "40 200 95%",
    "contrastive": "300",
    "first word": "100 95%",
    "nulls": "5% 30 40 60 200 400",
    "interval coverage": "80 130 .003 .03 .04 .05 .86 .90",
    "centred": ".0001 .007 .022",
    "carried": "5% 10% 95% .1 2.5% 20 300 2014",
    "floors": "2.5% 97%",
    "claims": "6 12 32",
    "trainings": ".002",
}
"""Numbers of the prose after a block that its table lacks: years, sizes, layers, what others or other runs gave."""


@pytest.mark.parametrize(("page", "mark"), MADE, ids=[mark for _, mark in MADE])
def test_a_block_is_what_its_numbers_make(page: Path, mark: str) -> None:
    assert marked(page, mark) == MADE[page, mark]()


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_the_figures_of_a_part_are_shown(part: Part) -> None:
    shown = " ".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in part.figures:
        assert f"{name})" in shown
        assert (ROOT / "docs" / name).is_file()


def numbers_in(text: str) -> Iterator[tuple[str, float, float]]:
    """Each number of a text without its code and addresses: as written, its size, and how far a number may lie from it
    that is rounded to it (a count: nothing)."""
    text = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)|^    .*$", "", text, flags=re.DOTALL | re.MULTILINE)
    for written in re.findall(r"(?<![\w.])(?<!\w-)((?:\d[\d,]*)?\d(?:\.\d+)?%?|\.\d+)(?![\d.]*\d)", text):
        number = written.rstrip("%").replace(",", "")
        decimals = len(number.partition(".")[2])
        yield written, float(number), 0.5001 * 10**-decimals if decimals or "%" in written else 0


@pytest.mark.parametrize(("page", "mark"), BLOCKS)
def test_a_number_after_a_block_stands_in_it(page: Path, mark: str) -> None:
    """To the same decimals, or to be rounded as it is written."""
    table = list(numbers_in(marked(page, mark)))
    after = page.read_text(encoding="utf-8").partition(f"<!-- {mark}: end -->")[2]
    absent = {
        written for written, size, off in numbers_in(re.split(r"\n#|<!-- [\w ]+: begin", after)[0])
        if not any(abs(size - other) <= off and (not off or rounded <= off) for _, other, rounded in table)
    }  # fmt: skip
    assert absent == set(ELSEWHERE.get(mark, "").split())


def test_the_readme_prints_the_kept_numbers_of_a_known_model() -> None:
    kept = pd.read_csv(ROOT / "docs" / "known_model.csv").pivot(
        index="layer", columns="statistic", values=["value", "low", "high"]
    )
    block = marked(ROOT / "README.md", "known model")
    lines = re.findall(r"^(\d+) +(\S+) \[(\S+), (\S+)\] (\S+)–(\S+)$", block, flags=re.MULTILINE)
    assert [int(layer) for layer, *_ in lines] == kept.index.to_list()
    for layer, *printed in lines:
        row = kept.loc[int(layer)]
        exact = [row[at, "raw"] for at in ("value", "low", "high")]
        assert [float(number) for number in printed[:3]] == pytest.approx(exact, abs=5.1e-4)
        ends = [row["value", statistic] for statistic in ("lowest", "highest")]
        assert [float(number) for number in printed[3:]] == pytest.approx(ends, abs=5.1e-3)
    home = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    first, last = (kept["value", "raw"].iloc[i] for i in (0, -1))
    assert f"grows from {first:.2f} at the input to {last:.2f} at the last layer, {kept.index[-1]}:" in home
