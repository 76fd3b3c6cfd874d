"""Published papers: their values, and tables and figures that set a sweep's runs beside them; a folder a paper."""

from __future__ import annotations

from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_tables(register: Register) -> None:
    register("league", "ctxexp.papers.calibration_league.table:table_league")
    register("li_2020", "ctxexp.papers.li_2020.table:table_li_2020")


@hookimpl
def register_figures(register: Register) -> None:
    register("isotropy_against_spearman", "ctxexp.papers.calibration_league.figure:league_figure")
