"""Controls: the same measures on shuffled text, or without the occurrences that are suspected to make a curve.

A control changes the corpus before it is encoded (shuffled), or leaves occurrences out of everything that is measured
after all of them were encoded (no_first, no_sinks): words, sentences and baselines then see the same rest.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from ctxexp.dataset import Corpus, Sense, Sentence
from ctxexp.errors import ConfigError, MetricError
from ctxexp.measuring.occurrences import Occurrences
from ctxexp.measuring.streams import Stream
from ctxexp.vectors.layers import Layers

log = logging.getLogger("ctxexp")

CHUNK_BYTES = 16 << 20  # rows whose norms are taken at a time


class Nothing:
    """No control: the text as it is, every occurrence measured."""

    name = "none"
    words = ""  # what labels and figures call the control

    def corpus(self, corpus: Corpus, seed: int) -> Corpus:
        """The corpus to encode."""
        return corpus

    def left_out(self, store: Layers, occurrences: Occurrences) -> np.ndarray | None:
        """(n_rows,) bool: the store's rows that are not measured; None for none. `occurrences` holds all of them."""
        return None


class Shuffled(Nothing):
    """Words in random places, sentence lengths and word counts unchanged: what is left has nothing to do with context.

    `how` contexts: all words of the corpus change places with each other, so that each stands in the context of other
    sentences. `how` order: the words of each sentence change places within it. Texts are the words joined by single
    spaces. Senses follow their word; pairs keep their gold similarity, so that correlations with it show the chance
    level under `contexts`, and what the order of words adds under `order`.
    """

    name = "shuffled"

    def __init__(self, *, how: Literal["contexts", "order"] = "contexts") -> None:
        self.how = how
        self.words = f"shuffled {how}"

    def corpus(self, corpus: Corpus, seed: int) -> Corpus:
        rng = np.random.default_rng([seed, Stream.SHUFFLE])
        lengths = np.array([len(s) for s in corpus.sentences], np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        source = np.arange(starts[-1])  # (n_words,): which word of the corpus stands at each place now
        for a, b in [(0, starts[-1])] if self.how == "contexts" else pairwise(starts):
            source[a:b] = rng.permutation(source[a:b])
        words = [word for sentence in corpus.sentences for word in sentence.words]
        sentences = tuple(Sentence.of(words[i] for i in source[a:b].tolist()) for a, b in pairwise(starts))
        place = np.empty_like(source)
        place[source] = np.arange(len(source))
        senses = []
        for sense in corpus.senses:
            at = int(place[starts[sense.sentence] + sense.position])
            # of the sentences that begin there, only the last has words
            sentence = int(np.searchsorted(starts, at, side="right")) - 1
            senses.append(Sense(sentence, at - int(starts[sentence]), sense.label))
        choices = {**corpus.choices, "control": self.words}
        return Corpus(corpus.name, sentences, corpus.pairs, tuple(senses), choices, corpus.documents)


class NoFirst(Nothing):
    """The `first` places of each sentence are encoded but not measured: a causal model's first word sees only itself,
    and may serve as an attention sink. Places count every unit that has a vector, punctuation included."""

    name = "no_first"

    def __init__(self, *, first: int = 1) -> None:
        if first < 1:
            raise ConfigError(
                f"control no_first needs first of at least 1 place, got {first}; control=none leaves all in"
            )
        self.first = first
        self.words = "no first word" if first == 1 else f"no first {first} words"

    def left_out(self, store: Layers, occurrences: Occurrences) -> np.ndarray | None:
        out: np.ndarray = occurrences.places < self.first
        return out


class NoSinks(Nothing):
    """Occurrences whose norm exceeds `factor` times the layer's median norm in any layer are not measured: attention
    sinks and massive activations. Median over the occurrences that would be measured, before any transform."""

    name = "no_sinks"

    def __init__(self, *, factor: float = 5.0) -> None:
        if not factor > 1:
            raise ConfigError(
                f"control no_sinks needs a factor above 1, got {factor}: half of all norms exceed the median"
            )
        self.factor = float(factor)
        self.words = f"no sinks above {self.factor:g} × median"

    def left_out(self, store: Layers, occurrences: Occurrences) -> np.ndarray | None:
        rows = np.unique(occurrences.by_sentence.rows)
        out = np.zeros(len(occurrences.places), bool)
        step = max(1, CHUNK_BYTES // (8 * store.dim))
        for i in range(store.n_layers):
            vectors = store.layer(i)
            squares = np.empty(len(rows))
            for a in range(0, len(rows), step):
                piece = vectors[rows[a : a + step]].astype(np.float64)
                squares[a : a + step] = np.einsum("nd,nd->n", piece, piece)
            norms = np.sqrt(squares)
            out[rows[norms > self.factor * np.median(norms)]] = True
        return out


CONTROLS: dict[str, Callable[..., Nothing]] = {
    "none": Nothing,
    "shuffled": Shuffled,
    "no_first": NoFirst,
    "no_sinks": NoSinks,
}


def control(node: dict[str, Any]) -> Nothing:
    """The control that a config's node names."""
    return CONTROLS[node["name"]](**{key: value for key, value in node.items() if key != "name"})


def controlled(
    store: Layers, index: Callable[..., Occurrences], chosen: Nothing, *, corpus: str
) -> tuple[Occurrences, int]:
    """The occurrences under the control, and how many it left out; `index` is `Occurrences.of` but for `measured`.

    Raises MetricError if nothing is left.
    """
    whole = index()
    out = chosen.left_out(store, whole)
    if out is None:
        return whole, 0
    n = int(out[whole.by_sentence.rows].sum())
    if n == whole.n_occurrences:
        raise MetricError(
            f"control {chosen.words!r} leaves nothing of corpus {corpus!r} to measure: all {n:,} occurrences are left "
            "out; choose a milder one"
        )
    rest = index(measured=~out)
    log.info(f"control {chosen.words!r}: {n:,} of {whole.n_occurrences:,} occurrences are not measured")
    return rest, n
