"""Senses for ctxexp: what context is made of, and corpora, metrics and an experiment of real senses."""

from __future__ import annotations

from pathlib import Path

import ctxexp
from ctxexp.plugins import Register


@ctxexp.hookimpl
def register_datasets(register: Register) -> None:
    register("dwug", "ctxexp_senses.corpora.dwug:dwug")
    register("semcor", "ctxexp_senses.corpora.semcor:semcor")
    register("wic", "ctxexp_senses.corpora.wic:wic")


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    register("self_similarity_by_class", "ctxexp_senses.classes:SelfSimilarityByClass")
    register("semantic_change", "ctxexp_senses.usages.change:SemanticChange")
    register("variance_components", "ctxexp_senses.components.metric:VarianceComponents")
    register("wic", "ctxexp_senses.usages.wic:Wic")


@ctxexp.hookimpl
def register_tables(register: Register) -> None:
    register("what_is_context", "ctxexp_senses.components.figure:table")


@ctxexp.hookimpl
def register_figures(register: Register) -> None:
    register("by_class_of_word", "ctxexp_senses.classes_figure:figure")
    register("what_is_context", "ctxexp_senses.components.figure:figure")


@ctxexp.hookimpl
def config_folders() -> str:
    return str(Path(__file__).parent / "conf")
