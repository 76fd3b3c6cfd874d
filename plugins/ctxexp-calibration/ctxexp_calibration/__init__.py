"""Sentence calibration for ctxexp: BERT-flow and its rivals, measures of sentence pairs, two tables of a sweep."""

from __future__ import annotations

import ctxexp
from ctxexp import Register


@ctxexp.hookimpl
def register_datasets(register: Register) -> None:
    register("qnli", "ctxexp_calibration.qnli_data:qnli")


@ctxexp.hookimpl
def register_transforms(register: Register) -> None:
    register("weighted_removal", "ctxexp_calibration.weighted_removal:WeightedRemoval")
    register("clusterwise", "ctxexp_calibration.clusterwise:Clusterwise")
    register("rank", "ctxexp_calibration.rank:Rank")
    register("flow", "ctxexp_calibration.flow.transform:Flow")


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    register("edit_distance", "ctxexp_calibration.edit_distance:EditDistance")
    register("qnli", "ctxexp_calibration.qnli:QNLI")
    register("sentence_geometry", "ctxexp_calibration.sentence_geometry:SentenceGeometry")


@ctxexp.hookimpl
def register_reports(register: Register) -> None:
    register("table_league", "ctxexp_calibration.league.table:table_league")
    register("table_li_2020", "ctxexp_calibration.li_2020.table:table_li_2020")
    register("table_li_2020_nli", "ctxexp_calibration.li_2020.table:table_li_2020_nli")
    register("table_li_2020_qnli", "ctxexp_calibration.li_2020.qnli_table:table_li_2020_qnli")
    register("isotropy_against_spearman", "ctxexp_calibration.league.figure:league_figure")
