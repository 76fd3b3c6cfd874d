"""Static vectors of words for ctxexp: a metric, Table 1 of Ethayarajh (2019) and its nine benchmarks, and verbs."""

from __future__ import annotations

import ctxexp
from ctxexp import Register


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    register("static_vectors", "ctxexp_measures.words.metric:StaticVectors")


@ctxexp.hookimpl
def register_reports(register: Register) -> None:
    register("table_1", "ctxexp_measures.words.table_1:table_1")


@ctxexp.hookimpl
def register_commands(register: Register) -> None:
    register("bench-words", "ctxexp_measures.words.command:bench_words")
