"""Published papers: their values, and tables that set a sweep's runs beside them; a folder a paper."""

from __future__ import annotations

from ctxexp.papers.calibration_league.table import table_league
from ctxexp.papers.frequency.table import table_degeneration, table_frequency
from ctxexp.papers.li_2020.table import table_li_2020
from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_tables(register: Register) -> None:
    register("frequency", table_frequency)
    register("degeneration", table_degeneration)
    register("league", table_league)
    register("li_2020", table_li_2020)
