"""Worlds of known truth, and how often a claim's tests decide there, rightly or wrongly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from importlib import import_module

import numpy as np
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.source import Source
from ctxexp_papers.claims.verdict import judge

Draw = Callable[[np.random.Generator], Source]


@dataclass(frozen=True, kw_only=True)
class World:
    """Planted evidence on a claim.

    `null`: the truth lies on the claim's bound in all models, or there is no effect, so that any verdict is a false
    one. `true` and `false`: the claim holds, and fails, by an effect of the size that the paper speaks of.
    """

    null: Draw
    true: Draw | None = None
    false: Draw | None = None


def worlds_of(paper: Paper) -> Mapping[str, World]:
    """The worlds by claim; none where the paper has no module of them."""
    try:
        worlds: Mapping[str, World] = import_module(f"benchmarks.claims.papers.{paper.name}").WORLDS
    except ModuleNotFoundError:
        return {}
    return worlds


def share(claim: Claim, draw: Draw, outcomes: set[str], n: int, *, seed: int = 2, full: bool = False) -> float:
    """The share of n drawn worlds in which the claim's finding is one of these outcomes; `full`: by as many resamples
    as the claim's own test draws, where worlds have fewer."""
    rng = np.random.default_rng(seed)
    prepare = with_own_resamples if full else _as_it_is
    return sum(judge(claim, prepare(draw(rng))).outcome in outcomes for _ in range(n)) / n


def with_own_resamples(source: Source) -> Source:
    """The source with its class's number of resamples, where it has one."""
    own = {field.name: field.default for field in fields(source) if field.name == "resamples"}
    return replace(source, **own)


def _as_it_is(source: Source) -> Source:
    return source


def false_verdicts(claim: Claim, world: World, n: int, *, full: bool = False) -> float:
    """The share of null worlds in which the claim holds, under any of its specifications, or fails."""
    return share(claim, world.null, {"pass", "only", "fail"}, n, full=full)
