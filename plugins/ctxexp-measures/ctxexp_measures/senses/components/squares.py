"""Sums of squares of one layer, with each row's share of each of them, to first order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ctxexp_measures.senses.components.design import Design, one_hot

COLUMNS = 32  # of the vectors, at a time


@dataclass(frozen=True)
class Squares:
    """Shares of each row in the sums of squares, which add up to the sums of squares themselves.

    A share is the derivative of the sum by the row's weight, hence also the change by drawing the row once more.
    """

    within: np.ndarray  # (n,) of the squares within cells
    means: dict[str, np.ndarray]  # by level: (n,) of sum_l n_l |mean_l|^2, all rows' mean taken out
    by_factor: dict[str, np.ndarray]  # by factor: (n,) of sum_a |sum of a's rows, their cells' means taken out|^2 / n_a


def squares(x: np.ndarray, design: Design) -> Squares:
    """The sums of squares of rows x (n, d), float32 or float64, summed in float64."""
    n, d = x.shape
    cell = design.levels["cell"]
    hot = {name: level.one_hot() for name, level in design.levels.items()}
    at_levels = {factor.name: one_hot(factor.of_row, len(factor.counts)) for factor in design.factors}
    result = Squares(
        np.zeros(n),
        {name: np.zeros(n) for name in design.levels},
        {factor.name: np.zeros(n) for factor in design.factors},
    )
    for at in range(0, d, COLUMNS):
        part = x[:, at : at + COLUMNS].astype(np.float64)
        part -= part.mean(axis=0)
        for name, level in design.levels.items():
            means = (hot[name] @ part) / level.counts[:, None]
            mine = means[level.of_row]
            result.means[name] += 2 * _dot(part, mine) - _norms(means)[level.of_row]
            if name == "cell":
                rest = part - mine
        result.within[:] += _norms(rest)
        for factor in design.factors:
            means = (at_levels[factor.name] @ rest) / factor.counts[:, None]
            mine = means[factor.of_row]
            smooth = (factor.in_cells @ means) / cell.counts[:, None]
            result.by_factor[factor.name][:] += (
                2 * _dot(rest, mine - smooth[cell.of_row]) - _norms(means)[factor.of_row]
            )
    return result


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    result: np.ndarray = np.vecdot(a, b)
    return result


def _norms(a: np.ndarray) -> np.ndarray:
    result: np.ndarray = np.vecdot(a, a)
    return result
