"""`ctxexp probe`: a sweep of the metric `probe`, or ELMo frozen, with a learnt mix of layers, or trained, on senses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from ctxexp.command import Verb, registry
from ctxexp.report import Document, Table

PROBE_OPTIONS = ("labels", "classifier", "folds", "most", "controls")  # of metric=probe, in ctxexp-measures
TWINS = ("bert", "gpt2", "elmo")  # models that the group `weights` is of


def probe(*words: str) -> int:
    """Probe a model's layers for labels: model=bert labels=pos dataset=semcor; or ELMo's ways: use=frozen,mix,all."""
    if any(word.startswith("use=") for word in words) or not any(word.startswith("model=") for word in words):
        return Verb("probe", uses)(words)
    return int(registry().find("command", "run").factory(*probe_sweep(words)))


def probe_sweep(words: Sequence[str]) -> list[str]:
    """The sweep that measures `metric=probe` of the models that the words name, each beside its untrained twin where it
    has one, and beside itself where each word is read alone, without context."""
    values = {word.partition("=")[0]: word.partition("=")[2] for word in words}
    options = [f"metric.probe.{word}" if word.partition("=")[0] in PROBE_OPTIONS else word for word in words]
    has_twin = all(name in TWINS for name in values["model"].split(","))
    twin = ["weights=mini,untrained"] if has_twin and "weights" not in values else []
    alone = ["control=none,alone"] if "control" not in values else []
    return ["-m", *options, *twin, *alone, *(["metric=probe"] if "metric" not in values else [])]


def uses(
    *,
    use: str = "frozen,mix,all",
    model: Literal["elmo"] = "elmo",
    weights: Literal["mini", "published", "untrained"] = "mini",
    seed: int = 0,
    device: str = "cpu",
    out: Path = Path("probe"),
) -> Document:
    """Tell word senses from ELMo's frozen layers, a learnt mix of them, or the trained network. With model=NAME in
    place of use=, the linear probe of that model's layers for any labels of words: metric=probe, with labels=,
    classifier=, folds=, most=, controls= and all that ctxexp takes.

    use: frozen: each layer alone; mix: gamma sum_j s_j h_j, learnt; all: the network too; several with commas
    model: the only one with a mix of its own
    weights: the checkpoint
    seed: of folds, order, resamples and untrained weights
    device: cpu, cuda, mps, auto; to the last bit the same on cpu only
    out: a folder for the table
    """
    from ctxexp_lab.probe import train  # with torch

    settings = train.Settings(seed=seed)
    encoder = registry().find("model", "elmo").factory(weights=weights, device=device, seed=seed)
    task = train.SenseTask.of(registry().find("dataset", "polysemy").factory())
    scores = train.table(task, train.probe(task, encoder.network, use.split(","), settings), seed)
    choices = " ".join(f"{key}={value}" for key, value in asdict(settings).items())
    n_layers = sum(name.startswith("s_") and not name.endswith("_sd") for name in scores.columns)
    cells = []
    for row in scores.to_dict("records"):
        cells.append([row["use"], str(row["layer"]), f"{row['accuracy']:.3f}", "", "", ""])
        cells[-1][3] = f"[{row['ci_low']:.3f}, {row['ci_high']:.3f}]"
        if not math.isnan(row["minus_mix"]):
            ends = f"[{row['minus_mix_ci_low']:+.3f}, {row['minus_mix_ci_high']:+.3f}]"
            cells[-1][4] = f"{row['minus_mix']:+.3f} {ends}"
        if not math.isnan(row["gamma"]):
            shares = ", ".join(f"{row[f's_{j}']:.2f}" for j in range(n_layers))
            cells[-1][5] = f"{shares}; {row['gamma']:.2f}"
    columns = ["use", "layer", "accuracy", "95% interval", "less the mix's", "s_0..s_L, gamma"]
    notes = [
        f"{len(task):,} occurrences of {len(task.vocabulary)} words, {len(task.sense_labels)} senses; {choices}",
        "intervals: bootstrap over words, of other words like these; not of other folds, seeds or rates",
    ]
    title = f"{encoder.details['checkpoint']}: {encoder.name}"
    numbers = scores.assign(model=encoder.name, choices=choices)
    return Document(tables={"probe": Table(title, numbers, columns, cells, notes)})
