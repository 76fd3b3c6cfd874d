"""IsoScore*: IsoScore of few vectors, their covariance shrunk towards that of more (Rudman & Eickhoff 2024)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ctxexp import Reading
from ctxexp.errors import MetricError
from ctxexp.maths import isoscore
from ctxexp_measures.isotropy.sample import SampleMetric


def isoscore_star(x: np.ndarray, target: np.ndarray | None, zeta: float) -> float:
    """IsoScore* of rows (n, d), in [0, 1]: IsoScore of (1 - zeta) cov(x) + zeta target (Rudman & Eickhoff 2024).

    `target` (d, d) is the covariance of a larger cloud (None: the identity, as the release has it without one); zeta 0
    is IsoScore. With fewer rows than dimensions IsoScore falls however even the space is.
    """
    rows = x.astype(np.float64)
    rows = rows - rows.mean(axis=0)
    own = rows.T @ rows / max(1, len(rows) - 1)
    prior = np.eye(rows.shape[1]) if target is None else target
    shrunk = (1 - zeta) * own + zeta * prior
    return isoscore(shrunk) if shrunk.any() else float("nan")


class IsoScoreStar(SampleMetric):
    """IsoScore* of `batch` random occurrences, in [0, 1] (Rudman & Eickhoff 2024).

    Their covariance is shrunk by `zeta` towards that of the baseline's other random occurrences. `isoscore` is the same
    batch without, `all_of` IsoScore of the whole sample.
    """

    name: ClassVar[str] = "isoscore_star"
    title = "IsoScore*"
    reading = Reading(unit="isoscore", subject="word vectors", lower="less isotropic", higher="more isotropic")
    statistics: ClassVar[tuple[str, ...]] = ("raw", "isoscore", "all_of")
    invariances = frozenset({"rotation", "scale", "shift"})

    def __init__(self, *, batch: int = 256, zeta: float = 0.2, redraws: int = 0) -> None:
        super().__init__(redraws=redraws)
        if batch < 2 or not 0 <= zeta <= 1:
            raise MetricError(f"isoscore_star batch={batch} zeta={zeta}: expected 2 rows or more, and 0 to 1")
        self.batch, self.zeta = batch, zeta
        self.definition = f"IsoScore* of {batch} random occurrences, zeta {zeta:g} (Rudman & Eickhoff 2024)"

    def values(self, x: np.ndarray) -> dict[str, float]:
        """raw, isoscore, all_of; NaN where the sample has no two rows beside the batch."""
        few, more = x[: self.batch], x[self.batch :]
        if len(more) < 2:
            return {}
        centred = more - more.mean(axis=0)
        target = centred.T @ centred / (len(more) - 1)
        return {
            "raw": isoscore_star(few, target, self.zeta),
            "isoscore": isoscore_star(few, None, 0.0),
            "all_of": isoscore_star(x, None, 0.0),
            "n": float(len(few)),
        }
