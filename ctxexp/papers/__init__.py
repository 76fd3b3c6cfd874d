"""Published papers: their values, and tables and figures that set a sweep's runs beside them; a folder a paper."""

from __future__ import annotations

from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_tables(register: Register) -> None:
    register("frequency", "ctxexp.papers.frequency.table:table_frequency")
    register("degeneration", "ctxexp.papers.frequency.table:table_degeneration")
    register("league", "ctxexp.papers.calibration_league.table:table_league")
    register("li_2020", "ctxexp.papers.li_2020.table:table_li_2020")


@hookimpl
def register_figures(register: Register) -> None:
    register("isotropy_against_spearman", "ctxexp.papers.calibration_league.figure:league_figure")
