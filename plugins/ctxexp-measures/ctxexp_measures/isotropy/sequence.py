"""Entropy of the Gram matrix of a sentence's vectors and curvature of their path, as Skean et al. 2025 define them, and
as their released code computes them, which gives other numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np

import ctxexp
from ctxexp import Reading

Definition = Literal["defined", "released"]


class _OfSentences(ctxexp.GroupMean):
    """Base of functions of a sentence's rows in their order, by one of two definitions; `definitions` and
    `invariances_of` say what each is."""

    over = "sentence"
    name: ClassVar[str]
    definitions: ClassVar[Mapping[Definition, str]]
    invariances_of: ClassVar[Mapping[Definition, frozenset[str]]]

    def __init__(
        self,
        *,
        definition: Definition = "defined",
        baselines: Sequence[str] = ("run", "size_matched"),
        sample: int | None = None,
    ) -> None:
        super().__init__(sample=sample, baselines=baselines)
        self.is_released = definition == "released"
        self.definition, self.invariances = self.definitions[definition], self.invariances_of[definition]
        self.variant = "" if definition == "defined" else "released"


class MatrixEntropy(_OfSentences):
    """Matrix-based entropy of a sentence's vectors in nats, 0 (one direction) to log min(n, d) (Skean et al. 2025).

    defined: - sum p log p over the eigenvalues p of the rows' Gram matrix X X', divided by their sum. released: rows
    about their mean at norm 1; the smaller of X X' and X'X; its negative entries set to 0 before the eigenvalues. That
    clamp makes another matrix of it: rows on one line, which have no entropy, score up to log 2. Long sentences have
    more of it: read it against the size-matched chance level.
    """

    name: ClassVar[str] = "matrix_entropy"
    title = "Matrix entropy of sentences"
    reading = Reading(
        unit="nats",
        subject="the vectors of a sentence",
        lower="spread over fewer directions",
        higher="spread over more directions",
    )
    definitions: ClassVar[Mapping[Definition, str]] = {
        "defined": "von Neumann entropy of the Gram matrix of a sentence's rows (Skean et al. 2025)",
        "released": "von Neumann entropy as released: rows normalised, entries clamped (Skean et al. 2025)",
    }
    invariances_of: ClassVar[Mapping[Definition, frozenset[str]]] = {
        "defined": frozenset({"scale", "permutation", "rotation"}),
        "released": frozenset({"scale", "permutation", "shift"}),
    }

    def score(self, x: np.ndarray) -> np.ndarray:
        """(...,) of groups (..., n, d); NaN where all rows are zero (equal, as released)."""
        rows = x.astype(np.float64)
        if self.is_released:
            rows = center_and_normalize(rows)
        moment = np.matmul(rows, np.swapaxes(rows, -1, -2))
        if rows.shape[-2] > rows.shape[-1]:
            moment = np.matmul(np.swapaxes(rows, -1, -2), rows)  # the same eigenvalues, but for zeros
        if self.is_released:
            moment = np.maximum(moment, 0)
        return entropy(moment)


class Curvature(_OfSentences):
    """Mean angle in radians between a sentence's successive steps from word to word (Hosseini & Fedorenko 2023).

    defined: arccos of the cosine of x_(i+1) - x_i and x_i - x_(i-1), 0 (a straight path) to pi; independent vectors
    have 2 pi / 3, since their steps share one. released (Skean et al. 2025): of the cosine's absolute value, 0 to
    pi / 2, chance pi / 3; words that equal the one before them count as 0. Words in between that aren't measured
    (punctuation) are passed over.
    """

    name: ClassVar[str] = "curvature"
    title = "Curvature of sentences"
    reading = Reading(unit="radians", subject="sentences", lower="straighter", higher="more curved")
    min_rows: ClassVar[int] = 3
    definitions: ClassVar[Mapping[Definition, str]] = {
        "defined": "mean angle of successive steps between a sentence's words",
        "released": "as released: of absolute cosines between a sentence's words",
    }
    invariances_of: ClassVar[Mapping[Definition, frozenset[str]]] = dict.fromkeys(
        ("defined", "released"), frozenset({"rotation", "scale", "shift"})
    )

    def score(self, x: np.ndarray) -> np.ndarray:
        """(...,) of groups (..., n, d); NaN where no two successive steps have a direction."""
        rows = x.astype(np.float64)
        if self.is_released:
            rows = center_and_normalize(rows)
        steps = np.diff(rows, axis=-2)
        lengths = np.linalg.norm(steps, axis=-1)
        product = np.vecdot(steps[..., 1:, :], steps[..., :-1, :])
        size = lengths[..., 1:] * lengths[..., :-1]
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = np.clip(product / size, -1, 1)
            angle = np.arccos(np.abs(cosine) if self.is_released else cosine)
            if self.is_released:
                angle = np.where(size > 0, angle, np.where(np.isfinite(product), 0.0, np.nan))
                result: np.ndarray = angle.mean(axis=-1)
                return result
            is_defined = np.isfinite(angle)
            result = np.where(is_defined, angle, 0).sum(axis=-1) / is_defined.sum(axis=-1)
        return result


def center_and_normalize(x: np.ndarray) -> np.ndarray:
    """Rows (..., n, d) about their mean, at norm 1; NaN where a row is the mean."""
    with np.errstate(invalid="ignore", divide="ignore"):
        rows = x - x.mean(axis=-2, keepdims=True)
        return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def entropy(moment: np.ndarray) -> np.ndarray:
    """(...,) in nats: of the eigenvalues of symmetric matrices (..., m, m) divided by their trace; negative ones, which
    a clamped matrix may have, by their absolute value (as repitl, which the release calls, has them)."""
    trace = np.trace(moment, axis1=-2, axis2=-1)
    good = np.isfinite(moment).all(axis=(-2, -1)) & (trace > 0)
    finite = np.where(good[..., None, None], moment, np.eye(moment.shape[-1]))
    values = np.abs(np.linalg.eigvalsh(finite / np.where(good, trace, moment.shape[-1])[..., None, None]))
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(values > 1e-15, values * np.log(values), 0.0)
    return np.where(good, -terms.sum(axis=-1), np.nan)
