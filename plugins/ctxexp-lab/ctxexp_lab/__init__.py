"""Experiments around the measures, as verbs of ctxexp's command; the layers of a model while it trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ctxexp
from ctxexp import Register

if TYPE_CHECKING:
    from ctxexp_lab.curves.layer_curves import LayerCurves

__all__ = ["LayerCurves"]

__getattr__ = ctxexp.lazy_names(__name__, __file__)


@ctxexp.hookimpl
def register_commands(register: Register) -> None:
    register("train", "ctxexp_lab.training.command:train")
    register("probe", "ctxexp_lab.probe:probe")
    register("steps", "ctxexp_lab.steps.command:steps")
    register("link", "ctxexp_lab.link.command:softmax_link")
    register("distil", "ctxexp_lab.distil:distil")


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    register("first_word_length", "ctxexp_lab.steps.first_word_length:FirstWordLength")


@ctxexp.hookimpl
def register_reports(register: Register) -> None:
    register("table_training_steps", "ctxexp_lab.steps.figure:table")
    register("training_steps", "ctxexp_lab.steps.figure:figure")
    register("table_first_word", "ctxexp_lab.first_word.words:table")
    register("table_multiverse", "ctxexp_lab.multiverse.report:table")
    register("table_multiverse_joint", "ctxexp_lab.multiverse.report:joint_table")
    register("first_word", "ctxexp_lab.first_word.figure:figure")
    register("multiverse", "ctxexp_lab.multiverse.report:figure")
