"""Shuffled text: an effect that remains is not due to context, or not to word order."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, pairwise
from typing import Literal

import numpy as np

from ctxexp.control import Control
from ctxexp.dataset import Corpus, Sense, Sentence
from ctxexp.measuring.streams import Stream


class Shuffled(Control):
    """Words at random positions; sentence lengths and word frequencies are unchanged.

    `how` contexts: all words of the corpus are permuted, so that each stands in a context of random words: effects that
    remain are not due to context. `how` order: the words of each sentence are permuted within it: effects that remain
    are not due to word order, but may be due to the other words of the sentence. Texts are the words joined by single
    spaces. Senses and tags follow their word. Pairs keep their gold similarity: correlations with it are at chance
    level under `contexts`; under `order` they show how much similarity remains without word order.
    """

    name = "shuffled"

    def __init__(self, *, how: Literal["contexts", "order"] = "contexts") -> None:
        self.how = how
        self.label = f"shuffled {how}"

    def corpus(self, corpus: Corpus, seed: int) -> Corpus:
        rng = np.random.default_rng([seed, Stream.SHUFFLE])
        lengths = np.array([len(s) for s in corpus.sentences], np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        source = np.arange(starts[-1])  # (n_words,) index of the word that moves to each position
        for a, b in [(0, starts[-1])] if self.how == "contexts" else pairwise(starts):
            source[a:b] = rng.permutation(source[a:b])
        words = [word for sentence in corpus.sentences for word in sentence.words]
        sentences = tuple(Sentence.of(words[i] for i in source[a:b].tolist()) for a, b in pairwise(starts))
        position_of = np.empty_like(source)  # (n_words,) its inverse: position that each word moves to
        position_of[source] = np.arange(len(source))
        senses = []
        for sense in corpus.senses:
            at = int(position_of[starts[sense.sentence] + sense.position])
            # of the sentences that begin there, only the last has words
            sentence = int(np.searchsorted(starts, at, side="right")) - 1
            senses.append(Sense(sentence, at - int(starts[sentence]), sense.label))
        tags = {}
        for kind, by_sentence in corpus.tags.items():
            flat = list(chain.from_iterable(by_sentence))
            tags[kind] = tuple(tuple(flat[i] for i in source[a:b].tolist()) for a, b in pairwise(starts))
        choices = {**corpus.choices, "control": self.label}
        return replace(corpus, sentences=sentences, senses=tuple(senses), choices=choices, tags=tags)
