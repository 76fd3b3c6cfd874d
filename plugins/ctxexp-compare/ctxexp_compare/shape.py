"""Shape distance: how far two spaces are apart once one is turned onto the other."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from ctxexp_compare.contract import ComparisonScore, Sample, TwoSpaces


class Shape(NamedTuple):
    """Rows about their mean at Frobenius norm 1 (n, d), and each row's share of the squared norm (n,)."""

    x: np.ndarray
    share: np.ndarray


class ShapeDistance(TwoSpaces):
    """Angular Procrustes distance in radians, 0 (equal up to shift, rotation and one factor) to pi / 2.

    arccos of the nuclear norm of X'Y, both about their means at norm 1: the angle after the best rotation (Williams,
    Kunz, Kornblith & Linderman 2021; netrep's LinearMetric with alpha = 1, whose zero padding of the narrower space it
    is without any). It obeys the triangle inequality. Few rows turn onto anything: independent spaces come near too,
    by how much only permutations tell.
    """

    name: ClassVar[str] = "shape_distance"
    title: ClassVar[str] = "Shape distance"
    definition = "angular Procrustes distance after the best rotation (Williams et al. 2021)"
    unit = "radians"
    self_score: ClassVar[float] = 0.0

    def prepare_side(self, x: np.ndarray, sample: Sample) -> Shape:
        y = x.astype(np.float64)
        y -= y.mean(axis=0)
        norm = np.linalg.norm(y)
        y = y / norm if norm > 0 else np.full_like(y, np.nan)
        return Shape(y, np.einsum("ij,ij->i", y, y))

    def score(self, a: Shape, b: Shape) -> ComparisonScore:
        """The angle; an occurrence's influence is its product across the best rotation, less half its squared norms."""
        product = a.x.T @ b.x
        if not np.isfinite(product).all():
            return ComparisonScore(float("nan"))
        u, s, v = np.linalg.svd(product, full_matrices=False)
        cosine = min(float(s.sum()), 1.0)
        value = float(np.arccos(cosine))
        if cosine > 1 - 1e-12:
            return ComparisonScore(0.0)
        turned = np.einsum("ij,ij->i", a.x @ u, b.x @ v.T)
        influence = -(turned - cosine * (a.share + b.share) / 2) / np.sqrt(1 - cosine**2)
        return ComparisonScore(value, influence - influence.mean())

    def permute(self, side: Shape, order: np.ndarray) -> Shape:
        return Shape(side.x[order], side.share[order])
