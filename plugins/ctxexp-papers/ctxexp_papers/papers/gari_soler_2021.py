"""Garí Soler & Apidianaki (2021), *Let's Play Mono-Poly*: is a word's number of senses seen in its self-similarity?

The authors released mean self-similarities by layer, which are points; words' own values, where a source has them,
give verdicts by the same tests.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ctxexp.errors import DataError
from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.source import Inputs, Source
from ctxexp_papers.claims.statistics.paired import Interval, group_difference

MONO, MIXED = "monosemous", ("poly-rand", "poly-bal")
"""The pools: which ten sentences of a polysemous word, drawn at random or balanced over its senses."""
OTHERS = ("fr-flaubertuncased", "fr-multicased", "es-betouncased", "es-multicased", "el-greekuncased", "el-multicased")
Values = Mapping[tuple[str, str, str], np.ndarray]


@dataclass
class SenseGroups(Source):
    """Self-similarity by model, pool of sentences and group of words: (words, layers), or (1, layers) of released
    means. The monosemous words have their only pool, ""."""

    values: Values = field(default_factory=dict)

    def models(self) -> list[str]:
        return list(dict.fromkeys(model for model, _, _ in self.values))


def above_pool(source: SenseGroups) -> list[Check]:
    """A check a model and pool: whether monosemous words exceed the polysemous ones, whose group is named as their pool
    is, in every layer."""
    checks = []
    for pool in MIXED:
        for model in OTHERS:
            one, other = source.values.get((model, "", MONO)), source.values.get((model, pool, pool))
            if one is None or other is None:
                checks.append(Check(model, pool, text=f"no self-similarity by layer of {MONO} and {pool}"))
                continue
            ways = one.shape[1] * len(OTHERS)
            differences = [_difference(one[:, layer], other[:, layer], ways) for layer in range(one.shape[1])]
            checks.append(_check(model, pool, differences, points=source.kind == "points"))
    return checks


def _difference(one: np.ndarray, other: np.ndarray, ways: int) -> tuple[Interval, Interval]:
    """The interval of a layer's difference, and that which a failure of any of so many needs."""
    if len(one) == 1:
        value = float(one[0] - other[0])
        return (Interval(value, value, value, 1),) * 2
    return group_difference(one, other), group_difference(one, other, ways=ways)


def _check(model: str, pool: str, differences: list[tuple[Interval, Interval]], *, points: bool) -> Check:
    """Passed where every interval is above 0, failed where one that is as wide as so many looks need lies below."""
    above = sum(interval.low > 0 for interval, _ in differences)
    passed = True if above == len(differences) else None
    if any(wide.high < 0 for _, wide in differences):
        passed = False
    layer, (least, _) = min(enumerate(differences), key=lambda row: row[1][0].low)
    ends = (math.nan, math.nan) if points else (least.low, least.high)
    n = math.nan if points else float(least.n)
    brief = f"{above} of {len(differences)}"
    text = f"{brief} differences above 0; the least: {MONO} less {pool} in layer {layer}"
    return Check(model, pool, passed, least.value, *ends, n, text, brief=brief)


def sources(inputs: Inputs) -> list[Source]:
    """The released means, where their folder is named."""
    folder = inputs.released_folder("gari_soler_2021", "en-bert") or inputs.released_folder("Results", "en-bert")
    if folder is None:
        return []
    values: dict[tuple[str, str, str], np.ndarray] = {}
    for model in OTHERS:
        for path in sorted((folder / model).glob("mono_poly_*.csv")):
            rows = read_means(path)
            values[model, "", MONO] = rows[MONO]
            values |= {(model, pool, pool): rows[pool] for pool in MIXED if pool in rows}
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


CLAIMS = (
    Claim(
        id="other-languages",
        section="3",
        statement="Models of French, Spanish and Greek too tell monosemous words from polysemous ones, in all layers.",
        quote="models in other languages also manage to establish relevant distinctions between words at different "
        "polysemy levels",
        quote_source="the abstract, arXiv 2104.14694",
        test="mean self-similarity of monosemous words less that of polysemous ones: the interval over words (Welch) "
        "above 0 in every layer",
        null="groups of words of equal mean: of so many layers and models one would break or meet the order by chance",
        reason="0: the paper says above, not by how much",
        reversal="a layer of one model in which the order is the other way round beyond its interval",
        evidence="words' own self-similarities in the paper's models and sentences: the released ones are means by "
        "layer (released=<clone of github.com/ainagari/monopoly>), on which only sides can be told; "
        "model=gpt2,bert,elmo with SEMCOR=<folder of semcor> in the environment gives the same tests of a model",
        check=above_pool,
        on=(SenseGroups,),
        variants=MIXED,
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
        rule="The released means come without a number of words, so that no interval can be had of them.",
    )
