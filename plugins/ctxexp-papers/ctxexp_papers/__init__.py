"""Studies of papers: their claims as tests, one claim over all defensible choices, the first word, and twins."""

from __future__ import annotations

from pathlib import Path
from pkgutil import iter_modules

import ctxexp
from ctxexp import Register

PAPERS = Path(__file__).with_name("papers")


@ctxexp.hookimpl
def register_commands(register: Register) -> None:
    register("claims", "ctxexp_papers.claims.command:claims")


@ctxexp.hookimpl(optionalhook=True)  # of this distribution itself: an installation of before it knows no such hook
def register_papers(register: Register) -> None:
    for module in iter_modules([str(PAPERS)]):  # a paper is offered by being there
        register(module.name, f"ctxexp_papers.papers.{module.name}:paper")


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    register("self_similarity_by_senses", "ctxexp_papers.monosemy.metric:SelfSimilarityBySenses")


@ctxexp.hookimpl
def register_baselines(register: Register) -> None:
    register("frequency_matched", "ctxexp_papers.twins.baselines:FrequencyMatched")
    register("position_matched", "ctxexp_papers.twins.baselines:PositionMatched")


@ctxexp.hookimpl
def register_reports(register: Register) -> None:
    register("table_first_word", "ctxexp_papers.first_word.table:table")
    register("table_multiverse", "ctxexp_papers.multiverse.table:table")
    register("table_multiverse_joint", "ctxexp_papers.multiverse.table:joint_table")
    register("first_word", "ctxexp_papers.first_word.figure:figure")
    register("multiverse", "ctxexp_papers.multiverse.figure:figure")
