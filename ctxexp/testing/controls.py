"""Laws of controls: the given text stays unchanged, gold follows its words, the same seed gives the same text."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable

import numpy as np

from ctxexp.control import Control
from ctxexp.dataset import Corpus, Pair, Sense, Sentence
from ctxexp.datasets.checks import check_corpus
from ctxexp.measuring.occurrences import Occurrences
from ctxexp.models.word_vectors import random_words
from ctxexp.testing.baselines import row_index
from ctxexp.testing.report import Breach, Report, subject_label
from ctxexp.vectors.layers import MemoryLayers

ROWS_DIM = 8


def check_control(make: Callable[[], Control], *, name: str = "") -> Report:
    """The laws of `ctxexp.Control`; raises ConformanceError naming each that is broken."""
    report = Report(name or subject_label("control", make))
    with report.law("interface"):
        _interface(make())
    if report.failures:
        return report.conclude()
    text = _text()
    with report.law("the text that it is given stays as it is"):
        before = copy.deepcopy(text)
        make().corpus(text, 0)
        if (text, text.content, text.choices) != (before, before.content, before.choices):
            raise Breach("corpus() changes the corpus that it is given; build a new one")
    with report.law("a corpus"):
        other = make().corpus(text, 0)
        if not isinstance(other, Corpus):
            raise Breach(
                f"corpus() gave {type(other).__name__}; expected a Corpus, the given one where nothing changes"
            )
        check_corpus(other)
    if report.failures:
        return report.conclude()
    with report.law("the same seed gives the same text"):
        if make().corpus(text, 1) != make().corpus(text, 1):
            raise Breach("two of it give other texts for one seed: draw from a generator of the seed that is passed")
    with report.law("gold follows its words and sentences"):
        _gold(text, other)
    with report.law("another encoder has a name of its own, and the same shape"):
        model = random_words(dim=ROWS_DIM)
        encoder = make().encoder(model)
        if encoder is not model and encoder.name == model.name:  # or the cache would take one's vectors for the other's
            raise Breach(f"encoder() gave another encoder of the same name, {model.name!r}")
        if (encoder.n_layers, encoder.dim) != (model.n_layers, model.dim):
            raise Breach("encoder() gave one of other layers or width")
    out = _left_out(make, report, text)
    with report.law("its label names what it does"):
        if (other != text or out) and not make().label.strip():
            raise Breach("it changes what is measured, but `label` is empty: labels and figures wouldn't say so")
    changed = sum(a != b for a, b in zip(text.sentences, other.sentences, strict=False))
    report.notes.append(
        f"of {len(text.sentences)} sentences {changed} are others; {out} of {text.n_words} rows left out"
    )
    return report.conclude()


def _interface(control: Control) -> None:
    if not isinstance(control, Control):
        raise Breach(f"expected a ctxexp.Control, got {type(control).__name__}")
    for key, text in (("name", control.name), ("label", control.label)):
        if not isinstance(text, str):
            raise Breach(f"{key} is {text!r}; expected a text")


def _text() -> Corpus:
    """Sentences of unlike length, one of them empty, one twice, with senses, pairs and documents."""
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(12)]
    lists = [[*rng.choice(words, rng.integers(1, 9)), "."] for _ in range(60)]
    lists[7], lists[9] = [], lists[8]
    senses = tuple(Sense(i, i % len(s), f"{s[i % len(s)]} in one sense") for i, s in enumerate(lists) if s)
    pairs = tuple(Pair(i, i + 1, float(i)) for i in range(0, 58, 2))
    documents = tuple(i // 6 for i in range(60))
    sentences = tuple(Sentence.of(map(str, s)) for s in lists)
    return Corpus("of the kit", sentences, pairs, senses, {"tokenizer": "none"}, documents)


def _gold(text: Corpus, other: Corpus) -> None:
    """Senses are of words that had them; pairs keep their gold."""

    def senses(corpus: Corpus) -> Counter[tuple[str, str]]:
        return Counter((corpus.sentences[s.sentence].words[s.position].casefold(), s.label) for s in corpus.senses)

    if strange := senses(other) - senses(text):
        word, label = next(iter(strange))
        raise Breach(f"the sense {label!r} is of the word {word!r} now, which it wasn't: senses follow their word")
    if Counter(p.gold for p in other.pairs) - Counter(p.gold for p in text.pairs):
        raise Breach("a pair has another gold value, or is there twice")
    if len(other.sentences) == len(text.sentences) and [(p.first, p.second) for p in other.pairs] != [
        (p.first, p.second) for p in text.pairs
    ]:
        raise Breach("the sentences are as many as before, but pairs point to others")


def _left_out(make: Callable[[], Control], report: Report, text: Corpus) -> int:
    """Check the laws of leaving out, and return the number of rows that the control leaves out of the kit's text."""
    index, rng = row_index(text), np.random.default_rng(1)
    vectors = rng.normal(size=(3, len(index.unit_codes), ROWS_DIM)).astype(np.float32)
    vectors[1, ::17] *= 40  # some rows of extreme norm
    occurrences, store = Occurrences.of(index, text, min_contexts=2), MemoryLayers(vectors)
    n = len(occurrences.places)
    masks: list[np.ndarray | None] = []
    with report.law("a bool a row"):
        masks.append(make().left_out(store, occurrences))
        out = masks[0]
        if out is not None and not (isinstance(out, np.ndarray) and out.dtype == bool and out.shape == (n,)):
            got = f"{out.dtype} of shape {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
            raise Breach(
                f"left_out() gave {got}; expected None, or bool of shape ({n},): a row each, not their numbers"
            )
    if not masks or "a bool a row" in report.failures:
        return 0
    out = np.zeros(n, bool) if masks[0] is None else masks[0]
    with report.law("the same rows again"):
        again = make().left_out(store, occurrences)
        if not np.array_equal(out, np.zeros(n, bool) if again is None else again):
            raise Breach("asked a second time it leaves out other rows: nothing in it may be drawn or counted on")
    with report.law("vectors and occurrences stay as they are"):
        fresh = Occurrences.of(index, text, min_contexts=2)
        pairs = (fresh.places, occurrences.places), (fresh.by_sentence.rows, occurrences.by_sentence.rows)
        if not all(np.array_equal(*pair) for pair in pairs):
            raise Breach("left_out() changes the occurrences that it is given; work on a copy")
    with report.law("something is left"):
        if out[occurrences.by_sentence.rows].all():
            raise Breach("it leaves out every occurrence of 60 short sentences: True is for what is not measured")
    return int(out.sum())
