"""Garí Soler & Apidianaki (2021), *Let's Play Mono-Poly*: is a word's number of senses seen in its self-similarity?

The authors released mean self-similarities by layer, which are points; words' own values, where a source has them,
give verdicts by the same tests.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.errors import DataError
from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.source import MINIS, Inputs, LinkedResults, Source
from ctxexp_papers.claims.statistics.matched import within_strata
from ctxexp_papers.claims.statistics.paired import MIN_UNITS, Interval, group_difference

if TYPE_CHECKING:
    import pandas as pd

MONO, BANDS = "monosemous", ("low", "mid", "high")
SAME, MIXED = "poly-same", ("poly-rand", "poly-bal")
POOLS = (*MIXED, SAME)
"""Which ten sentences of a polysemous word: drawn at random, balanced over its senses, of one sense."""
ENGLISH = ("en-bert", "en-bbcased", "en-multicased", "en-elmo", "en-c2v")
OTHERS = ("fr-flaubertuncased", "fr-multicased", "es-betouncased", "es-multicased", "el-greekuncased", "el-multicased")
METRIC, SENSES = "self_similarity_by_senses", {"low": (2, 2), "mid": (3, 4), "high": (5, math.inf)}
"""The metric whose runs are evidence, and its bands: a text shows fewer senses than WordNet lists."""
INVENTORY = "senses that the text shows, all labelled occurrences, frequency taken out"
DOCUMENTS = 176  # of SemCor's 352
RUN = f"python -m ctxexp -m metric={METRIC} dataset=semcor model=bert,gpt2"
Values = Mapping[tuple[str, str, str], np.ndarray]


@dataclass
class SenseGroups(Source):
    """Self-similarity by model, pool of sentences and group of words: (words, layers), or (1, layers) of released
    means. The monosemous words have their only pool, ""."""

    values: Values = field(default_factory=dict)

    def models(self) -> list[str]:
        return list(dict.fromkeys(model for model, _, _ in self.values))

    def group(self, model: str, pool: str, name: str) -> np.ndarray | None:
        return self.values.get((model, "" if name == MONO else pool, name))


def in_every_layer(
    source: SenseGroups, pairs: Sequence[tuple[str, str]], *, models: Sequence[str], pools: Sequence[str]
) -> list[Check]:
    """A check a model and pool: whether each pair's first group exceeds its second in every layer."""
    checks = []
    for pool in pools:
        for model in models:
            groups = [(source.group(model, pool, one), source.group(model, pool, other)) for one, other in pairs]
            if any(one is None or other is None for one, other in groups):
                checks.append(Check(model, pool, text=f"no self-similarity by layer of {' and '.join(pairs[0])}"))
                continue
            looks = sum(one.shape[1] for one, _ in groups if one is not None)
            differences = [
                (pair, layer, *_difference(one[:, layer], other[:, layer], looks * len(models)))
                for pair, (one, other) in zip(pairs, groups, strict=True)
                if one is not None and other is not None
                for layer in range(one.shape[1])
            ]
            checks.append(_check(model, pool, differences, points=source.kind == "points"))
    return checks


def _difference(one: np.ndarray, other: np.ndarray, ways: int) -> tuple[Interval, Interval]:
    """The interval of a layer's difference, and that which a failure of any of so many needs."""
    if len(one) == 1:
        value = float(one[0] - other[0])
        return (Interval(value, value, value, 1),) * 2
    return group_difference(one, other), group_difference(one, other, ways=ways)


def _check(
    model: str, pool: str, differences: list[tuple[tuple[str, str], int, Interval, Interval]], *, points: bool
) -> Check:
    """Passed where every interval is above 0, failed where one that is as wide as so many looks need lies below."""
    above = sum(interval.low > 0 for *_, interval, _ in differences)
    passed = True if above == len(differences) else None
    if any(wide.high < 0 for *_, wide in differences):
        passed = False
    pair, layer, least, _ = min(differences, key=lambda row: row[2].low)
    ends = (math.nan, math.nan) if points else (least.low, least.high)
    n = math.nan if points else float(least.n)
    brief = f"{above} of {len(differences)}"
    text = f"{brief} differences above 0; the least: {' less '.join(pair)} in layer {layer}"
    return Check(model, pool, passed, least.value, *ends, n, text, brief=brief)


def sources(inputs: Inputs) -> list[Source]:
    """The released means, where their folder is named, runs of metric=self_similarity_by_senses, and the offered models
    on SemCor, where that is."""
    return [*_released(inputs), *_of_runs(inputs.runs), *_of_models(inputs)]


def _of_runs(runs: Sequence[LinkedResults]) -> list[Source]:
    """The words of the newest run of each model and weights that has the metric's table, by its counts of senses."""
    values: dict[tuple[str, str, str], np.ndarray] = {}
    departures: dict[str, list[str]] = {}
    for results, _ in runs:
        model = f"{results.info.model.name} {results.info.model.weights}".strip()
        table = results.tables.get(METRIC)
        if table is None or model in departures:
            continue
        values |= {(model, *group): rows for group, rows in groups_of(table).items()}
        departures[model] = [f"not the paper's experiment (corpus {results.info.corpus.name}, {INVENTORY})"]
    return [SenseGroups("other", f"runs of metric={METRIC}", departures, command=RUN, values=values)] if values else []


def _of_models(inputs: Inputs) -> list[Source]:
    """The offered models of a mini's shape, on half of SemCor's documents; none where SEMCOR isn't in the environment,
    and none of larger models, which would take hours."""
    folder = os.environ.get("SEMCOR")
    models = [model for model in inputs.models if model.split()[0] in MINIS]
    if not folder or not models:
        return []
    from ctxexp.command import registry

    text = registry().find("dataset", "semcor").factory(path=folder, documents=DOCUMENTS)
    values: dict[tuple[str, str, str], np.ndarray] = {}
    for model in models:
        table = inputs.measure(model, text, metrics=METRIC, options=["bootstrap=0"]).tables[METRIC]
        values |= {(model, *group): rows for group, rows in groups_of(table).items()}
    departures = {model: [f"not the paper's experiment (half of SemCor, {INVENTORY})"] for model in models}
    command = f"SEMCOR=<folder of semcor> python -m ctxexp claims paper=gari_soler_2021 model='{','.join(models)}'"
    title = f"{DOCUMENTS} documents of SemCor, {INVENTORY}"
    return [SenseGroups("other", title, departures, command=command, values=values)]


def groups_of(table: pd.DataFrame) -> dict[tuple[str, str], np.ndarray]:
    """The metric's table by pool and group: (words, layers) each, less what goes with a word's frequency."""
    columns = {"poly-rand": "all", "poly-bal": "balanced", SAME: "one_sense"}
    by_pool = {
        pool: table.pivot(index="word", columns="layer", values=name) for pool, name in columns.items() if name in table
    }
    every = by_pool["poly-rand"].dropna()
    words = table.drop_duplicates("word").set_index("word").loc[every.index]
    frequency = every - within_strata(every.to_numpy(), words["contexts"].to_numpy()) - every.mean()
    pools = {pool: (values.loc[every.index] - frequency).dropna().round(6) for pool, values in by_pool.items()}
    senses = words["senses"]
    groups = {("", MONO): pools["poly-rand"][senses == 1]}
    for pool, values in pools.items():
        mine = senses[values.index]
        groups[pool, pool] = values[mine > 1]
        groups |= {(pool, band): values[mine.between(*ends)] for band, ends in SENSES.items()}
    return {group: values.to_numpy() for group, values in groups.items() if len(values) >= MIN_UNITS}


def _released(inputs: Inputs) -> list[Source]:
    folder = inputs.released_folder("gari_soler_2021", "en-bert") or inputs.released_folder("Results", "en-bert")
    if folder is None:
        return []
    values: dict[tuple[str, str, str], np.ndarray] = {}
    for model in (*ENGLISH, *OTHERS):
        for path in sorted((folder / model).glob("mono_poly_*.csv")):
            rows = read_means(path)
            values[model, "", MONO] = rows[MONO]
            values |= {(model, pool, pool): rows[pool] for pool in POOLS if pool in rows}
        for pool in POOLS:
            for path in sorted((folder / model).glob(f"polysemy_bands_*_{pool}.csv")):
                values |= {(model, pool, band): row for band, row in read_means(path).items()}
    return [
        SenseGroups(
            "points",
            "the authors' released mean self-similarities by layer",
            command="python -m ctxexp claims paper=gari_soler_2021 released=<clone of github.com/ainagari/monopoly>",
            values=values,
        )
    ]


def read_means(path: Path) -> dict[str, np.ndarray]:
    """The rows of a released file: by group, (1, layers). Raises DataError for a file that is none of theirs."""
    with path.open(encoding="utf-8", newline="") as lines:
        head, *rows = csv.reader(lines, delimiter="\t")
    try:
        return {row[0]: np.array([row[1:]], np.float64) for row in rows if row}
    except ValueError as error:
        raise DataError(f"{path}: expected a group and a number a layer, tab-separated, got {head}: {error}") from error


def _above_pool(source: SenseGroups, *, models: Sequence[str], pools: Sequence[str]) -> list[Check]:
    """Monosemous words above the polysemous ones, whose group is named as their pool is."""
    models = _models(source, models)
    return [check for pool in pools for check in in_every_layer(source, [(MONO, pool)], models=models, pools=(pool,))]


def _bands(source: SenseGroups, *, models: Sequence[str]) -> list[Check]:
    pairs = [("low", "mid"), ("mid", "high")]
    return in_every_layer(source, pairs, models=_models(source, models), pools=POOLS)


def _models(source: SenseGroups, models: Sequence[str]) -> Sequence[str]:
    """The paper's models of the claim; off its protocol those of the runs, which are English."""
    if source.kind != "other":
        return models
    return source.models() if models is ENGLISH else ()


claim = partial(
    Claim,
    on=(SenseGroups,),
    null="groups of words of equal mean: of so many layers and models one would break or meet the order by chance",
    reason="0: the paper says above, not by how much",
    reversal="a layer of one model in which the order is the other way round beyond its interval",
    evidence="words' own self-similarities in the paper's models and sentences: the released ones are means by layer "
    "(released=<clone of github.com/ainagari/monopoly>), on which only sides can be told; model=gpt2,bert,elmo with "
    "SEMCOR=<folder of semcor> in the environment gives the same tests of a model",
    general="pre-trained language models of English",
)
TEST = "mean self-similarity of {} less that of {}: the interval over words (Welch) above 0 in every layer"
CLAIMS = (
    claim(
        id="mono-above-poly",
        section="3",
        statement="Monosemous words are more self-similar than polysemous ones, in all layers of the English models.",
        test=TEST.format("monosemous words", "polysemous ones"),
        check=partial(_above_pool, models=ENGLISH, pools=MIXED),
        variants=MIXED,
    ),
    claim(
        id="mono-above-one-sense",
        section="3",
        statement="They are so even where all sentences of a polysemous word have the same sense.",
        test=TEST.format("monosemous words", "polysemous ones in sentences of one sense"),
        check=partial(_above_pool, models=ENGLISH, pools=(SAME,)),
        variants=(SAME,),
    ),
    claim(
        id="bands-in-order",
        section="4",
        statement="The fewer senses, the more self-similar: bands of low, mid and high polysemy are in this order.",
        test=TEST.format("each band", "the next"),
        check=partial(_bands, models=ENGLISH),
        variants=POOLS,
    ),
    claim(
        id="other-languages",
        general="",
        section="3",
        statement="Models of French, Spanish and Greek too tell monosemous words from polysemous ones, in all layers.",
        test=TEST.format("monosemous words", "polysemous ones"),
        check=partial(_above_pool, models=OTHERS, pools=MIXED),
        variants=MIXED,
        quote="models in other languages also manage to establish relevant distinctions between words at different "
        "polysemy levels",
        quote_source="the abstract, arXiv 2104.14694",
    ),
)


def paper() -> Paper:
    """The paper's claims."""
    return Paper(
        name="gari_soler_2021",
        title="The claims of Garí Soler & Apidianaki (2021), Let's Play Mono-Poly, tested",
        citation=(
            "Aina Garí Soler and Marianna Apidianaki (2021), Let's Play Mono-Poly: BERT Can Reveal Words' Polysemy "
            "Level and Partitionability into Senses. TACL 9, pp. 825-844"
        ),
        url="https://arxiv.org/abs/2104.14694",
        protocol=Protocol("the models and sentences of SemCor and EuroSense whose means the authors released"),
        claims=CLAIMS,
        sources=sources,
        released="github.com/ainagari/monopoly (folder Results)",
        abstract=("other-languages",),
        rule="The released means come without a number of words. A bound that holds whatever the words (of cosines "
        "between -1 and 1 with that mean) can't decide them: SemCor labels 1,818 lemmas ten times or more, of which "
        "613 show one sense alone, and with all of these the interval still spans 0 for one English model at the "
        "least, in each pool.",
    )
