"""`python -m docs.numbers.interval_coverage FOLDER`: what `benchmarks/interval_coverage.py` left there, as a table of
docs/measures/intervals.md."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from docs.numbers.part import Part, markdown

WORLDS = {"sts": "sentences", "planted": "documents"}
LOW, HIGH = 0.92, 0.97
NAMES = {
    "anisotropy": "anisotropy",
    "self_similarity": "self-similarity",
    "intra_sentence_similarity": "intra-sentence similarity",
    "max_explainable_variance": "explainable variance",
    "max_explainable_variance_centred": "the same, centred",
    "sts": "STS Spearman",
}
STATISTICS = {
    "mean_cosine": "",
    "raw": ", raw",
    "adjusted": ", adjusted",
    "share_of_room": ", share of the room",
    "step": ", share: step from the layer below",
    "all": "",
}


def kept(made: Path) -> pd.DataFrame:
    """A row a world, curve and layer: of how many draws' intervals what share held the mean over draws and the value of
    the whole text, and how wide they were over 3.92 standard deviations of the value."""
    draws = pd.concat([pd.read_csv(path) for path in sorted(made.rglob("*.csv"))])
    rows = []
    for (world, curve, layer), of_curve in draws.groupby(["world", "curve", "layer"], sort=False):
        if curve.startswith("sts/") != world.startswith("pairs") or ("centred" in curve and curve.endswith("step")):
            continue
        mine = of_curve[of_curve.draw >= 0].drop_duplicates("draw")
        if not len(mine):
            continue
        whole, mean, sd = of_curve[of_curve.draw < 0].value, mine.value.mean(), mine.value.std(ddof=1)
        held = [float(((mine.low <= truth) & (truth <= mine.high)).mean()) for truth in (mean, *whole[:1])]
        rows.append(
            {"world": world, "curve": curve, "layer": layer, "draws": len(mine), "mean": held[0]}
            | {"whole": held[1] if len(held) > 1 else np.nan, "width": (mine.high - mine.low).mean() / (3.92 * sd)}
            | {"off": (mean - whole.iloc[0]) / sd if len(whole) else np.nan}
        )
    return pd.DataFrame(rows).round(4)


def table(numbers: pd.DataFrame) -> str:
    """A row a curve with each layer's coverage, and below it which lie outside of .92 to .97."""
    shown = numbers[numbers.world.isin(list(WORLDS))].copy()
    shown["held"] = shown.whole.where(shown.world == "sts").fillna(shown["mean"])
    rows = []
    for curve in shown.curve.unique():
        cells = []
        for world in WORLDS:
            mine = shown[(shown.world == world) & (shown.curve == curve)].sort_values("layer")
            width = f" ({mine.width.mean():.2f})" if len(mine) else ""
            cells.append(" ".join(map(_share, mine.held)) + width)
        rows.append([_name(curve), *cells])
    spread = {world: shown[shown.world == world].draws for world in WORLDS}
    heads = [f"{said} ({' or '.join(map(str, sorted(set(spread[world]))))} draws)" for world, said in WORLDS.items()]
    pairs = numbers[numbers.world.str.startswith("pairs")]
    return "\n\n".join(
        [
            markdown(["statistic", *heads], rows),
            _outside(shown[~shown.curve.str.contains("centred")]),
            "STS Spearman of 200 pairs of distinct sentences, and of 500 pairs, each sentence in five: "
            f"{' and '.join(map(_share, pairs['mean']))}.",
        ]
    )


def _outside(cells: pd.DataFrame) -> str:
    """Which cells lie outside."""
    is_out = ~cells.held.between(LOW, HIGH)
    out = cells[is_out]
    parts = [
        f"{_name(str(curve))}, {WORLDS[str(world)]}: {', '.join(map(str, sorted(of.layer)))}"
        for (curve, world), of in out.groupby(["curve", "world"], sort=False)
    ]
    return (
        f"Outside of .92 to .97 lie {len(out)} of these {len(cells)} cells, the centred ones apart. "
        f"Below .92: {(cells.held < LOW).sum()}. "
        f"By layer (steps by the lower one): {'; '.join(parts) or 'none'}."
    )


def _name(curve: str) -> str:
    measure, _, statistic = curve.partition("/")
    return NAMES[measure] + STATISTICS[statistic]


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


PART = Part(
    "interval coverage",
    "docs/measures/intervals.md",
    "interval_coverage.csv",
    kept,
    table,
)

if __name__ == "__main__":
    PART.write(Path(sys.argv[1]))
