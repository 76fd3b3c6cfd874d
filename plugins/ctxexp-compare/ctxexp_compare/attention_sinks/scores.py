"""Signs of a sink: a piece's norm beside the layer's median, and the attention that it draws beyond an even share.

Massive activations after Sun, Chen, Kolter & Liu (2024), attention sinks after Xiao et al. (2023) and Gu et al. (2025),
who call a piece a head's sink where it draws more than .3 of the attention on average.
"""

from __future__ import annotations

import numpy as np

FACTOR = 5.0  # times the layer's median norm, as control=no_sinks has it
SHARE = 0.3  # of the attention, beyond an even share, mean over heads
QUERIES = 4  # fewest pieces whose attention is averaged: a piece before the last draws its neighbour's alone


def norm_ratios(norms: np.ndarray) -> np.ndarray:
    """Each piece's norm over the median of its layer.

    Args:
        norms: (layers, n) of all pieces of a text, special ones among them.

    Returns:
        (layers, n); 1 throughout a layer of zeros.

    Example:
        >>> norm_ratios(np.array([[1.0, 2.0, 20.0]])).tolist()
        [[0.5, 1.0, 10.0]]
    """
    norms = np.asarray(norms, np.float64)
    median = np.median(norms, axis=1, keepdims=True)
    ratios: np.ndarray = np.divide(norms, median, out=np.ones_like(norms), where=median > 0)
    return ratios


def received_attention(weights: np.ndarray, *, causal: bool) -> np.ndarray:
    """The attention that each piece draws from the others that see it, beyond an even share.

    Args:
        weights: (heads, n, n) of one sentence and layer, queries by keys; each row sums to 1.
        causal: Whether a piece sees no later one. An even share is then 1 / (place + 1) of a query's attention, and
            1 / n otherwise.

    Returns:
        (n,) the mean over heads and queries, in (-1, 1); NaN where fewer than 4 pieces see it.

    Example:
        >>> weights = np.zeros((1, 6, 6))
        >>> weights[:, :, 0] = 1  # all look at the first
        >>> received_attention(weights, causal=False)[:2].round(2).tolist()
        [0.83, -0.17]
    """
    mean = np.asarray(weights, np.float64).mean(axis=0)
    n = len(mean)
    sees = np.tril(np.ones((n, n), bool), -1) if causal else ~np.eye(n, dtype=bool)
    even = 1 / np.arange(1, n + 1) if causal else np.full(n, 1 / n)
    count = sees.sum(axis=0)
    total = np.where(sees, mean - even[:, None], 0).sum(axis=0)
    return np.where(count >= QUERIES, total / np.maximum(count, 1), np.nan)


def sink_mask(
    norms: np.ndarray, attention: np.ndarray | None = None, *, factor: float = FACTOR, share: float = SHARE
) -> np.ndarray:
    """Which pieces are sinks in any layer: for any tool that has norms, or attention, of its own.

    Args:
        norms: (layers, n) of all pieces of a text.
        attention: (layers, n) of `received_attention`; None: by norm alone.
        factor: Times the layer's median norm from which on a piece counts.
        share: Drawn attention beyond an even share from which on it counts.

    Returns:
        (n,) bool.

    Example:
        >>> sink_mask(np.array([[1.0, 2.0, 20.0, 1.0]])).tolist()
        [False, False, True, False]
    """
    found = np.asarray((norm_ratios(norms) > factor).any(axis=0))
    if attention is not None:
        found = np.asarray(found | (np.nan_to_num(attention, nan=-1.0) > share).any(axis=0))
    return found
