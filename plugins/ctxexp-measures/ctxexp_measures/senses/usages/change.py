"""Lexical semantic change: distance between a word's usages of two periods, against permuted periods."""

from __future__ import annotations

import warnings
import zlib
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge

from ctxexp import Corpus, Estimate, Reading
from ctxexp.errors import DataError
from ctxexp.maths import Stream, resampled_spearman, resamples, spearman
from ctxexp_measures.senses.corpora.usages import PERIOD, USAGE, WORD
from ctxexp_measures.senses.usages.metric import UsageMetric, normalized

MEASURES = ("apd", "prt", "prt_distance", "jsd")
LEAST = 2  # usages of a period


@dataclass(frozen=True)
class Word:
    """A word's usages: its measures, those of permuted periods (permutations, measures), and how many there are."""

    word: str
    values: np.ndarray  # (measures,)
    permuted: np.ndarray
    counts: tuple[int, int]


RARE = 0.05  # a word has changed where fewer of its permutations lie as far apart


class SemanticChange(UsageMetric):
    """How far a word's usages of two periods lie apart, four ways, and how that goes with people's graded change.

    `apd`: mean cosine distance over pairs of a usage of either period, in [0, 2]. `prt`: 1 over the cosine of the
    periods' mean vectors, from 1 up (inverted similarity over prototypes, Kutuzov and Giulianelli 2020);
    `prt_distance`: 1 less that cosine, in [0, 2] (which the package languagechange calls PRT). `jsd`: Jensen-Shannon
    divergence in bits, in [0, 1], of the periods' shares of the clusters that affinity propagation finds among all
    usages (Kutuzov and Giulianelli 2020). Each is the mean over words.

    All are above 0 (or 1) without any change, the more the fewer usages: `..._null` is the mean with periods permuted
    within each word, `..._adjusted` what is left above it, `..._changed` the share of words beyond 95% of their
    permutations, and `..._changed_null` the share that is so without any change, 5% or a little less. `..._spearman` is
    Spearman's correlation over words with the graded change of the data, and `..._adjusted_spearman` that of what is
    left; intervals draw words anew. A word needs two usages in either period.
    """

    needs: ClassVar[str] = "metric semantic_change compares usages of two periods"
    dataset: ClassVar[str] = "dataset=dwug"
    title = "Semantic change"
    reading = Reading(unit="Spearman correlation", main="apd_spearman")
    definition = "Spearman of words' mean cosine distance between periods (APD) with graded change"
    invariances = frozenset({"rotation", "scale"})

    def __init__(self, *, permutations: Annotated[int, Ge(0)] = 200, seed: int = 0) -> None:
        super().__init__()
        self.permutations, self.seed = permutations, seed
        self._words: list[Word] | None = None

    def require(self, corpus: Corpus) -> None:
        super().require(corpus)
        periods = {label for labels in corpus.tags.get(PERIOD, ()) for label in labels if label}
        if len(periods) != 2:
            raise DataError(
                f"{self.needs}: corpus {corpus.name!r} has usages of {len(periods)} ({', '.join(sorted(periods))}); "
                f"expected two, as of {self.dataset}"
            )

    def words(self) -> list[Word]:
        """Every word with enough usages in either period, alphabetically."""
        if self._words is None:
            self._words = [
                self._measure(word, periods, rows)
                for word, (periods, rows) in sorted(self._usages().items())
                if np.bincount(periods, minlength=2).min() >= LEAST
            ]
        return self._words

    def _usages(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """By word: the periods of its usages (0 the earlier by name) and their rows of x; those without a vector left
        out."""
        assert self.corpus is not None
        number = {name: i for i, name in enumerate(self.names)}
        usages: dict[str, list[tuple[str, int]]] = {}
        periods: dict[str, None] = {}
        tags = (self.corpus.tags[kind] for kind in (USAGE, WORD, PERIOD))
        for labels in zip(*tags, strict=True):
            for usage, word, period in zip(*labels, strict=True):
                if usage in number and np.isfinite(self.x[number[usage]]).all():
                    usages.setdefault(word, []).append((period, number[usage]))
                    periods.setdefault(period)
        order = {period: i for i, period in enumerate(sorted(periods))}
        return {
            word: (np.array([order[p] for p, _ in of]), np.array([row for _, row in of])) for word, of in usages.items()
        }

    def _measure(self, word: str, periods: np.ndarray, rows: np.ndarray) -> Word:
        rng = np.random.default_rng([self.seed, Stream.PERIODS, zlib.crc32(word.encode())])
        permuted_periods = rng.permuted(np.tile(periods, (self.permutations, 1)), axis=1)
        values = measures(self.x[rows], np.stack([periods, *permuted_periods]))
        counts = np.bincount(periods, minlength=2)
        return Word(word, values[0], values[1:], (int(counts[0]), int(counts[1])))

    def compute(self) -> dict[str, float | Estimate]:
        if self.corpus is None:
            return {"apd": float("nan")}
        words = self.words()
        value = np.array([w.values for w in words]).reshape(len(words), len(MEASURES))
        null = np.array([_mean(w.permuted) for w in words]).reshape(value.shape)
        gold = np.array([self.corpus.change.get(w.word, np.nan) for w in words])
        statistics: dict[str, float | Estimate] = {"n": float(len(words))}
        seed = int(self.resampling[0].integers(2**63))  # the same words for every measure
        for i, name in enumerate(MEASURES):
            beyond = [np.mean(w.permuted[:, i] >= w.values[i]) < RARE if len(w.permuted) else np.nan for w in words]
            by_chance = [_beyond_by_chance(np.append(w.permuted[:, i], w.values[i])) for w in words]
            statistics |= {
                name: _of(value[:, i]),
                f"{name}_null": _of(null[:, i]),
                f"{name}_adjusted": _of(value[:, i] - null[:, i]),
                f"{name}_changed": _of(np.array(beyond, np.float64)),
                f"{name}_changed_null": _of(np.array(by_chance, np.float64)),
                f"{name}_spearman": self._spearman(value[:, i], gold, seed),
                f"{name}_adjusted_spearman": self._spearman(value[:, i] - null[:, i], gold, seed),
            }
        return statistics

    def _spearman(self, value: np.ndarray, gold: np.ndarray, seed: int) -> Estimate:
        is_defined = np.isfinite(value) & np.isfinite(gold)
        x, y, nan = value[is_defined], gold[is_defined], float("nan")
        if len(x) < 2:
            return Estimate(nan, nan, nan)
        drawn_words = resamples([len(x)], self.resampling[1], np.random.default_rng(seed))
        draws = [resampled_spearman([x, y], counts)[:, 0, 1] for counts in drawn_words]
        replicates = np.concatenate([np.empty(0), *draws])
        return Estimate.of(spearman(x, y), replicates)

    def outputs(self) -> dict[str, list[dict[str, object]]]:
        """The table, one row per word: its usages in either period, graded change, and each measure with its null."""
        if self.corpus is None:
            return {}
        rows: list[dict[str, object]] = []
        for w in self.words():
            row: dict[str, object] = {"word": w.word, "earlier": w.counts[0], "later": w.counts[1]}
            row["change"] = self.corpus.change.get(w.word, float("nan"))
            for i, name in enumerate(MEASURES):
                row |= {name: float(w.values[i]), f"{name}_null": float(_mean(w.permuted)[i])}
            rows.append(row)
        return {"table": rows}


def measures(x: np.ndarray, periods: np.ndarray) -> np.ndarray:
    """The four measures of usages x (n, d) under each labelling (k, n) of 0 and 1: (k, 4) float64; see MEASURES."""
    u, x = normalized(x), x.astype(np.float64)
    later = periods == 1
    n1, n0 = later.sum(axis=1), (~later).sum(axis=1)
    sums = [mask.astype(np.float64) @ u for mask in (~later, later)]
    with np.errstate(invalid="ignore", divide="ignore"):
        apd = 1 - np.vecdot(*sums) / (n0 * n1)
        means = [mask.astype(np.float64) @ x for mask in (~later, later)]
        cosine = np.vecdot(*means) / np.sqrt(np.vecdot(means[0], means[0]) * np.vecdot(means[1], means[1]))
        clusters = cluster_labels(u)
        hot = (clusters[:, None] == np.unique(clusters)).astype(np.float64)
        shares = [(mask @ hot) / mask.sum(axis=1, keepdims=True) for mask in (~later, later)]
        # a similarity of 0 or less has no inverse that means anything
        inverse = np.where(cosine > 0, 1 / cosine, np.nan)
    return np.stack([apd, inverse, 1 - cosine, divergence(*shares)], axis=1)


def divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Jensen-Shannon divergence in bits of the last axis' distributions, in [0, 1]."""
    middle = (p + q) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = [np.where(a > 0, a * np.log2(a / middle), 0).sum(axis=-1) for a in (p, q)]
    return (parts[0] + parts[1]) / 2


def cluster_labels(u: np.ndarray) -> np.ndarray:
    """(n,) the cluster of each row by affinity propagation; one cluster where it doesn't converge, or where rows are
    equal or aren't finite."""
    from sklearn.cluster import AffinityPropagation
    from sklearn.exceptions import ConvergenceWarning

    if not np.isfinite(u).all() or np.ptp(u, axis=0).max() < 1e-7:
        return np.zeros(len(u), np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels: np.ndarray = AffinityPropagation(random_state=0).fit(u).labels_
    return np.maximum(labels, 0)


def _beyond_by_chance(values: np.ndarray) -> float:
    """The share of the values (n,), any of which may be the true one where nothing changed, that have fewer than 5% of
    the others at or above them: 5%, less where values tie; NaN of one value."""
    n = len(values)
    if n < 2:
        return float("nan")
    above = n - 1 - np.searchsorted(np.sort(values), values)
    return float(np.mean(above / (n - 1) < RARE))


def _mean(permuted: np.ndarray) -> np.ndarray:
    """(measures,) the mean over permutations of what is defined."""
    is_defined = np.isfinite(permuted)
    with np.errstate(invalid="ignore"):
        return np.where(is_defined, permuted, 0).sum(axis=0) / is_defined.sum(axis=0)


def _of(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")
