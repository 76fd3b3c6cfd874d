"""Laws of transforms, controls and baselines."""

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
from ctxexp.measuring.baseline_levels import random_groups
from ctxexp.models.word_vectors import random_words
from ctxexp.occurrences import MemoryLayers, Occurrences
from ctxexp.testing.report import Breach, Report, report_on, require
from ctxexp.transforms import Calibration, Transform

ROWS = (200, 1000)  # of 8 columns; the second for a transform that refuses the first as too few to learn from
DIM = 8


def check_transform(make: Callable[[], Transform], *, name: str = "") -> Report:
    """The laws of `ctxexp.Transform`; raises ConformanceError naming each that is broken. `make` builds one per
    layer.
    """
    rows = _Rows(make, _rows(make, ROWS[0]))
    laws = each_row_by_itself, fit_forgets_all_but_the_rows, statistics_in_float64, degenerate_layers
    return report_on("transform", make, name).check(rows, a_run_takes_it).check(rows, *laws)


@dataclass
class _Rows:
    """A transform's factory, and rows to try its transforms on."""

    make: Callable[[], Transform]
    x: np.ndarray

    def fit_apply(self, x: np.ndarray) -> np.ndarray:
        """The rows, mapped by a transform that was fitted on them."""
        return self.make().fit(x).apply(x)


def _rows(make: Callable[[], Transform], n: int) -> np.ndarray:
    """n rows of 8 columns, multiples of 1/512; more of them where the transform refuses so few."""
    x = np.random.default_rng(0).normal(size=(n, DIM)) + 1
    x = (np.round(x * np.linspace(0.1, 5, DIM) * 512) / 512).astype(np.float32)
    try:
        make().fit(x)
    except TransformError:
        return x if n == ROWS[1] else _rows(make, ROWS[1])
    except Exception:  # the first law says what is wrong
        return x
    return x


def a_run_takes_it(rows: _Rows) -> None:
    """Its fit, width and result are what a run takes; neither changes the rows that it is given."""
    calibration = Calibration(rows.make)
    calibration.apply(calibration.fit(rows.x, "the kit's rows"), rows.x[:5].copy(), "the kit's rows")


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-4, atol=1e-4 * float(np.abs(b).max() + 1e-12)))


def each_row_by_itself(rows: _Rows) -> None:
    x, whole = rows.x, rows.fit_apply(rows.x)
    fitted, order = rows.make().fit(x), np.random.default_rng(0).permutation(len(x))
    parts = np.concatenate([fitted.apply(x[a : a + 7]) for a in range(0, len(x), 7)])
    alike = _close(parts, whole) and _close(fitted.apply(x[order]), whole[order])
    require(alike, "rows in pieces, or in another order, come out differently: statistics belong in fit()")


def fit_forgets_all_but_the_rows(rows: _Rows) -> None:
    x, whole = rows.x, rows.fit_apply(rows.x)
    turned = rows.make().fit(x[::-1].copy()).apply(x)
    require(_close(turned, whole), "fitted on the same rows in another order it maps them elsewhere")
    again = rows.make().fit(x * 3 + 1).fit(x).apply(x)
    require(_close(again, whole), "fitted a second time it still knows the first rows")


def statistics_in_float64(rows: _Rows) -> None:
    whole = rows.fit_apply(rows.x)
    near, far = (rows.fit_apply(rows.x + np.float32(by)) for by in (2, 4096))  # both exact: x is a multiple of 1/512
    lost = _close(near, whole) and not _close(far, whole)
    require(not lost, "far from the origin it loses digits: take means and variances in float64")


def degenerate_layers(rows: _Rows) -> str | None:
    refused = ""
    for what, few in (
        ("one row", rows.x[:1]),
        ("identical rows", np.repeat(rows.x[:1], 5, axis=0)),
        ("a constant column", np.where(np.arange(DIM) == 3, np.float32(0.1), rows.x)),
        ("zeros", np.zeros((5, DIM), np.float32)),
    ):
        try:
            finite = np.isfinite(rows.fit_apply(few)).all()
        except TransformError as refusal:
            refused += f"it refuses a layer with {what}: {refusal}. "
        else:
            require(finite, f"a layer with {what} gives NaN or infinite values; where there is no spread give 0")
    return refused or None


def check_control(make: Callable[[], Control], *, name: str = "") -> Report:
    """The laws of `ctxexp.Control`; raises ConformanceError naming each that is broken."""
    report = report_on("control", make, name).check(make, a_control).check(make, a_corpus)
    return report.check(make, gold_follows_its_words_and_sentences, another_encoder_has_a_name_of_its_own, left_out)


def a_control(make: Callable[[], Control]) -> None:
    control: object = make()
    if not isinstance(control, Control):
        raise Breach(f"expected a ctxexp.Control, got {type(control).__name__}")
    for key, text in {"name": control.name, "label": control.label}.items():
        require(isinstance(text, str), f"{key} is {text!r}; expected a text")


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


def a_corpus(make: Callable[[], Control]) -> str:
    text, before = _text(), copy.deepcopy(_text())
    other: object = make().corpus(text, 0)
    kept = (text, text.content, text.choices) == (before, before.content, before.choices)
    require(kept, "corpus() changes the corpus that it is given; build a new one")
    if not isinstance(other, Corpus):
        raise Breach(f"corpus() gave {type(other).__name__}; expected a Corpus, the given one where nothing changes")
    check_corpus(other)
    same = make().corpus(text, 1) == make().corpus(text, 1)
    require(same, "two of it give other texts for one seed: draw from a generator of the seed that is passed")
    require(other == text or make().label.strip(), "it changes the text, but `label` is empty: figures wouldn't say so")
    changed = sum(a != b for a, b in zip(text.sentences, other.sentences, strict=False))
    return f"of {len(text.sentences)} sentences {changed} are others"


def gold_follows_its_words_and_sentences(make: Callable[[], Control]) -> None:
    """Senses are of words that had them; pairs keep their gold."""

    def senses(corpus: Corpus) -> Counter[tuple[str, str]]:
        return Counter((corpus.sentences[s.sentence].words[s.position].casefold(), s.label) for s in corpus.senses)

    text = _text()
    other = make().corpus(text, 0)
    for word, label in senses(other) - senses(text):
        raise Breach(f"the sense {label!r} is of the word {word!r} now, which it wasn't: senses follow their word")
    kept = not Counter(p.gold for p in other.pairs) - Counter(p.gold for p in text.pairs)
    require(kept, "a pair has another gold value, or is there twice")
    before, after = ([(p.first, p.second) for p in corpus.pairs] for corpus in (text, other))
    moved = len(other.sentences) == len(text.sentences) and before != after
    require(not moved, "the sentences are as many as before, but pairs point to others")


def another_encoder_has_a_name_of_its_own(make: Callable[[], Control]) -> None:
    model = random_words(dim=DIM)
    encoder = make().encoder(model)
    named = encoder is model or encoder.name != model.name  # or the cache would take one's vectors for the other's
    require(named, f"encoder() gave another encoder of the same name, {model.name!r}")
    same = (encoder.n_layers, encoder.dim) == (model.n_layers, model.dim)
    require(same, "encoder() gave one of other layers or width")


def left_out(make: Callable[[], Control]) -> str:
    text = _text()
    index, rng = row_index(text), np.random.default_rng(1)
    vectors = rng.normal(size=(3, len(index.unit_codes), DIM)).astype(np.float32)
    vectors[1, ::17] *= 40  # some rows of extreme norm
    occurrences, fresh = (Occurrences.of(index, text, min_contexts=2) for _ in range(2))
    store, n = MemoryLayers(vectors), len(fresh.places)
    out, again = (make().left_out(store, occurrences) for _ in range(2))
    sound = out is None or (isinstance(out, np.ndarray) and out.dtype == bool and out.shape == (n,))
    got = f"{getattr(out, 'dtype', type(out).__name__)} of shape {getattr(out, 'shape', '()')}"
    require(sound, f"left_out() gave {got}; expected None, or bool of shape ({n},): a row each, not their numbers")
    rows = occurrences.by_sentence.rows
    kept = np.array_equal(occurrences.places, fresh.places) and np.array_equal(rows, fresh.by_sentence.rows)
    require(kept, "left_out() changes the occurrences that it is given; work on a copy")
    if out is None:
        return "no row is left out"
    require(
        again is not None and np.array_equal(out, again),
        "asked a second time it leaves out other rows: nothing in it may be drawn",
    )
    require(not out[rows].all(), "it leaves out every occurrence of 60 sentences: True is for what is not measured")
    require(not out.any() or make().label.strip(), "it leaves rows out, but `label` is empty: figures wouldn't say so")
    return f"{out.sum()} of {n} rows are left out"


def check_baseline(make: Callable[[], Baseline], *, name: str = "") -> Report:
    """The laws of `ctxexp.Baseline`; raises ConformanceError naming each that is broken."""
    quiet = logging.getLogger("ctxexp")
    level = quiet.level
    quiet.setLevel(logging.ERROR)  # a small corpus is warned about, rightly
    try:
        return report_on("baseline", make, name).check(make, a_baseline).check(make, distinct_measured_rows, seeded)
    finally:
        quiet.setLevel(level)


def a_baseline(make: Callable[[], Baseline]) -> None:
    sound = isinstance(baseline := make(), Baseline) and isinstance(baseline.name, str) and baseline.name
    require(sound, "expected a ctxexp.Baseline with a name and groups(occurrences, rng)")


def _occurrences(n: int) -> Occurrences:
    rng = np.random.default_rng(n)
    words = [f"w{i}" for i in range(40)] + ["."] * 8
    lists = [[f"s{i}", *rng.choice(words, rng.integers(1, 12))] for i in range(n)]
    corpus = Corpus.of("of the kit", lists)
    return Occurrences.of(row_index(corpus), corpus, min_contexts=2, keep=str.isalnum)


def _draw(make: Callable[[], Baseline], occurrences: Occurrences, seed: int) -> list[np.ndarray]:
    return random_groups(make(), occurrences, np.random.default_rng(seed))


def distinct_measured_rows(make: Callable[[], Baseline]) -> None:
    for occurrences in map(_occurrences, (1500, 6)):
        groups, measured_rows = _draw(make, occurrences, 0), occurrences.by_sentence.rows
        for i, rows in enumerate(groups):
            once = len(np.unique(rows)) == len(rows)
            require(once, f"group {i} has a row twice: an occurrence would meet itself; draw without replacement")
            strange = rows[~np.isin(rows, measured_rows)]
            require(not len(strange), f"group {i} has a row that isn't measured: take rows from occurrences.distinct")


def seeded(make: Callable[[], Baseline]) -> None:
    large = _occurrences(1500)
    first, again, other = (_draw(make, large, seed) for seed in (0, 0, 1))
    same = len(first) == len(again) and all(map(np.array_equal, first, again))
    require(same, "the same generator gives other rows: draw from rng only")
    require(not all(map(np.array_equal, first, other)), "another seed gives the same rows: draw from the rng passed")


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
