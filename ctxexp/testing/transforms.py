"""Laws of what stands between vectors and metrics. Transforms: each row is mapped by itself, whatever the chunks and
the order of rows. Controls: the given text stays unchanged, gold follows its words. Baselines: rows are distinct and
measured. The same seed gives the same of each.
"""

from __future__ import annotations

import copy
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ctxexp.baselines import Baseline
from ctxexp.controls import Control
from ctxexp.dataset import Corpus, Pair, Sense, Sentence, check_corpus
from ctxexp.errors import TransformError
from ctxexp.models.word_vectors import random_words
from ctxexp.occurrences import MemoryLayers, Occurrences
from ctxexp.testing.report import Breach, Report, subject_label
from ctxexp.transforms import Calibration, Transform

ROWS = (200, 1000)  # of 8 columns; the second for a transform that refuses the first as too few to learn from
ROWS_DIM = 8


def check_transform(make: Callable[[], Transform], *, name: str = "") -> Report:
    """The laws of `ctxexp.Transform`; raises ConformanceError naming each that is broken. `make` builds one per
    layer.

    Example:
        >>> from ctxexp.command import registry
        >>> check_transform(registry().find("transform", "center").factory).failures
        {}
    """
    report = Report(name or subject_label("transform", make))
    rng = np.random.default_rng(0)
    x = _rows(make, ROWS[0])
    with report.law("shape and type"):
        _shape(make, x)
    if report.failures:
        return report.conclude()
    whole = make().fit(x).apply(x)
    with report.law("each row by itself"):
        fitted, order = make().fit(x), rng.permutation(len(x))
        parts = np.concatenate([fitted.apply(x[a : a + 7]) for a in range(0, len(x), 7)])
        if not _close(parts, whole) or not _close(fitted.apply(x[order]), whole[order]):
            raise Breach("rows in pieces, or in another order, come out differently: statistics belong in fit()")
    with report.law("fit forgets the order of the rows"):
        if not _close(make().fit(x[::-1].copy()).apply(x), whole):
            raise Breach("fitted on the same rows in another order it maps them elsewhere")
    with report.law("fit starts anew"):
        if not _close(make().fit(x * 3 + 1).fit(x).apply(x), whole):
            raise Breach("fitted a second time it still knows the first rows")
    with report.law("lent memory"):
        copy = x.copy()
        make().fit(copy).apply(copy)
        if not np.array_equal(copy, x):
            raise Breach("it changes the rows that it is given; work on a copy")
    with report.law("statistics in float64"):
        near, far = x + np.float32(2), x + np.float32(4096)  # both exact: x is a multiple of 1/512
        if _close(make().fit(near).apply(near), whole) and not _close(make().fit(far).apply(far), whole):
            raise Breach("far from the origin it loses digits: take means and variances in float64")
    with report.law("degenerate layers"):
        for what, few in (
            ("one row", x[:1]),
            ("identical rows", np.repeat(x[:1], 5, axis=0)),
            ("a constant column", np.where(np.arange(8) == 3, np.float32(0.1), x)),
            ("zeros", np.zeros((5, 8), np.float32)),
        ):
            try:
                y = make().fit(few).apply(few)
            except TransformError as refusal:
                report.notes.append(f"it refuses a layer with {what}: {refusal}")
                continue
            if not np.isfinite(y).all():
                raise Breach(f"a layer with {what} gives NaN or infinite values; where there is no spread give 0")
    return report.conclude()


def _rows(make: Callable[[], Transform], n: int) -> np.ndarray:
    """n rows of 8 columns, multiples of 1/512; more of them where the transform refuses so few."""
    x = np.random.default_rng(0).normal(size=(n, 8)) + 1
    x = (np.round(x * np.linspace(0.1, 5, 8) * 512) / 512).astype(np.float32)
    try:
        make().fit(x)
    except TransformError:
        return x if n == ROWS[1] else _rows(make, ROWS[1])
    except Exception:  # the first law says what is wrong
        return x
    return x


def _shape(make: Callable[[], Transform], x: np.ndarray) -> None:
    width = Calibration(make).width(x.shape[1])  # refuses what is no transform
    fitted: object = make().fit(x)
    if not isinstance(fitted, Transform):
        raise Breach(f"fit() gave {type(fitted).__name__}; end it with `return self`")
    y: object = fitted.apply(x[:5])
    if not isinstance(y, np.ndarray) or y.shape != (5, width) or y.dtype != np.float32:
        got = f"{y.dtype} {y.shape}" if isinstance(y, np.ndarray) else type(y).__name__
        raise Breach(f"apply() of a float32 (5, {x.shape[1]}) gave {got}; expected float32 (5, {width})")


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-4, atol=1e-4 * float(np.abs(b).max() + 1e-12)))


def check_control(make: Callable[[], Control], *, name: str = "") -> Report:
    """The laws of `ctxexp.Control`; raises ConformanceError naming each that is broken.

    Example:
        >>> from ctxexp.command import registry
        >>> check_control(registry().find("control", "shuffled").factory).failures
        {}
    """
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


def check_baseline(make: Callable[[], Baseline], *, name: str = "") -> Report:
    """The laws of `ctxexp.Baseline`; raises ConformanceError naming each that is broken.

    Example:
        >>> from ctxexp.command import registry
        >>> check_baseline(registry().find("baseline", "one_per_sentence").factory).failures
        {}
    """
    report = Report(name or subject_label("baseline", make))
    large, small = _occurrences(1500), _occurrences(6)
    quiet = logging.getLogger("ctxexp")
    level = quiet.level
    quiet.setLevel(logging.ERROR)  # a small corpus is warned about, rightly
    try:
        with report.law("interface"):
            if not isinstance(baseline := make(), Baseline) or not isinstance(baseline.name, str) or not baseline.name:
                raise Breach("expected a ctxexp.Baseline with a name and groups(occurrences, rng)")
        if report.failures:
            return report.conclude()
        for what, occurrences in (("1,500 sentences", large), ("6 sentences", small)):
            with report.law(f"distinct, measured rows ({what})"):
                _drawn_rows(make, occurrences)
        with report.law("seeded"):
            _seeded(make, large)
    finally:
        quiet.setLevel(level)
    return report.conclude()


def _occurrences(n: int) -> Occurrences:
    rng = np.random.default_rng(n)
    words = [f"w{i}" for i in range(40)] + ["."] * 8
    lists = [[f"s{i}", *rng.choice(words, rng.integers(1, 12))] for i in range(n)]
    corpus = Corpus.of("of the kit", lists)
    return Occurrences.of(row_index(corpus), corpus, min_contexts=2, keep=str.isalnum)


def _draw(make: Callable[[], Baseline], occurrences: Occurrences, seed: int) -> list[np.ndarray]:
    return [np.asarray(rows) for rows in make().groups(occurrences, np.random.default_rng(seed))]


def _drawn_rows(make: Callable[[], Baseline], occurrences: Occurrences) -> None:
    groups, measured_rows = _draw(make, occurrences, 0), occurrences.by_sentence.rows
    if not groups:
        raise Breach("groups() yields nothing; the first group is the baseline, the others are redraws")
    for i, rows in enumerate(groups):
        if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer) or len(rows) < 2:
            raise Breach(f"group {i} is {rows.dtype} of shape {rows.shape}; expected two or more row numbers")
        if len(np.unique(rows)) != len(rows):
            raise Breach(f"group {i} has a row twice: an occurrence would meet itself; draw without replacement")
        strange = rows[~np.isin(rows, measured_rows)]
        if len(strange):
            raise Breach(
                f"group {i} has row {strange[0]}, which isn't measured: take rows from occurrences.distinct, not from "
                "a range"
            )


def _seeded(make: Callable[[], Baseline], occurrences: Occurrences) -> None:
    first, again, other = (_draw(make, occurrences, seed) for seed in (0, 0, 1))
    if len(first) != len(again) or not all(map(np.array_equal, first, again)):
        raise Breach("the same generator gives other rows: draw from rng only")
    if all(map(np.array_equal, first, other)):
        raise Breach("another seed gives the same rows: draw from the rng that is passed")


@dataclass(frozen=True)
class MemoryRowIndex:
    """The unit of each row: `vocabulary[unit_codes[row]]`; the rows of sentence i lie from `offsets[i]` on."""

    vocabulary: list[str]
    unit_codes: np.ndarray
    offsets: np.ndarray
    stored_of: np.ndarray


def row_index(corpus: Corpus) -> MemoryRowIndex:
    """The index of a store with one row for each word of the corpus, in its order."""
    lists = [sentence.words for sentence in corpus.sentences]
    vocabulary = sorted({w for words in lists for w in words})
    code = {w: i for i, w in enumerate(vocabulary)}
    codes = np.array([code[w] for words in lists for w in words], np.int32)
    return MemoryRowIndex(vocabulary, codes, np.cumsum([0, *map(len, lists)]), np.arange(len(lists)))
