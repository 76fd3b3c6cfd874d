"""A pair of small models trained with a penalty on contextual vectors and without: curves, losses, a table.

`TEXT=FOLDER python -m docs.numbers.penalty [FOLDER OF THE TRAININGS]`: trains the four (a finished one isn't trained
again), measures the last checkpoint of each, and the first as the untrained control, on the embedded sentences.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from matplotlib.lines import Line2D

import ctxexp
from ctxexp.report import PALETTE, Ink, add_captions, empty_figure
from docs.numbers.marked import write_small
from docs.numbers.part import ROOT, Part, markdown, one_run_each, polysemy

MODELS, WEIGHTS = ("bert", "gpt2"), (0, 1)
TRAIN = 'ctxexp train -m model=bert,gpt2 context_penalty=0,1 text="$TEXT" size=quick tracking=null'
CURVES = {
    "anisotropy/mean_cosine": "cosine of unrelated words",
    "self_similarity/share_of_room": "self-similarity, share of room",
    "intra_sentence_similarity/share_of_room": "intra-sentence, likewise",
}
KEPT = [*CURVES, *(f"{name}/{each}" for name in ("self_similarity", "intra_sentence_similarity") for each in
                   ("raw", "adjusted"))]  # fmt: skip
"""Curves of the CSV: those that are drawn, and what the shares are made of."""
LINES = {"1": (PALETTE[1], "with the penalty"), "0": (PALETTE[0], "without"), "untrained": (Ink.FAINT, "untrained")}
DECIMALS = 4
HEAD = ["model", "context_penalty", "cosine of unrelated words: mean of layers above 0", "last layer",
        "self-similarity, share of the room above that: mean of layers above 0", "last layer",
        "loss on held-out text"]  # fmt: skip


def measure(folder: Path) -> pd.DataFrame:
    """Rows of model, penalty (0, 1, untrained), curve, x (layer, or step of the held-out loss), value, low, high."""
    rows: list[dict[str, object]] = []
    for model in MODELS:
        for weight in WEIGHTS:
            run = folder / "outputs" / "minis" / f"{model}-context_penalty={weight}"
            losses = pd.read_csv(run / "held_out.csv")
            rows += [
                {"model": model, "penalty": str(weight), "curve": "held-out loss", "x": int(step), "value": loss}
                for step, loss in zip(losses.step, losses.loss, strict=True)
            ]
            rows += _curves(model, str(weight), run / "checkpoints" / f"step{losses.step.max()}")
        rows += _curves(
            model, "untrained", folder / "outputs" / "minis" / f"{model}-context_penalty=0/checkpoints/step0"
        )
    return pd.DataFrame(rows).round(DECIMALS)


def _curves(model: str, penalty: str, checkpoint: Path) -> list[dict[str, object]]:
    metrics = [name.partition("/")[0] for name in CURVES]
    frame = ctxexp.measure(str(checkpoint), polysemy(), metrics=metrics, progress=False).frame
    rows: list[dict[str, object]] = []
    for name in KEPT:
        measure, _, statistic = name.partition("/")
        of_curve = frame[(frame.measure == measure) & (frame.statistic == statistic)]
        rows += [
            {"model": model, "penalty": penalty, "curve": name, "x": int(one.layer), "value": one.value}
            | {"low": one.low, "high": one.high}
            for one in of_curve.itertuples()
        ]
    return rows


def draw(numbers: pd.DataFrame, target: Path) -> None:
    """A row a model: the curves by layer, and the loss by step."""
    canvas = empty_figure(10.5, 4.6)
    columns = [*CURVES, "held-out loss"]
    grid = canvas.subplots(len(MODELS), len(columns), squeeze=False, sharey="col")
    handles: list[Line2D] = []
    for i, (row, model) in enumerate(zip(grid, MODELS, strict=True)):
        for axes, curve in zip(row, columns, strict=True):
            handles = []
            for penalty, (colour, _) in LINES.items():
                line = numbers[(numbers.model == model) & (numbers.penalty == penalty) & (numbers.curve == curve)]
                handles += axes.plot(line.x, line.value, color=colour, linewidth=1.8)
                axes.fill_between(line.x, line.low.astype(float), line.high.astype(float), color=colour, alpha=0.2)
            axes.set_xlabel("layer" if curve in CURVES else "training step", fontsize=9)
            axes.tick_params(labelsize=8.5)
            axes.spines[["top", "right"]].set_visible(False)
            if i == 0:
                axes.set_title(
                    CURVES.get(curve, "loss on held-out text, nats"), loc="left", fontsize=9.5, color=Ink.TEXT
                )
        row[0].set_ylabel(model, fontsize=10)
    facts = ["6 layers of 64, 512 steps of 2,016 pieces, one training each", "bands: 95% over sentences"]
    title = "What does a penalty on the cosines of unrelated contextual vectors change?"
    labels = [name for _, name in LINES.values()]
    add_captions(canvas, title, facts, handles, labels, [], finding=finding(numbers))
    with TemporaryDirectory() as folder:
        canvas.savefig(Path(folder) / "penalty.png", dpi=110)
        write_small(Path(folder) / "penalty.png", target)


def finding(numbers: pd.DataFrame) -> str:
    """A sentence on unrelated words (means over the layers above 0) and on the last held-out loss."""
    cosines, losses = (
        {model: (_summary(numbers, model, "1", curve), _summary(numbers, model, "0", curve)) for model in MODELS}
        for curve in ("anisotropy/mean_cosine", "held-out loss")
    )
    ways = ["less alike" if first < second else "more alike" for first, second in cosines.values()]
    way = ways[0] if len(set(ways)) == 1 else ", ".join(f"{w} in {m}" for w, m in zip(ways, MODELS, strict=True))
    return (
        f"With the penalty unrelated words are {way}: their mean cosine, over the layers above the input layer, is "
        f"{_pairs(cosines)}. The loss on held-out text ends at {_pairs(losses)}."
    )


def _pairs(pairs: dict[str, tuple[float, float]]) -> str:
    return ", ".join(f"{first:.2f} in place of {second:.2f} in {model}" for model, (first, second) in pairs.items())


def _summary(numbers: pd.DataFrame, model: str, penalty: str, curve: str) -> float:
    """The mean of the layers above 0; of the loss, the last one."""
    mine = numbers[(numbers.model == model) & (numbers.penalty == penalty) & (numbers.curve == curve)].set_index("x")
    values = mine.value.sort_index()
    return float(values.loc[1:].mean() if curve in CURVES else values.iloc[-1])


def table(numbers: pd.DataFrame) -> str:
    """A Markdown table: a row a training, and the untrained control."""
    rows = []
    for model in MODELS:
        for penalty in ("untrained", "0", "1"):
            mine = numbers[(numbers.model == model) & (numbers.penalty == penalty)]
            cells = []
            for curve in list(CURVES)[:2]:
                of_curve = mine[mine.curve == curve].set_index("x").sort_index()
                last = of_curve.iloc[-1]
                cells += [f"{of_curve.value.loc[1:].mean():.3f}"]
                cells += [f"{last.value:.3f} [{last.low:.3f}, {last.high:.3f}]"]
            loss = mine[mine.curve == "held-out loss"]
            cells.append(f"{loss.value.iloc[-1]:.3f}" if len(loss) else "")
            rows.append([f"`{model}`", penalty, *cells])
    return markdown(HEAD, rows) + one_run_each(MODELS)


PART = Part(
    mark="penalty",
    page="docs/how-to/train-small-models.md",
    numbers="penalty.csv",
    kept=measure,
    table=table,
    kinds={"penalty": str},
)


def make(folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["bash", "-euc", TRAIN], cwd=folder, env={**os.environ, "PATH": path}, check=True)
    PART.write(folder)
    draw(PART.read(), ROOT / "docs" / "penalty.png")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        make(Path(sys.argv[1]))
    else:
        with TemporaryDirectory() as temporary:
            make(Path(temporary))
