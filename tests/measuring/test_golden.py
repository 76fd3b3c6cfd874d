"""No number moves unnoticed: eight small runs give what is on file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden import CASES, ELSEWHERE, FILE, differences, numbers, results_of

BY_DAY = ("words", "drawn", "size_matched", "pairs")
OTHERS = [pytest.param(case, marks=pytest.mark.nightly) for case in CASES if case not in BY_DAY]


@pytest.mark.parametrize("case", [*BY_DAY, *OTHERS])
def test_the_run_gives_the_numbers_on_file(case: str, tmp_path: Path) -> None:
    held = json.loads(FILE.read_text())[case]
    # Other processors add in another order; `python -m tests.golden --check` compares bits on one machine.
    assert list(differences(held, numbers(results_of(CASES[case], tmp_path)), tolerance=ELSEWHERE)) == []
