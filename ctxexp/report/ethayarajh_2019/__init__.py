"""Ethayarajh (EMNLP 2019), to lay beside one's own: the per-layer data released with the paper."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ctxexp.errors import UnknownName
from ctxexp.maths.geometry import chance_corrected
from ctxexp.results.values import Key

SOURCE = "Ethayarajh 2019, released per-layer data, github.com/kawine/contextual"
"""For a legend or caption."""
CAVEAT = "close to what the paper charts, not exact"
"""The author's own words about the released files, shortened."""
_CURVES = {  # our measure -> (raw column, baseline column)
    "self_similarity": ("self_similarity", "mean_cosine"),
    "intra_sentence_similarity": ("intra_sentence_similarity", "mean_cosine"),
    "max_explainable_variance_released": ("variance_explained", "variance_explained_random"),
}


def models() -> tuple[str, ...]:
    """The models with published curves: bert (base, cased), gpt2 (small), elmo (original)."""
    return tuple(dict.fromkeys(row["model"] for row in _rows("released.csv")))


def published_curves(model: str) -> dict[Key, np.ndarray]:
    """The published curves of bert, gpt2 or elmo by key, each (n_layers,) float64; NaN where not released.

    Keys: anisotropy/mean_cosine; raw, baseline, adjusted and share_of_room of self_similarity,
    intra_sentence_similarity and max_explainable_variance_released; raw and sd of word_norm. Adjusted is raw minus
    baseline, as in the paper: the mean cosine for both similarities, the random words' ratio for the explainable
    variance.
    """
    rows = [row for row in _rows("released.csv") if row["model"] == model]
    if not rows:
        raise UnknownName("published curves", model, models())
    column = {
        name: np.array([float(row[name] or "nan") for row in rows], dtype=np.float64)
        for name in rows[0]
        if name not in ("model", "layer")
    }
    curves = {Key("anisotropy", "mean_cosine"): column["mean_cosine"]}
    for measure, (raw, baseline) in _CURVES.items():
        curves[Key(measure, "raw")] = column[raw]
        curves[Key(measure, "baseline")] = column[baseline].copy()
        curves[Key(measure, "adjusted")] = column[raw] - column[baseline]
        curves[Key(measure, "share_of_room")] = chance_corrected(column[raw] - column[baseline], column[baseline])
    curves[Key("word_norm", "raw")], curves[Key("word_norm", "sd")] = column["word_norm_mean"], column["word_norm_sd"]
    return curves


def _rows(file: str) -> list[dict[str, str]]:
    with Path(__file__).with_name(file).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))
