"""Static vectors of words for ctxexp: a metric, Table 1 of Ethayarajh (2019) and its nine benchmarks, and verbs."""

from __future__ import annotations

import ctxexp
from ctxexp import Register


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    from ctxexp_measures.words.metric import StaticVectors

    register("static_vectors", StaticVectors)


@ctxexp.hookimpl
def register_reports(register: Register) -> None:
    from ctxexp_measures.words.table_1 import table_1

    register("table_1", table_1)


@ctxexp.hookimpl
def register_commands(register: Register) -> None:
    register("bench-words", "ctxexp_measures.words.command:bench_words")
