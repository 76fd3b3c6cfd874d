"""How often nominal 95% intervals hold the truth, on planted corpora.

`python benchmarks/interval_coverage.py --replicates 400` prints the table.

The truth is a statistic's mean over all replicates: its expectation for corpora of this size, with this vocabulary.
Sentences, or documents, are drawn anew in each. `width` is the intervals' mean width over 3.92 standard deviations of
the statistic: 1 is right, 2 twice too wide.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ctxexp.baselines import OnePerSentence
from ctxexp.dataset import Corpus, Pair, Sentence
from ctxexp.datasets.streamed import ShardOptions
from ctxexp.engines.local import Local
from ctxexp.measuring.measure import measure
from ctxexp.measuring.occurrences import Occurrences
from ctxexp.measuring.pairs import PairRows
from ctxexp.measuring.study import Study, Vectors, WordFilter
from ctxexp.measuring.words import WordRows
from ctxexp.metric import Metric
from ctxexp.metrics.anisotropy import Anisotropy
from ctxexp.metrics.intra_sentence_similarity import IntraSentenceSimilarity
from ctxexp.metrics.max_explainable_variance import MaxExplainableVariance
from ctxexp.metrics.self_similarity import SelfSimilarity
from ctxexp.metrics.sts import STS
from ctxexp.model import EncodedSentence, Encoder
from ctxexp.progress import Silent

METRICS: dict[str, Callable[[], Metric]] = {
    "anisotropy": Anisotropy,
    "intra_sentence_similarity": IntraSentenceSimilarity,
    "self_similarity": SelfSimilarity,
    "max_explainable_variance": MaxExplainableVariance,
    "max_explainable_variance_centred": partial(MaxExplainableVariance, definition="centred"),
}
CURVES = [
    "anisotropy/mean_cosine",
    *(f"{label}/{name}" for label in list(METRICS)[1:] for name in ("raw", "adjusted")),
]


class World:
    """Vectors in memory: common direction + word + document + sentence + noise, documents of `size` sentences."""

    n_layers = 1
    layer_numbers = (0,)

    def __init__(self, rng: np.random.Generator, *, n: int, size: int, words: np.ndarray) -> None:
        n_words, self.dim = words.shape
        lengths = rng.integers(4, 13, n)
        share = (np.arange(n_words) + 1) ** -0.7
        codes = rng.choice(n_words, lengths.sum(), p=share / share.sum())
        axes = np.linspace(1.5, 0.3, self.dim)
        documents = np.arange(n) // size
        of = (0.6 * rng.normal(size=(n, self.dim)) * axes)[documents] * (size > 1)
        own = rng.normal(size=(n, self.dim)) * axes * (0.4 if size > 1 else 0.7)
        where = np.repeat(np.arange(n), lengths)
        noise = 0.7 * rng.normal(size=(len(codes), self.dim))
        self.rows = (3 * np.eye(self.dim)[0] + words[codes] + (of + own)[where] + noise).astype(np.float32)
        self.vocabulary = [f"w{i}" for i in range(n_words)] + [f"s{i}" for i in range(n)]
        self.unit_codes, self.stored_of = codes.astype(np.int64), np.arange(n)
        self.offsets = np.concatenate([[0], np.cumsum(lengths)])
        texts = [[self.vocabulary[c] for c in part] for part in np.split(codes, self.offsets[1:-1])]
        sentences = tuple(Sentence.of([*words_of, f"s{i}"]) for i, words_of in enumerate(texts))  # no two are equal
        self.corpus = Corpus("planted", sentences, documents=tuple(documents.tolist()) if size > 1 else None)

    def layer(self, i: int) -> np.ndarray:
        return self.rows


@dataclass
class Pooled:
    """Sentence vectors of one layer in memory."""

    x: np.ndarray
    n_layers = 1
    layer_numbers = (0,)

    @property
    def dim(self) -> int:
        return int(self.x.shape[1])

    def layer(self, i: int) -> np.ndarray:
        return self.x.copy()


def of_words(
    rng: np.random.Generator, words: np.ndarray, *, n: int, size: int, bootstrap: int
) -> dict[str, tuple[float, float, float]]:
    """Each curve's value and interval on a fresh corpus."""
    world = World(rng, n=n, size=size, words=words)
    occurrences = Occurrences.of(world, world.corpus)
    rows = WordRows(world, occurrences, OnePerSentence(size=1000, redraws=0, exact=True))
    curves = measure([rows], METRICS, bootstrap=bootstrap).by_name
    return {key: (curves[key][0], curves[f"{key}_ci_low"][0], curves[f"{key}_ci_high"][0]) for key in CURVES}


class PlantedEncoder(Encoder):
    """The planted vectors of a world's sentences; their last words, which tell them apart, have none."""

    n_layers = 1

    def __init__(self, world: World) -> None:
        self.name, self.dim, starts = "planted", world.dim, world.offsets
        self.rows = {
            s.text: world.rows[a:b] for s, (a, b) in zip(world.corpus.sentences, pairwise(starts), strict=True)
        }

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        return (EncodedSentence(sentence.words[:-1], self.rows[sentence.text][None]) for sentence in batch)


def of_shards(
    rng: np.random.Generator, words: np.ndarray, *, n: int, size: int, bootstrap: int, shards: int
) -> dict[str, tuple[float, float, float]]:
    """Each curve that one pass gives, and its interval, on a fresh corpus."""
    from ctxexp_scale.one_pass.sharded import shard_text

    world = World(rng, n=n, size=size, words=words)
    options = ShardOptions(shards=shards, form=WordFilter().form, min_contexts=5)
    text = shard_text(world.corpus, options, Local(), Silent())
    metrics = dict(list(METRICS.items())[:3])
    study = Study(corpus=text, encoder=PlantedEncoder(world), metrics=metrics, bootstrap=bootstrap)
    with TemporaryDirectory() as own:
        curves = study.run(Vectors(cache=Path(own)), folder=Path(own)).by_name
    return {key: (curves[key][0], curves[f"{key}_ci_low"][0], curves[f"{key}_ci_high"][0]) for key in CURVES[:5]}


def of_pairs(rng: np.random.Generator, *, n: int, degree: int, bootstrap: int) -> dict[str, tuple[float, float, float]]:
    """STS on pairs of fresh sentences, each in `degree` of them: sentences of their own hardness, pairs of theirs."""
    x = rng.normal(size=(n, 12)) + 0.5
    ends = np.concatenate([rng.permutation(n).reshape(-1, 2) for _ in range(degree)])
    hard = rng.normal(size=n)
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosine = np.vecdot(u[ends[:, 0]], u[ends[:, 1]])
    gold = cosine + 0.15 * hard[ends].sum(axis=1) + 0.2 * rng.normal(size=len(ends))
    pairs = tuple(Pair(int(a), int(b), float(g)) for (a, b), g in zip(ends, gold, strict=True))
    corpus = Corpus("pairs", tuple(Sentence.of([f"s{i}"]) for i in range(n)), pairs)
    curves = measure([PairRows(Pooled(x.astype(np.float32)), corpus)], {"sts": STS}, bootstrap=bootstrap).by_name
    return {"sts": (curves["sts/all"][0], curves["sts/all_ci_low"][0], curves["sts/all_ci_high"][0])}


def coverage(draws: Sequence[dict[str, tuple[float, float, float]]]) -> dict[str, tuple[float, float]]:
    """Share of intervals that hold the mean value, and the intervals' mean width over the true one, by curve."""
    found = {}
    for key in draws[0]:
        value, low, high = np.array([draw[key] for draw in draws]).T
        truth, sd = value.mean(), value.std(ddof=1)
        held = (low <= truth) & (truth <= high)
        found[key] = float(held.mean()), float((high - low).mean() / (2 * 1.959964 * sd))
    return found


def main() -> None:
    logging.getLogger("ctxexp").setLevel(logging.ERROR)  # of 200 sentences 1,000 can't be drawn, rightly
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--bootstrap", type=int, default=500)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shards", type=int, default=0, help="and in one pass over so many (the plugin ctxexp-scale)")
    asked = parser.parse_args()
    words = 0.8 * np.random.default_rng([asked.seed, 0]).normal(size=(60, 24))
    columns: dict[str, dict[str, tuple[float, float]]] = {}
    for name, size in (("independent sentences", 1), ("documents of 2", 2), ("of 10", 10)):
        rngs = (np.random.default_rng([asked.seed, size, i]) for i in range(asked.replicates))
        columns[name] = coverage(
            [of_words(rng, words, n=asked.sentences, size=size, bootstrap=asked.bootstrap) for rng in rngs]
        )
        if asked.shards:
            rngs = (np.random.default_rng([asked.seed, size, i]) for i in range(asked.replicates))
            columns[f"{name}, {asked.shards} shards"] = coverage(
                [
                    of_shards(rng, words, n=asked.sentences, size=size, bootstrap=asked.bootstrap, shards=asked.shards)
                    for rng in rngs
                ]
            )
    print(f"| statistic | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for key in CURVES:
        cells = [f"{c[key][0]:.3f} ({c[key][1]:.2f})" if key in c else "" for c in columns.values()]
        print(f"| {key.replace('_', ' ')} | {' | '.join(cells)} |")
    for degree, said in ((1, "each sentence in one pair"), (5, "each sentence in five pairs")):
        rngs = (np.random.default_rng([asked.seed, 20 + degree, i]) for i in range(asked.replicates))
        n = 2 * asked.sentences if degree == 1 else asked.sentences
        held, width = coverage([of_pairs(rng, n=n, degree=degree, bootstrap=asked.bootstrap) for rng in rngs])["sts"]
        print(f"| STS Spearman, {said} | {held:.3f} ({width:.2f}) | | |")


if __name__ == "__main__":
    main()
