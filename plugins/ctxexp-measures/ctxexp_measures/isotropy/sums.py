"""The covariance spectrum from sums over rows, for measuring in one pass (the distribution ctxexp-scale)."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from ctxexp_scale.one_pass.sums import Addends, Batch, LayerStatistics, SumForm, Sums

from ctxexp.maths import Moments

if TYPE_CHECKING:
    from ctxexp_measures.isotropy.spectrum import Spectrum

NAMES = ("rows", "row sum", "second moments", "normalized sum", "rows with direction")


class MomentSums(SumForm):
    """From the sum of the rows, their second moments about the origin (d, d), and the sum of the normalized rows;
    rounding errors of a scatter are 1e-16 of those moments."""

    def __init__(self, metric: Spectrum) -> None:
        self.metric = metric

    def addends(self, batch: Batch) -> Addends:
        x, u = batch.x, batch.normalized.nan_to_num(0.0)
        sums = (batch.lengths.sum(), x.sum(0), x.T @ x, u.sum(0), batch.has_direction.sum())
        return Addends(overall=dict(zip(NAMES, sums, strict=True)))

    def statistics(self, sums: Sums) -> LayerStatistics:
        n, total, outer, normalized, n_directed = (sums.overall[name] for name in NAMES)
        metric, moments = copy(self.metric), Moments()
        moments.n, moments.n_directed, moments.ones = int(n), int(n_directed), float(n_directed)
        moments.mean, moments.normalized_sum = total / max(n, 1), normalized
        moments.scatter = outer - n * np.outer(moments.mean, moments.mean)
        metric.moments = moments
        return LayerStatistics(dict(metric.compute()))
