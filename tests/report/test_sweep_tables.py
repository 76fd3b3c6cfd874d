"""Tables of a sweep: files of what the registry offers, and a plugin's mistake named as the plugin's."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from ctxexp import Register, hookimpl
from ctxexp.errors import PluginError
from ctxexp.report import Table, empty_figure
from ctxexp.report.terminal import table_texts, write_figures, write_tables
from tests.composed import registry_of

TABLE = Table("Title", pd.DataFrame({"a": [1.0, math.nan]}), ["a", "bc"], [["1|2", "x"], ["1", "yyyy"]], ["a note"])


class Plugin:
    """Offers a table of any runs, and one of none."""

    @hookimpl
    def register_reports(self, register: Register) -> None:
        register("table_x", lambda runs: TABLE)
        register("table_y", lambda runs: None)
        register("drawn", lambda runs: empty_figure(2, 1))
        register("undrawn", lambda runs: None)


class Wrong:
    @hookimpl
    def register_reports(self, register: Register) -> None:
        register("table_z", lambda runs: runs[0])
        register("torn", lambda runs: runs[0])


def test_sweep_tables_are_files_that_line_up(tmp_path: Path) -> None:
    assert TABLE.markdown() == (
        "**Title**\n\n| a    | bc   |\n|------|------|\n| 1\\|2 | x    |\n| 1    | yyyy |\n\n- a note\n"
    )
    paths = write_tables([], tmp_path, registry_of([("mine", Plugin())]))
    assert [p.name for p in paths] == ["table_x.csv", "table_x.md", "table_x.tex"]
    assert (tmp_path / "table_x.csv").read_text(encoding="utf-8").split() == ["a", "1.0", '""']
    assert table_texts(tmp_path) == [TABLE.markdown()]
    assert (tmp_path / "table_x.tex").read_text(encoding="utf-8") == (
        "\\begin{tabular}{lr}\n\\toprule\na & bc \\\\\n\\midrule\n1|2 & x \\\\\n1 & yyyy \\\\\n\\bottomrule\n"
        "\\end{tabular}\n"
    )
    odd = Table("Odd", TABLE.numbers, ["a_b", "one long head"], [["5% \\ ~", "\N{MINUS SIGN}1"]]).latex()
    assert r"a\_b & \shortstack[r]{one long\\head} \\" in odd
    assert r"5\% \textbackslash{} \textasciitilde{} & $-$1 \\" in odd


def test_a_plugin_whose_table_fails_is_named(tmp_path: Path) -> None:
    registry = registry_of([("mine", Wrong())])
    with pytest.raises(
        PluginError, match=r"^report 'table_z' of plugin 'mine' \(- -\) could not be built: IndexError: .*range$"
    ):
        write_tables([], tmp_path, registry)
    with pytest.raises(PluginError, match=r"^report 'torn' of plugin 'mine' \(- -\) could not be built: IndexError"):
        write_figures([], tmp_path, registry)
