"""What the numbers say: the figure's title and the table's rows, from the frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

NOTE = (
    "Differences: without the first words less with them, in the layer where they are largest; 95% intervals of that "
    "layer alone, over the same resamples of the text."
)
NAMES = {"intra_sentence_similarity": "intra-sentence similarity", "sts": "sentence similarity"}
MATTERS = {"intra_sentence_similarity": 0.05, "sts": 2.0}  # what a curve must move by to be spoken of
_DIGITS = {"intra_sentence_similarity": 2, "sts": 1}
_MORE = {"intra_sentence_similarity": 1, "sts": 0}  # digits of a difference, whose interval may be narrow
_CORPORA = {"sts_b": "STS-B"}


def title(numbers: pd.DataFrame) -> str:
    """What the figure shows: of the model whose first curve moves most, each measure where it moves most."""
    told = {metric: largest(rows) for metric, rows in numbers.groupby("measure", sort=False)}
    first = next(iter(told.values()))
    if not any(moves(row) for row in told.values()):
        return "The first word of each sentence moves no curve by more than chance could"
    model = next((row.model for row in told.values() if moves(row)), first.model)
    said = []
    for metric, rows in numbers[numbers.model == model].groupby("measure", sort=False):
        row = largest(rows)
        said.append(
            f"{of(row)} {number(row.with_first, metric)} → {number(row.without_first, metric)} (layer\u00a0{row.layer})"
        )
    return f"{model} without the first word of each sentence: {', '.join(said)}"


def tops(numbers: pd.DataFrame) -> dict[str, str]:
    """Each measure's largest difference of each model, in words: for under a title."""
    told: dict[str, str] = {}
    for _, by_measure in numbers.groupby("measure", sort=False):
        rows = [largest(rows) for _, rows in by_measure.groupby("model", sort=False)]
        told[of(rows[0])] = ", ".join(f"{row.model} {interval(row)} in layer {row.layer}" for row in rows)
    return told


def largest(rows: pd.DataFrame) -> pd.Series:
    """The row whose difference is largest, either way."""
    return rows.loc[rows.difference.abs().idxmax()]


def of(row: pd.Series) -> str:
    """The measure, of sentence similarity with its data set."""
    return _CORPORA.get(row.corpus, str(row.corpus)) if row.measure == "sts" else NAMES[row.measure]


def number(value: float, metric: str, *, sign: bool = False) -> str:
    """With as many digits as are read, of a difference with its sign (`0.24`, `+0.240`); no minus before a zero."""
    digits = _DIGITS[metric] + _MORE[metric] * sign
    value = round(float(value), digits) + 0.0
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−")


def interval(row: pd.Series) -> str:
    """`+0.240 [+0.237, +0.244]`: the difference with its interval where it has one."""
    value, low, high = (number(v, row.measure, sign=True) for v in (row.difference, row.low, row.high))
    return value if row.low != row.low else f"{value} [{low}, {high}]"


def moves(row: pd.Series) -> bool:
    """Whether the whole interval of the difference lies beyond what matters."""
    beyond = MATTERS[str(row.measure)]
    return bool(row.low > beyond or row.high < -beyond)
