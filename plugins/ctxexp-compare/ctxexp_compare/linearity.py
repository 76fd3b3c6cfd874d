"""Held-out linearity: how much of one space a linear map of the other foretells, of occurrences that it never saw."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import ClassVar, NamedTuple

import numpy as np

from ctxexp.errors import MetricError
from ctxexp_compare.measure import Chance, Sample, Score, Stream, TwoSpaces

PENALTIES = np.append(np.logspace(-6, 4, 21), np.inf)  # of ridge regression, in the mean squared singular value


class Fold(NamedTuple):
    """What one held-out part needs of a space, as that which foretells: directions of the training rows."""

    test: np.ndarray  # (m,) row numbers
    train: np.ndarray  # (t,) row numbers
    u: np.ndarray  # (t, r) left singular vectors of the training rows about their mean
    s: np.ndarray  # (r,)
    along: np.ndarray  # (m, r) the held-out rows along the right ones


class Linear(NamedTuple):
    """A space as it is, and as what foretells, fold by fold."""

    x: np.ndarray  # (n, d) float64
    folds: tuple[Fold, ...]

    @property
    def nbytes(self) -> int:
        return self.x.nbytes + sum(part.u.nbytes + part.along.nbytes for part in self.folds)


class Linearity(TwoSpaces):
    """Share of B's variance that a linear map of A foretells, held out: at most 1; 0 is no better than B's mean.

    Ridge regression, its penalty by generalised cross-validation among the training rows; whole resampling units
    (sentences, documents) are held out together, and whole words where chance keeps words: no word and no sentence of a
    held-out row was trained on (`folds` by `folds` parts, each row held out once). Otherwise a map learns words by
    heart: two unrelated tables of 100 words foretell each other entirely. In-sample least squares, as published
    (Razzhigaev et al. 2024), gives independent noise of 192 dimensions 1.00 at n = 100 and .19 at 1,000: about d / n.
    Freely permuted rows give about 0 (a little less: the penalty is estimated), which is taken as that chance level;
    within words it is drawn. A to B and B to A differ.
    """

    name: ClassVar[str] = "linearity"
    title: ClassVar[str] = "Linearity, held out"
    unit: ClassVar[str] = "share of variance"
    symmetric: ClassVar[bool] = False

    def __init__(self, *, folds: int = 4) -> None:
        if folds < 2:
            raise MetricError(f"linearity folds={folds}: expected at least 2")
        self.folds = folds
        self.least = 2 * folds
        self.definition = f"share of B's variance that ridge regression on A foretells, {folds} folds held out"

    def side(self, x: np.ndarray, sample: Sample) -> Linear:
        rows = x.astype(np.float64)
        found = []
        for test, train in self._parts(sample):
            mean = rows[train].mean(axis=0)
            u, s, v = np.linalg.svd(rows[train] - mean, full_matrices=False)
            kept = s > s.max(initial=0.0) * 1e-10
            found.append(Fold(test, train, u[:, kept], s[kept], (rows[test] - mean) @ v[kept].T))
        return Linear(rows, tuple(found))

    def _parts(self, sample: Sample) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(held-out rows, training rows): units apart, and words where there are strata."""
        rng = np.random.default_rng([sample.seed, Stream.FOLDS])
        held = [sample.blocks] if sample.strata is None else [sample.blocks, sample.strata]
        parts = []
        for names in held:
            known, number = np.unique(names, return_inverse=True)
            parts.append((rng.permutation(len(known)) % self.folds)[number])
        for cell in product(range(self.folds), repeat=len(parts)):
            alike = np.array([part == fold for part, fold in zip(parts, cell, strict=True)])
            test, train = alike.all(axis=0), ~alike.any(axis=0)
            if test.any() and train.any():
                yield np.flatnonzero(test), np.flatnonzero(train)

    def score(self, a: Linear, b: Linear) -> Score:
        """The value; an occurrence's influence is its own error's, widened for the maps, which share most of their rows
        (Nadeau & Bengio 2003: by the variance's factor 1 + parts times held-out over training rows)."""
        n = len(a.x)
        wrong, all_of = np.zeros(n), np.zeros(n)
        for part in a.folds:
            mean = b.x[part.train].mean(axis=0)
            y, aim = b.x[part.train] - mean, b.x[part.test] - mean
            loads = part.u.T @ y  # (r, d)
            kept = _shrunk(part.s, np.einsum("ij,ij->i", loads, loads), float(np.vdot(y, y)), len(y))
            scale = np.divide(kept, part.s, out=np.zeros_like(kept), where=part.s > 0)
            error = aim - (part.along * scale) @ loads
            wrong[part.test] = np.einsum("ij,ij->i", error, error)
            all_of[part.test] = np.einsum("ij,ij->i", aim, aim)
        if not all_of.sum() > 0:
            return Score(float("nan"))
        value = 1 - float(wrong.sum() / all_of.sum())
        trained = sum(len(part.train) for part in a.folds) / len(a.folds)
        moved = (all_of * (1 - value) - wrong) / all_of.sum() * np.sqrt(1 + n / trained)
        return Score(value, moved - moved.mean())

    def shuffled(self, side: Linear, order: np.ndarray) -> Linear:
        return side._replace(x=side.x[order])  # as what is foretold

    def chance(self, a: Linear, b: Linear, sample: Sample, permutations: int) -> Chance:
        found = super().chance(a, b, sample, permutations)
        return found if sample.strata is not None else Chance(0.0, found.sd)


def _shrunk(s: np.ndarray, loads: np.ndarray, total: float, n: int) -> np.ndarray:
    """(r,): by how much each direction counts, s^2 / (s^2 + penalty), under the penalty of the least generalised
    cross-validation error (Golub, Heath & Wahba 1979); `loads` (r,) are the squares that each explains of `total`."""
    unit = float(np.mean(s**2)) if len(s) else 1.0
    best, found = np.inf, np.zeros_like(s)
    for penalty in PENALTIES * unit:
        share = s**2 / (s**2 + penalty) if np.isfinite(penalty) else np.zeros_like(s)
        left = total - float((loads * share * (2 - share)).sum())
        free = n - 1 - float(share.sum())
        error = left / free**2 if free > 1e-9 * n else np.inf
        if error < best:
            best, found = error, share
    return found
