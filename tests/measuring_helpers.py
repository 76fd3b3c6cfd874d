"""Measuring in memory: stores of planted vectors, and metrics over their words or pairs without a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ctxexp import (
    Baseline,
    Corpus,
    EncodedSentence,
    Encoder,
    Group,
    GroupMean,
    Metric,
    Occurrences,
    Output,
    Pairs,
    Results,
    Sentence,
)
from ctxexp.groups import Gather, Place, WordReader
from ctxexp.measuring.pairs import PairVectors
from ctxexp.measuring.pairs import measure_pairs as measure_vectors
from ctxexp.measuring.record import Record
from ctxexp.measuring.word_rows import WordRows
from ctxexp.measuring.words import measure_words
from ctxexp.occurrences import Groups
from ctxexp.testing.metrics import numbers
from ctxexp.testing.transforms import MemoryRowIndex
from ctxexp.transforms import Calibration, transform_layers
from tests.shipped import (
    Anisotropy,
    IntraSentenceSimilarity,
    MaxExplainableVariance,
    OnePerSentence,
    SelfSimilarity,
    Uniform,
    WordNorm,
)

Factories = Mapping[str, Callable[[], Metric]]


def measure(
    store: Any,
    occurrences: Occurrences,
    metrics: Factories,
    baseline: Baseline | None = None,
    *,
    seed: int = 0,
    eps: float | None = None,
    block_bytes: int = 1 << 20,
    intervals: str = "new_text",
    observers: Mapping[str, Any] | None = None,
    **options: Any,
) -> Results:
    """The metrics over a store's words."""
    chance = baseline or OnePerSentence(exact=True)
    how = {"eps": eps, "block_bytes": block_bytes, "intervals": intervals, "observers": observers}
    how |= {"named_baseline": options.pop("named_baseline")} if "named_baseline" in options else {}
    rows = WordRows(store, occurrences, chance, seed=seed, **how)  # type: ignore[arg-type]
    progress, record = options.pop("progress", None), Record(metrics, seed=seed, **options)
    measure_words(rows, record, progress)
    return record.results()


def rows_by_key(groups: Groups) -> dict[Any, list[int]]:
    """Each group's rows."""
    ends = groups.starts[1:]
    return {key: groups.rows[a:b].tolist() for key, a, b in zip(groups.keys, groups.starts, ends, strict=False)}


def reader_of(layer: np.ndarray, occurrences: Occurrences, i: int = 0, block_bytes: int = 1 << 20) -> WordReader:
    """What reads a layer's rows (n, d) group by group."""
    return WordReader(Place.of(i), layer, occurrences, Gather(layer.shape[1], block_bytes))


def measure_pairs(
    vectors: Any,
    corpus: Corpus,
    metrics: Factories,
    *,
    seed: int = 0,
    bootstrap: int = 1000,
    transform: Any = None,
    **space: Any,
) -> Results:
    """The metrics over a corpus's gold pairs."""
    if transform:
        space["calibration"] = Calibration(transform, transform.__name__.lower())
    progress, folder = space.pop("progress", None), space.pop("folder", None)
    record = Record(metrics, seed=seed, bootstrap=bootstrap, folder=folder)
    measure_vectors(PairVectors(vectors, corpus, **space), record, progress)
    return record.results()


def calibrated(
    store: Any, occurrences: Occurrences, factory: Callable[[], Any], *, name: str = "transform", text: Any = None
) -> Any:
    """The store in the space of a transform."""
    return transform_layers(store, occurrences, Calibration(factory, name), text=text)


@dataclass(frozen=True)
class Sides:
    """A sub-set's pairs by their two sides, as tests make them."""

    x: np.ndarray  # (n, d)
    y: np.ndarray  # (n, d)
    gold: np.ndarray
    texts: Sequence[tuple[str, str]]
    ends: np.ndarray | None = None

    def group(self, subset: str) -> Group:
        """What a metric gets."""
        return Group(subset, np.stack([self.x, self.y], axis=1), pairs=Pairs(self.gold, self.texts, self.ends))


def computed(metric: Metric, rng: np.random.Generator | None = None, replicates: int = 0) -> dict[str, float]:
    """The statistics as numbers alone."""
    metric.resampling = rng or np.random.default_rng(0), replicates
    return numbers(metric.compute())


def row_index_of(corpus: Corpus) -> MemoryRowIndex:
    """Units laid out as a store lays them: each distinct sentence once, shortest first."""
    distinct = sorted({s.words for s in corpus.sentences}, key=lambda words: (len(words), words[::-1]))
    vocabulary = sorted({w for s in distinct for w in s}, reverse=True)
    number = {w: i for i, w in enumerate(vocabulary)}
    codes = np.array([number[w] for s in distinct for w in s], np.int32)
    offsets = np.cumsum([0, *(len(s) for s in distinct)])
    return MemoryRowIndex(vocabulary, codes, offsets, np.array([distinct.index(s.words) for s in corpus.sentences]))


DIM = 24


ALL: dict[str, Callable[[], Metric]] = {
    "self_similarity": SelfSimilarity,
    "intra_sentence_similarity": partial(IntraSentenceSimilarity, baselines=("run", "size_matched")),
    "mev": partial(MaxExplainableVariance, baselines=("run", "size_matched")),
    "mev_centred": partial(MaxExplainableVariance, definition="centred", baselines=("run", "size_matched")),
    "mev_released": partial(MaxExplainableVariance, definition="released", baselines=("run", "size_matched")),
    "anisotropy": Anisotropy,
    "word_norm": WordNorm,
}


class MemoryStore:
    """A store in memory: one array (n_rows, dim) a layer, and the index of its rows where a test reads it."""

    def __init__(self, layers: Any, row_index: MemoryRowIndex | None = None) -> None:
        self.layers, self.row_index = layers, row_index
        self.n_layers, self.dim = len(layers), layers[0].shape[1]
        self.layer_numbers = range(self.n_layers)

    def layer(self, i: int) -> Any:
        return self.layers[i]


def sentences(n: int = 250, *, seed: int = 0) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    return [
        [*[f"w{int(j)}" for j in rng.zipf(1.3, size=20) if j < 60][: rng.integers(2, 15)], f"s{i}"] for i in range(n)
    ]


def contextual(index: MemoryRowIndex, strength: float, *, seed: int = 1) -> np.ndarray:
    """Rows = common direction + word + `strength` x (sentence + noise)."""
    rng = np.random.default_rng(seed)
    word = rng.normal(size=(len(index.vocabulary), DIM))[index.unit_codes]
    n_rows, lengths = len(index.unit_codes), np.diff(index.offsets)
    sentence = np.repeat(rng.normal(size=(len(lengths), DIM)), lengths, axis=0)
    return (np.eye(DIM)[0] + word + strength * (sentence + rng.normal(size=(n_rows, DIM)))).astype(np.float32)


def world(strengths: Sequence[float] = (0.3, 1.0), **choices: object) -> tuple[MemoryStore, Occurrences, Corpus]:
    corpus = Corpus.of("world", sentences())
    index = row_index_of(corpus)
    store = MemoryStore([contextual(index, s) for s in strengths], index)
    return store, Occurrences.of(index, corpus, **choices), corpus  # type: ignore[arg-type]


def noise(*, lengths: Callable[[int], int] = lambda i: 2 + i % 12, dim: int = DIM) -> tuple[MemoryStore, Occurrences]:
    """Isotropic noise about a common mean: neither word nor sentence matters."""
    rng = np.random.default_rng(5)
    corpus = Corpus.of(
        "noise", [[*(f"w{int(j)}" for j in rng.integers(0, 90, lengths(i))), f"s{i}"] for i in range(500)]
    )
    index = row_index_of(corpus)
    layers = [(rng.normal(size=(len(index.unit_codes), dim)) + mean).astype(np.float32) for mean in (0.0, 0.5)]
    return MemoryStore(layers, index), Occurrences.of(index, corpus, keep=lambda u: u.startswith("w"))


@dataclass(frozen=True)
class TextFile(Output):
    name: str
    text: str

    def write(self, folder: Path) -> None:
        (folder / self.name).write_text(self.text, encoding="utf-8")


class Hashed(Encoder):
    """An encoder whose layer 0 knows the word alone, and whose layer 1 mixes in the sentence."""

    name, n_layers, dim = "hashed", 2, 16

    def in_context(self, words: np.ndarray) -> np.ndarray:
        """A sentence's words (n, dim), mixed."""
        return words + words.mean(axis=0)  # type: ignore[no-any-return]

    def encode(self, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
        for sentence in batch:
            words = np.stack([np.random.default_rng(list(w.encode())).normal(size=self.dim) for w in sentence.words])
            yield EncodedSentence(sentence.words, np.stack([words, self.in_context(words)]).astype(np.float32))


class Lengths(GroupMean):
    """The mean length of a group's rows."""

    over = "word"

    def score(self, x: np.ndarray) -> np.ndarray:
        return np.linalg.norm(x.astype(np.float64), axis=-1).mean(axis=-1)  # type: ignore[no-any-return]


def random_space(dtype: type = np.float32) -> tuple[MemoryStore, Occurrences]:
    """A random space with a common direction, whose full stops are not measured and whose first sentence repeats."""
    rng = np.random.default_rng(0)
    sentences = [[*rng.choice(list("abcdefg"), rng.integers(2, 8)), "."] for _ in range(60)]
    corpus = Corpus.of("c", [*sentences, sentences[0]])
    index = row_index_of(corpus)
    occurrences = Occurrences.of(index, corpus, min_contexts=5, keep=str.isalnum)
    layers = rng.normal(size=(3, len(index.unit_codes), 6)) * np.linspace(0.2, 3, 6) + 2
    return MemoryStore(layers.astype(dtype)), occurrences


def curves(space: Any, occurrences: Occurrences) -> Results:
    return measure(space, occurrences, METRICS, Uniform(size=50, redraws=3), seed=3, bootstrap=20)


def small(*sentences: list[str], min_contexts: int = 2) -> tuple[MemoryStore, Occurrences]:
    corpus = Corpus.of("small", sentences)
    index = row_index_of(corpus)
    return MemoryStore([contextual(index, 1.0)], index), Occurrences.of(index, corpus, min_contexts=min_contexts)


METRICS: dict[str, Callable[[], Metric]] = {
    "anisotropy": Anisotropy,
    "self_similarity": SelfSimilarity,
    "mev": MaxExplainableVariance,
    "word_norm": WordNorm,
}
