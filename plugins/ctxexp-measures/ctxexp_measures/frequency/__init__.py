"""Frequency geometry and degeneration for ctxexp: two metrics of layers and embedding tables, an experiment, tables."""

from __future__ import annotations

import ctxexp
from ctxexp import Register


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    register("degeneration", "ctxexp_measures.frequency.degeneration:Degeneration")
    register("frequency_geometry", "ctxexp_measures.frequency.metric:FrequencyGeometry")


@ctxexp.hookimpl
def register_reports(register: Register) -> None:
    register("table_frequency", "ctxexp_measures.frequency.table:table_frequency")
    register("table_degeneration", "ctxexp_measures.frequency.table:table_degeneration")
