"""Language models that are fitted to their optimum on a drawn distribution of contexts and words (Li et al. 2020,
section 3.1): what are their products?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.drawn import draw_instances, within
from ctxexp_papers.claims.fits import explained, fit, free_products, softmax_loss, tied_products
from ctxexp_papers.claims.samples import Samples

WORDS = {"12 words": 12, "24 words": 24}
FREE, TIED = "free contexts", "contexts tied to the table"
DRAWS = 8
NARROW = 6  # of which part of the sufficient width the rival has
START = 0.3


def instance(words: int, rng: np.random.Generator) -> Mapping[str, float]:
    """Of a drawn distribution, by variant: what share of the products' variance within contexts PMI + log p explains,
    and what it explains beyond log p alone, and beyond that in a model of a sixth of the width."""
    values = {}
    for variant, contexts in ((FREE, 2 * words), (TIED, words)):
        often = rng.permutation(1 / np.arange(1, words + 1))
        joint = often * np.exp(rng.normal(size=(contexts, words))) * rng.gamma(2, size=(contexts, 1))
        joint /= joint.sum()
        formula = np.log(joint / joint.sum(axis=1, keepdims=True))  # PMI + log p
        wide, narrow = (_fitted(joint, width, variant, rng) for width in (words, words // NARROW))
        share = explained(wide, formula, axis=1)
        log_p = np.broadcast_to(np.log(joint.sum(axis=0)), joint.shape)
        values[f"link, {variant}"] = share
        values[f"beyond log p, {variant}"] = share - explained(wide, log_p, axis=1)
        values[f"beyond narrow, {variant}"] = share - explained(narrow, formula, axis=1)
    return values


def _fitted(joint: np.ndarray, width: int, variant: str, rng: np.random.Generator) -> np.ndarray:
    """Products (contexts, words) of the model of this width at its optimum."""
    contexts, words = joint.shape
    table = START * rng.normal(size=(words, width))
    if variant == TIED:
        return fit(softmax_loss(joint), tied_products, (START * rng.normal(size=(width, width)), table))
    return fit(softmax_loss(joint), free_products, (START * rng.normal(size=(contexts, width)), table))


def drawn(draws: int = DRAWS) -> Samples:
    """Language models at their optimum."""
    cases = {name: (partial(instance, n), (2020, n)) for name, n in WORDS.items()}
    return draw_instances("li_2020", "softmax models fitted to distributions drawn here", cases, draws)


def linked(source: Samples) -> list[Check]:
    """Whether the formula explains the products, more than frequency does and more than those of too narrow a model."""
    checks = []
    for variant in (FREE, TIED):
        bounds = {
            f"link, {variant}": Bound(above=1 - NONE),
            f"beyond log p, {variant}": Bound(above=NONE),
            f"beyond narrow, {variant}": Bound(above=NONE),
        }
        checks += within(source, bounds, variant)
    return checks
