"""The page of what was tried: every kind of fault in full, nothing lost."""

from __future__ import annotations

from pathlib import Path

from benchmarks.faults.bench import FULL

PAGE = Path(__file__).resolve().parent.parent / "docs" / "robustness.md"


def test_every_kind_of_fault_was_tried_in_full() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Faults\n")[2].partition("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in section.splitlines() if line[:1] == "|"]
    rows = {kind: rest for kind, *rest in cells[2:]}
    total = rows.pop("all")
    assert set(rows) == set(FULL)
    for kind, (tried, well, refused, lost, silent, tracebacks, skipped) in rows.items():
        assert int(tried) == FULL[kind]
        assert int(well) + int(skipped) == int(tried)
        assert int(refused) <= int(well)
        assert (lost, silent, tracebacks) == ("0", "0", "0")
    assert [int(cell) for cell in total] == [sum(int(row[i]) for row in rows.values()) for i in range(len(total))]
