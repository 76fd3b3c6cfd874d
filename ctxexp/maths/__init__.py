"""Pure functions of arrays: cosines and spaces, correlations, clusters, resamples with their intervals, and sums that a
metric's numbers follow from."""

from __future__ import annotations

from ctxexp.maths.geometry import mean_cosine
from ctxexp.maths.resampling import Curve, Resamples, Stream, interval
from ctxexp.maths.spectra import (
    Moments,
    effective_rank,
    isoscore,
    participation_ratio,
    principal_directions,
)
from ctxexp.maths.statistics import (
    kmeans,
    midranks,
    partial_correlation,
    resampled_spearman,
    resamples,
    spearman,
)

__all__ = [
    "Curve",
    "Moments",
    "Resamples",
    "Stream",
    "effective_rank",
    "interval",
    "isoscore",
    "kmeans",
    "mean_cosine",
    "midranks",
    "partial_correlation",
    "participation_ratio",
    "principal_directions",
    "resampled_spearman",
    "resamples",
    "spearman",
]
