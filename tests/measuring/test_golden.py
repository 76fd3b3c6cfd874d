"""No number moves unnoticed: eight small runs give what is on file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden import CASES, ELSEWHERE, FILE, differences, numbers, results_of


@pytest.mark.parametrize("case", CASES)
def test_the_run_gives_the_numbers_on_file(case: str, tmp_path: Path) -> None:
    held = json.loads(FILE.read_text())[case]
    # Other processors add in another order; `python -m tests.golden --check` compares bits on one machine.
    assert list(differences(held, numbers(results_of(CASES[case], tmp_path)), tolerance=ELSEWHERE)) == []
