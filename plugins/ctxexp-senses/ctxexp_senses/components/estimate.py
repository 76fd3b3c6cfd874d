"""From sums of squares to components: their expectations solved, with how much each block of sentences moves them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from ctxexp_senses.components.design import Design
from ctxexp_senses.components.squares import Squares

FIXED = {"word": ("word", ""), "form": ("form", "word"), "sense": ("cell", "form")}
"""The components of words: the level whose means differ, and the level within which they do."""


@dataclass(frozen=True)
class Moved:
    """A number, and how much each block of resampled units moves it, to first order."""

    value: float
    moved: np.ndarray  # (blocks,)


def components(design: Design, found: Squares, n_blocks: int) -> dict[str, Moved]:
    """The components by name; see `ctxexp_senses.components.metric.VarianceComponents` for the model."""
    solver = _Solver(design, found, n_blocks)
    names = [name for name in FIXED if name != "sense" or len(design.known.sense)]
    fixed = {name: solver.between(name) for name in names}
    random = {factor.name: each for factor, each in zip(design.crossed, solver.crossed, strict=True)}
    return {**fixed, **random, "rest": solver.rest()}


class _Solver:
    def __init__(self, design: Design, found: Squares, n_blocks: int) -> None:
        self.design, self.found, self.n_blocks = design, found, n_blocks
        self.word, self.n = design.known.word.codes, float(len(design.known))
        self.sizes, cell = design.levels["word"].counts, design.levels["cell"]
        # Each word's mean square within cells, and what a row moves it by. A cell's own mean takes 1 / n of a row's
        # square and of its spread: the root gives the spread back, as in the HC2 variance of least squares.
        self.within = np.bincount(self.word, found.within) / design.free
        alone = 1 - 1 / cell.counts[cell.of_row]
        moves = (found.within - alone * self.within[self.word]) / design.free[self.word]
        self.within_moved = moves / np.sqrt(np.where(alone > 0, alone, 1))
        self.crossed = self._crossed()
        taken = [each.value * f.within for each, f in zip(self.crossed, design.crossed, strict=True)]
        self.own = self.within - np.sum(taken, axis=0) if taken else self.within  # (words,) variance of the rest

    def _crossed(self) -> list[Moved]:
        """The variances of positions, sentences and documents, from their squares less what noise puts there."""
        design, left, moved = self.design, [], []
        for factor in design.crossed:
            rows = self.found.crossed[factor.name]
            left.append(rows.sum() - factor.own @ self.within)
            moved.append(self._by_block(rows - factor.own[self.word] * self.within_moved))
        if not left:
            return []
        inverse = np.linalg.inv(design.expected)
        return list(map(Moved, (inverse @ np.array(left)).tolist(), inverse @ np.array(moved)))

    def _by_block(self, rows: np.ndarray) -> np.ndarray:
        """(blocks,) the sums of rows (n,), less their mean: a row more doesn't move a ratio to the rows."""
        return np.bincount(self.design.known.block, rows - rows.mean(), minlength=self.n_blocks)

    def between(self, name: str) -> Moved:
        """The spread of a level's means within the level above, noise taken out."""
        (level, above), design = FIXED[name], self.design
        rows = self.found.means[level] - (self.found.means[above] if above else 0)
        parts = np.bincount(design.levels[level].word, minlength=design.n_words).astype(np.float64)
        if above:  # of each word's own variance in the squares
            parts -= np.bincount(design.levels[above].word, minlength=design.n_words)
        else:
            parts -= self.sizes / self.n
        total = rows.sum() - parts @ self.own
        blocks = self._by_block(rows - parts[self.word] * self.within_moved)
        for factor, each in zip(design.crossed, self.crossed, strict=True):
            noise = factor.of_means[level].sum()
            noise -= factor.of_means[above].sum() if above else (factor.counts**2).sum() / self.n
            total -= noise * each.value
            blocks = blocks - (noise - parts @ factor.within) * each.moved
        return Moved(float(total / self.n), blocks / self.n)

    def rest(self) -> Moved:
        """The mean over rows of their words' own variance."""
        share = self.sizes / self.n
        blocks = self._by_block(self.own[self.word] / self.n + share[self.word] * self.within_moved)
        for factor, each in zip(self.design.crossed, self.crossed, strict=True):
            blocks = blocks - (share @ factor.within) * each.moved
        return Moved(float(share @ self.own), blocks)


def shares(parts: Mapping[str, Moved], context: Collection[str]) -> dict[str, Moved]:
    """Each component's share of their sum, and `context`, that of those named together."""
    whole = np.float64(sum(part.value for part in parts.values()))
    moved = np.sum([part.moved for part in parts.values()], axis=0)
    together = [part for name, part in parts.items() if name in context]
    some = Moved(sum(p.value for p in together), np.sum([p.moved for p in together], axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            name: Moved(float(part.value / whole), (part.moved - part.value / whole * moved) / whole)
            for name, part in {**parts, "context": some}.items()
        }
