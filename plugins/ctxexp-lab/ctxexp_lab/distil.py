"""Sentence vectors from a table of static vectors: ways of making the table from a model, and what each costs.

`singly` follows model2vec (Tulkens & van Dongen 2024): each piece of the vocabulary is passed through the model by
itself, the vectors are reduced by PCA and weighted by a smooth inverse frequency that Zipf's law stands in for.
`mean` and `first_pc` follow Ethayarajh (2019, section 4.3.2): a word's vectors in a text. `input` is the model's own
embedding table, `random` a normal vector each, the control that knows which pieces a sentence has and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ctxexp_measures.words.directions import first_directions

from ctxexp import Sentence
from ctxexp.maths import interval, resamples, spearman

WAYS = ("singly", "mean", "first_pc", "input", "random")
SIF = 1e-4  # of the weights a / (a + p), model2vec's default
ROWS = 64


@dataclass(frozen=True)
class StaticTable:
    """A vector (n, d) float32 of each token, and how a sentence is told in tokens."""

    tokens: Mapping[str, int]
    vectors: np.ndarray
    split: Callable[[Sequence[Sentence]], list[list[str]]]

    def sentences(self, sentences: Sequence[Sentence]) -> np.ndarray:
        """(n, d) the mean of each sentence's token vectors; tokens without one are left out, NaN where none has one."""
        result = np.full((len(sentences), self.vectors.shape[1]), np.nan)
        for i, tokens in enumerate(self.split(sentences)):
            rows = [self.tokens[token] for token in tokens if token in self.tokens]
            if rows:
                result[i] = self.vectors[rows].mean(axis=0, dtype=np.float64)
        return result


@dataclass(frozen=True)
class DistilledScore:
    """Cost and quality of a way of making sentence vectors.

    `bytes_kept` float32 of weights or table; `words_per_second` of making sentence vectors, tokenizer included, on one
    machine at one time; `spearman` x 100 with people's scores; `low`, `high` its 95% interval over pairs; `kept` the
    share of the model's own, with `kept_low` and `kept_high` over the same resamples; `covered` pairs with vectors.
    """

    way: str
    bytes_kept: int
    words_per_second: float
    spearman: float
    low: float
    high: float
    kept: float
    kept_low: float
    kept_high: float
    covered: float


def zipf_weights(n: int, *, coefficient: float = SIF) -> np.ndarray:
    """(n,) weights a / (a + p) of tokens by their rank r, p proportional to 1 / (r + 2), as model2vec has them.

    Example:
        >>> zipf_weights(3, coefficient=1.0).round(3).tolist()
        [0.684, 0.765, 0.812]
    """
    inverse = 1 / np.arange(2, n + 2)
    weights: np.ndarray = coefficient / (coefficient + inverse / inverse.sum())
    return weights


def principal_components(x: np.ndarray, k: int | None) -> np.ndarray:
    """(n, min(k, d)) float64 the centred rows on their first k principal components; all of them with k None."""
    centred = x.astype(np.float64) - x.mean(axis=0, dtype=np.float64)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    axes: np.ndarray = vectors[:, np.argsort(-values)][:, : x.shape[1] if k is None else k]
    projected: np.ndarray = centred @ axes
    return projected


def post_process(x: np.ndarray, *, components: int | None = 256, coefficient: float | None = SIF) -> np.ndarray:
    """The table that model2vec makes of its tokens' vectors (n, d), in the order of the vocabulary: float32."""
    reduced = principal_components(x, components)
    if coefficient is not None:
        reduced *= zipf_weights(len(x), coefficient=coefficient)[:, None]
    return reduced.astype(np.float32)


def occurrence_table(encoded: Sequence[tuple[Sequence[str], np.ndarray]], *, first_pc: bool) -> dict[str, np.ndarray]:
    """The mean, or first principal direction, of each word's rows: of sentences' words with their vectors (n, d)."""
    rows: dict[str, list[np.ndarray]] = {}
    for words, vectors in encoded:
        for word, vector in zip(words, vectors, strict=True):
            rows.setdefault(word, []).append(vector)
    if first_pc:
        means = {word: first_directions(np.stack(some)[None])[0] for word, some in rows.items()}
    else:
        means = {word: np.mean(some, axis=0, dtype=np.float64) for word, some in rows.items()}
    return {word: vector for word, vector in means.items() if np.isfinite(vector).all()}


def pair_cosines(vectors: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """(m,) cosines of the sentences that the pairs (m, 2) name; NaN where one has no vector."""
    norm = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    u = np.divide(vectors, norm, out=np.full(vectors.shape, np.nan), where=norm > 0)
    cosines: np.ndarray = np.vecdot(u[pairs[:, 0]], u[pairs[:, 1]])
    return cosines


def scores(
    ways: Mapping[str, tuple[np.ndarray, int, float]], gold: np.ndarray, *, replicates: int, seed: int
) -> list[DistilledScore]:
    """A score a way, of its pairs' cosines (m,), bytes and words a second; the first is the model that others are
    held against. Correlations of a way are over the pairs that it covers."""
    counts = np.concatenate(
        [*resamples([len(gold)], replicates, np.random.default_rng(seed)), np.empty((0, len(gold)))]
    )
    result: list[DistilledScore] = []
    own: tuple[float, np.ndarray] | None = None
    for way, (cosines, size, speed) in ways.items():
        is_covered = np.isfinite(cosines)
        value = 100 * spearman(cosines[is_covered], gold[is_covered])
        draws = np.array([_resampled(cosines, gold, row) for row in counts])
        own = own or (value, draws)
        (low, kept_low), (high, kept_high) = interval(np.array([draws, draws / own[1]]))
        result.append(
            DistilledScore(way, size, speed, value, float(low), float(high), value / own[0], float(kept_low),
                           float(kept_high), float(is_covered.mean()))
        )  # fmt: skip
    return result


def _resampled(cosines: np.ndarray, gold: np.ndarray, counts: np.ndarray) -> float:
    times = np.where(np.isfinite(cosines), counts, 0).astype(int)
    return 100 * spearman(np.repeat(cosines, times), np.repeat(gold, times))


def timed(function: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    """The function's value, and the seconds that it took."""
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def mean_vectors(network: Any, tokenizer: Any, texts: Sequence[str], longest: int) -> np.ndarray:
    """(n, d) float32 the mean over each text's pieces, special ones included, of the network's last layer."""
    import torch

    parts: list[tuple[np.ndarray, np.ndarray]] = []
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    for start in range(0, len(order), ROWS):
        some = order[start : start + ROWS]
        read = tokenizer(
            [texts[i] for i in some], padding=True, truncation=True, max_length=longest, return_tensors="pt"
        )
        with torch.inference_mode():
            hidden = network(input_ids=read["input_ids"], attention_mask=read["attention_mask"]).last_hidden_state
        mask = read["attention_mask"][:, :, None].float()
        parts.append((np.array(some), ((hidden * mask).sum(1) / mask.sum(1)).numpy()))
    result = np.empty((len(texts), parts[0][1].shape[1]), np.float32)
    for at, vectors in parts:
        result[at] = vectors
    return result
