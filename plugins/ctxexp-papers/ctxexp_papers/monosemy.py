"""Self-similarity by number of senses and by variety of contexts, at equal frequency: does a word vary by how many
senses it has, or by how varied its contexts are?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import gammaln

from ctxexp import Corpus, Estimate, Group, Metric, Reading, Text
from ctxexp.errors import DataError
from ctxexp.maths import mean_cosine
from ctxexp_papers.claims.statistics import Interval, matched_difference, mean_of, partial_ranks, within_strata

DRAWN, WINDOW = 5, 5  # contexts whose variety is taken; neighbours on either side
COUNTS = ("occurrences", "senses", "contexts", "variety")


class SelfSimilarityBySenses(Metric):
    """Self-similarity of words of one sense less that of words of several, at equal frequency, in [-2, 2].

    A word is a spelling with `least` labelled occurrences or more, its senses those that the corpus labels; its value
    is the mean cosine over all pairs of these (whose expectation doesn't depend on their number). `monosemous`,
    `polysemous`: the means over words; `one_sense`: that of polysemous words in occurrences of their commonest sense
    alone, where there are `least`; `difference` (the main one) and `one_sense_difference`: monosemous words less these,
    within strata of how often a word occurs in the text. `difference_permuted`: what labels of the words give that mean
    nothing, permuted after the strata were taken out, with the 2.5% and 97.5% percentiles.

    `rho_senses` and `rho_variety`: partial rank correlations over words of self-similarity with the number of senses
    and with the variety of contexts, each given the other and the frequency. Variety is the expected number of
    different words within five places of the word in five of its contexts. Intervals are over words, which are taken
    for independent. Senses that the text happens to show are fewer than a dictionary's, so that their correlation is
    on the small side. The table has a row a word and layer.

    Garí Soler and Apidianaki 2021 (Let's Play Mono-Poly, arXiv 2104.14694) compare the same groups, of WordNet's senses
    and ten sentences each; Ethayarajh 2019 says that variety, not polysemy, drives a word's variation.

    least: labelled occurrences of a word
    permutations: of words
    """

    over = "sense"
    name: ClassVar[str] = "self_similarity_by_senses"
    title = "Self-similarity by number of senses"
    reading = Reading(
        unit="cosine",
        subject="words of one sense",
        lower="no more alike than words of several",
        higher="more alike than words of several",
        main="difference",
    )
    definition = "self-similarity of words of one sense less that of words of several, at equal frequency"
    invariances = frozenset({"rotation", "scale", "row_scale"})

    def __init__(self, *, least: int = 10, permutations: int = 200, seed: int = 0) -> None:
        self.least, self.permutations, self.seed = least, permutations, seed
        self._words: pd.DataFrame | None = None
        self._rows: list[dict[str, object]] = []

    def require(self, corpus: Corpus) -> None:
        if not corpus.senses:
            raise DataError(
                f"{self.name}: corpus {corpus.name!r} has no senses; choose a data set that does, as semcor"
            )

    def bind_text(self, text: Text) -> None:
        key = "ctxexp_papers.monosemy"
        if key not in text.derived:
            words = [str(word) for word in text.occurrences.by_sense.keys]
            text.derived[key] = describe_words((s.words for s in text.corpus.sentences), words)
        self._words = text.derived[key]

    def update(self, group: Group) -> None:
        if self._words is None or len(group.labels) < self.least or group.key not in self._words.index:
            return
        senses = Counter(group.labels)
        label, count = senses.most_common(1)[0]
        same = np.array([one == label for one in group.labels])
        one_sense = float(mean_cosine(group.x[same])) if count >= self.least else float("nan")
        described = {name: float(value) for name, value in self._words.loc[group.key].items()}
        row = {"word": group.key, "occurrences": float(len(group.labels)), "senses": float(len(senses))}
        values = {
            "all": float(mean_cosine(group.x)),
            "one_sense": one_sense,
        }
        self._rows.append(row | described | values)

    def compute(self) -> dict[str, float | Estimate]:
        table = pd.DataFrame(self._rows, columns=["word", *COUNTS, "all", "one_sense"])
        table = table[np.isfinite(table["all"])].assign(is_one=lambda words: words["senses"] == 1)
        one_sense = table.assign(all=table["all"].where(table["is_one"], table["one_sense"])).dropna(subset=["all"])
        groups = {
            "monosemous": table[table["is_one"]],
            "polysemous": table[~table["is_one"]],
            "one_sense": one_sense[~one_sense["is_one"]],
        }
        statistics: dict[str, float | Estimate] = {"n": float(len(table))}
        for name, words in groups.items():
            statistics |= {f"{name}_words": float(len(words)), name: _estimate(mean_of, words["all"])}
        for name, words in (("difference", table), ("one_sense_difference", one_sense)):
            statistics[name] = _estimate(matched_difference, words["all"], words["is_one"], words["contexts"])
        return statistics | self._permuted(table) | self._partial(table.dropna(subset=["variety"]))

    def _permuted(self, table: pd.DataFrame) -> dict[str, float | Estimate]:
        """The difference where words change places after frequency was taken out."""
        if not self.permutations or not 0 < table["is_one"].sum() < len(table):
            return {}
        y, d = within_strata(table[["all", "is_one"]].to_numpy(np.float64), table["contexts"].to_numpy()).T
        permuted = np.random.default_rng(self.seed).permuted(np.tile(d, (self.permutations, 1)), axis=1)
        values = permuted @ y / max(float(d @ d), 1e-12)
        return {"difference_permuted": Estimate(float(values.mean()), *np.percentile(values, [2.5, 97.5]).tolist())}

    def _partial(self, table: pd.DataFrame) -> dict[str, float | Estimate]:
        rng, resamples = self.resampling
        columns = (table[name].to_numpy(np.float64) for name in ("all", "senses", "variety", "contexts"))
        try:
            found = partial_ranks(*columns, rng=rng, resamples=max(resamples, 1))
        except ValueError:
            return {}
        return {"rho_senses": Estimate(*found.one[:3]), "rho_variety": Estimate(*found.other[:3])}

    def outputs(self) -> dict[str, list[dict[str, object]]]:
        """The table: a row a word."""
        return {"table": self._rows}


def _estimate(interval: Callable[..., Interval], *columns: pd.Series[Any]) -> Estimate:
    """The interval of these words; NaN where they are too few."""
    try:
        return Estimate(*interval(*(column.to_numpy() for column in columns))[:3])
    except ValueError:
        return Estimate(float("nan"), float("nan"), float("nan"))


def count_senses(corpus: Corpus) -> dict[str, int]:
    """The number of different senses with which a spelling without case is labelled in the corpus."""
    senses = defaultdict(set)
    for sense in corpus.senses or ():
        senses[corpus.sentences[sense.sentence].words[sense.position].casefold()].add(sense.label)
    return {word: len(labels) for word, labels in senses.items()}


def describe_words(
    sentences: Iterable[Sequence[str]], words: Collection[str], *, drawn: int = DRAWN, window: int = WINDOW
) -> pd.DataFrame:
    """How often words occur, and in what company.

    Args:
        sentences: Words of each; equal sentences are one context.
        words: Those to describe, as they are spelled in the sentences.
        drawn: A word's variety is that of so many of its contexts, whatever it has.
        window: Neighbours on either side.

    Returns:
        A row a word that occurs, indexed by it: `contexts`, the distinct sentences with it, and `variety`, the expected
        number of different neighbours in `drawn` of them (rarefaction; Hurlbert 1971), NaN where it has fewer. Of its
        occurrences in a sentence the first counts.
    """
    wanted = set(words)
    contexts: Counter[str] = Counter()
    neighbours: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in dict.fromkeys(map(tuple, sentences)):
        folded = [word.casefold() for word in sentence]
        first = {word: i for i, word in reversed(list(enumerate(sentence))) if word in wanted}
        for word, i in first.items():
            contexts[word] += 1
            neighbours[word].update({*folded[max(0, i - window) : i], *folded[i + 1 : i + 1 + window]})
    rows = {
        word: (n, rarefied(np.fromiter(neighbours[word].values(), np.float64), n, drawn))
        for word, n in contexts.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=["contexts", "variety"])


def rarefied(counts: np.ndarray, n: int, drawn: int) -> float:
    """The expected number of kinds in `drawn` of n samples without replacement, where kinds stand in so many of them
    (kinds,); NaN where n is less.

    Example:
        >>> rarefied(np.array([2.0, 1.0]), 2, 1)
        1.5
    """
    if n < drawn:
        return float("nan")
    without = n - counts
    possible = without >= drawn
    absent = np.exp(_log_choose(without[possible], drawn) - _log_choose(np.array(float(n)), drawn)).sum()
    return float(len(counts) - absent)


def _log_choose(n: np.ndarray, k: int) -> np.ndarray:
    result: np.ndarray = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return result
