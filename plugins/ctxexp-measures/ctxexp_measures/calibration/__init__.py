"""Sentence calibration for ctxexp: BERT-flow and its rivals, measures of sentence pairs, a sweep's league."""

from __future__ import annotations

import ctxexp
from ctxexp import Register


@ctxexp.hookimpl
def register_datasets(register: Register) -> None:
    register("qnli", "ctxexp_measures.calibration.qnli:qnli")


@ctxexp.hookimpl
def register_transforms(register: Register) -> None:
    register("weighted_removal", "ctxexp_measures.calibration.weighted_removal:WeightedRemoval")
    register("clusterwise", "ctxexp_measures.calibration.clusterwise:Clusterwise")
    register("rank", "ctxexp_measures.calibration.rank:Rank")
    register("flow", "ctxexp_measures.calibration.flow.transform:Flow")


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    register("edit_distance", "ctxexp_measures.calibration.edit_distance:EditDistance")
    register("qnli", "ctxexp_measures.calibration.qnli:QNLI")
    register("sentence_geometry", "ctxexp_measures.calibration.sentence_geometry:SentenceGeometry")


@ctxexp.hookimpl
def register_reports(register: Register) -> None:
    register("table_league", "ctxexp_measures.calibration.league.figure:table_league")
    register("isotropy_against_spearman", "ctxexp_measures.calibration.league.figure:league_figure")
