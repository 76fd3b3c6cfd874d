"""Skean et al. (2025), *Layer by Layer*: are middle layers better than the last, and is that learned?

Evidence is the authors' released results of 32 MTEB tasks by layer. For Pythia their wrapper sets the model's number
of layers to the one evaluated, so that "layer k" is the model's final norm applied to layer k.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.errors import DataError
from ctxexp.maths import Stream
from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
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


TEXT = "arXiv 2502.02013, as published at ICML 2025 (PMLR 267)"
NULL = (
    "layers of equal truth: of so many the best looks better; the layer is held out, and a bound over all layers at "
    "once decides"
)
TEST = (
    "mean over tasks of the score in the middle layer chosen on the other tasks, less {rival}: its bootstrap interval "
    "over tasks, and the simultaneous one of the true best middle layer, above 0 in every model"
)
NEEDS = "the released results, github.com/OFSkean/information_flow (released=<folder with mteb_by_layer.csv.xz>)"
claim = partial(Claim, on=(LayerScores,), variants=tuple(SUBSETS), evidence=NEEDS, quote_source=TEXT)
CLAIMS = (
    claim(
        id="middle-above-last",
        section="4.1",
        statement="A middle layer is better than the last on average over tasks, in every model.",
        quote="Intermediate layers of language models consistently outperform final layers across all architectures "
        "and tasks",
        test=TEST.format(rival="the last layer's"),
        null=NULL,
        reason="0: the paper says better, not by how much",
        reversal="a model whose middle layers all lie below its last",
        check=above_last,
        models=tuple(MODELS),
    ),
    claim(
        id="middle-above-ends",
        section="4.1.2",
        statement="The best layer is in the middle: better than both the input layer and the last, in every model.",
        quote="the best layer often resides around the mid-depth of the network",
        test=TEST.format(rival="that of the better of input and last layer, chosen likewise"),
        null=f"{NULL}; a layer is better than the last for no other reason than not being the last",
        reason="0; the input layer, which knows no context, is the control that the last layer isn't",
        reversal="small models whose middle layers exceed their input layer",
        check=above_ends,
        models=WITH_INPUT,
    ),
    claim(
        id="nearly-every-task",
        section="4.1.2",
        statement="In nearly every task a middle layer is better than the last.",
        quote="In nearly every task, some intermediate layer outperforms the final layer.",
        test=f"share of tasks in which the layer chosen on the other tasks exceeds the last: Wilson's interval above "
        f"{NEARLY:.0%} in every model",
        null="of several layers of equal truth some one exceeds the last in nearly every task by chance: the best "
        "layer of each task itself proves nothing",
        reason="four tasks in five: `nearly every` is more, but 32 tasks can't establish nine in ten",
        reversal="a layer that wins nearly all of the tasks on which it wasn't chosen",
        check=nearly_every_task,
        models=tuple(MODELS),
    ),
    claim(
        id="best-at-mid-depth",
        section="4.1.2",
        statement="In most Pythia models the best layer lies in the middle half of the depth.",
        quote="the best layer often resides around the mid-depth of the network",
        test="mean score of the best layer from a quarter to three quarters of the depth, less that of the best one "
        "outside, each chosen on the other tasks: its interval, and the simultaneous one, above 0 in more than half of "
        "the models",
        null="layers of equal truth: the best looks better wherever it lies",
        reason="a quarter and three quarters: the paper says around the mid-depth, and gives no bounds; more than half "
        "of the models, for `often`",
        reversal="two models or more whose best layer lies in the outer quarters",
        check=mid_depth,
        models=(MOST,),
    ),
    claim(
        id="gain-is-learned",
        section="4.1.2",
        statement="The gain of the middle layers over the last comes of training.",
        quote="these sweet spots are not random but tied to how intermediate layers are processing information",
        test="gain over the last layer of Pythia-410m less that of the same network at step 1, task by task: its "
        "interval above 0",
        null="the untrained network's gain: its last layer is the furthest from the input, and worse for that alone",
        reason="0: as much as without training is not learned",
        reversal="a trained gain beyond the untrained one's interval",
        check=learned,
        models=("pythia-410m",),
    ),
)


def paper() -> Paper:
    """The paper's claims."""
    return Paper(
        name="skean_2025",
        title="The claims of Skean et al. (2025), Layer by Layer, tested",
        citation=(
            "Oscar Skean, Md Rifat Arefin, Dan Zhao, Niket Patel, Jalal Naghiyev, Yann LeCun, Ravid Shwartz-Ziv "
            "(2025), Layer by Layer: Uncovering Hidden Representations in Language Models. ICML, PMLR 267"
        ),
        url="https://arxiv.org/abs/2502.02013",
        protocol=Protocol("models and tasks of the authors' released MTEB results, averaged over 32 tasks"),
        claims=CLAIMS,
        sources=sources,
        released="github.com/OFSkean/information_flow",
    )
