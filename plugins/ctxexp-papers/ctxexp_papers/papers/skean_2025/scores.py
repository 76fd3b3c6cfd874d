"""The authors' released scores by layer, and the tests on them.

Evidence is the authors' released results of 32 MTEB tasks by layer. For Pythia their wrapper sets the model's number
of layers to the one evaluated, so that "layer k" is the model's final norm applied to layer k.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.errors import DataError
from ctxexp.maths import Stream
from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.source import Inputs, Source
from ctxexp_papers.claims.statistics.best_layer import RESAMPLES, Gain, best_layer_gain
from ctxexp_papers.claims.statistics.control import excess
from ctxexp_papers.claims.statistics.shares import wilson

if TYPE_CHECKING:
    import pandas as pd

FILE = "mteb_by_layer.csv.xz"
ENGLISH, EVERY = "English test sets", "all language subsets"
SUBSETS = {ENGLISH: ("default", "en", "en-en"), EVERY: ()}
"""What is averaged of a task that has several languages; the paper doesn't say."""
PYTHIA = {f"pythia-{size}": ("Pythia", size, "main") for size in ("14m", "70m", "160m", "410m")}
MODELS = {
    **PYTHIA,
    "mamba-370m": ("mamba", "370m", "main"),
    "llm2vec-8b": ("LLM2Vec-mntp-unsup-simcse", "8B", "main"),
}
"""Those released with both the last layer and the layers between on all 32 tasks: family, size, revision."""
WITH_INPUT = (*PYTHIA, "mamba-370m")  # LLM2Vec's input layer wasn't released
UNTRAINED = ("Pythia", "410m", "step1")
POINTS, TASKS = 100.0, 32
LEAST_GAIN, MOST_GAIN = 2.0, 16.0  # points
MIDDLE_HALF = (0.25, 0.75)  # of the depth
NEARLY = 0.8  # "nearly every task"; of 32 tasks the interval of all is above 89%
MOST = "most Pythia models"


@dataclass
class LayerScores(Source):
    """Scores in points by model and specification: (tasks, layers) each, and the numbers of these layers."""

    scores: Mapping[tuple[str, str], np.ndarray] = field(default_factory=dict)
    layers: Mapping[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    resamples: int = RESAMPLES

    def models(self) -> list[str]:
        return list(dict.fromkeys(model for model, _ in self.scores))


def gain(source: LayerScores, model: str, variant: str, *, ends: bool, ways: int = 1) -> Gain | None:
    """The best middle layer's gain over the last layer, or over the better of the first and the last."""
    scores = source.scores.get((model, variant))
    if scores is None:
        return None
    rivals = (0, scores.shape[1] - 1) if ends else (scores.shape[1] - 1,)
    middle = range(1 if source.layers[model, variant][0] == 0 else 0, scores.shape[1] - 1)
    rng = np.random.default_rng([0, Stream.CLAIMS, 3])
    return best_layer_gain(scores, rivals=rivals, candidates=middle, rng=rng, ways=ways, resamples=source.resamples)


def _gains(source: LayerScores, models: tuple[str, ...], *, ends: bool) -> list[Check]:
    """A check a model and specification: whether the held-out best middle layer exceeds the rivals."""
    checks = []
    for variant in SUBSETS:
        for model in models:
            found = gain(source, model, variant, ends=ends, ways=len(models))
            if found is None:
                checks.append(Check(model, variant, text="no scores of all tasks by layer"))
                continue
            chosen = ", ".join(str(source.layers[model, variant][i]) for i in found.layers[:3])
            text = f"points; layer {chosen}; any middle layer: [{found.least:+.2f}, {found.most:+.2f}]"
            n, brief = len(found.by_task), f"{found.value:+.2f}"
            checks.append(Check(model, variant, found.passed, found.value, found.low, found.high, n, text, brief=brief))
    return checks


def above_last(source: LayerScores) -> list[Check]:
    return _gains(source, tuple(MODELS), ends=False)


def above_ends(source: LayerScores) -> list[Check]:
    return _gains(source, WITH_INPUT, ends=True)


def gain_in_range(source: LayerScores) -> list[Check]:
    """Whether the gain over the last layer lies between 2 and 16 points, by both of its intervals."""
    checks = []
    for variant in SUBSETS:
        for model in MODELS:
            found = gain(source, model, variant, ends=False, ways=len(MODELS))
            if found is None:
                checks.append(Check(model, variant, text="no scores of all tasks by layer"))
                continue
            low, high = min(found.low, found.least), max(found.high, found.most)
            inside = low > LEAST_GAIN and high < MOST_GAIN
            outside = max(found.high, found.most) < LEAST_GAIN or min(found.low, found.surely) > MOST_GAIN
            passed = True if inside else False if outside else None
            text, brief = f"points; any middle layer: [{found.least:+.2f}, {found.most:+.2f}]", f"{found.value:+.2f}"
            ends = (LEAST_GAIN, MOST_GAIN)
            checks.append(
                Check(model, variant, passed, found.value, found.low, found.high, TASKS, text, "", brief, ends)
            )
    return checks


def mid_depth(source: LayerScores) -> list[Check]:
    """Whether in most models the best layer of the middle half of the depth exceeds the best one outside of it."""
    checks = []
    for variant in SUBSETS:
        found = {model: _mid_depth(source, model, variant) for model in PYTHIA if (model, variant) in source.scores}
        if len(found) < len(PYTHIA):
            checks.append(Check(MOST, variant, text="no scores of all tasks by layer"))
            continue
        yes, no = (sum(gain.passed is side for gain in found.values()) for side in (True, False))
        needed = len(found) // 2 + 1
        passed = True if yes >= needed else False if len(found) - no < needed else None
        text = "; ".join(f"{m} {g.value:+.2f} [{g.low:+.2f}, {g.high:+.2f}]" for m, g in found.items())
        brief = f"{yes} of {len(found)}, {no} not"
        checks.append(Check(MOST, variant, passed, yes / len(found), n=len(found), text=text, brief=brief))
    return checks


def _mid_depth(source: LayerScores, model: str, variant: str) -> Gain:
    numbers = np.array(source.layers[model, variant])
    depth = numbers / numbers[-1]
    inside = (depth >= MIDDLE_HALF[0]) & (depth <= MIDDLE_HALF[1])
    return best_layer_gain(
        source.scores[model, variant],
        rivals=np.flatnonzero(~inside).tolist(),
        candidates=np.flatnonzero(inside).tolist(),
        rng=np.random.default_rng([0, Stream.CLAIMS, 5]),
        ways=len(PYTHIA),
        resamples=source.resamples,
    )


def nearly_every_task(source: LayerScores) -> list[Check]:
    """The share of tasks in which the layer chosen on the other tasks exceeds the last."""
    checks = []
    for variant in SUBSETS:
        for model in MODELS:
            found = gain(source, model, variant, ends=False)
            if found is None:
                checks.append(Check(model, variant, text="no scores of all tasks by layer"))
                continue
            n, won = len(found.by_task), int((found.by_task > 0).sum())
            low, high = wilson(won, n)
            most = wilson(won, n, ways=len(MODELS))[1]
            passed = True if low > NEARLY else False if most < NEARLY else None
            brief = f"{won} of {n}"
            text = f"{brief} tasks"
            checks.append(Check(model, variant, passed, won / n, low, high, n, text, "", brief, (NEARLY,)))
    return checks


def learned(source: LayerScores) -> list[Check]:
    """The trained model's gain over its last layer less the untrained one's, task by task."""
    checks = []
    for variant in SUBSETS:
        one, other = (gain(source, model, variant, ends=False) for model in ("pythia-410m", "untrained"))
        if one is None or other is None:
            checks.append(Check("pythia-410m", variant, text="no scores of the untrained model by layer"))
            continue
        more = excess(one.by_task, other.by_task)
        passed = more.passed if more.passed is False or one.passed else None
        text = f"points; trained {one.value:+.2f}, untrained {other.value:+.2f} [{other.low:+.2f}, {other.high:+.2f}]"
        checks.append(
            Check("pythia-410m", variant, passed, *more.difference, text, brief=f"{more.difference.value:+.2f}")
        )
    return checks


def sources(inputs: Inputs) -> list[Source]:
    """The released results, where their folder is named."""
    folder = inputs.released_folder("skean_2025", FILE)
    if folder is None:
        return []
    scores, layers = {}, {}
    for model, (family, size, revision) in {**MODELS, "untrained": UNTRAINED}.items():
        for variant, subsets in SUBSETS.items():
            table = by_layer(folder / FILE, family, size, revision, subsets)
            if len(table) == TASKS and table.shape[1] > 2:
                scores[model, variant] = table.to_numpy() * POINTS
                layers[model, variant] = tuple(map(int, table.columns))
    return [
        LayerScores(
            "protocol",
            "the authors' released MTEB results by layer",
            command="python -m ctxexp claims paper=skean_2025 released=<folder>",
            scores=scores,
            layers=layers,
        )
    ]


def by_layer(path: Path, family: str, size: str, revision: str, subsets: tuple[str, ...]) -> pd.DataFrame:
    """Main scores on the test sets, tasks by layers; a task's subsets averaged; layers without all tasks left out."""
    rows = _read(path)
    wanted = (rows["family"] == family) & (rows["size"] == size) & (rows["revision"] == revision)
    wanted &= (rows["split"] == "test") & (rows["subset"].isin(subsets) if subsets else True)
    table = rows[wanted].groupby(["task", "layer"])["main_score"].mean().unstack()
    return table.loc[:, table.notna().all()]


@cache
def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    rows = pd.read_csv(path, dtype={"size": str, "revision": str})
    expected = {"family", "size", "revision", "layer", "task", "split", "subset", "main_score"}
    if missing := expected - set(rows.columns):
        raise DataError(f"{path}: no column {', '.join(sorted(missing))}; expected {', '.join(sorted(expected))}")
    return rows
