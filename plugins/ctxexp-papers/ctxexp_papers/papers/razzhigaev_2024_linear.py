"""Razzhigaev et al. (2024), *Your Transformer is Secretly Linear*: .99 in the rows of the fit, and held out.

Their score is 1 less the squared error of the best linear map between layers at Frobenius norm 1, about their means, on
the rows that the map was fitted to: with fewer rows than dimensions it is 1 for any two layers, and d / n for noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import (
    KINDS,
    NOT_OWN,
    Sampled,
    Samples,
    TextSample,
    in_layers,
    text_samples,
)
from ctxexp_papers.claims.source import Inputs, Source

if TYPE_CHECKING:
    from ctxexp_compare.space import Space

ABSTRACT = "the abstract, ACL 2024 (2024.acl-long.293)"
FITTED, HELD_OUT = "in the rows of the fit, as published", "held out"
SAMPLES, ROWS, LAYERS = 8, 500, 7
LINEAR = 0.99 - NONE


def in_sample(x: np.ndarray, y: np.ndarray) -> float:
    """The published score of rows (n, d) each: 1 less the squared error, y at Frobenius norm 1 about its mean."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    basis = np.linalg.svd(x, full_matrices=False)
    rank = int((basis[1] > basis[1].max(initial=0.0) * 1e-10).sum())
    along = basis[0][:, :rank].T @ y
    return float((along**2).sum() / (y**2).sum())


def held_out(x: np.ndarray, y: np.ndarray, sample: TextSample) -> float:
    """The share of y's variance that ridge regression on x foretells in sentences it wasn't fitted to."""
    from ctxexp_compare.linearity import Linearity
    from ctxexp_compare.measure import Sample

    measure, rows = Linearity(), Sample(sample.sentence)
    return measure.score(measure.prepare_side(x, rows), measure.prepare_side(y, rows)).value


def values_of(space: Space, samples: int, rows: int, layers: Sequence[int]) -> dict[str, np.ndarray]:
    """(samples, layers) by statistic, of each layer and the next one."""
    parts = text_samples(space, samples=samples, rows=rows)
    values: dict[str, np.ndarray] = {}
    for j, number in enumerate(layers):
        one, two = space.layers.layer(number), space.layers.layer(number + 1)
        for i, part in enumerate(parts):
            x, y = (np.asarray(layer[part.rows], np.float64) for layer in (one, two))
            order = np.random.default_rng(i).permutation(len(x))
            found = {
                FITTED: in_sample(x, y),
                HELD_OUT: held_out(x, y, part),
                f"{FITTED}, of the step": in_sample(x, y - x),
                f"{HELD_OUT}, of the step": held_out(x, y - x, part),
                "exchanged": in_sample(x, y[order]),
            }
            for name, value in found.items():
                values.setdefault(name, np.empty((samples, len(layers))))[i, j] = value
    return values


def sources(inputs: Inputs) -> list[Source]:
    """The offered decoders' layers, each with the next."""
    members, controls = [], []
    for model in inputs.models:
        if KINDS.get(model.split()[0]) != "decoder":
            continue
        space = inputs.space(model)
        from ctxexp_compare.space import evenly_spaced

        layers = evenly_spaced(space.layers.layer_numbers[:-1], LAYERS)
        values = values_of(space, SAMPLES, ROWS, layers)
        members.append(Sampled(model, values, tuple(layers)))
        width = space.layers.layer(layers[0]).shape[1]
        controls.append(
            f"{model}: the published score of the same rows with the next layer's exchanged at random is "
            f"{values['exchanged'].mean():.2f} ({ROWS} rows of {width} dimensions: noise has about {width / ROWS:.2f})"
        )
    if not members:
        return []
    names = ",".join(m.model for m in members)
    return [
        Samples(
            "other", "the run's text, each layer and the next", {m.model: [NOT_OWN] for m in members}, controls,
            f"python -m ctxexp claims paper=razzhigaev_2024_linear model='{names}'", members,
        )
    ]  # fmt: skip


def linear(source: Samples) -> list[Check]:
    """A check a decoder and reading, over its steps."""
    members = source.of("decoder", statistic=FITTED)
    return [
        in_layers(m, m.values[name], Bound(above=LINEAR), least=0.9, ways=len(members)).under(name)
        for name in (FITTED, HELD_OUT)
        for m in members
    ]


def step_is_less(source: Samples) -> list[Check]:
    """Whether the step between two layers is less linear than the next layer, which holds the layer itself."""
    members = source.of("decoder", statistic=FITTED)
    return [
        in_layers(m, m.values[name] - m.values[f"{name}, of the step"], Bound(above=NONE), least=0.501,
                  ways=len(members)).under(name)
        for name in (FITTED, HELD_OUT)
        for m in members
    ]  # fmt: skip


claim = partial(
    Claim,
    on=(Samples,),
    general="Transformers",
    minis=False,
    quote_source=ABSTRACT,
    evidence="the paper's decoders (GPT, LLaMA, OPT, BLOOM); model= gives the same tests of a decoder",
)
CLAIMS = (
    claim(
        id="almost-linear",
        section="3",
        statement="From layer to layer decoders are almost perfectly linear.",
        quote="uncovering an almost perfect linear relationship (Procrustes similarity score of 0.99)",
        test="the published score, and ridge regression on sentences held out: intervals over samples of sentences "
        f"above {LINEAR:.2f} in nine of ten steps",
        null="a score on the line; the published one is 1 with fewer rows than dimensions",
        reason=f"the paper's .99 less {NONE}, the margin of equivalence",
        reversal="steps whose score holds in the rows of the fit alone",
        check=linear,
        variants=(FITTED, HELD_OUT),
    ),
    claim(
        id="less-without-residual",
        section="3",
        statement="Without the residual stream they are less linear.",
        quote="linearity decreases when the residual component is removed",
        test="the score of the next layer less that of the step to it, in both readings: interval above .05 in more "
        "than half of the steps",
        null="a difference on the margin",
        reason=f"{NONE} of the variance",
        reversal="steps as linear as layers",
        check=step_is_less,
        variants=(FITTED, HELD_OUT),
    ),
)


def paper() -> Paper:
    """The paper's claims on layers; those on pruning and on its regulariser aren't tried."""
    return Paper(
        name="razzhigaev_2024_linear",
        title="The claims of Razzhigaev et al. (2024), Your Transformer is Secretly Linear, tested",
        citation=(
            "Anton Razzhigaev, Matvey Mikhalchuk, Elizaveta Goncharova, Nikolai Gerasimenko, Ivan Oseledets, Denis "
            "Dimitrov and Andrey Kuznetsov (2024), Your Transformer is Secretly Linear. ACL, pp. 5376-5384"
        ),
        url="https://aclanthology.org/2024.acl-long.293",
        protocol=Protocol("the paper's decoders on its own text"),
        claims=CLAIMS,
        sources=sources,
        abstract=("almost-linear", "less-without-residual"),
    )
