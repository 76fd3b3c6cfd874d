"""A comparison of models: its heat maps, numbers and a table of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from docs.numbers.part import Part, markdown, one_run_each

SHOWN = {"cka": "CKA", "mutual_knn": "mutual nearest neighbours"}
DECIMALS = 4


def table(numbers: pd.DataFrame) -> str:
    """A Markdown table: by each measure the most alike layers of two models, and the two layers of one model that the
    measures disagree most on."""
    keys = ["run_a", "layer_a", "run_b", "layer_b"]
    by_measure = {name: numbers[numbers.measure == name].set_index(keys) for name in SHOWN}
    rows = []
    for measure, title in SHOWN.items():
        across = by_measure[measure].query("run_a != run_b").adjusted
        rows.append([f"most alike of two models by {title}", across.idxmax()])
    one, other = (by_measure[name].query("run_a == run_b").adjusted for name in SHOWN)
    rows.append(["the measures disagree most of one model", (one - other).abs().idxmax()])
    head = ["", "layers", *SHOWN.values()]
    values = [[what, _places(*at), *(_value(of.loc[at]) for of in by_measure.values())] for what, at in rows]
    return markdown(head, values) + one_run_each([*numbers.run_a, *numbers.run_b])


def kept(folder: Path) -> pd.DataFrame:
    """The numbers of the table: each pair of places once, the measures that are shown."""
    numbers = pd.read_csv(folder / "compare.csv")
    place = {pair: i for i, pair in enumerate(dict.fromkeys(zip(numbers.run_a, numbers.layer_a, strict=True)))}
    a = [place[pair] for pair in zip(numbers.run_a, numbers.layer_a, strict=True)]
    b = [place[pair] for pair in zip(numbers.run_b, numbers.layer_b, strict=True)]
    once = np.array(a) < np.array(b)
    columns = ["measure", "run_a", "layer_a", "run_b", "layer_b", "adjusted", "adjusted_low", "adjusted_high"]
    return numbers[once & numbers.measure.isin(SHOWN).to_numpy()][columns].round(DECIMALS)


def _places(run_a: str, layer_a: int, run_b: str, layer_b: int) -> str:
    return f"{run_a} {layer_a}, {run_b} {layer_b}"


def _value(row: pd.Series) -> str:
    return f"{row.adjusted:.2f} [{row.adjusted_low:.2f}, {row.adjusted_high:.2f}]"


PART = Part(
    mark="numbers",
    page="docs/measures/two-spaces.md",
    numbers="two_spaces.csv",
    kept=kept,
    table=table,
    figures={f"two_spaces_{measure}.png": f"compare_{measure}.png" for measure in SHOWN},
)
