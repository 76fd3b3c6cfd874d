"""`python -m docs.numbers.precision`: how far a lower precision moves the shipped models' numbers, in the how-to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import ctxexp
from ctxexp import Results
from docs.numbers.marked import write_marked
from docs.numbers.part import ROOT

PAGE, MARK = ROOT / "docs" / "how-to" / "choose-the-numbers-precision.md", "precision"
MODELS = {"bfloat16": ("bert", "gpt2", "elmo"), "float16": ("bert", "gpt2")}
CURVES = ("raw", "adjusted", "share_of_room", "mean_cosine")
LENGTHS = "word_norm"  # isn't a cosine or a share


def moved(exact: Results, other: Results) -> tuple[float, float]:
    """By how much, at most, a mean curve moves, and a word's self-similarity in a layer."""
    keys = [key for key in exact.by_key if key.statistic in CURVES and key.measure != LENGTHS]
    curve = max(float(np.abs(exact.by_key[key].value - other.by_key[key].value).max()) for key in keys)
    ours, theirs = (results.tables["self_similarity"].filter(regex=r"^raw_\d+$") for results in (exact, other))
    return curve, float(np.abs(ours.to_numpy() - theirs.to_numpy()).max())


def table(found: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """A Markdown table: a row a precision, the largest of its models' moves, one figure each."""
    lines = ["| | mean curves | a single word's self-similarity |", "|---|---|---|"]
    for dtype, moves in found.items():
        named = f"`{dtype}` ({', '.join(MODELS[dtype])})"
        lines.append(f"| {named} | {' | '.join(_plain(max(values)) for values in zip(*moves, strict=True))} |")
    return "\n".join(lines)


def _plain(value: float) -> str:
    """One figure: `0.0008`, `0.00003`."""
    return f"{float(f'{value:.1g}'):.9f}".rstrip("0")


def measured() -> dict[str, list[tuple[float, float]]]:
    """The moves of each precision, a pair a model."""
    exact = {model: ctxexp.measure(model, progress=False) for model in MODELS["bfloat16"]}
    return {
        dtype: [moved(exact[m], ctxexp.measure(m, options=[f"dtype={dtype}"], progress=False)) for m in models]
        for dtype, models in MODELS.items()
    }


if __name__ == "__main__":
    write_marked(PAGE, MARK, table(measured()))
