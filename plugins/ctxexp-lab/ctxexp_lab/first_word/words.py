"""Texts from the frame of numbers, the figure's title, shares of layers; and the table of a sweep over the first
position: each condition where the curve as tokenized is moved most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ctxexp.report import LabelledResults, Table, decimal
from ctxexp_lab.first_word.effects import AS_TOKENIZED, effects, frame

if TYPE_CHECKING:
    import pandas as pd

NOTE = (
    "What stands first is encoded and never measured. Differences: each condition less the text as tokenized, in the "
    "layer where they are largest; 95% intervals of that layer alone, over the same resamples of the text."
)
BAND = (
    "Grey band: within .05 of chance. Lower: the words of a sentence are less alike, or its vector ranks pairs worse. "
    "Shaded: 95% intervals, of words mostly thinner than the lines."
)
NAMES = {"intra_sentence_similarity": "intra-sentence similarity", "sts": "sentence similarity"}
MATTERS = {"intra_sentence_similarity": 0.05, "sts": 2.0}  # what a curve must move by to be spoken of
_LIMITS = {"intra_sentence_similarity": ".05", "sts": "2 points"}
_DIGITS = {"intra_sentence_similarity": 2, "sts": 1}
_MORE = {"intra_sentence_similarity": 1, "sts": 0}  # digits of a difference, whose interval may be narrow
_CORPORA = {"sts_b": "STS-B"}
COLUMNS = [
    "measure", "model", "condition", "layer", "value", "difference [95%]", "layers within .05 of 0",
    "length-matched", "length-matched within .05 of 0",
]  # fmt: skip


def title(numbers: pd.DataFrame) -> str:
    """The figure's finding. A sink is named where one model's curve as tokenized lies apart from all its others, which
    lie together: then what was taken away is no property of the words."""
    models = [str(model) for model, rows in _words(numbers).groupby("model", sort=False) if sink_layers(rows)]
    if models:
        return f"A known attention sink, not the words, moves the paper's measure in {' and '.join(models)}"
    apart = numbers[numbers.condition != AS_TOKENIZED]
    if not any(moves(row) for _, row in apart.iterrows()):
        limits = [_LIMITS[str(metric)] for metric in numbers.measure.unique()]
        return f"What stands first moves no curve by more than {' or '.join(limits)}"
    rows = numbers[numbers.apply(moves, axis=1)]
    return (
        f"What stands first moves {', '.join(dict.fromkeys(f'{of(row)} of {row.model}' for _, row in rows.iterrows()))}"
    )


def sink_layers(rows: pd.DataFrame) -> list[int]:
    """Of one model and measure the layers where every condition differs from the text as tokenized by more than
    matters, all to one side, and from each other by less."""
    layers = []
    metric = str(rows.measure.iloc[0])
    for layer, own in rows.groupby("layer", sort=True):
        others = own[own.condition != AS_TOKENIZED]
        is_apart = (others.low > MATTERS[metric]).all() or (others.high < -MATTERS[metric]).all()
        if len(others) > 1 and is_apart and others.value.max() - others.value.min() < MATTERS[metric]:
            layers.append(int(str(layer)))
    return layers


def near_zero(values: pd.Series) -> tuple[int, int]:
    """How many layers lie within what matters of 0, and of how many."""
    return int((values.abs() <= MATTERS["intra_sentence_similarity"]).sum()), int(values.notna().sum())


def tops(numbers: pd.DataFrame) -> dict[str, str]:
    """Each measure's largest difference of each model, in words: for under a title."""
    texts: dict[str, str] = {}
    for _, by_measure in numbers.groupby("measure", sort=False):
        rows = [largest(rows) for _, rows in by_measure.groupby("model", sort=False)]
        name = of(rows[0])
        texts[name] = ", ".join(f"{row.model} at most {difference_text(row)} (layer {row.layer})" for row in rows)
    return texts


def largest(rows: pd.DataFrame) -> pd.Series:
    """The row whose difference is largest, either way."""
    return rows.loc[rows.difference.abs().idxmax()]


def of(row: pd.Series) -> str:
    """The measure, of sentence similarity with its data set."""
    return _CORPORA.get(row.corpus, str(row.corpus)) if row.measure == "sts" else NAMES[row.measure]


def number(value: float, metric: str, *, sign: bool = False) -> str:
    """With as many digits as are read, of a difference with its sign (`0.24`, `+0.240`); no minus before a zero."""
    return decimal(value, _DIGITS[metric] + _MORE[metric] * sign, sign=sign)


def difference_text(row: pd.Series) -> str:
    """`+0.240 [+0.237, +0.244]`: the difference with its interval where it has one."""
    value, low, high = (number(v, row.measure, sign=True) for v in (row.difference, row.low, row.high))
    return value if row.low != row.low else f"{value} [{low}, {high}]"


def moves(row: pd.Series) -> bool:
    """Whether the whole interval of the difference lies beyond what matters."""
    beyond = MATTERS[str(row.measure)]
    return bool(row.low > beyond or row.high < -beyond)


def _words(numbers: pd.DataFrame) -> pd.DataFrame:
    return numbers[numbers.measure == "intra_sentence_similarity"]


def table(runs: Sequence[LabelledResults]) -> Table | None:
    """One row for each measure, model and condition, in the layer where that model moves most; None without two
    conditions."""
    all_effects = effects(runs)
    if not all_effects:
        return None
    numbers = frame(all_effects)
    cells = [
        _row(rows, layer)
        for _, own in numbers.groupby(["measure", "model"], sort=False)
        for layer in [int(largest(own).layer)]
        for _, rows in own.groupby("condition", sort=False)
    ]
    notes = dict.fromkeys(
        f"{effect.metric}: {effect.results.info.definition(effect.key.measure)}" for effect in all_effects
    )
    return Table("What stands first, and what is measured of words", numbers, COLUMNS, cells, [NOTE, *notes])


def _row(rows: pd.DataFrame, layer: int) -> list[str]:
    """One condition at a layer, and of words the layers that lie near 0 against either chance level."""
    row = rows[rows.layer == layer].iloc[0]
    metric = str(row.measure)
    is_words = metric != "sts"
    return [
        *(of(row), row.model, row.condition, str(layer), number(row.value, metric)),
        "" if row.condition == AS_TOKENIZED else difference_text(row),
        layers_near_zero(rows.value) if is_words else "",
        number(row.matched, metric) if is_words and row.matched == row.matched else "",
        layers_near_zero(rows.matched) if is_words and rows.matched.notna().any() else "",
    ]


def layers_near_zero(values: pd.Series) -> str:
    """`15 of 31`: the layers within what matters of 0."""
    near, n = near_zero(values)
    return f"{near} of {n}"
