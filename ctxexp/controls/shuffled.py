"""Shuffled text: an effect that remains is not due to context."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, pairwise
from typing import Literal

import numpy as np

from ctxexp.control import Control
from ctxexp.dataset import Corpus, Sense, Sentence
from ctxexp.measuring.streams import Stream


class Shuffled(Control):
    """Words in random places, sentence lengths and word counts unchanged: remaining effects are not due to context.

    `how` contexts: all words of the corpus change places with each other, so that each stands in the context of other
    sentences. `how` order: the words of each sentence change places within it. Texts are the words joined by single
    spaces. Senses and tags follow their word; pairs keep their gold similarity, so that correlations with it show the
    chance level under `contexts`, and what the order of words adds under `order`.
    """

    name = "shuffled"

    def __init__(self, *, how: Literal["contexts", "order"] = "contexts") -> None:
        self.how = how
        self.label = f"shuffled {how}"

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
        tags = {}
        for kind, of in corpus.tags.items():
            flat = list(chain.from_iterable(of))
            tags[kind] = tuple(tuple(flat[i] for i in source[a:b].tolist()) for a, b in pairwise(starts))
        choices = {**corpus.choices, "control": self.label}
        return replace(corpus, sentences=sentences, senses=tuple(senses), choices=choices, tags=tags)
