"""The numbers that parts keep of what was measured, where that is more than a file of a sweep's summary."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
from ctxexp_measures.calibration.league.standings import measure_of, paired_interval

import ctxexp
from ctxexp import Results
from ctxexp.results import Key
from docs.numbers.tables import COMPARISONS

ENDS = ("", "_ci_low", "_ci_high")
LEAGUE = ["model", "transform", "runs", "average", *(f"{name}{end}" for name in ("gain", "lead") for end in ENDS)]
MINIS = {
    "contextuality": Key("contextuality", "raw"),
    "anisotropy": Key("anisotropy", "mean_cosine"),
    "intra-sentence similarity": Key("intra_sentence_similarity", "raw"),
}
SCALES = {"gain": Key("contextuality", "raw"), "paper_gain": Key("self_similarity", "adjusted")}
PAPER = {
    "self_similarity/adjusted": "self_similarity",
    "anisotropy/mean_cosine": "anisotropy",
    "intra_sentence_similarity/adjusted": "intra_sentence_similarity",
}
COMPARED = ["measure", "run_a", "layer_a", "run_b", "layer_b", "adjusted", "adjusted_low", "adjusted_high"]


def league(summary: Path) -> pd.DataFrame:
    """Each model's last layer, best first."""
    numbers = pd.read_csv(summary / "table_league.csv")
    return numbers[numbers.vectors == "last layer"][LEAGUE].round(2).reset_index(drop=True)


def distil(output: Path) -> pd.DataFrame:
    """A row a model and way."""
    parts = [pd.read_csv(file).assign(model=file.parent.name) for file in sorted(output.glob("*/distil.csv"))]
    return pd.concat(parts, ignore_index=True).round(4)


def minis(output: Path) -> pd.DataFrame:
    """A row a model, measure and layer of each training in the folder: mean, standard deviation, least and most of its
    seeds."""
    rows = []
    for export in sorted(output.glob("*/export")):
        recipe = json.loads((export / "run.json").read_text(encoding="utf-8"))["recipe"]
        name, files = recipe["model"]["name"], {"model.checkpoint": str(export)}
        if name == "elmo":
            files = {"model.options_file": f"{export}/options.json", "model.weight_file": f"{export}/weights.hdf5"}
        results = ctxexp.measure(
            name if name == "elmo" else "huggingface", metrics=[key.measure for key in MINIS.values()], options=files
        )
        for measure, key in MINIS.items():
            curve = enumerate(results.by_key[key].value)
            rows += [(name, measure, layer, recipe["seed"], value) for layer, value in curve]
    numbers = pd.DataFrame(rows, columns=["model", "measure", "layer", "seed", "value"])
    of_seeds = numbers.groupby(["model", "measure", "layer"], sort=False).value
    return of_seeds.agg(seeds="count", mean="mean", sd="std", least="min", most="max").round(4).reset_index()


def multiverse(summary: Path) -> pd.DataFrame:
    """The specifications, and behind them the joint statistics, which have no verdict."""
    tables = (pd.read_csv(summary / f"table_{name}.csv") for name in ("multiverse", "multiverse_joint"))
    return pd.concat(tables, ignore_index=True).round(4)


def two_spaces(folder: Path) -> pd.DataFrame:
    """Each pair of places once, the measures that are shown."""
    numbers = pd.read_csv(folder / "compare.csv")
    of_a, of_b = (list(zip(numbers[f"run_{s}"], numbers[f"layer_{s}"], strict=True)) for s in "ab")
    place = {pair: i for i, pair in enumerate(dict.fromkeys(of_a))}
    is_first = np.array([place[a] < place[b] for a, b in zip(of_a, of_b, strict=True)])
    return numbers[is_first & numbers.measure.isin(COMPARISONS).to_numpy()][COMPARED].round(4)


def contrastive(mlruns: Path) -> pd.DataFrame:
    """A row a run: model, transform, Spearman x 100 in the last layer, and its gain over the plain mini's on the same
    resamples of pairs."""
    runs = [one for one in ctxexp.runs(mlruns).values() if measure_of(one, "sts")]
    named = [(_network(one), one.info.transform.name, one) for one in runs]
    (plain,) = [one for name, transform, one in named if (name, transform) == ("the mini", "none")]
    last = plain.n_layers - 1
    rows = []
    for name, transform, one in named:
        values = one.frame[(one.frame.measure == "sts") & (one.frame.statistic == "all") & (one.frame.layer == last)]
        row = values.iloc[0]
        rows.append((name, transform, row.value, row.low, row.high, *paired_interval(one, plain, last)[0]))
    columns = ["model", "transform", "spearman", "low", "high", "gain_low", "gain_high"]
    return pd.DataFrame(rows, columns=columns).round(3).sort_values(["model", "transform"])


def _network(results: Results) -> str:
    place = str(results.info.model.details.get("checkpoint", ""))
    if results.info.model.name == "bert":
        return "untrained" if results.info.model.weights.startswith("untrained") else "the mini"
    return "contrastive, from untrained weights" if "untrained" in place else "contrastive, from the mini"


def interval_coverage(output: Path) -> pd.DataFrame:
    """A row a world, curve and layer: the intervals' coverage of the mean over draws and of the whole text's value
    (draw -1), and their mean width over 3.92 standard deviations."""
    draws = pd.concat([pd.read_csv(path) for path in sorted(output.rglob("*.csv"))])
    rows = []
    for (world, curve, layer), of_curve in draws.groupby(["world", "curve", "layer"], sort=False):
        # STS curves of the worlds of pairs only, other curves of the other worlds
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


def known_contextuality(folder: Path) -> pd.DataFrame:
    """What each estimator says where the answer is known: a row a part, world or model, estimator and layer."""
    parts = {part: pd.read_csv(folder / f"{part}.csv") for part in ("worlds", "changes", "networks")}
    return pd.concat(parts, names=["part"]).reset_index(level="part").round(3)


def contextuality(mlruns: Path) -> pd.DataFrame:
    """A row a model and layer: contextuality, with its range and that of each word alone; the paper's measures, less
    chance; in the last layer also what contextuality and adjusted self-similarity have gained since layer 1."""
    runs = list(ctxexp.runs(mlruns).values())
    alone = {run.info.model.name: run for run in runs if run.info.control != "none"}
    curves = {**{f"contextuality/{name}": name for name in ("lowest", "highest")}, **PAPER}
    rows = []
    for run in (one for one in reversed(runs) if one.info.control == "none"):
        name, last = run.info.model.name, run.n_layers - 1
        by_layer = {column: run.by_name[curve] for curve, column in curves.items()}
        value = run.by_key[SCALES["gain"]]
        by_layer |= dict(zip(("value", "low", "high"), value, strict=True))
        by_layer["alone"] = alone[name].by_key[SCALES["gain"]].value
        of_model = pd.DataFrame({"model": name, "layer": range(run.n_layers), **by_layer})
        for gain, key in SCALES.items():
            since = np.ravel(run.difference(run, key, layers=[last], others=[1]))
            of_model.loc[last, [gain + end for end in ("", "_low", "_high")]] = since
        rows.append(of_model)
    return pd.concat(rows, ignore_index=True).round(4)
