"""The kit passes sound parts of each kind, and fails mutants of real bugs with a message that names the cause."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ctxexp import (
    Baseline,
    Block,
    Control,
    Corpus,
    EncodedSentence,
    Encoder,
    Group,
    GroupMean,
    Metric,
    Occurrences,
    Reading,
    Results,
    Run,
    Sentence,
)
from ctxexp.controls import WordsAlone
from ctxexp.errors import ConformanceError, TrackingError
from ctxexp.testing import check
from tests.memory_sink import MemorySink
from tests.shipped import STS, Center, SelfSimilarity, Shuffled


def fails(kind: str, subject: Any, cause: str, **more: Any) -> None:
    """The subject breaks a law of its kind by this cause."""
    with pytest.raises(ConformanceError) as caught:
        check(kind, subject, **more)
    assert any("  BROKEN  " in line and cause in line for line in str(caught.value).splitlines()), caught.value


def mutants(base: type) -> Callable[..., Any]:
    """Makers of classes like this one but for the given members."""
    return lambda **members: type("Mutant", (base,), members)


# Encoders.


class Toy(Encoder):
    """Two layers from scratch: a vector a word, then half of it with the sentence's mean."""

    name, n_layers, dim = "toy", 2, 8

    def word(self, word: str) -> np.ndarray:
        return np.random.default_rng(zlib.crc32(word.encode())).normal(size=self.dim)

    def sentence(self, sentence: Sentence, longest: int) -> np.ndarray:
        x = np.array([self.word(w) for w in sentence.words]).reshape(len(sentence), self.dim)
        context = x.sum(axis=0) / max(1, len(sentence))
        return np.stack([x, 0.5 * x + 0.5 * context]).astype(np.float32)

    def encode(self, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
        longest = max(map(len, batch))
        return [EncodedSentence(s.words, self.sentence(s, longest)) for s in batch]


class Wrapped(Encoder):
    """An encoder of ours with its output, or its word about itself, falsified."""

    def __init__(
        self, encoder: Any, change: Callable[[EncodedSentence, Sentence], EncodedSentence], *, less: int = 0
    ) -> None:
        self.inner, self.change = encoder, change
        self.name, self.n_layers, self.dim = f"mutant of {encoder.name}", encoder.n_layers - less, encoder.dim

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        for encoded, sentence in zip(self.inner.encode(batch), batch, strict=True):
            yield self.change(encoded, sentence)


def layers(pick: Callable[[np.ndarray], np.ndarray]) -> Callable[[EncodedSentence, Sentence], EncodedSentence]:
    return lambda encoded, _: EncodedSentence(encoded.units, pick(encoded.layers))


def test_layers_off_by_one() -> None:
    built = Toy()
    fails("model", Wrapped(built, layers(lambda x: x[1:]), less=1), "are the layers off by one?")
    last_twice = Wrapped(built, layers(lambda x: np.concatenate([x[1:], x[-1:]])))
    fails("model", last_twice, "layer 0 holds context")
    input_twice = Wrapped(built, layers(lambda x: np.concatenate([x[:1], x[:-1]])))
    fails("model", input_twice, "layers 0 and 1 are the same to the last bit")


class Pieces(Toy):
    """Gives each word of more than three letters in two pieces."""

    def encode(self, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
        return Toy.encode(self, [Sentence.of(p for w in s.words for p in (w[:3], w[3:]) if p) for s in batch])


def test_pieces_counted_as_words() -> None:
    def first_pieces(encoded: EncodedSentence, sentence: Sentence) -> EncodedSentence:
        n = min(len(sentence), len(encoded.units))
        return EncodedSentence(sentence.words[:n], encoded.layers[:, :n])

    fails("model", Wrapped(Pieces(), first_pieces), "Are pieces counted as words")
    fails("model", Pieces(), "pool pieces to words")
    too_many = Wrapped(Pieces(), lambda encoded, sentence: EncodedSentence(sentence.words, encoded.layers))
    fails("model", too_many, "a unit's pieces pooled")
    fails("model", Wrapped(Toy(), layers(lambda x: np.roll(x, 1, axis=1))), "special tokens")


def _padded(self: Toy, sentence: Sentence, longest: int) -> np.ndarray:
    x = Toy.sentence(self, sentence, longest)[0]
    return np.stack([x, (0.5 * x + 0.5 * x.sum(axis=0) / max(1, longest)).astype(np.float32)])


def _normalised(self: Toy, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
    sound = list(Toy.encode(self, batch))
    mean = np.concatenate([e.layers[1] for e in sound]).sum(axis=0) / max(1, sum(len(e.units) for e in sound))
    for encoded in sound:
        encoded.layers[1] -= mean
    return sound


def _carried(self: Toy, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
    for i, encoded in enumerate(Toy.encode(self, batch)):
        encoded.layers[1] += i
        yield encoded


def _noisy(self: Toy, word: str, draw: Any = np.random.default_rng(0)) -> np.ndarray:  # noqa: B008  # shared on purpose
    return Toy.word(self, word) + draw.normal(size=8) * 0.1


def _placed(self: Toy, sentence: Sentence, longest: int) -> np.ndarray:
    return Toy.sentence(self, sentence, longest) + np.arange(len(sentence), dtype="f4")[:, None]


def each(change: Callable[[EncodedSentence], EncodedSentence]) -> Any:
    """A toy whose encoded sentences are changed."""
    return toy(encode=lambda self, batch: [change(one) for one in Toy.encode(self, batch)])


toy = mutants(Toy)
ENCODERS = [
    (toy(encode=lambda self, b: list(Toy.encode(self, b))[1:]), "encode gave 0 results for 1 sentences"),
    (each(lambda e: EncodedSentence(e.units, e.layers.astype(float))), "gave float64 vectors"),
    (each(lambda e: EncodedSentence((*e.units, "</s>"), np.pad(e.layers, [(0, 0), (0, 1), (0, 0)]))), "aren't the"),
    (each(lambda e: e if e.units else EncodedSentence((), np.empty((2, 0), "f4"))), "of no word give np.empty"),
    (toy(word=_noisy), "two calls with 'The bank closed its doors early today .'"),
    (toy(encode=_carried), "the encoder carries state"),
    (toy(sentence=_padded), "padding is attended to or pooled"),
    (toy(encode=_normalised), "statistics over the batch"),
    (toy(encode=lambda self, b: list(Toy.encode(self, b))[::-1]), "come in another order"),
    (toy(positional=False, sentence=_placed), "positional = False promises"),
]


def test_names_follow_the_vectors() -> None:
    other = toy(word=lambda self, w: -Toy.word(self, w))
    fails("model", Toy, "with sign=- the vectors", others={"sign=-": other})
    check("model", Toy, others={"sign=-": type("Other", (other,), {"name": "toy sign=-"}), "device=cpu": Toy()})
    names, signs = count(), iter([1, -1])
    fails("model", lambda: toy(name=f"toy {next(names)}")(), "built twice, it is named 'toy 0' and 'toy 1'")

    def unseeded() -> Toy:
        sign = next(signs)
        return toy(word=lambda self, w: sign * Toy.word(self, w))()  # type: ignore[no-any-return]

    fails("model", unseeded, "draw random weights from a seed in the name")


# Metrics.


class Share(GroupMean):
    """A sound share of the first principal component, to be spoilt."""

    over = "word"
    reading = Reading(unit="share")
    invariances = frozenset({"rotation", "scale", "shift", "permutation"})

    def score(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore", divide="ignore"):
            sigma = np.linalg.svd(np.nan_to_num(self.rows(x.astype(np.float64))), compute_uv=False)
            result = sigma[..., 0] ** 2 / self.total(x.astype(np.float64))
        return np.where(np.isfinite(x).all((-2, -1)), result, np.nan)

    def rows(self, x: np.ndarray) -> np.ndarray:
        return x - x.mean(axis=-2, keepdims=True)

    def total(self, x: np.ndarray) -> np.ndarray:
        return (self.rows(x) ** 2).sum((-2, -1))


class Running(Metric):
    """A mean of norms, kept in many wrong ways."""

    over = "word"

    def __init__(self) -> None:
        self.values = []
        self.kept = []

    def update(self, group: Group) -> None:
        self.values.append(float(np.linalg.norm(group.x.astype(np.float64), axis=-1).mean()))

    def compute(self) -> dict[str, float]:
        return {"raw": float(np.mean(np.sort(self.values))) if self.values else np.nan}


def _centres_in_place(self: Running, group: Group) -> None:
    Running.update(self, group)
    group.x[:] -= group.x.mean(axis=0)


def _in_its_type(self: Running, group: Group) -> None:
    self.values.append(float((group.x + group.x.dtype.type(1e6)).mean()) - 1e6)


def _of_views(self: Running) -> dict[str, float]:
    return {"raw": float(np.mean([np.linalg.norm(x.astype(float), axis=-1).mean() for x in self.kept] or [np.nan]))}


def _block_wide(self: Running, block: Block) -> None:
    self.values += [float(np.linalg.norm(block.x.astype(np.float64)) / block.x.shape[1])] * len(block)


def _refuses(self: Any, x: np.ndarray) -> Any:
    if not x.any():
        raise ValueError("all zero")
    return SelfSimilarity.score(self, x)


def declares(*invariances: str) -> Any:
    first_value = lambda self, group: self.values.append(float(group.x[0, 0]))  # noqa: E731
    return running(update=first_value, invariances=frozenset(invariances))


share, running, similarity = mutants(Share), mutants(Running), mutants(SelfSimilarity)
CENTRED_ABOVE = share(total=lambda self, x: (x**2).sum((-2, -1)))
METRICS = [
    (running(compute=lambda self: Running.compute(self) if self.values else {}), "before any group"),
    (running(compute=lambda self: {"raw": np.nan}), "every statistic"),
    (
        running(compute=lambda self: {"raw": self.values[-1] if self.values else np.nan}),
        "groups in another order give raw",
    ),
    (running(update=lambda self, group: self.kept.append(group.x), compute=_of_views), "x is only lent"),
    (running(update=_centres_in_place), "update changes the rows"),
    (running(update_block=_block_wide), "reduce over the last two axes only?"),
    (declares("scale"), "one factor on all rows must not matter"),
    (declares("row_scale"), "are rows at norm 1"),
    (declares("permutation"), "the order of a group's rows must not matter"),
    (declares("rotation"), "are rows taken for columns?"),
    (running(update=_in_its_type), "sum in float64"),
    (CENTRED_ABOVE, "Is the mean taken out in one place and not in the other"),
    (type("Silent", (CENTRED_ABOVE,), {"invariances": frozenset()}), "centred in all places or in none"),
    (share(total=lambda self, x: x.var(axis=-2, ddof=1).sum(-1) * x.shape[-2]), "rows on one line through the origin"),
    (share(baseline_value=lambda self, x: 0.5), "but as a chance level"),
    (
        similarity(score=lambda self, x: np.nan_to_num(SelfSimilarity.score(self, x))),
        "undefined is NaN, never a number",
    ),
    (similarity(score=_refuses, min_rows=1), "rows of zeros raises ValueError: all zero; undefined is NaN"),
]


@pytest.mark.parametrize("members", [{"baselines": ("size_matched",)}, {"baseline_value": lambda self, x: 0.0}])
def test_a_pair_metrics_idle_baseline_is_noted(members: dict[str, Any]) -> None:
    assert not check("metric", STS).notes
    assert "without effect over pairs" in check("metric", type("Idle", (STS,), members)).notes[0]


# Transforms.


def _adds_up(self: Center, x: np.ndarray) -> Center:
    self.mean = getattr(self, "mean", 0) + x.mean(axis=0, dtype=np.float64)
    return self


def _divides(self: Center, x: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return ((x - self.mean) / (x.std(axis=0) if not hasattr(self, "sd") else self.sd)).astype(np.float32)


def _fits_float32(self: Center, x: np.ndarray) -> Center:
    self.mean = x.mean(axis=0)
    with np.errstate(invalid="ignore"):
        self.sd = np.sqrt(np.maximum((x**2).mean(axis=0) - self.mean**2, 1e-12))
    return self


def _of_the_first(self: Center, x: np.ndarray) -> Center:
    self.mean = x[0]
    return self


transform = mutants(Center)
TRANSFORMS = [
    (transform(fit=lambda self, x: None), "end it with `return self`"),
    (transform(apply=lambda self, x: x[:, :4]), "float32 (5, 4)"),
    (transform(apply=lambda self, x: x - x.mean(axis=0)), "statistics belong in fit()"),
    (transform(fit=_of_the_first), "in another order it maps them elsewhere"),
    (transform(fit=_adds_up), "it still knows the first rows"),
    (transform(apply=lambda self, x: np.subtract(x, self.mean, out=x, casting="unsafe")), "read-only"),
    (transform(fit=_fits_float32, apply=_divides), "far from the origin it loses digits"),
    (transform(apply=_divides), "where there is no spread give 0"),
]


def test_a_transform_may_narrow_rows_and_refuse_layers() -> None:
    narrow = transform(width=lambda self, d: 3, apply=lambda self, x: (x - self.mean)[:, :3].astype(np.float32))
    assert not check("transform", narrow).notes


# Data sets and baselines.


def drawn(draw: Callable[[Occurrences, np.random.Generator], np.ndarray | list[int]]) -> Any:
    def groups(self: object, occurrences: Occurrences, rng: np.random.Generator) -> Iterator[Any]:
        yield draw(occurrences, rng)

    return type("Mutant", (Baseline,), {"name": "mutant", "groups": groups})


SPANS = Sentence("a bank", ("a", "bank"), ((0, 1), (1, 5)))
calls = count()
DATASETS = [
    (lambda: Corpus.of("c", [[f"w{next(calls)}"]]), "sort files and sets"),
    (Corpus("c", (SPANS,)), "the span (1, 5) holds ' ban', the word is 'bank'"),
]
BASELINES = [
    (drawn(lambda o, rng: rng.choice(o.distinct.rows, 5000)), "has a row twice"),
    (drawn(lambda o, rng: np.arange(20)), "that isn't measured"),
    (drawn(lambda o, rng: o.distinct.rows[:9]), "another seed gives the same rows"),
    (drawn(lambda o, rng: np.random.default_rng().permutation(o.distinct.rows)[:9]), "the same generator gives other"),
    (type("Empty", (Baseline,), {"name": "x", "groups": lambda self, o, rng: iter(())}), "gave no group"),
]


# Controls.


class Upper(Control):
    """A sound one: the text in capitals, without the third place of a sentence."""

    name = "upper"

    def corpus(self, corpus: Corpus, seed: int) -> Corpus:
        return replace(corpus, sentences=tuple(Sentence.of(w.upper() for w in s.words) for s in corpus.sentences))

    def left_out(self, store: Any, occurrences: Any) -> np.ndarray:
        return occurrences.places == 2


def _notes_itself(self: Upper, corpus: Corpus, seed: int) -> Corpus:
    corpus.choices["control"] = "upper"
    return corpus


def _pairs_turn(self: Upper, corpus: Corpus, seed: int) -> Corpus:
    last = len(corpus.sentences) - 1
    return replace(corpus, pairs=tuple(replace(pair, first=last - pair.first) for pair in corpus.pairs))


def _counts(self: Upper, store: Any, occurrences: Any, calls: Any = count(1)) -> np.ndarray:  # noqa: B008  # shared on purpose
    return np.asarray(occurrences.places == next(calls))


def _nameless(self: Upper, encoder: Encoder) -> Encoder:
    alone = WordsAlone(encoder)
    alone.name = encoder.name
    return alone


control, draws = mutants(Upper), count()
CONTROLS = [
    (control(corpus=_notes_itself), "corpus() changes the corpus"),
    (control(corpus=lambda self, text, seed: Shuffled().corpus(text, next(draws))), "from a generator of the seed"),
    (
        control(corpus=lambda self, text, _: replace(Shuffled(how="order").corpus(text, 0), senses=text.senses)),
        "senses follow their word",
    ),
    (control(corpus=_pairs_turn), "pairs point to others"),
    (
        control(corpus=lambda self, text, _: replace(text, pairs=(*text.pairs, text.pairs[0]))),
        "another gold value, or is there twice",
    ),
    (control(encoder=_nameless), "of the same name"),
    (control(left_out=lambda self, store, o: np.flatnonzero(o.places == 2)), "left_out() gave int64 of shape ("),
    (control(left_out=lambda self, store, o: store.layer(0).fill(0)), "read-only"),
    (control(left_out=_counts), "asked a second time it leaves out other rows"),
    (control(left_out=lambda self, store, o: o.places.sort()), "left_out() changes the occurrences"),
    (control(left_out=lambda self, store, o: np.ones(len(o.places), bool)), "True is for what is not measured"),
]  # fmt: skip


# Sinks.


def _touches(self: MemorySink, run: Run, results: Results) -> Any:
    (run.folder / "sent").touch()
    return {}


def _rounds(self: MemorySink, run: Run, results: Results) -> Any:
    results.frame["value"] = results.frame["value"].round(3)
    return {}


def _short_names_only(self: MemorySink, run: Run, results: Results) -> Any:
    run.name.encode("ascii")
    return {}


def _some_values(self: MemorySink, run: Run, results: Results) -> Any:
    float(results.frame["value"].iloc[0])
    return {}


def _does_not_answer(self: MemorySink, store: Path) -> Any:
    raise TrackingError("the store does not answer")


sink = mutants(MemorySink)
SINKS = [
    (sink(check=_does_not_answer), "it raised TrackingError: the store does not"),
    (sink(send=_rounds), "send() changes the results"),
    (sink(send=_touches), "the run's folder has other files than before"),
    (sink(send=_short_names_only), "UnicodeEncodeError"),
    (sink(send=_some_values), "IndexError"),
]


def test_the_environment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://somewhere")
    here = Path.cwd()
    check("sink", MemorySink)
    assert (Path.cwd(), os.environ["MLFLOW_TRACKING_URI"]) == (here, "http://somewhere")


SOUND = {
    "model": [Toy],
    "metric": [Share, share(min_rows=4), Running],  # smaller groups have no score
    "baseline": [drawn(lambda o, rng: rng.permutation(o.distinct.rows)[:9])],
    "control": [Upper],
}
BROKEN = {
    "model": ENCODERS, "metric": METRICS, "transform": TRANSFORMS, "dataset": DATASETS, "baseline": BASELINES,
    "control": CONTROLS, "sink": SINKS,
}  # fmt: skip


@pytest.mark.parametrize(("kind", "sound"), [(kind, one) for kind, them in SOUND.items() for one in them])
def test_what_is_sound_passes(kind: str, sound: Any) -> None:
    assert check(kind, sound).passed


@pytest.mark.parametrize(
    ("kind", "mutant", "cause"),
    [pytest.param(kind, *one, id=f"{kind}: {one[1]}") for kind, them in BROKEN.items() for one in them],
)
def test_what_has_a_bug_fails(kind: str, mutant: Any, cause: str) -> None:
    fails(kind, mutant, cause)
