"""Two spaces over the same occurrences: layers, models and runs beside each other, with chance levels and intervals."""

from __future__ import annotations

import ctxexp
from ctxexp.plugins import Register
from ctxexp_compare.cka import Cka
from ctxexp_compare.engine import Matrix, Similarities, similarities
from ctxexp_compare.face import compare
from ctxexp_compare.imbalance import InformationImbalance
from ctxexp_compare.linearity import Linearity
from ctxexp_compare.measure import Chance, Sample, Score, TwoSpaces
from ctxexp_compare.neighbours import MutualNeighbours, NeighbourhoodOverlap, label_overlap
from ctxexp_compare.shape import ShapeDistance
from ctxexp_compare.space import Space

__all__ = [
    "Chance",
    "Cka",
    "InformationImbalance",
    "Linearity",
    "Matrix",
    "MutualNeighbours",
    "NeighbourhoodOverlap",
    "Sample",
    "Score",
    "ShapeDistance",
    "Similarities",
    "Space",
    "TwoSpaces",
    "compare",
    "label_overlap",
    "similarities",
]


@ctxexp.hookimpl
def register_comparisons(register: Register) -> None:
    for measure in (Cka, MutualNeighbours, NeighbourhoodOverlap, InformationImbalance, ShapeDistance, Linearity):
        register(measure.name, measure)


@ctxexp.hookimpl
def register_commands(register: Register) -> None:
    register("compare", "ctxexp_compare.command:compare")


@ctxexp.hookimpl
def register_sinks(register: Register) -> None:
    register("compare", "ctxexp_compare.sink:CompareSink")
