"""Symmetry of word vectors, weighted by frequency or not (Yokoi et al. 2024)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ctxexp import Group, Metric, Reading


def symmetry(vectors: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """First and second moment's symmetry of a space, in [0, 1] each, 1 symmetric (Yokoi et al. 2024, equations 5, 6).

    1 - |E x| / E |x|; and the entropy of the covariance's eigenvalues, as shares, over log d. E is over words drawn as
    often as `counts` (V,) says.
    """
    p = counts / counts.sum()
    x = vectors.astype(np.float64)
    mean, length = p @ x, float(p @ np.linalg.norm(x, axis=1))
    values = np.linalg.eigvalsh((x - mean).T @ (p[:, None] * (x - mean)))
    total = float(values.sum())
    first = 1 - float(np.linalg.norm(mean)) / length if length > 0 else float("nan")
    if not total > 0 or len(values) < 2:
        return first, float("nan")
    share = values[values > total * 1e-15] / total
    return first, float(-(share * np.log(share)).sum() / np.log(len(values)))


class Symmetry(Metric):
    """Symmetry of a space of words about its mean and in all directions, in [0, 1], 1 symmetric (Yokoi et al. 2024).

    A word's vector is the mean of its rows; of an embedding table its row. `raw`: second moment, words weighted by
    their occurrences in the text (Zipfian); `first`: first moment, likewise; `uniform`, `uniform_first`: each word
    once, as most measures of isotropy have it. NaN where a table has no counts.
    """

    over = "word"
    measures_embedding_tables: ClassVar[bool] = True
    title = "Symmetry of word vectors"
    reading = Reading(unit="symmetry", subject="word vectors", lower="less symmetric", higher="more symmetric")
    definition = "entropy of the covariance's eigenvalues over log d, words weighted by frequency (Yokoi et al. 2024)"
    invariances = frozenset({"rotation", "scale", "permutation"})

    def __init__(self) -> None:
        self._means: list[np.ndarray] = []
        self._counts: list[float] = []

    def update(self, group: Group) -> None:
        if group.table is None:
            self._means.append(group.x.astype(np.float64).mean(axis=0))
            self._counts.append(float(len(group.x)))
            return
        special = np.isin(np.arange(len(group.x)), group.table.special)
        counts = group.table.counts
        self._means += list(group.x[~special].astype(np.float64))
        self._counts += [float("nan")] * int((~special).sum()) if counts is None else counts[~special].tolist()

    def compute(self) -> dict[str, float]:
        """raw, first, uniform, uniform_first; n words."""
        nan = float("nan")
        statistics = dict.fromkeys(("raw", "first", "uniform", "uniform_first"), nan) | {"n": float(len(self._means))}
        if len(self._means) < 2:
            return statistics
        x, counts = np.array(self._means), np.array(self._counts)
        if not np.isfinite(x).all():
            return statistics
        if np.isfinite(counts).all() and counts.sum() > 0:
            statistics["first"], statistics["raw"] = symmetry(x, counts)
        statistics["uniform_first"], statistics["uniform"] = symmetry(x, np.ones(len(x)))
        return statistics
