"""Held-out linearity: share of one space that a linear map of the other predicts, on occurrences not trained on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar, NamedTuple

import numpy as np

from ctxexp_compare.contract import ComparisonScore, ComparisonStream, NullDistribution, Sample, TwoSpaces

# Of ridge regression, in the space's mean squared singular value; the largest first, which equal errors choose.
FOLDS = 4  # one to hold out, and the others to choose the penalty by
PENALTIES = np.append(np.inf, np.logspace(4, -6, 21))


class FoldSplit(NamedTuple):
    """A training set, and the held-out parts that are predicted from it."""

    train: np.ndarray  # (t,) row numbers
    tests: tuple[np.ndarray, ...]  # (m,) row numbers each
    chooses: tuple[int, ...] = ()  # index of the outer split whose penalty each test helps to choose


class Fit(NamedTuple):
    """Singular vectors of the training rows of a split, in the space that predicts."""

    split: FoldSplit
    u: np.ndarray  # (t, r) left singular vectors of the training rows about their mean
    s: np.ndarray  # (r,)
    along: tuple[np.ndarray, ...]  # (m, r) each: held-out rows along the right ones


@dataclass(frozen=True)
class LinearSide:
    """A space, as target and as predictor: `outer` splits are scored, `inner` ones choose their penalties."""

    x: np.ndarray  # (n, d) float64
    outer: tuple[FoldSplit, ...]
    inner: tuple[FoldSplit, ...]

    @cached_property
    def fits(self) -> tuple[tuple[Fit, ...], tuple[Fit, ...]]:
        """The fits of the outer and of the inner splits, computed on first use: a mere target needs none."""
        outer, inner = (tuple(_fit(self.x, split) for split in splits) for splits in (self.outer, self.inner))
        return outer, inner

    @cached_property
    def penalty_scale(self) -> float:
        """The mean squared singular value of all rows about their mean, 1 of equal rows."""
        total = float(((self.x - self.x.mean(axis=0)) ** 2).sum())
        return total / max(1, min(len(self.x) - 1, self.x.shape[1])) or 1.0

    @cached_property
    def inner_scales(self) -> tuple[np.ndarray, ...]:
        """Of each inner fit, (penalties, r): by what a ridge multiplies each direction's loads."""
        penalties = PENALTIES * self.penalty_scale
        return tuple(np.array([_shrinkage(fit.s, penalty) / fit.s for penalty in penalties]) for fit in self.fits[1])

    @property
    def nbytes(self) -> int:
        """Bytes, those of the fits included, whether or not they are computed yet."""
        entries = 0
        for split in (*self.outer, *self.inner):
            entries += (len(split.train) + sum(map(len, split.tests))) * min(len(split.train), self.x.shape[1])
        return self.x.nbytes + 8 * entries


class Linearity(TwoSpaces):
    """Share of B's variance that a linear map of A foretells, held out: at most 1; 0 is no better than B's mean.

    Ridge regression; whole resampling units (sentences, documents) are held out together, and whole words where chance
    keeps words: no word and no sentence of a held-out row was trained on (four by four parts, each row held out once).
    Otherwise a map learns words by heart: two unrelated tables of 100 words foretell each other entirely. The penalty
    of each held-out part is chosen among the rows that it is trained on, by the error of folds that hold out words and
    sentences too: where words repeat, a penalty chosen by rows left out alone is far too small. In-sample least
    squares, as published (Razzhigaev et al. 2024), gives independent noise of 192 dimensions 1.00 at n = 100 and .19 at
    1,000: about d / n. Freely permuted rows give about 0 (a little less: the penalty is estimated), which is taken as
    that chance level; within words it is drawn. A to B and B to A differ.
    """

    name: ClassVar[str] = "linearity"
    title: ClassVar[str] = "Linearity, held out"
    unit = "share of variance"
    symmetric: ClassVar[bool] = False

    min_rows = 2 * FOLDS
    definition = f"share of B's variance that ridge regression on A foretells, {FOLDS} folds held out"

    def prepare_side(self, x: np.ndarray, sample: Sample) -> LinearSide:
        parts = self._parts(sample)
        return LinearSide(x.astype(np.float64), *_splits(parts))

    def _parts(self, sample: Sample) -> np.ndarray:
        """(axes, n) the fold of each row's resampling unit, and that of its word where there are strata."""
        rng = np.random.default_rng([sample.seed, ComparisonStream.FOLDS])
        axes = [sample.blocks] if sample.strata is None else [sample.blocks, sample.strata]
        parts = []
        for names in axes:
            distinct, number = np.unique(names, return_inverse=True)
            parts.append((rng.permutation(len(distinct)) % FOLDS)[number])
        return np.array(parts)

    def score(self, a: LinearSide, b: LinearSide) -> ComparisonScore:
        """Share of variance; an occurrence's influence is that of its own error, widened because the maps share most of
        their training rows (Nadeau & Bengio 2003: the variance times 1 + folds times held-out over training rows)."""
        n = len(a.x)
        wrong, all_of = np.zeros(n), np.zeros(n)
        for fit, penalty in zip(a.fits[0], _penalties(a, b.x), strict=True):
            loads, mean = _loads(fit, b.x)
            (test,), (along,) = fit.split.tests, fit.along
            aim = b.x[test] - mean
            error = aim - (along * (_shrinkage(fit.s, penalty) / fit.s)) @ loads
            wrong[test] = np.einsum("ij,ij->i", error, error)
            all_of[test] = np.einsum("ij,ij->i", aim, aim)
        if not all_of.sum() > 0:
            return ComparisonScore(float("nan"))
        value = 1 - float(wrong.sum() / all_of.sum())
        trained = sum(len(split.train) for split in a.outer) / len(a.outer)
        influence = (all_of * (1 - value) - wrong) / all_of.sum() * np.sqrt(1 + n / trained)
        return ComparisonScore(value, influence - influence.mean())

    def permute(self, side: LinearSide, order: np.ndarray) -> LinearSide:
        return LinearSide(side.x[order], side.outer, side.inner)  # rows of the target only; the folds stay

    def chance(self, a: LinearSide, b: LinearSide, sample: Sample, permutations: int) -> NullDistribution:
        permutations_drawn = super().chance(a, b, sample, permutations)
        return permutations_drawn if sample.strata is not None else NullDistribution(0.0, permutations_drawn.sd)


def _splits(parts: np.ndarray) -> tuple[tuple[FoldSplit, ...], tuple[FoldSplit, ...]]:
    """Outer splits, one for each combination of folds (axes, n), and inner ones, which leave two folds of each axis out
    of the training rows: each combination of these is predicted for the outer split of the opposite combination."""
    number: dict[tuple[int, ...], int] = {}
    outer: list[FoldSplit] = []
    for cell in product(range(FOLDS), repeat=len(parts)):
        train, test = _rows_outside(parts, [(part,) for part in cell]), _rows_inside(parts, cell)
        if len(train) and len(test):
            number[cell] = len(outer)
            outer.append(FoldSplit(train, (test,)))
    return tuple(outer), tuple(_inner(parts, number))


def _inner(parts: np.ndarray, number: dict[tuple[int, ...], int]) -> Iterator[FoldSplit]:
    two = [(i, j) for i in range(FOLDS) for j in range(i)]
    for left_out in product(two, repeat=len(parts)):
        train = _rows_outside(parts, left_out)
        tests, chooses = [], []
        for cell in product(*left_out):
            opposite = tuple(i + j - one for (i, j), one in zip(left_out, cell, strict=True))
            test = _rows_inside(parts, cell)
            if opposite in number and len(test):
                tests.append(test)
                chooses.append(number[opposite])
        if len(train) and tests:
            yield FoldSplit(train, tuple(tests), tuple(chooses))


def _rows_outside(parts: np.ndarray, left_out: Iterable[tuple[int, ...]]) -> np.ndarray:
    return np.flatnonzero(~np.any([np.isin(part, out) for part, out in zip(parts, left_out, strict=True)], axis=0))


def _rows_inside(parts: np.ndarray, cell: tuple[int, ...]) -> np.ndarray:
    return np.flatnonzero((parts == np.array(cell)[:, None]).all(axis=0))


def _fit(x: np.ndarray, split: FoldSplit) -> Fit:
    mean = x[split.train].mean(axis=0)
    u, s, v = np.linalg.svd(x[split.train] - mean, full_matrices=False)
    nonzero = s > s.max(initial=0.0) * 1e-10
    return Fit(split, u[:, nonzero], s[nonzero], tuple((x[test] - mean) @ v[nonzero].T for test in split.tests))


def _loads(fit: Fit, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(r, d) the target's training rows along the fit's directions, and their mean (d,)."""
    mean = y[fit.split.train].mean(axis=0)
    return fit.u.T @ (y[fit.split.train] - mean), mean


def _shrinkage(s: np.ndarray, penalty: float) -> np.ndarray:
    """(r,) of each direction, s^2 / (s^2 + penalty)."""
    return s**2 / (s**2 + penalty)  # 0 under an infinite one


def _penalties(a: LinearSide, y: np.ndarray) -> np.ndarray:
    """(outer splits,) the penalty under which each one's inner splits predict y with the least squared error."""
    wrong = np.zeros((len(a.outer), len(PENALTIES)))
    for fit, scales in zip(a.fits[1], a.inner_scales, strict=True):
        loads, mean = _loads(fit, y)
        alike = loads @ loads.T
        for test, along, i in zip(fit.split.tests, fit.along, fit.split.chooses, strict=True):
            # |aim - along scale loads|^2 without |aim|^2, which no penalty changes
            met = np.einsum("ir,ri->r", along, loads @ (y[test] - mean).T)
            wrong[i] += np.einsum("pr,pr->p", scales @ (alike * (along.T @ along)), scales) - 2 * scales @ met
    return (PENALTIES * a.penalty_scale)[wrong.argmin(axis=1)]
