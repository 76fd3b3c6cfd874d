"""Models compared and checked: two spaces, a card, pins and checks, floors, sinks, the layer to use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ctxexp
from ctxexp import Register, lazy_names

if TYPE_CHECKING:
    from ctxexp_compare.attention_sinks.find import sinks
    from ctxexp_compare.attention_sinks.sinks import Sinks, WithoutSinks, sink_mask
    from ctxexp_compare.checks.check import check
    from ctxexp_compare.checks.make import pin
    from ctxexp_compare.cka import Cka
    from ctxexp_compare.contract import ComparisonScore, NullDistribution, Sample, TwoSpaces
    from ctxexp_compare.floors.make import floor
    from ctxexp_compare.imbalance import InformationImbalance
    from ctxexp_compare.interface import compare
    from ctxexp_compare.layer_choice.choice import choose
    from ctxexp_compare.light.floor import Floor
    from ctxexp_compare.light.pin import Pin
    from ctxexp_compare.light.verdict import Verdict
    from ctxexp_compare.linearity import Linearity
    from ctxexp_compare.matrices import Similarities, similarities
    from ctxexp_compare.model_card import card
    from ctxexp_compare.neighbours import MutualNeighbours, NeighbourhoodOverlap
    from ctxexp_compare.shape import ShapeDistance
    from ctxexp_compare.space import Space

__all__ = [
    "Cka",
    "ComparisonScore",
    "Floor",
    "InformationImbalance",
    "Linearity",
    "MutualNeighbours",
    "NeighbourhoodOverlap",
    "NullDistribution",
    "Pin",
    "Sample",
    "ShapeDistance",
    "Similarities",
    "Sinks",
    "Space",
    "TwoSpaces",
    "Verdict",
    "WithoutSinks",
    "card",
    "check",
    "choose",
    "compare",
    "floor",
    "pin",
    "similarities",
    "sink_mask",
    "sinks",
]

__getattr__ = lazy_names(__name__, __file__)


@ctxexp.hookimpl(optionalhook=True)
def register_comparisons(register: Register) -> None:
    register("cka", "ctxexp_compare.cka:Cka")
    register("mutual_knn", "ctxexp_compare.neighbours:MutualNeighbours")
    register("neighbourhood_overlap", "ctxexp_compare.neighbours:NeighbourhoodOverlap")
    register("information_imbalance", "ctxexp_compare.imbalance:InformationImbalance")
    register("shape_distance", "ctxexp_compare.shape:ShapeDistance")
    register("linearity", "ctxexp_compare.linearity:Linearity")


@ctxexp.hookimpl
def register_commands(register: Register) -> None:
    register("card", "ctxexp_compare.card_command:card")
    register("check", "ctxexp_compare.checks.command:check")
    register("compare", "ctxexp_compare.command:compare")
    register("diff", "ctxexp_compare.checks.command:diff")
    register("floor", "ctxexp_compare.floors.command:floor")
    register("layer", "ctxexp_compare.layer_choice.command:layer")
    register("passport", "ctxexp_compare.checks.command:passport")
    register("pin", "ctxexp_compare.checks.command:pin")
    register("sinks", "ctxexp_compare.attention_sinks.command:sinks")


@ctxexp.hookimpl
def register_models(register: Register) -> None:
    register("vectors", "ctxexp_compare.checks.token_files:vectors")


@ctxexp.hookimpl
def register_datasets(register: Register) -> None:
    register("vectors", "ctxexp_compare.checks.token_files:vectors_text")
