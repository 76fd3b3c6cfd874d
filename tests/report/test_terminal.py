"""Tables on a terminal: every line has its interval and its chance, and none is wider than the terminal."""

from __future__ import annotations

import numpy as np
import pytest

from ctxexp import Results
from ctxexp.report.terminal import answer
from tests.sample_results import results_with, run_info

LAYERS = 31


def run(n: int = LAYERS, *, title: str = "bert", **facts: object) -> Results:
    """Three measures: one by chance with an interval, one with neither, and one long one."""
    x = np.linspace(0.9, 0.1, n)
    curves = {
        "self_similarity/adjusted": x, "self_similarity/adjusted_ci_low": x - 0.02,
        "self_similarity/adjusted_ci_high": x + 0.03, "self_similarity/baseline": 1 - x,
        "word_norm/raw": 1234.5 * x,
        "max_explainable_variance_released/adjusted": np.where(x > 0.5, np.nan, x - 0.5),
        "max_explainable_variance_released/baseline": x / 2,
    }  # fmt: skip
    mixes = {"self_similarity.last2/adjusted": 0.25, "self_similarity.last2/baseline": 0.5}
    return results_with(curves, mixes, info=run_info(title=title, n_layers=n, **facts))


@pytest.mark.parametrize("width", [60, 80, 160])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    runs = [("bert", run()), ("HuggingFaceTB/SmolLM2", run(13)), ("a name of a model " * 3, run(4))]
    for some in (runs, runs[:1]):
        assert max(map(len, answer(some, width).splitlines())) <= width


def test_a_command_ends_with_sentences_and_a_line_a_run() -> None:
    lines = answer([("bert", run(3)), ("gpt2", run(5))], 200).splitlines()
    said, table = lines[: lines.index("")], lines[lines.index("") + 1 :]
    assert [line.partition(" in ")[2].partition(":")[0] for line in said[:2]] == ["bert", "gpt2"]
    assert said[2].startswith("On this text, at the last layer, ")
    assert " ".join(table[2].split()) == "adjusted 95% interval chance word norm adjusted chance"
    assert table[4].split() == ["bert", "0.100", "[0.080,", "0.130]", "0.900", "123.450", "-0.400", "0.050"]


def test_one_run_ends_with_a_line_a_layer() -> None:
    lines = answer([("bert", run(5, layers=(0, 4), mixes={"last2": "layers 3, 4"}))], 200).splitlines()
    assert [line.split()[0] for line in lines[-3:]] == ["0", "4", "last2"]
    assert lines[-3].split()[1:] == ["0.900", "[0.880,", "0.930]", "0.100", "1111.050", "0.450"]
    assert lines[-1].split()[1:] == ["0.250", "0.500"]
    assert answer([("bert", results_with({}))], 80) == ""
