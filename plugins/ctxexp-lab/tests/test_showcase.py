"""`make showcase`: the room that it says it takes is what the vectors take."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.shipped import polysemy

FILE = Path(__file__).resolve().parents[1] / "showcase.py"
if not FILE.exists():
    pytest.skip("needs the script of the checkout", allow_module_level=True)
SCRIPT = runpy.run_path(str(FILE))
SMOLLM2, MINIS = 31 * 576, 2 * 5 * 192  # layers x width, of gpt2 and bert together
PREFIXES = 3  # as tokenized, behind a start token, behind a dot; norms and first words need no vectors of their own
BYTES = 4
STS_WORDS = 28_973  # of the pairs of STS-B's test half


@pytest.mark.parametrize(("is_smollm2", "has_sentences"), SCRIPT["COST"])
def test_the_room_that_is_announced_is_what_vectors_take(is_smollm2: bool, has_sentences: bool) -> None:
    words = sum(len(sentence.words) for sentence in polysemy().sentences) + STS_WORDS * has_sentences
    taken = words * (SMOLLM2 * is_smollm2 + MINIS) * BYTES * PREFIXES / 1e9
    minutes, announced = SCRIPT["COST"][is_smollm2, has_sentences]
    assert announced == pytest.approx(taken, abs=0.1)
    assert minutes > 0
