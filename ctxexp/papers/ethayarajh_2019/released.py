"""Published layer curves to lay over one's own: the per-layer data released with Ethayarajh 2019."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ctxexp.errors import UnknownName

SOURCE = "Ethayarajh 2019, released per-layer data, github.com/kawine/contextual"
"""For a legend or caption."""

CAVEAT = "close to what the paper charts, not exact"
"""The author's own words about the released files, shortened."""

_FILE = Path(__file__).with_name("released.csv")
_CURVES = {  # our measure -> (raw column, baseline column)
    "self_similarity": ("self_similarity", "mean_cosine"),
    "intra_sentence_similarity": ("intra_sentence_similarity", "mean_cosine"),
    "max_explainable_variance_released": ("variance_explained", "variance_explained_random"),
}


def models() -> tuple[str, ...]:
    """The models with published curves: bert (base, cased), gpt2 (small), elmo (original)."""
    return tuple(dict.fromkeys(row["model"] for row in _rows()))


def published(model: str) -> dict[str, np.ndarray]:
    """The published curves of bert, gpt2 or elmo by curve key, each (n_layers,) float64; NaN where not released.

    Keys: anisotropy/mean_cosine; raw, baseline and adjusted of self_similarity, intra_sentence_similarity and
    max_explainable_variance_released; raw and sd of word_norm. Adjusted is raw minus baseline, as in the paper: the
    mean cosine for both similarities, the random words' ratio for the explainable variance.
    """
    rows = [row for row in _rows() if row["model"] == model]
    if not rows:
        raise UnknownName("published curves", model, models())
    column = {
        name: np.array([float(row[name] or "nan") for row in rows], dtype=np.float64)
        for name in rows[0]
        if name not in ("model", "layer")
    }
    curves = {"anisotropy/mean_cosine": column["mean_cosine"]}
    for measure, (raw, baseline) in _CURVES.items():
        curves[f"{measure}/raw"] = column[raw]
        curves[f"{measure}/baseline"] = column[baseline].copy()
        curves[f"{measure}/adjusted"] = column[raw] - column[baseline]
    curves["word_norm/raw"], curves["word_norm/sd"] = column["word_norm_mean"], column["word_norm_sd"]
    return curves


def _rows() -> list[dict[str, str]]:
    with _FILE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))
