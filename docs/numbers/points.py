"""Variance components and self-similarity inside the blocks of SmolLM2, beside a small GPT-2 and its untrained twin.

`python -m docs.numbers.points [FOLDER]`, in a checkout that has the models' plugins: two sweeps over the first
sentences of the embedded text, kept in the folder if one is given.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

import ctxexp
from docs.numbers.part import Part, markdown, one_run_each, polysemy

SENTENCES = 105  # the first, which are of seven ambiguous words
SHARED = (
    "dataset=text dataset.path=sentences.txt model.point=residual,attention,mlp "
    "metric=[variance_components,self_similarity,anisotropy]"
)
SWEEPS = {
    "smollm2": f"python -m ctxexp -m model=smollm2 model.prefix=bos {SHARED}",
    "gpt2": f"python -m ctxexp -m model=gpt2 weights=mini,untrained {SHARED}",
}
POINTS = ("residual", "attention", "mlp")
DECIMALS = 4
SHOWN = ("share_of_room", "raw", "baseline", "adjusted")
HEAD = ["model", "point", "context: first layer", "highest", "last layer",
        "self-similarity, share of the room above chance: first layer", "last layer", "chance: last layer"]  # fmt: skip


def sweep(folder: Path, name: str) -> Path:
    """The summary folder of a sweep in an own folder, which is made unless it is there."""
    home = folder / name
    home.mkdir(parents=True, exist_ok=True)
    text = "\n".join(sentence.text for sentence in polysemy().sentences[:SENTENCES])
    (home / "sentences.txt").write_text(text + "\n", encoding="utf-8")
    if not [*home.glob("mlruns/results/*/summary")]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        subprocess.run(["bash", "-euc", SWEEPS[name]], cwd=home, env={**os.environ, "PATH": path}, check=True)
    (summary,) = home.glob("mlruns/results/*/summary")
    return summary


def collected(summary: Path) -> pd.DataFrame:
    """Rows of model, point, layer: context and its parts, self-similarity and what it is made of."""
    components = pd.read_csv(summary / "table_what_is_context.csv")
    curves = pd.read_csv(summary / "comparison.csv")
    curves = curves[(curves.measure == "self_similarity") & curves.statistic.isin(SHOWN)]
    wide = curves.pivot_table(index=["run", "layer"], columns="statistic", values=["value", "low", "high"])
    wide.columns = [f"self_similarity_{statistic}_{kind}" for kind, statistic in wide.columns]
    joined = components.merge(wide.reset_index().rename(columns={"run": "model"}), on=["model", "layer"])
    point = joined.model.str.extract(r"\b(attention|mlp)\b")[0].fillna("residual")
    model = joined.model.str.extract(r"^(\w+(?: \(untrained\))?)")[0]
    run = next(summary.parent.glob("*/results.json")).parent
    filled = ctxexp.load(run).info.mix.mark
    return joined.assign(model=model, point=point, filled=filled).drop(columns=["corpus", "words"])


def table(numbers: pd.DataFrame) -> str:
    """A Markdown table: a row a model and point."""
    rows = []
    for model, of_model in numbers.groupby("model", sort=False):
        for point in POINTS:
            by_layer = of_model[of_model.point == point].set_index("layer").sort_index()
            first, last = by_layer.loc[1], by_layer.iloc[-1]
            top = by_layer.loc[1:].context.idxmax()
            highest = f"{percent(by_layer.loc[top])} (layer {top})"
            alike = [f"{row.self_similarity_share_of_room_value:.2f}" for row in (first, last)]
            chance = f"{last.self_similarity_baseline_value:.2f}"
            rows.append([f"`{model}`", point, percent(first), highest, percent(last), *alike, chance])
    marks = ", ".join(numbers.filled.dropna().unique())  # of a text that fills all bands: none
    said = f"\n\nThe text fills {marks} of word frequency: self-similarity is the mean over these alone." * bool(marks)
    return markdown(HEAD, rows) + said + one_run_each(numbers.model)


def percent(row: pd.Series) -> str:
    """The share of context with its interval: `35.7% [35.4, 36.0]`."""
    value, low, high = (round(100 * row[name], 1) + 0.0 for name in ("context", "context_low", "context_high"))
    return f"{value:.1f}% [{low:.1f}, {high:.1f}]"


PART = Part(
    mark="inside a block",
    page="docs/measures/inside-a-block.md",
    numbers="inside_a_block.csv",
    kept=lambda folder: pd.concat(collected(sweep(folder, name)) for name in SWEEPS).round(DECIMALS),
    table=table,
    figures={"inside_a_block.png": "inside_a_block.png"},
)


def make(folder: Path) -> None:
    shutil.copy(sweep(folder, "smollm2") / "what_is_context.png", folder / "inside_a_block.png")
    PART.write(folder)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        make(Path(sys.argv[1]))
    else:
        with TemporaryDirectory() as temporary:
            make(Path(temporary))
