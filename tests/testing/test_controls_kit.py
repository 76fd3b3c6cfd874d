"""The kit fails controls with a planted bug, and says the cause."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from ctxexp import Control, Corpus, Encoder, Sentence
from ctxexp.controls import WordsAlone
from ctxexp.testing import check
from tests.laws import fails
from tests.shipped import Shuffled


class Upper(Control):
    """A sound one: the text in capitals, without the third place of a sentence."""

    name = "upper"

    def corpus(self, corpus: Corpus, seed: int) -> Corpus:
        return replace(corpus, sentences=tuple(Sentence.of(w.upper() for w in s.words) for s in corpus.sentences))

    def left_out(self, store: Any, occurrences: Any) -> np.ndarray:
        out: np.ndarray = occurrences.places == 2
        return out


def mutant(**members: Any) -> type[Upper]:
    return type("Mutant", (Upper,), members)


def _notes_itself(self: Upper, corpus: Corpus, seed: int) -> Corpus:
    corpus.choices["control"] = "upper"
    return corpus


def _own_generator(self: Upper, corpus: Corpus, seed: int) -> Corpus:
    return Shuffled().corpus(corpus, int(np.random.default_rng().integers(1 << 30)))


def _senses_stay(self: Upper, corpus: Corpus, seed: int) -> Corpus:
    return replace(Shuffled(how="order").corpus(corpus, seed), senses=corpus.senses)


def _pairs_turn(self: Upper, corpus: Corpus, seed: int) -> Corpus:
    last = len(corpus.sentences) - 1
    return replace(corpus, pairs=tuple(replace(pair, first=last - pair.first) for pair in corpus.pairs))


def _gold_twice(self: Upper, corpus: Corpus, seed: int) -> Corpus:
    return replace(corpus, pairs=(*corpus.pairs, corpus.pairs[0]))


def _torn(self: Upper, corpus: Corpus, seed: int) -> Corpus:
    return replace(corpus, sentences=corpus.sentences[:3], documents=None)


def _numbers(self: Upper, store: Any, occurrences: Any) -> np.ndarray:
    return np.flatnonzero(occurrences.places == 2)


def _measured_only(self: Upper, store: Any, occurrences: Any) -> np.ndarray:
    return np.zeros(len(occurrences.by_sentence.rows) - 1, bool)


def _counts(self: Upper, store: Any, occurrences: Any, calls: Any = count(1)) -> np.ndarray:  # noqa: B008  # shared on purpose
    return np.asarray(occurrences.places == next(calls))


def _writes(self: Upper, store: Any, occurrences: Any) -> None:
    store.layer(0)[:] = 0


def _sorts(self: Upper, store: Any, occurrences: Any) -> None:
    occurrences.places.sort()


def _upside_down(self: Upper, store: Any, occurrences: Any) -> np.ndarray:
    return np.ones(len(occurrences.places), bool)


def _nameless(self: Upper, encoder: Encoder) -> Encoder:
    alone = WordsAlone(encoder)
    alone.name = encoder.name
    return alone


def test_a_sound_control_passes() -> None:
    report = check("control", Upper)
    assert len(report.passed) == 11
    assert "of 60 sentences 59 are others" in report.notes[0]


@pytest.mark.parametrize(
    ("make", "law", "cause"),
    [
        (dict, "interface", "expected a ctxexp.Control, got dict"),
        (mutant(label=None), "interface", "label is None; expected a text"),
        (mutant(corpus=_notes_itself), "the text that it is given stays as it is", "corpus() changes the corpus"),
        (mutant(corpus=lambda self, corpus, seed: corpus.sentences), "a corpus", "corpus() gave tuple; expected a"),
        (mutant(corpus=_torn), "a corpus", "points outside the 3 sentences"),
        (mutant(corpus=_own_generator), "the same seed gives the same text", "draw from a generator of the seed"),
        (mutant(corpus=_senses_stay), "gold follows its words and sentences", "senses follow their word"),
        (mutant(corpus=_pairs_turn), "gold follows its words and sentences", "pairs point to others"),
        (mutant(corpus=_gold_twice), "gold follows its words and sentences", "another gold value, or is there twice"),
        (mutant(label=""), "its label names what it does", "labels and figures wouldn't say so"),
        (mutant(encoder=_nameless), "another encoder has a name of its own, and the same shape", "of the same name"),
        (mutant(left_out=_numbers), "a bool a row", "left_out() gave int64 of shape ("),
        (mutant(left_out=_measured_only), "a bool a row", "a row each, not their numbers"),
        (mutant(left_out=_writes), "a bool a row", "read-only"),
        (mutant(left_out=_counts), "the same rows again", "asked a second time it leaves out other rows"),
        (mutant(left_out=_sorts), "vectors and occurrences stay as they are", "left_out() changes the occurrences"),
        (mutant(left_out=_upside_down), "something is left", "True is for what is not measured"),
    ],
)
def test_controls_with_a_bug(make: Any, law: str, cause: str) -> None:
    fails("control", make, law, cause)
