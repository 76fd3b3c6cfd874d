"""The authors' released per-word files as evidence, a row a word, a column a layer, rounded to three decimals; beside
them their per-layer figures, whose errors have bounds (`bounded`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ctxexp.errors import DataError
from ctxexp.report.ethayarajh_2019 import published_curves
from ctxexp.results import Estimates, Key
from ctxexp_papers.claims.evidence import Evidence, Family
from ctxexp_papers.claims.source import Inputs
from ctxexp_papers.papers.ethayarajh_2019.bounded import curves, mean_of_words
from ctxexp_papers.papers.ethayarajh_2019.protocol import MODELS
from ctxexp_papers.papers.ethayarajh_2019.released import RELEASED_VARIANCE

FILES = ("self_similarity", "variance_explained")


def source(inputs: Inputs) -> Family | None:
    """The word tables and curves of the three models; None where no folder of released results has them. The
    explainable variance is the released code's estimator's, less the released level of random words."""
    folder = inputs.released_folder("ethayarajh_2019", "bert") or inputs.released_folder("ethayarajh_2019")
    if folder is None or not any(path.exists() for path in _paths(folder, MODELS[0], FILES[0])):
        return None
    members = [_member(folder, model) for model in MODELS]
    return Family(
        "protocol",
        "the authors' released per-word files and per-layer figures",
        members=members,
        command="python -m ctxexp claims paper=ethayarajh_2019 released=<clone of github.com/kawine/contextual>",
    )


def _member(folder: Path, model: str) -> Evidence:
    similarity, variance = (_read(folder, model, name) for name in FILES)
    values = variance.to_numpy()
    variance = variance.where(values < 1.0)  # the released code's min(1.0, nan) is 1.0: of words in no distinct context
    published = published_curves(model)
    level = published[Key(RELEASED_VARIANCE, "baseline")]
    adjusted = {f"adjusted_{i}": variance[f"layer_{i}"] - level[i] for i in range(1, len(level))}
    tables = {
        "self_similarity": similarity.rename(columns=lambda name: name.replace("layer", "raw")).reset_index(),
        RELEASED_VARIANCE: pd.DataFrame(adjusted).reset_index(),
    }
    by_key = curves(similarity, published) | {Key(RELEASED_VARIANCE, "raw"): _with_input(mean_of_words(variance))}
    return Evidence(model, by_key, "released figures", tables=tables)


def _with_input(hidden: Estimates) -> Estimates:
    """Estimates of the hidden layers with an undefined input layer before them."""
    return Estimates(*(np.insert(end, 0, np.nan) for end in hidden))


def _read(folder: Path, model: str, name: str) -> pd.DataFrame:
    """Words by layers; raises DataError for a file that isn't there or isn't one of theirs."""
    path = next((path for path in _paths(folder, model, name) if path.exists()), None)
    if path is None:
        raise DataError(
            f"no {model}/{name}.csv in {folder} (released=): expected a clone of github.com/kawine/contextual"
        )
    table = pd.read_csv(path, keep_default_na=False, na_values=[""])  # "nan", "null" are words
    if list(table.columns[:1]) != ["word"] or not all(str(c).startswith("layer_") for c in table.columns[1:]):
        raise DataError(f"{path}: expected columns word, layer_0 or layer_1, ..., got {', '.join(table.columns[:3])}")
    return table.set_index("word").astype(np.float64)


def _paths(folder: Path, model: str, name: str) -> list[Path]:
    """Where a file may lie: as the authors' repository has it, or in one folder."""
    return [folder / model / f"{name}.csv", folder / f"{model}_{name}.csv", folder / f"{model}_{name}.csv.xz"]
