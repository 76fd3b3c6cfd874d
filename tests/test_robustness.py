"""The page of what was tried: every kind in full, nothing lost, shares that follow from their counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.faults.bench import FULL

PAGE = Path(__file__).resolve().parent.parent / "docs" / "robustness.md"


def table(heading: str) -> dict[str, list[str]]:
    """The rows of the table under the heading, by their first cell."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return {first: rest for first, *rest in rows[2:]}


def test_every_kind_of_fault_was_tried_in_full() -> None:
    rows = table("Faults")
    total = rows.pop("all")
    assert set(rows) == set(FULL)
    for kind, (tried, well, refused, lost, silent, tracebacks, skipped) in rows.items():
        assert int(tried) == FULL[kind]
        assert int(well) + int(skipped) == int(tried)
        assert int(refused) <= int(well)
        assert (lost, silent, tracebacks) == ("0", "0", "0")
    assert [int(cell) for cell in total] == [sum(int(row[i]) for row in rows.values()) for i in range(len(total))]


def test_shares_of_mutants_follow_from_their_counts() -> None:
    rows = table("Mutants")
    for room, (mutants, tried, noticed, harmless, unnoticed, *shares) in rows.items():
        counts = [int(cell) for cell in (mutants, tried, noticed, harmless, unnoticed)]
        assert counts[1] == counts[0], room
        assert counts[1] == counts[2] + counts[3] + counts[4]
        assert float(shares[1]) == pytest.approx(counts[2] / (counts[1] - counts[3]), abs=5e-4)
        assert float(shares[1]) >= 0.95
