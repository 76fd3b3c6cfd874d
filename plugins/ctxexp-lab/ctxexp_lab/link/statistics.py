"""Correlations of the softmax link, each with its interval and chance level.

Pairs of a context and a piece share contexts and pieces, so that both are resampled at once, and a pair counts as often
as its context times its piece are drawn (Owen 2007, the pigeonhole bootstrap): its variance errs on the large side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ctxexp.maths import Stream, interval, partial_correlation
from ctxexp_lab.link.head import ContextStates

Statistics = dict[str, float]
COMMONEST = 300  # last pieces that the second order compares, at most


@dataclass(frozen=True)
class LinkEstimate:
    """A correlation in [-1, 1], the 95% interval of its resamples, and the middle 95% of what chance gives (NaN where
    there is no chance level)."""

    value: float
    low: float
    high: float
    chance_low: float = math.nan
    chance_high: float = math.nan


def link(
    states: ContextStates,
    *,
    pieces: int = 1000,
    least: int = 5,
    replicates: int = 200,
    seed: int = 0,
) -> dict[str, LinkEstimate]:
    """All correlations of the link; see docs/measures/softmax-link.md for what each says.

    Args:
        states: Of `context_states`.
        pieces: How many pieces that occur the own link is taken over, at most.
        least: How often a pair must follow each other to be counted.
        replicates: Resamples, and permutations behind chance levels.
        seed: Of all draws.
    """
    rng = np.random.default_rng(seed)
    results: dict[str, LinkEstimate] = {}
    for name, grid in (("own", _own(states, pieces, rng)), ("counted", _counted(states, least))):
        results |= _estimates(grid, replicates, np.random.default_rng([seed, Stream.RESAMPLE, len(name)]))
    return results | _estimates(_second_order(states), replicates, np.random.default_rng([seed, Stream.RESAMPLE, 2]))


@dataclass(frozen=True)
class _Part:
    """A family of statistics: of weights of contexts and of pieces, and of a permutation of the pieces."""

    n: tuple[int, int]  # contexts (or last pieces), pieces
    clusters: np.ndarray  # (contexts,) what is drawn together
    values: Callable[[np.ndarray, np.ndarray], Statistics]
    permuted: Callable[[np.ndarray], Statistics]  # under a permutation of pieces
    same: bool = False  # both sides are the same objects, drawn once


def _estimates(part: _Part, replicates: int, rng: np.random.Generator) -> dict[str, LinkEstimate]:
    n, m = part.n
    point = part.values(np.ones(n), np.ones(m))
    number = int(part.clusters.max()) + 1 if n else 0
    values: list[Statistics] = []
    for _ in range(replicates):
        weights = np.bincount(rng.integers(0, number, number), minlength=number)[part.clusters] if n else np.ones(0)
        other = weights if part.same else np.bincount(rng.integers(0, m, m), minlength=m) if m else np.ones(0)
        values.append(part.values(weights.astype(float), other.astype(float)))
    chance = [part.permuted(rng.permutation(m)) for _ in range(replicates)] if m else []
    return {name: LinkEstimate(value, *_middle(values, name), *_middle(chance, name)) for name, value in point.items()}


def _middle(draws: list[Statistics], name: str) -> tuple[float, float]:
    values = np.array([one[name] for one in draws if name in one])
    low, high = interval(values[None, np.isfinite(values)])
    return float(low[0]), float(high[0])


def correlations(columns: Mapping[str, np.ndarray], weights: np.ndarray) -> Callable[[str, str], float]:
    """Pearson's correlation of two columns (n,), each row counted as often as its weight says; NaN where constant."""
    total = weights.sum()
    centred = {k: v - (weights @ v) / total if total else v * math.nan for k, v in columns.items()}
    spread = {k: math.sqrt(max(weights @ v**2, 0.0)) if total else math.nan for k, v in centred.items()}
    least = {k: 1e-12 * math.sqrt(max(weights @ columns[k] ** 2, 0.0)) for k in columns}

    def of(a: str, b: str) -> float:
        if not (spread[a] > least[a] and spread[b] > least[b]):
            return math.nan
        return float(weights @ (centred[a] * centred[b])) / (spread[a] * spread[b])

    return of


def _own(states: ContextStates, pieces: int, rng: np.random.Generator) -> _Part:
    """The model's own PMI, log p(x|c) - log p(x), over a grid of contexts and pieces that occur."""
    occurring = np.flatnonzero(states.counts > 0)
    x = np.sort(rng.choice(occurring, min(pieces, len(occurring)), replace=False))
    product, lam = np.empty((len(states.hidden), len(x))), np.empty(len(states.hidden))
    for i in range(0, len(lam), 64):
        every = states.hidden[i : i + 64] @ states.output.T
        top = every.max(axis=1)
        lam[i : i + 64] = top + np.log(np.exp(every - top[:, None]).sum(axis=1))
        product[i : i + 64] = every[:, x]
    log_p = np.log(states.counts[x] / states.counts.sum())
    pmi = product - lam[:, None] - log_p
    bias = states.output[x, -1] if states.has_bias else None
    grid = _Grid(product, pmi, bias)

    def values(wc: np.ndarray, wx: np.ndarray) -> Statistics:
        return grid.own_pmi(wc / wc.sum(), wx / wx.sum()) | grid.log_p(log_p, wc / wc.sum(), wx / wx.sum())

    def permuted(order: np.ndarray) -> Statistics:
        """Frequencies dealt to other pieces; the own PMI has the product in it, so that it has no such level."""
        return grid.log_p(log_p[order], np.full(len(lam), 1 / len(lam)), np.full(len(x), 1 / len(x)))

    return _Part((len(lam), len(x)), np.unique(states.texts, return_inverse=True)[1], values, permuted)


class _Grid:
    """Products and PMI of contexts and pieces, (c, x) each, and their correlations by shares of contexts and pieces."""

    def __init__(self, product: np.ndarray, pmi: np.ndarray, bias: np.ndarray | None) -> None:
        self.grids = {"p": product, "m": pmi, "pp": product**2, "mm": pmi**2, "pm": product * pmi}
        self.bias = bias

    def own_pmi(self, contexts: np.ndarray, pieces: np.ndarray) -> Statistics:
        """Of products with PMI, over all pairs and averaged within contexts."""
        rows = {k: grid @ pieces for k, grid in self.grids.items()}  # (c,) means of each context
        mean = {k: float(contexts @ v) for k, v in rows.items()}
        spread = (mean["pp"] - mean["p"] ** 2) * (mean["mm"] - mean["m"] ** 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            within = (rows["pm"] - rows["p"] * rows["m"]) / np.sqrt(
                (rows["pp"] - rows["p"] ** 2) * (rows["mm"] - rows["m"] ** 2)
            )
        return {
            "own_pmi": _ratio(mean["pm"] - mean["p"] * mean["m"], spread),
            "own_pmi_within": float(contexts @ within),
        }

    def log_p(self, log_p: np.ndarray, contexts: np.ndarray, pieces: np.ndarray) -> Statistics:
        """Of products with log p(x), likewise, and of the bias with it."""
        rows = {k: self.grids[k] @ pieces for k in ("p", "pp")}
        rows_q, q = self.grids["p"] @ (pieces * log_p), float(pieces @ log_p)
        var_q = float(pieces @ log_p**2) - q * q
        p, pp = float(contexts @ rows["p"]), float(contexts @ rows["pp"])
        with np.errstate(divide="ignore", invalid="ignore"):
            within = (rows_q - rows["p"] * q) / np.sqrt((rows["pp"] - rows["p"] ** 2) * var_q)
        result = {
            "log_p": _ratio(float(contexts @ rows_q) - p * q, (pp - p * p) * var_q),
            "log_p_within": float(contexts @ within),
        }
        if self.bias is not None:
            result["bias_log_p"] = correlations({"b": self.bias, "q": log_p}, pieces)("b", "q")
        return result


def _ratio(covariance: float, variances: float) -> float:
    return covariance / math.sqrt(variances) if variances > 0 else math.nan


def _counted(states: ContextStates, least: int) -> _Part:
    """PMI counted in the text, of a piece and the one before it; products averaged over the contexts that end in it."""
    pairs, n = np.unique(states.following, axis=0, return_counts=True)
    size = len(states.output)
    before, after = (np.bincount(column, minlength=size) for column in states.following.T)
    is_frequent = (n >= least) & np.isin(pairs[:, 0], states.ends) & (pairs < size).all(axis=1)
    (y, x), n = pairs[is_frequent].T, n[is_frequent]
    log_p = np.log(after[x] / len(states.following))
    pmi = np.log(n / before[y]) - log_p
    last, mean = _mean_states(states)
    state, output = mean[np.searchsorted(last, y)], states.output
    ys, of_y = np.unique(y, return_inverse=True)
    xs, of_x = np.unique(x, return_inverse=True)
    product = np.einsum("pd,pd->p", state, output[x])

    def statistics(product: np.ndarray, weights: np.ndarray) -> Statistics:
        columns = {"p": product, "m": pmi, "q": log_p, "s": pmi + log_p}
        r = correlations(columns, weights)
        total = np.bincount(of_y, weights, len(ys))
        within = correlations(
            {
                k: v - (np.bincount(of_y, weights * v, len(ys)) / np.maximum(total, 1e-300))[of_y]
                for k, v in columns.items()
            },
            weights,
        )
        return {
            "counted_pmi": r("p", "m"),
            "counted_log_p": r("p", "q"),
            "counted_sum": r("p", "s"),
            "counted_pmi_given_log_p": float(partial_correlation(r("p", "m"), r("p", "q"), r("m", "q"))),
            "counted_pmi_given_log_p_within": float(
                partial_correlation(within("p", "m"), within("p", "q"), within("m", "q"))
            ),
        }

    def values(wy: np.ndarray, wx: np.ndarray) -> Statistics:
        return statistics(product, wy[of_y] * wx[of_x])

    def permuted(order: np.ndarray) -> Statistics:
        """Rows of the output matrix dealt to other pieces."""
        return statistics(np.einsum("pd,pd->p", state, output[xs[order][of_x]]), np.ones(len(x)))

    return _Part((len(ys), len(xs)), np.arange(len(ys)), values, permuted)


def _mean_states(states: ContextStates) -> tuple[np.ndarray, np.ndarray]:
    """The distinct last pieces of the contexts, ascending, and the mean state of those that end in each."""
    last, where = np.unique(states.ends, return_inverse=True)
    mean = np.zeros((len(last), states.hidden.shape[1]))
    np.add.at(mean, where, states.hidden)
    return last, mean / np.bincount(where)[:, None]


def second_order_pairs(states: ContextStates, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The commonest last pieces (k,), k at most `most`, with cosines of their mean states (k, k), and of their next
    pieces (k, k), NaN where the two follow each other in the text, or are one.

    Of the next pieces the positive PMI is taken, max(0, log p(x|y) / p(x)): two last pieces are alike where the same
    pieces follow them more often than by chance.
    """
    last, mean = _mean_states(states)
    size = len(states.output)
    joint = np.zeros((len(last), size))
    inside = np.isin(states.following[:, 0], last) & (states.following[:, 1] < size)
    np.add.at(joint, (np.searchsorted(last, states.following[inside, 0]), states.following[inside, 1]), 1)
    common = np.sort(np.argsort(-joint.sum(axis=1), kind="stable")[:most])
    common = common[joint[common].sum(axis=1) > 0]
    share = np.bincount(states.following[:, 1], minlength=size)[:size] / len(states.following)
    with np.errstate(divide="ignore", invalid="ignore"):
        pmi = np.log(joint[common] / joint[common].sum(axis=1, keepdims=True) / share)
    ppmi = np.where(joint[common] > 0, np.maximum(pmi, 0), 0.0)
    of_next, of_states = _cosines(ppmi), _cosines(mean[common][:, :-1])
    meets = joint[common][:, last[common]] > 0
    of_next[meets | meets.T | np.eye(len(common), dtype=bool)] = np.nan
    return last[common], of_states, of_next


def _cosines(x: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(x, axis=1, keepdims=True)
    u = np.divide(x, norm, out=np.zeros_like(x), where=norm > 0)
    return u @ u.T


def _second_order(states: ContextStates) -> _Part:
    """Contexts against contexts: whether those that the same pieces follow have like states, though their own last
    pieces never meet; over pairs of last pieces, and given how common the two are."""
    last, of_states, of_next = second_order_pairs(states, COMMONEST)
    k = len(last)
    i, j = np.nonzero(np.triu(np.isfinite(of_next), 1))
    log_p = np.log(np.bincount(states.following[:, 0], minlength=len(states.output))[last])

    def statistics(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> Statistics:
        columns = {"h": of_states[a, b], "n": of_next[i, j], "q": log_p[i] + log_p[j]}
        r = correlations(columns, weights)
        return {
            "second_order": r("h", "n"),
            "second_order_given_frequency": float(partial_correlation(r("h", "n"), r("h", "q"), r("n", "q"))),
        }

    def values(weights: np.ndarray, _: np.ndarray) -> Statistics:
        return statistics(i, j, weights[i] * weights[j])

    def permuted(order: np.ndarray) -> Statistics:
        """States dealt to other last pieces (Mantel 1967)."""
        return statistics(order[i], order[j], np.ones(len(i)))

    return _Part((k, k), np.arange(k), values, permuted, same=True)
