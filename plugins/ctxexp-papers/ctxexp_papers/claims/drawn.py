"""Instances that need no model: drawn here, they are evidence of a paper's own kind on its theorems and on measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ctxexp.maths import Stream
from ctxexp_papers.claims.checks import Bound, Check
from ctxexp_papers.claims.paper import Claim
from ctxexp_papers.claims.samples import Sampled, Samples, in_layers
from ctxexp_papers.claims.source import Inputs

INSTANCES = 60  # of which none may break a theorem: a share of 5% would be seen in 95% of cases
Instance = Callable[[np.random.Generator], Mapping[str, float]]
"""Draws an instance: its values by statistic."""


def drawn_if_possible(inputs: Inputs, draw: Callable[[], Samples]) -> list[Samples]:
    """The drawn instances; none where they aren't asked for, or the measures that they are of aren't installed."""
    return [draw()] if inputs.has_draws else []


def draw_instances(
    paper: str, title: str, cases: Mapping[str, tuple[Instance, Sequence[int]]], count: int = INSTANCES
) -> Samples:
    """So many instances of each case, as a source that gives verdicts.

    Args:
        paper: its name, for the command.
        title: what is drawn.
        cases: by case (a width, a shape), which stands for a model: how an instance is drawn, and the numbers that
            tell its random stream from the other cases'.
        count: of a case.
    """
    members = []
    for name, (instance, numbers) in cases.items():
        rng = np.random.default_rng([0, Stream.INSTANCES, *numbers])
        rows = [instance(rng) for _ in range(count)]
        members.append(Sampled(name, {key: np.array([[row[key]] for row in rows]) for key in rows[0]}))
    return Samples("protocol", title, command=f"python -m ctxexp claims paper={paper}", members=members)


def always(member: Sampled, statistic: str) -> Check:
    """Whether a theorem holds in every drawn instance (values 1 or 0): one that breaks it refutes it, and fewer than
    INSTANCES prove nothing."""
    held = member.values[statistic].ravel()
    n, count = len(held), int((held > 0).sum())
    passed = False if count < n else True if n >= INSTANCES else None
    return Check(member.model, "", passed, count / n, n=n, text=f"{count} of {n} instances", brief=f"{count} of {n}")


def theorem(source: Samples, statistic: str) -> list[Check]:
    """A check a case: whether all of its instances obey the theorem."""
    return [always(m, statistic) for m in source.of(statistic=statistic)]


def within(source: Samples, bounds: Mapping[str, Bound], variant: str = "") -> list[Check]:
    """A check a bounded statistic and case: whether its mean over instances lies within the bound."""
    checks = []
    for statistic, bound in bounds.items():
        members = source.of(statistic=statistic)
        for m in members:
            check = in_layers(m, m.values[statistic], bound, ways=len(members) * len(bounds))
            name = statistic.removesuffix(f", {variant}")
            checks.append(replace(check, variant=variant, text=check.text or name))
    return checks


theorem_claim = partial(
    Claim,
    on=(Samples,),
    null="a theorem has none: one drawn instance against it refutes it",
    reason=f"all of {INSTANCES} drawn instances: a share of 5% that breaks it would be seen",
)
"""A claim that is proven in the paper, tried on instances by `theorem`."""
