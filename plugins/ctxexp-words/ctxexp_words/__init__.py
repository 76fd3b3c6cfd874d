"""Static vectors of words for ctxexp: a metric, Table 1 of Ethayarajh (2019) and its nine benchmarks, and a verb."""

from __future__ import annotations

from pathlib import Path

import ctxexp
from ctxexp.plugins import Register


def bench_words(argv: list[str]) -> int:
    """Score a file of word vectors on nine benchmarks: vectors=FILE data=FOLDER [key=value ...]."""
    from ctxexp_words.command import main

    return main(argv)


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    from ctxexp_words.metric import StaticVectors

    register("static_vectors", StaticVectors)


@ctxexp.hookimpl
def register_tables(register: Register) -> None:
    from ctxexp_words.table_1 import table_1

    register("1", table_1)


@ctxexp.hookimpl
def register_commands(register: Register) -> None:
    register("bench-words", bench_words)


@ctxexp.hookimpl
def config_folders() -> str:
    return str(Path(__file__).parent / "conf")
