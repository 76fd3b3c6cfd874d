"""Papers' claims as tests, and the measures that only they need."""

from __future__ import annotations

import ctxexp
from ctxexp import Register


@ctxexp.hookimpl
def register_commands(register: Register) -> None:
    register("claims", "ctxexp_papers.claims.command:claims")


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    register("massive_activations", "ctxexp_papers.metrics:MassiveActivations")
    register("self_similarity_by_senses", "ctxexp_papers.monosemy:SelfSimilarityBySenses")


@ctxexp.hookimpl(optionalhook=True)  # of ctxexp_compare
def register_comparisons(register: Register) -> None:
    register("linear_fit", "ctxexp_papers.metrics:LinearFit")
