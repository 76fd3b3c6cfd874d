"""Variance components: sums of squares of a layer solved from their expectations, and what each block moves them by."""

from __future__ import annotations

from collections.abc import Collection, Mapping
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
            result.means[name] += 2 * np.vecdot(part, mine) - np.vecdot(means, means)[level.of_row]
            if name == "cell":
                rest = part - mine
        result.within[:] += np.vecdot(rest, rest)
        for factor in design.factors:
            means = (at_levels[factor.name] @ rest) / factor.counts[:, None]
            mine = means[factor.of_row]
            smooth = (factor.in_cells @ means) / cell.counts[:, None]
            result.by_factor[factor.name][:] += (
                2 * np.vecdot(rest, mine - smooth[cell.of_row]) - np.vecdot(means, means)[factor.of_row]
            )
    return result


FIXED = {"word": ("word", ""), "form": ("form", "word"), "sense": ("sense", "form")}
"""The components of words: the level whose means differ, and the level within which they do."""


@dataclass(frozen=True)
class ValueWithInfluence:
    """A number, and the influence of each block of resampled clusters on it, to first order."""

    value: float
    influence: np.ndarray  # (blocks,)


def components(design: Design, squares: Squares, n_blocks: int) -> dict[str, ValueWithInfluence]:
    """The components by name; see `ctxexp_measures.senses.components.metric.VarianceComponents` for the model."""
    solver = _Solver(design, squares, n_blocks)
    names = [name for name in FIXED if name != "sense" or len(design.attributes.sense)]
    fixed = {name: solver.between(name) for name in names}
    random = {factor.name: each for factor, each in solver.random}
    return {**fixed, **random, "rest": solver.rest()}


class _Solver:
    def __init__(self, design: Design, squares: Squares, n_blocks: int) -> None:
        self.design, self.squares, self.n_blocks = design, squares, n_blocks
        self.word, self.n = design.attributes.word.codes, float(len(design.attributes))
        self.sizes, cell = design.levels["word"].counts, design.levels["cell"]
        # Each word's mean square within cells, and what a row moves it by. A cell's own mean takes 1 / n of a row's
        # square and of its spread: the root gives the spread back, as in the HC2 variance of least squares.
        self.within = np.bincount(self.word, squares.within) / design.free
        alone = 1 - 1 / cell.counts[cell.of_row]
        moves = (squares.within - alone * self.within[self.word]) / design.free[self.word]
        self.within_moved = moves / np.sqrt(np.where(alone > 0, alone, 1))
        self.random = list(zip(design.factors, self._variances(), strict=True))
        # (words,) variance of the rest
        self.own = self.within - sum((each.value * f.within for f, each in self.random), np.zeros(design.n_words))
        self.random.insert(0, (design.place, self._of_place()))

    def _variances(self) -> list[ValueWithInfluence]:
        """The variances of sentences and documents, from their squares less the part of noise."""
        design, left, influence = self.design, [], []
        for factor in design.factors:
            rows = self.squares.by_factor[factor.name]
            left.append(rows.sum() - factor.own @ self.within)
            influence.append(self._by_block(rows - factor.own[self.word] * self.within_moved))
        if not left:
            return []
        inverse = np.linalg.inv(design.expected)
        return list(map(ValueWithInfluence, (inverse @ np.array(left)).tolist(), inverse @ np.array(influence)))

    def _by_block(self, rows: np.ndarray) -> np.ndarray:
        """(blocks,) the sums of rows (n,) less their mean, since one more row doesn't change a ratio to all rows."""
        return np.bincount(self.design.attributes.block, rows - rows.mean(), minlength=self.n_blocks)

    def between(self, name: str) -> ValueWithInfluence:
        """The spread of a level's means within the level above, noise taken out."""
        total, blocks = self._spread(*FIXED[name])
        return ValueWithInfluence(total / self.n, blocks / self.n)

    def _of_place(self) -> ValueWithInfluence:
        """The variance of a form's places, from the spread of cells within senses."""
        total, blocks = self._spread("cell", "sense")
        of_means = self.design.place.of_means
        scale = float(of_means["cell"].sum() - of_means["sense"].sum())
        return ValueWithInfluence(total / scale, blocks / scale) if scale > 0 else ValueWithInfluence(0.0, 0 * blocks)

    def _spread(self, level: str, above: str) -> tuple[float, np.ndarray]:
        """The squares of a level's means within the level above, noise taken out, and each block's influence."""
        design = self.design
        rows = self.squares.means[level] - (self.squares.means[above] if above else 0)
        parts = np.bincount(design.levels[level].word, minlength=design.n_words).astype(np.float64)
        if above:  # of each word's own variance in the squares
            parts -= np.bincount(design.levels[above].word, minlength=design.n_words)
        else:
            parts -= self.sizes / self.n
        total = rows.sum() - parts @ self.own
        blocks = self._by_block(rows - parts[self.word] * self.within_moved)
        for factor, each in self.random:
            noise = factor.of_means[level].sum()
            noise -= factor.of_means[above].sum() if above else (factor.counts**2).sum() / self.n
            total -= noise * each.value
            blocks = blocks - (noise - parts @ factor.within) * each.influence
        return float(total), blocks

    def rest(self) -> ValueWithInfluence:
        """The mean over rows of their words' own variance."""
        share = self.sizes / self.n
        blocks = self._by_block(self.own[self.word] / self.n + share[self.word] * self.within_moved)
        for factor, each in self.random:
            blocks = blocks - (share @ factor.within) * each.influence
        return ValueWithInfluence(float(share @ self.own), blocks)


def shares(parts: Mapping[str, ValueWithInfluence], context: Collection[str]) -> dict[str, ValueWithInfluence]:
    """Share of each component in their sum, and that of all those named `context`, under this name."""
    whole = np.float64(sum(part.value for part in parts.values()))
    influence = np.sum([part.influence for part in parts.values()], axis=0)
    together = [part for name, part in parts.items() if name in context]
    some = ValueWithInfluence(sum(p.value for p in together), np.sum([p.influence for p in together], axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            name: ValueWithInfluence(
                float(part.value / whole), (part.influence - part.value / whole * influence) / whole
            )
            for name, part in {**parts, "context": some}.items()
        }
