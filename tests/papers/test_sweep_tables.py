"""Tables of a sweep: files of what the registry offers, and a plugin's mistake named as the plugin's."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from ctxexp.errors import PluginError
from ctxexp.papers.sweep_tables import SweepTable, markdown, write_figures, write_tables, written
from ctxexp.plugins import Register, build_registry, hookimpl
from ctxexp.report.frame import blank

TABLE = SweepTable(
    "Title", pd.DataFrame({"a": [1.0, math.nan]}), ["a", "bc"], [["1|2", "x"], ["1", "yyyy"]], ["a note"]
)


class Plugin:
    """Offers a table of any runs, and one of none."""

    @hookimpl
    def register_tables(self, register: Register) -> None:
        register("x", lambda runs: TABLE)
        register("y", lambda runs: None)

    @hookimpl
    def register_figures(self, register: Register) -> None:
        register("drawn", lambda runs: blank(2, 1))
        register("undrawn", lambda runs: None)


class Wrong:
    @hookimpl
    def register_tables(self, register: Register) -> None:
        register("z", lambda runs: runs[0])

    @hookimpl
    def register_figures(self, register: Register) -> None:
        register("torn", lambda runs: runs[0])


def test_sweep_tables_are_files_that_line_up(tmp_path: Path) -> None:
    assert markdown(TABLE) == (
        "**Title**\n\n| a    | bc   |\n|------|------|\n| 1\\|2 | x    |\n| 1    | yyyy |\n\n- a note\n"
    )
    paths = write_tables([], tmp_path, build_registry([("mine", Plugin())], installed=False))
    assert [p.name for p in paths] == ["table_x.csv", "table_x.md"]
    assert (tmp_path / "table_x.csv").read_text(encoding="utf-8").split() == ["a", "1.0", '""']
    assert written(tmp_path) == [markdown(TABLE)]


def test_a_figure_of_a_plugin_is_two_files(tmp_path: Path) -> None:
    paths = write_figures([], tmp_path, build_registry([("mine", Plugin())], installed=False))
    assert [p.name for p in paths] == ["drawn.png", "drawn.svg"]
    assert all(p.stat().st_size > 100 for p in paths)


def test_a_plugin_whose_table_fails_is_named(tmp_path: Path) -> None:
    registry = build_registry([("mine", Wrong())], installed=False)
    with pytest.raises(
        PluginError, match=r"^table 'z' of plugin 'mine' \(- -\) could not be built: IndexError: .*range$"
    ):
        write_tables([], tmp_path, registry)
    with pytest.raises(PluginError, match=r"^figure 'torn' of plugin 'mine' \(- -\) could not be built: IndexError"):
        write_figures([], tmp_path, registry)


def test_ours_come_by_the_hook() -> None:
    registry = build_registry(installed=False)
    assert registry.names("table") == ["league", "li_2020"]
    assert registry.find("table", "league").typed == "table_league.md"
    assert registry.find("figure", "isotropy_against_spearman").typed == "isotropy_against_spearman.png"
