"""Models small enough to be fitted to their optimum here: products of two vectors that predict a known distribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

STEPS = 3000
SCALE = 1000.0  # of losses, whose gradients would else seem to vanish too early
Loss = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""From products (n, m) to the expected loss and its gradient by each of them."""
Gradients = Callable[[np.ndarray], Sequence[np.ndarray]]
Products = Callable[..., tuple[np.ndarray, Gradients]]
"""From parameters to products (n, m), and a function from their gradient to the parameters' gradients."""


def softmax_loss(joint: np.ndarray, offset: np.ndarray | float = 0.0) -> Loss:
    """Cross entropy of a softmax over products plus `offset` (m,), under the joint distribution (n, m) of contexts and
    words; with the words' log probabilities as offset it is contrast with endless negatives (InfoNCE)."""
    total = joint.sum(axis=1, keepdims=True)

    def loss(products: np.ndarray) -> tuple[float, np.ndarray]:
        scores = products + offset
        norms = logsumexp(scores, axis=1, keepdims=True)
        return float((total * norms).sum() - (joint * scores).sum()), total * np.exp(scores - norms) - joint

    return loss


def contrast_loss(joint: np.ndarray) -> Loss:
    """Binary contrast: does a pair come from the joint distribution (n, m), or are both sides drawn apart?"""
    noise = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)

    def loss(products: np.ndarray) -> tuple[float, np.ndarray]:
        value = (joint * np.logaddexp(0, -products)).sum() + (noise * np.logaddexp(0, products)).sum()
        return float(value), (joint + noise) * expit(products) - joint

    return loss


def free_products(contexts: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, Gradients]:
    """Products of free vectors of contexts (n, d) with those of words (m, d)."""
    return contexts @ words.T, lambda g: (g @ words, g.T @ contexts)


def tied_products(map_: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, Gradients]:
    """Products of mapped rows of the words' table (m, d) with its rows: a context is a word, by one map (d, d)."""
    return words @ map_ @ words.T, lambda g: (words.T @ g @ words, g @ words @ map_.T + g.T @ words @ map_)


def kernel_products(events: np.ndarray, constant: np.ndarray) -> tuple[np.ndarray, Gradients]:
    """Products of vectors of events (n, d) with each other, plus a constant (1,)."""
    return events @ events.T + constant[0], lambda g: ((g + g.T) @ events, np.array([g.sum()]))


def fit(loss: Loss, products: Products, start: Sequence[np.ndarray], steps: int = STEPS) -> np.ndarray:
    """The products (n, m) at the optimum of the loss that L-BFGS finds from these parameters."""
    ends = np.cumsum([part.size for part in start])[:-1]

    def parts(theta: np.ndarray) -> list[np.ndarray]:
        return [values.reshape(part.shape) for values, part in zip(np.split(theta, ends), start, strict=True)]

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        current, gradients = products(*parts(theta))
        value, gradient = loss(current)
        return SCALE * value, SCALE * np.concatenate([part.ravel() for part in gradients(gradient)])

    options = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": 20, "gtol": 1e-7, "ftol": 1e-14}
    theta = np.concatenate([part.ravel() for part in start])
    found = minimize(objective, theta, jac=True, method="L-BFGS-B", options=options).x
    return products(*parts(found))[0]


def explained(products: np.ndarray, formula: np.ndarray, axis: int | None = None) -> float:
    """Share of the products' variance (n, m) that a formula explains, slope 1, up to a constant (of each context with
    axis=1); 1 where they are the same, below 0 where the formula is further off than none.

    Example:
        >>> explained(np.array([[1.0, 2.0]]), np.array([[5.0, 6.0]]))
        1.0
    """
    own, other = (x - x.mean(axis=axis, keepdims=True) for x in (products, formula))
    return float(1 - ((own - other) ** 2).sum() / (own**2).sum())
