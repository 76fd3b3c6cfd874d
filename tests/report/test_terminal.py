"""Tables on a terminal: every line has its interval and its chance, and none is wider than the terminal."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from ctxexp import Results
from ctxexp.report import Table
from ctxexp.report.terminal import answer, curve_table, fitted_markdown, stacked_table
from ctxexp.results import RunInfo
from tests.made import results_with, told

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
    return results_with(curves, mixes, info=told(title=title, n_layers=n, **facts))


def numbers(line: str) -> list[str]:
    return re.findall(r"nan|-?[\d,]+\.\d+", line)


def test_a_line_a_layer_with_interval_and_chance() -> None:
    lines = curve_table(run(3, mixes={"last2": "layers 1, 2"}), 200).splitlines()
    assert lines[0].split() == ["self_similarity", "word_norm", "max_explainable_variance_released"]
    assert lines[1].split() == ["layer", "adjusted", "95%", "interval", "chance", "raw", "adjusted", "chance"]
    assert [line.split()[0] for line in lines[3:]] == ["0", "1", "2", "last2"]
    assert numbers(lines[3]) == ["0.900", "0.880", "0.930", "0.100", "1,111.05", "nan", "0.450"]
    assert numbers(lines[5]) == ["0.100", "0.080", "0.130", "0.900", "123.45", "-0.400", "0.050"]
    assert numbers(lines[6]) == ["0.250", "0.500", "nan", "nan"]
    assert curve_table(results_with({}), 80) == ""


def test_the_share_leads_with_raw_chance_and_adjusted_beside_it() -> None:
    """A step that `adjusted` reverses bears a star, a measure over a text that lacks bands its mark."""
    share, level = np.array([0.77, 0.87, 0.72]), np.array([0.25, 0.60, 0.60])
    curves = {"share_of_room": share, "adjusted": share * (1 - level), "baseline": level}
    curves |= {"raw": curves["adjusted"] + level} | {f"share_of_room_ci_{e}": share for e in ("low", "high")}
    info = told(
        measures={"self_similarity": {"over": "word"}},
        mix=replace(RunInfo().mix, weights="bands", filled=(False, True, True)),
        n_layers=3,
    )
    results = results_with({f"self_similarity/{name}": values for name, values in curves.items()}, info=info)
    lines = curve_table(results, 100).splitlines()
    assert lines[0].strip() == "self_similarity (2 of 3 bands)"
    assert lines[1].split() == ["layer", "share_of_room", "95%", "interval", "raw", "chance", "adjusted"]
    assert lines[4].split() == ["1", "0.870*", "[0.870,", "0.870]", "0.948", "0.600", "0.348"]
    assert [line.count("*") for line in lines[3:6]] == [0, 1, 0]
    assert lines[6].startswith("share of the room above chance = (raw − chance) / (1 − chance): ")
    assert lines[-1] == "* from the layer before, adjusted moves the other way: its ceiling, 1 − chance, moved"


def test_layers_that_were_not_measured_have_no_line() -> None:
    lines = curve_table(run(5, layers=(0, 4)), 200).splitlines()
    assert [line.split()[0] for line in lines[3:]] == ["0", "4"]


@pytest.mark.parametrize("width", [60, 72, 80, 100, 120, 160, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """Whatever doesn't fit stands below, with all of its numbers."""
    results = run()
    runs = [
        ("bert", results),
        ("HuggingFaceTB/SmolLM2", run(13)),
        ("gpt2", run(13)),
        ("a name of a model " * 3, run(4)),
    ]
    for text in (curve_table(results, width), answer(runs, width)):
        assert max(map(len, text.splitlines())) <= width
    wide, narrow = (curve_table(results, n) for n in (1000, width))
    assert sorted(numbers(narrow)) == sorted(numbers(wide))
    assert narrow.count("\n30 ") == narrow.count("layer ")


def test_a_command_ends_with_sentences_and_a_line_a_run() -> None:
    lines = answer([("bert", run(3)), ("gpt2", run(5))], 200).splitlines()
    said, table = lines[: lines.index("")], lines[lines.index("") + 1 :]
    assert [line.partition(" in ")[2].partition(":")[0] for line in said[:2]] == ["bert", "gpt2"]
    assert said[2].startswith("Last layer: ")
    heads = ["adjusted", "95%", "interval", "chance", "word", "norm", "variance", "released"]
    assert table[1].split() == heads
    assert table[3].split() == ["bert", "0.100", "[0.080,", "0.130]", "0.900", "123.450", "-0.400"]


def test_one_run_ends_with_a_line_a_layer() -> None:
    lines = answer([("bert", run(5, layers=(0, 4)))], 200).splitlines()
    assert [line.split()[0] for line in lines[-2:]] == ["0", "4"]
    assert answer([("bert", results_with({}))], 80) == ""


def test_a_markdown_table_fits_too() -> None:
    columns = ["model", *(f"column {i}" for i in range(12))]
    table = Table("A table", None, columns, [["bert", *"abcdefghijkl"]], ["a note " * 20])  # type: ignore[arg-type]
    text = table.markdown()
    assert fitted_markdown(text, 1000) == text
    fitted = fitted_markdown(text, 60)
    assert max(map(len, fitted.splitlines())) <= 60
    assert fitted.startswith("**A table**\n\n")
    assert fitted.count("bert") == 3
    assert " ".join(fitted.split()).endswith("a note a note a note")
    assert set("abcdefghijkl") < set(fitted.split())


def test_a_column_wider_than_the_terminal_stands_alone() -> None:
    assert stacked_table(["", "a"], [["head", "x" * 30], ["h", "y"]], 20, head=1).split("\n") == [
        *("   head", "-" * 33, "a  " + "x" * 30, "", "   h", "----", "a  y"),
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_long_cell_is_broken_beside_the_name_of_its_row(width: int) -> None:
    rows = [["one", "yes", "a long sentence " * 10], ["two", "no", "short"]]
    text = Table("A table", None, ["claim", "outcome", "says"], rows).markdown()  # type: ignore[arg-type]
    lines = fitted_markdown(text, width).splitlines()
    assert max(map(len, lines)) <= width
    says = next(i for i, line in enumerate(lines) if line.endswith("says"))
    assert lines[says + 2].startswith("one  ")
    assert lines[says + 3].startswith("     ")
    assert [line for line in lines if line.startswith("two")][-1].split()[-1] == "short"
    assert "".join(lines).count("long") == 10
