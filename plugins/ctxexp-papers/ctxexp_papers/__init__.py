"""Studies of papers: their claims as tests, one claim over all defensible choices and the first word."""

from __future__ import annotations

import ctxexp
from ctxexp import Register


@ctxexp.hookimpl
def register_commands(register: Register) -> None:
    register("claims", "ctxexp_papers.claims.command:claims")


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    register("massive_activations", "ctxexp_papers.metrics:MassiveActivations")
    register("self_similarity_by_senses", "ctxexp_papers.monosemy.metric:SelfSimilarityBySenses")


@ctxexp.hookimpl(optionalhook=True)  # of ctxexp_compare
def register_comparisons(register: Register) -> None:
    register("linear_fit", "ctxexp_papers.metrics:LinearFit")


@ctxexp.hookimpl
def register_reports(register: Register) -> None:
    register("table_first_word", "ctxexp_papers.first_word.table:table")
    register("table_multiverse", "ctxexp_papers.multiverse.table:table")
    register("table_multiverse_joint", "ctxexp_papers.multiverse.table:joint_table")
    register("first_word", "ctxexp_papers.first_word.figure:figure")
    register("multiverse", "ctxexp_papers.multiverse.figure:figure")
