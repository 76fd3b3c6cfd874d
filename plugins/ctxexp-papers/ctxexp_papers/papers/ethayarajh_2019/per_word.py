"""The authors' released per-word files as evidence, a row a word, a column a layer, rounded to three decimals; beside
them their per-layer figures, whose errors have bounds that follow from how their code made them: wide, and right
whatever the model.

Their `analyze.py` (github.com/kawine/contextual, commit c10c992 and after) draws 1,000 sentences, a word of each, and
1,000 pairs of these words with replacement: the baseline is the pairs' mean cosine. Cosines lie between -1 and 1, so
that values of mean m have a variance of 1 - m^2 at the most (Bhatia & Davis 2000), and the released figures an error
that is known without the model. Self-similarity is by word: its interval is over words.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ctxexp.errors import DataError
from ctxexp.report.references import published_curves
from ctxexp.results import Estimates
from ctxexp_papers.claims.evidence import Evidence, Family
from ctxexp_papers.claims.source import Inputs
from ctxexp_papers.claims.spans import Z
from ctxexp_papers.papers.ethayarajh_2019.curves import ADJUSTED, ANISOTROPY, CORRECTED, RAW
from ctxexp_papers.papers.ethayarajh_2019.protocol import MODELS

FILE = "self_similarity"
DRAWS = 1000  # sentences, words and pairs of the released figures
PAIRED = 3.0
"""Times the variance of a cosine over DRAWS that a mean over pairs of drawn words has at the most: 2 by the words, of
which each is in many pairs (Hoeffding 1948), 1 by the pairs."""
ROUNDING = 0.0005


def bounded_mean(value: np.ndarray, times: float = 1.0) -> Estimates:
    """The mean of DRAWS values between -1 and 1 with an interval that holds in 95% of cases whatever they are, but for
    a mean's being nearly normal: all means m with |value - m| <= z sqrt(times (1 - m^2) / DRAWS).

    Args:
        value: (layers,) means.
        times: by how much their variance exceeds that of independent values.
    """
    k = times * Z**2 / DRAWS
    half = np.sqrt(np.maximum(k * (1 + k - value**2), 0.0)) / (1 + k)
    return Estimates(value, value / (1 + k) - half - ROUNDING, value / (1 + k) + half + ROUNDING)


def mean_of_words(table: pd.DataFrame) -> Estimates:
    """The mean over words (rows) by layer (columns) with its interval over words; NaN left out."""
    values = table.to_numpy(np.float64)
    mean, n = np.nanmean(values, axis=0), np.isfinite(values).sum(axis=0)
    half = Z * np.nanstd(values, axis=0, ddof=1) / np.sqrt(n) + ROUNDING
    return Estimates(mean, mean - half, mean + half)


def adjusted(raw: Estimates, level: Estimates) -> Estimates:
    """Raw less its level, whose errors are independent."""
    value = raw.value - level.value
    low = value - np.hypot(raw.value - raw.low, level.high - level.value)
    return Estimates(value, low, value + np.hypot(raw.high - raw.value, level.value - level.low))


def corrected(raw: Estimates, level: Estimates) -> Estimates:
    """(raw - level) / (1 - level), from the worst ends of both to the best: it rises with raw and falls with level."""

    def share(x: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.asarray((x - a) / np.maximum(1 - a, ROUNDING))

    ends = share(raw.low, level.high), share(np.minimum(raw.high, 1.0), level.low)
    return Estimates(share(raw.value, level.value), *ends)


def source(inputs: Inputs) -> Family | None:
    """The word tables and curves of the three models; None where no folder of released results has them."""
    folder = inputs.released_folder("ethayarajh_2019", "bert") or inputs.released_folder("ethayarajh_2019")
    if folder is None or not any(path.exists() for path in _paths(folder, MODELS[0])):
        return None
    members = [_member(folder, model) for model in MODELS]
    return Family(
        "protocol",
        "the authors' released per-word files and per-layer figures",
        members=members,
        command="python -m ctxexp claims paper=ethayarajh_2019 released=<clone of github.com/kawine/contextual>",
    )


def _member(folder: Path, model: str) -> Evidence:
    """Mean cosine and self-similarity by layer, and the words' own."""
    table = _read(folder, model)
    level, raw = bounded_mean(published_curves(model)[ANISOTROPY], PAIRED), mean_of_words(table)
    by_key = {ANISOTROPY: level, RAW: raw, ADJUSTED: adjusted(raw, level), CORRECTED: corrected(raw, level)}
    words = table.rename(columns=lambda name: name.replace("layer", "raw")).reset_index()
    return Evidence(model, by_key, "released figures", tables={FILE: words})


def _read(folder: Path, model: str) -> pd.DataFrame:
    """Words by layers; raises DataError for a file that isn't there or isn't one of theirs."""
    path = next((path for path in _paths(folder, model) if path.exists()), None)
    if path is None:
        raise DataError(
            f"no {model}/{FILE}.csv in {folder} (released=): expected a clone of github.com/kawine/contextual"
        )
    table = pd.read_csv(path, keep_default_na=False, na_values=[""])  # "nan", "null" are words
    if list(table.columns[:1]) != ["word"] or not all(str(c).startswith("layer_") for c in table.columns[1:]):
        raise DataError(f"{path}: expected columns word, layer_0 or layer_1, ..., got {', '.join(table.columns[:3])}")
    return table.set_index("word").astype(np.float64)


def _paths(folder: Path, model: str) -> list[Path]:
    """Where a file may lie: as the authors' repository has it, or in one folder."""
    return [folder / model / f"{FILE}.csv", folder / f"{model}_{FILE}.csv", folder / f"{model}_{FILE}.csv.xz"]
