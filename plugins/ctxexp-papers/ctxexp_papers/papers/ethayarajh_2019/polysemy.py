"""The claim that the variety of contexts, not polysemy, drives a word's variation (Ethayarajh 2019, Section 4.2)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ctxexp.maths import Stream
from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.paper import Claim
from ctxexp_papers.claims.source import Inputs, LinkedResults, Source
from ctxexp_papers.claims.statistics.matched import MIN_WORDS, partial_ranks
from ctxexp_papers.monosemy.words import count_senses, describe_words
from ctxexp_papers.papers.ethayarajh_2019 import per_word
from ctxexp_papers.papers.ethayarajh_2019.protocol import MODELS

NONE = 0.1  # of a rank correlation: "small" (Cohen 1988)
COLUMNS = ["self_similarity", "senses", "variety", "contexts"]
NO_PART, LARGER_PART = "polysemy has no part", "variety has the larger part"
METRIC = "self_similarity_by_senses"


@dataclass
class WordProperties(Source):
    """By model, a row a word: its self-similarity (the mean over hidden layers), its number of senses, the variety of
    its contexts, in how many it stands."""

    words: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    link_of: Mapping[str, str] = field(default_factory=dict)
    resamples: int = 1000

    def models(self) -> list[str]:
        return list(self.words)

    def links(self) -> list[str]:
        return [f"{model}: {link}" for model, link in self.link_of.items() if link]


def variety_not_polysemy(source: WordProperties) -> list[Check]:
    """By reading: variety lowers self-similarity at equal frequency and senses, and senses don't, or less, at equal
    variety."""
    checks = []
    for model, words in source.words.items():
        table = words[COLUMNS].dropna()
        if len(table) < MIN_WORDS:
            checks.append(Check(model, text=f"{len(table)} words with senses and contexts; needs {MIN_WORDS}"))
            continue
        rng = np.random.default_rng([0, Stream.CLAIMS, 4])
        columns = [table[name].to_numpy(np.float64) for name in COLUMNS]
        found = partial_ranks(*columns, rng=rng, ways=len(MODELS), resamples=source.resamples)
        senses, variety, more = found.one, found.other, found.difference
        lowered = True if variety.high < 0 else False if variety.low >= 0 else None
        none = True if max(abs(senses.low), abs(senses.high)) < NONE else False if senses.high <= -NONE else None
        larger = True if more.low > 0 else False if more.high <= 0 else None
        for reading, passed, rho, what in (
            (NO_PART, lowered, variety, "variety"),
            (NO_PART, none, senses, "senses"),
            (LARGER_PART, lowered, variety, "variety"),
            (LARGER_PART, larger, more, "senses less variety"),
        ):
            text, brief = f"partial rank correlation of self-similarity: {what}", f"{what} {rho.value:+.2f}"
            threshold = (-NONE, NONE) if what == "senses" else ()
            checks.append(Check(model, reading, passed, *rho, text, source.link_of.get(model, ""), brief, threshold))
    return checks


def sources(inputs: Inputs) -> list[Source]:
    """The released per-word files beside senses of SemCor and contexts of the paper's own text, where the folders are
    named; then runs of the metric, which are of other texts."""
    found = _released(inputs)
    return [*([found] if found else []), *_of_runs(inputs.runs)]


def _released(inputs: Inputs) -> WordProperties | None:
    semcor, sts = os.environ.get("SEMCOR"), os.environ.get("STS")
    family = per_word.source(inputs) if semcor and sts else None
    if family is None:
        return None
    from ctxexp.command import registry

    labelled = registry().find("dataset", "semcor").factory(path=semcor)
    text = registry().find("dataset", "sts_2012_2016").factory(path=sts)
    senses, sentences = count_senses(labelled), [sentence.words for sentence in text.sentences]
    words = {}
    for evidence in family.members:
        table = evidence.tables["self_similarity"].set_index("word")
        hidden = [name for name in table if name != "raw_0"]
        described = describe_words(sentences, set(table.index))
        described["senses"] = [senses.get(word.casefold(), np.nan) for word in described.index]
        words[evidence.model] = described.join(table[hidden].mean(axis=1).rename("self_similarity"))
    return WordProperties(
        "protocol",
        "the authors' released per-word files, senses of SemCor",
        command="SEMCOR=<folder of semcor> STS=<folder of STS2012-test ...> python -m ctxexp claims "
        "paper=ethayarajh_2019 released=<clone of github.com/kawine/contextual>",
        words=words,
    )


def _of_runs(runs: Sequence[LinkedResults]) -> list[WordProperties]:
    """The newest run of each model and weights that has the metric's table."""
    words, links, departures = {}, {}, {}
    for results, link in runs:
        if (table := results.tables.get(METRIC)) is None:
            continue
        name = f"{results.info.model.name} {results.info.model.weights}".strip()
        if name in words:
            continue
        layers = pd.to_numeric(table["layer"], errors="coerce")
        rows = table[layers > 0].rename(columns={"all": "self_similarity"})
        words[name] = rows.groupby("word")[COLUMNS].mean()
        links[name] = link
        departures[name] = [f"not the paper's experiment (corpus {results.info.corpus.name})"]
    if not words:
        return []
    title = "runs of metric=self_similarity_by_senses"
    return [WordProperties("other", title, departures, command=RUN, words=words, link_of=links)]


RUN = f"python -m ctxexp -m metric={METRIC} dataset=semcor model=bert,gpt2"
CLAIM = Claim(
    id="variety-not-polysemy",
    section="4.2",
    statement="The variety of contexts a word appears in, rather than its polysemy, drives the variation in its "
    "representations.",
    quote="the variety of contexts a word appears in, rather than its inherent polysemy, is what drives variation in "
    "its contextualized representations",
    quote_source="the author's own summary of the paper (kawine.github.io, 2020), which repeats the sentence",
    test="rank correlation over words of self-similarity (mean of the hidden layers) with the variety of contexts "
    "(expected number of different neighbours in five of them) given frequency and senses: below 0; that with the "
    f"number of senses given frequency and variety: within {NONE} of 0, or nearer to 0 than variety's, by reading",
    null="properties that have nothing to do with self-similarity at equal frequency: correlations of 0",
    reason=f"0 for drives; {NONE}, a small correlation, for no part. Senses counted in a text are fewer than there "
    "are, which makes their correlation smaller: `rather than` gets the benefit",
    reversal=f"a correlation with senses whose interval lies below -{NONE} and beyond that with variety, or none with "
    "variety",
    check=variety_not_polysemy,
    on=(WordProperties,),
    variants=(NO_PART, LARGER_PART),
    evidence="the released per-word files (released=) with SEMCOR=<folder of semcor> and STS=<folder of STS2012-test "
    f"...> in the environment, or runs ({RUN})",
)
