"""Senses for ctxexp: what context is made of, and corpora, metrics and an experiment of real senses."""

from __future__ import annotations

import ctxexp
from ctxexp import Register


@ctxexp.hookimpl
def register_datasets(register: Register) -> None:
    register("semcor", "ctxexp_measures.senses.corpora.semcor:semcor")
    register("tagged", "ctxexp_measures.senses.corpora.tagged:tagged")
    register("wic", "ctxexp_measures.senses.corpora.wic:wic")


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    register("probe", "ctxexp_measures.senses.probe.metric:Probe")
    register("self_similarity_by_class", "ctxexp_measures.senses.by_class:SelfSimilarityByClass")
    register("variance_components", "ctxexp_measures.senses.components.metric:VarianceComponents")
    register("wic", "ctxexp_measures.senses.wic:Wic")


@ctxexp.hookimpl
def register_reports(register: Register) -> None:
    register("table_by_class", "ctxexp_measures.senses.by_class:table")
    register("table_what_is_context", "ctxexp_measures.senses.components.figure:table")
    register("probe_layers", "ctxexp_measures.senses.probe.figure:figure")
    register("what_is_context", "ctxexp_measures.senses.components.figure:figure")
