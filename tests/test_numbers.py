"""docs/numbers: a part takes numbers and writes its words; steps name commands that are there."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from docs.numbers.marked import marked
from docs.numbers.part import ROOT


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
