"""`python -m docs.numbers.precision`: how far a lower precision moves the shipped models' numbers, in the how-to."""

from __future__ import annotations

import numpy as np

import ctxexp
from ctxexp import Results
from docs.numbers.marked import write_marked
from docs.numbers.part import ROOT, markdown

MODELS = {"bfloat16": ("bert", "gpt2", "elmo"), "float16": ("bert", "gpt2")}
CURVES = ("raw", "adjusted", "share_of_room", "mean_cosine")


def moved(exact: Results, other: Results) -> tuple[float, float]:
    """By how much, at most, a mean curve (but for lengths) moves, and a word's self-similarity in a layer."""
    keys = [key for key in exact.by_key if key.statistic in CURVES and key.measure != "word_norm"]
    curve = max(float(np.abs(exact.by_key[key].value - other.by_key[key].value).max()) for key in keys)
    ours, theirs = (results.tables["self_similarity"].filter(regex=r"^raw_\d+$") for results in (exact, other))
    return curve, float(np.abs(ours.to_numpy() - theirs.to_numpy()).max())


if __name__ == "__main__":
    rows = []
    for dtype, models in MODELS.items():
        runs = [(ctxexp.measure(model), ctxexp.measure(model, options=[f"dtype={dtype}"])) for model in models]
        most = np.max([moved(*pair) for pair in runs], axis=0)
        one_figure = [f"{float(f'{value:.1g}'):.9f}".rstrip("0") for value in most]
        rows.append([f"`{dtype}` ({', '.join(models)})", *one_figure])
    table = markdown(["", "mean curves", "a single word's self-similarity"], rows)
    write_marked(ROOT / "docs" / "how-to" / "run-at-scale.md", "precision", table)
