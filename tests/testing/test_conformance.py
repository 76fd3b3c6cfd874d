"""The kit passes what ships, and fails planted mutants of real bugs with a message that names the cause."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest

from ctxexp import (
    Baseline,
    Block,
    Corpus,
    EncodedSentence,
    Encoder,
    Group,
    GroupMean,
    Metric,
    Occurrences,
    Pair,
    Reading,
    Sense,
    Sentence,
)
from ctxexp.errors import ConfigError, ConformanceError, TransformError, UnknownName
from ctxexp.testing import check
from ctxexp.testing.by_name import conform
from tests.composed import forget_plugin_files, offer, registry_of, run_command_line
from tests.laws import fails
from tests.shipped import KINDS, STS, Center, MaxExplainableVariance, SelfSimilarity, bert, elmo, gpt2, mini

# What ships.

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "model/bert": [{}, {"pooling": "pieces"}],
    "model/elmo": [{}, {"state": "carry"}],
    "model/gpt2": [{"dtype": "bfloat16", "long": "refuse"}],
    "model/huggingface": [{"checkpoint": str(mini("gpt2")), "pooling": "first", "final_norm": False}],
    "model/word_vectors": [],  # no file of vectors comes with ours: tests/test_vector_files.py writes one
    "dataset/text": [{"path": "LICENSE"}],
    "dataset/sick_r": [{"path": "sick_r"}],
    "dataset/sts_b": [{"path": "sts_b"}],
    "dataset/sts_2012_2016": [{"path": "sts_2012_2016"}],
    "dataset/sts": [{"path": "sts", "tasks": ["STS16", "SICK-R"]}],
    "metric/intra_sentence_similarity": [{"baselines": ["run", "size_matched"], "sample": 3}],  # more: test_formulas.py
}
SHIPPED = [
    pytest.param(f"{kind}/{name}", options, marks=[pytest.mark.slow] * (kind == "model"))
    for kind, name in registry_of().offers
    if kind in KINDS
    for options in OPTIONS.get(f"{kind}/{name}", [{}])
]


@pytest.mark.parametrize(("name", "options"), SHIPPED, ids=lambda v: v if isinstance(v, str) else "-".join(v))
def test_what_ships_conforms(name: str, options: dict[str, Any], request: pytest.FixtureRequest) -> None:
    if options.get("path") == "LICENSE":
        options = {"path": str(Path(__file__).resolve().parents[2] / "LICENSE")}
    elif "path" in options:
        options = {**options, "path": str(folder_of(options["path"], request.getfixturevalue("shared")))}
    report = conform(name, options)
    assert " 0 broken" in report
    assert "warned" not in report


def folder_of(dataset: str, shared: Path) -> Path:
    sign = {"sick_r": "SICK*.txt", "sts_b": "sts-test.csv", "sts_2012_2016": "STS2016*", "sts": "STS2016*"}[dataset]
    found = next(iter(sorted(shared.rglob(sign))), None)
    if found is None:
        pytest.skip(f"no files of {dataset} in {shared}")
    return found.parent


def test_the_report_tells_layer_0_and_the_small_sample_bias() -> None:
    assert "note    layer 0 holds the word and its position" in str(check("model", bert()))
    assert "note    layer 0 holds the word\n" in str(check("model", elmo())) + "\n"
    profile = next(n for n in check("metric", MaxExplainableVariance).notes if n.startswith("score of n rows of noise"))
    levels = [float(part.split(": ")[1].split(" ")[0]) for part in profile.split("), ")[1].split("; ")]
    assert levels == sorted(levels, reverse=True)  # fewer rows, higher share
    assert levels[0] > 0.5


# Encoders with a bug.

SHAPES = "shapes and units, long and odd sentences included"
INDEPENDENCE = "independence of batch, padding and order"


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


def test_a_stateful_elmo_that_passes_for_stateless() -> None:
    mutant = Wrapped(elmo(state="carry"), lambda encoded, _: encoded)
    fails("model", mutant, INDEPENDENCE, "the encoder carries state")


@pytest.mark.parametrize("model", [bert, gpt2, elmo])
def test_layers_off_by_one(model: Callable[[], Any]) -> None:
    block_first = Wrapped(model(), layers(lambda x: x[1:]), less=1)
    fails("model", block_first, "layer 0 is the input layer", "are the layers off by one?")
    last_twice = Wrapped(model(), layers(lambda x: np.concatenate([x[1:], x[-1:]])))
    fails("model", last_twice, "layer 0 is the input layer", "layer 0 holds context")
    input_twice = Wrapped(model(), layers(lambda x: np.concatenate([x[:1], x[:-1]])))
    fails("model", input_twice, "every layer is another", "layers 0 and 1 are the same to the last bit")


@pytest.mark.parametrize("model", [bert, gpt2])
def test_pieces_counted_as_words(model: Callable[..., Any]) -> None:
    def first_pieces(encoded: EncodedSentence, sentence: Sentence) -> EncodedSentence:
        n = min(len(sentence), len(encoded.units))
        return EncodedSentence(sentence.words[:n], encoded.layers[:, :n])

    mutant = Wrapped(model(pooling="pieces"), first_pieces)
    fails("model", mutant, "each row follows its word", "Are pieces counted as words")
    named = Wrapped(model(pooling="pieces"), lambda encoded, _: encoded)
    fails("model", named, SHAPES, "pool pieces to words")
    too_many = Wrapped(
        model(pooling="pieces"), lambda encoded, sentence: EncodedSentence(sentence.words, encoded.layers)
    )
    fails("model", too_many, SHAPES, "pool its pieces to words first")
    shifted = Wrapped(model(), layers(lambda x: np.roll(x, 1, axis=1)))
    fails("model", shifted, "each row follows its word", "special tokens")


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


def test_a_sound_toy_passes() -> None:
    assert check("model", Toy).failures == {}


def toy(**members: Any) -> type[Toy]:
    return type("Mutant", (Toy,), members)


def _padded(self: Toy, sentence: Sentence, longest: int) -> np.ndarray:
    sound = Toy.sentence(self, sentence, longest)
    x = sound[0]
    return np.stack([x, (0.5 * x + 0.5 * x.sum(axis=0) / max(1, longest)).astype(np.float32)])


def _normalised(self: Toy, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
    sound = list(Toy.encode(self, batch))
    mean = np.concatenate([e.layers[1] for e in sound]).sum(axis=0) / max(1, sum(len(e.units) for e in sound))
    for encoded in sound:
        encoded.layers[1] -= mean
    return sound


def _noisy(self: Toy, word: str, draw: Any = np.random.default_rng(0)) -> np.ndarray:  # noqa: B008  # shared on purpose
    return Toy.word(self, word) + draw.normal(size=8) * 0.1


def _overwriting(self: Toy, batch: Sequence[Sentence], buffer: Any = np.zeros((2, 999, 8), "f4")) -> Any:  # noqa: B008
    for encoded in Toy.encode(self, batch):
        view = buffer[:, : len(encoded.units)]
        view[:] = encoded.layers
        yield EncodedSentence(encoded.units, view)


@pytest.mark.parametrize(
    ("mutant", "law", "cause"),
    [
        (toy(name=""), "interface", "it has name=''; expected a text that tells"),
        (toy(dim=8.0), "interface", "it has dim=8.0; expected 1 or more"),
        (dict, "interface", "it is no encoder: dict doesn't derive from ctxexp.Encoder"),
        (type("Nameless", (Encoder,), {"encode": Toy.encode}), "interface", "it lacks name, n_layers, dim"),
        (toy(encode=None, details={"a": np.float32(1)}), "interface", "details can't be logged"),
        (toy(dim=9, word=lambda self, w: np.ones(8)), SHAPES, "reshape"),
        (toy(encode=lambda self, b: list(Toy.encode(self, b))[1:]), SHAPES, "encode gave 0 results for 1 sentences"),
        (toy(encode=lambda self, b: [EncodedSentence(e.units, e.layers.astype(float)) for e in Toy.encode(self, b)]),
         SHAPES, "gave float64 vectors"),
        (toy(encode=lambda self, b: [EncodedSentence((*e.units, "</s>"), np.pad(e.layers, [(0, 0), (0, 1), (0, 0)]))
                                     for e in Toy.encode(self, b)]), SHAPES, "aren't the sentence's words"),
        (toy(encode=lambda self, b: [e if e.units else EncodedSentence((), np.empty((2, 0), "f4"))
                                     for e in Toy.encode(self, b)]), SHAPES, "a sentence without words"),
        (toy(encode=_overwriting), "memory of its own for each sentence", "a buffer that it uses again: yield a copy"),
        (toy(word=_noisy), "determinism", "two calls with 'The bank closed its doors early today .'"),
        (toy(sentence=_padded), INDEPENDENCE, "padding is attended to or pooled"),
        (toy(encode=_normalised), INDEPENDENCE, "statistics over the batch"),
        (toy(encode=lambda self, b: list(Toy.encode(self, b))[::-1]), INDEPENDENCE, "come in another order"),
        (toy(lengths=lambda self, s: [1] * (len(s) - 1)), "lengths", "expected whole numbers, one each"),
        (toy(count_unknown=lambda self, s: (2 * len(s), len(s))), "unknown pieces",
         "expected how many pieces are unknown"),
        (toy(positional=False, sentence=lambda self, s, n: Toy.sentence(self, s, n)
             + np.arange(len(s), dtype="f4")[:, None]), "layer 0 is the input layer", "positional = False promises"),
    ],
)  # fmt: skip
def test_encoders_with_a_bug(mutant: type[Toy], law: str, cause: str) -> None:
    fails("model", mutant, law, cause)


def test_names_follow_the_vectors() -> None:
    other = toy(word=lambda self, w: -Toy.word(self, w))
    others = {"sign=-": other}
    fails("model", Toy, "the name changes when the vectors do", "with sign=- the vectors", others=others)
    check("model", Toy, others={"sign=-": type("Other", (other,), {"name": "toy sign=-"})})
    check("model", Toy, others={"device=cpu": Toy()})
    count = iter(range(9))
    random = lambda: type("Random", (Toy,), {"name": f"toy {next(count)}"})()  # noqa: E731
    fails("model", random, "a fresh encoder gives the same", "built twice, it is named 'toy 0' and 'toy 1'")
    signs = iter([1, -1])

    def unseeded() -> Toy:
        sign = next(signs)
        return toy(word=lambda self, w: sign * Toy.word(self, w))()

    fails("model", unseeded, "a fresh encoder gives the same", "draw random weights from a seed in the name")


# Metrics with a bug.


class Share(GroupMean):
    """A sound share of the first principal component, to be spoilt."""

    over = "word"
    reading = Reading(unit="share")
    invariances = frozenset({"rotation", "scale", "shift", "permutation"})

    def score(self, x: np.ndarray) -> np.ndarray:
        centred = self.rows(x.astype(np.float64))
        with np.errstate(invalid="ignore", divide="ignore"):
            sigma = np.linalg.svd(np.nan_to_num(centred), compute_uv=False)
            result = sigma[..., 0] ** 2 / self.total(x.astype(np.float64))
        return np.where(np.isfinite(x).all((-2, -1)), result, np.nan)

    def rows(self, x: np.ndarray) -> np.ndarray:
        return x - x.mean(axis=-2, keepdims=True)

    def total(self, x: np.ndarray) -> np.ndarray:
        return (self.rows(x) ** 2).sum((-2, -1))


class CentredAboveOnly(Share):
    def total(self, x: np.ndarray) -> np.ndarray:
        return (x**2).sum((-2, -1))


class CentredBelowOnly(Share):
    def rows(self, x: np.ndarray) -> np.ndarray:
        return x

    def total(self, x: np.ndarray) -> np.ndarray:
        return ((x - x.mean(axis=-2, keepdims=True)) ** 2).sum((-2, -1))


class OneDdof(Share):
    def total(self, x: np.ndarray) -> np.ndarray:
        return x.var(axis=-2, ddof=1).sum(-1) * x.shape[-2]


class OtherChanceLevel(Share):
    def baseline_value(self, x: np.ndarray) -> float:
        values: np.ndarray = np.square(np.linalg.svd(x.astype(np.float64), compute_uv=False))
        return float(values[0] / values.sum())


class EigenRows(Share):
    """Variance along the first eigenvector, taken from eigh as a row."""

    row: ClassVar[bool] = True

    def score(self, x: np.ndarray) -> np.ndarray:
        x = self.rows(x.astype(np.float64))
        finite = np.isfinite(x).all((-2, -1))
        vectors = np.linalg.eigh(np.nan_to_num(np.swapaxes(x, -1, -2) @ x))[1]
        first = vectors[..., -1, :] if self.row else vectors[..., :, -1]
        along = np.einsum("...nd,...d->...n", np.nan_to_num(x), first)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(finite, (along**2).sum(-1) / self.total(x), np.nan)


class EigenColumns(EigenRows):
    row = False


def test_sound_shares_pass() -> None:
    assert check("metric", Share).failures == {}
    assert check("metric", EigenColumns).failures == {}
    assert check("metric", type("Picky", (Share,), {"min_rows": 4})).failures == {}  # smaller groups have no score


@pytest.mark.parametrize("mutant", [CentredAboveOnly, CentredBelowOnly])
def test_a_ratio_that_is_centred_in_one_place(mutant: type[Share]) -> None:
    fails("metric", mutant, "invariance: shift", "Is the mean taken out in one place and not in the other")
    silent = type("Silent", (mutant,), {"invariances": frozenset()})  # nothing declared: the share's own law finds it
    fails("metric", silent, "a share is a share", "centred in all places or in none")


def test_estimators_that_differ() -> None:
    fails("metric", OneDdof, "a share is a share", "rows on one line through the origin have the share")
    fails("metric", OtherChanceLevel, "a share is a share", "but as a chance level")


def test_eigenvector_rows_for_columns() -> None:
    fails("metric", EigenRows, "invariance: rotation", "are rows taken for columns?")


class Running(Metric):
    """A mean of norms, kept in many wrong ways."""

    over = "word"

    def __init__(self) -> None:
        self.values: list[float] = []
        self.kept: list[np.ndarray] = []

    def update(self, group: Group) -> None:
        self.values.append(float(np.linalg.norm(group.x.astype(np.float64), axis=-1).mean()))

    def compute(self) -> dict[str, float]:
        return {"raw": float(np.mean(np.sort(self.values))) if self.values else np.nan}


def running(**members: Any) -> type[Running]:
    return type("Mutant", (Running,), members)


def _keeps_the_view(self: Running, group: Group) -> None:
    self.kept.append(group.x)


def _centres_in_place(self: Running, group: Group) -> None:
    Running.update(self, group)
    group.x[:] -= group.x.mean(axis=0)


def _latest(self: Running) -> dict[str, float]:
    return {"raw": self.values[-1] if self.values else np.nan}


def _of_views(self: Running) -> dict[str, float]:
    return {"raw": float(np.mean([np.linalg.norm(x.astype(float), axis=-1).mean() for x in self.kept] or [np.nan]))}


def _block_wide(self: Running, block: Block) -> None:
    self.values += [float(np.linalg.norm(block.x.astype(np.float64)) / block.x.shape[1])] * len(block)


@pytest.mark.parametrize(
    ("mutant", "law", "cause"),
    [
        (dict, "interface", "expected a ctxexp.Metric, got dict"),
        (running(over="sentense"), "interface", "over='sentense'; expected one of occurrence, word"),
        (running(invariances=frozenset({"rotations"})), "interface", "did you mean 'rotation'"),
        (running(invariances="scale"), "interface", "invariances='scale': expected a set of names"),
        (running(compute=lambda self: 0.5), "statistics", "expected statistics by name"),
        (running(compute=lambda self: {"raw": "high"}), "statistics", "expected a number by its name"),
        (running(compute=lambda self: {"raw": (1.0, 0.5, 2.0)}), "statistics", "ctxexp.Estimate(value, low"),
        (running(compute=lambda self: Running.compute(self) if self.values else {}), "statistics", "before any group"),
        (running(compute=lambda self: {"raw": np.nan}), "statistics", "every statistic"),
        (running(compute=_latest), "order of groups", "groups in another order give raw"),
        (running(update=_keeps_the_view, compute=_of_views), "lent memory", "x is only lent"),
        (running(update=_centres_in_place), "lent memory", "update changes the rows"),
        (running(update_block=_block_wide), "a block equals its groups", "reduce over the last two axes only?"),
        (running(invariances=frozenset({"scale"})), "invariance: scale", "one factor on all rows must not matter"),
        (running(invariances=frozenset({"row_scale"})), "invariance: row_scale", "are rows at norm 1"),
        (running(update=lambda self, group: self.values.append(float(group.x[0, 0])),
                 invariances=frozenset({"permutation"})),
         "invariance: permutation", "the order of a group's rows must not matter"),
        (running(update=lambda self, group: self.values.append(
            float((group.x + group.x.dtype.type(1e6)).mean()) - 1e6)),
         "float32 agrees with float64", "sum in float64"),
        (running(baseline_value=lambda self, x: None), "degenerate groups", "expected a number or NaN"),
        (running(outputs=lambda self: 1 / 0), "outputs", "ZeroDivisionError"),
    ],
)  # fmt: skip
def test_metrics_with_a_bug(mutant: Any, law: str, cause: str) -> None:
    fails("metric", mutant, law, cause)


def test_degenerate_groups() -> None:
    class Zero(SelfSimilarity):
        def score(self, x: np.ndarray) -> np.ndarray:
            return np.nan_to_num(super().score(x))

    class Refuses(SelfSimilarity):
        min_rows = 1

        def score(self, x: np.ndarray) -> np.ndarray:
            if not x.any():
                raise ValueError("all zero")
            return super().score(x)

    fails("metric", Zero, "degenerate groups", "undefined is NaN, never a number")
    fails("metric", Refuses, "degenerate groups", "rows of zeros raises ValueError: all zero; undefined is NaN")


# Transforms, data sets and baselines with a bug.


def transform(**members: Any) -> type[Center]:
    return type("Mutant", (Center,), members)


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


@pytest.mark.parametrize(
    ("mutant", "law", "cause"),
    [
        (dict, "shape and type", "expected a ctxexp.Transform, got dict"),
        (transform(fit=lambda self, x: None), "shape and type", "end it with `return self`"),
        (transform(apply=lambda self, x: x - self.mean), "shape and type", "float64 (5, 8)"),
        (transform(apply=lambda self, x: x[:, :4]), "shape and type", "float32 (5, 4)"),
        (transform(width=lambda self, d: 3), "shape and type", "expected float32 (5, 3)"),
        (transform(width=lambda self, d: 9), "shape and type", "width(8) gave 9; expected how many columns"),
        (transform(apply=lambda self, x: x - x.mean(axis=0)), "each row by itself", "statistics belong in fit()"),
        (transform(fit=lambda self, x: setattr(self, "mean", x[0]) or self), "fit forgets the order of the rows", ""),
        (transform(fit=_adds_up), "fit starts anew", "it still knows the first rows"),
        (transform(apply=lambda self, x: np.subtract(x, self.mean, out=x, casting="unsafe")), "lent memory", "a copy"),
        (transform(fit=_fits_float32, apply=_divides), "statistics in float64", "far from the origin it loses digits"),
        (transform(apply=_divides), "degenerate layers", "where there is no spread give 0"),
    ],
)
def test_transforms_with_a_bug(mutant: Any, law: str, cause: str) -> None:
    fails("transform", mutant, law, cause)


def test_a_transform_that_refuses_few_rows_is_checked_on_more() -> None:
    class Learner(Center):
        least = 500

        def fit(self, x: np.ndarray) -> Self:
            if len(x) < self.least:
                raise TransformError(f"{len(x)} rows are too few")
            return super().fit(x)

    assert " 0 broken" in str(check("transform", Learner))

    class Insatiable(Learner):
        least = 10**6

    fails("transform", Insatiable, "shape and type", "1000 rows are too few")


def test_a_transform_may_narrow_rows_and_refuse_layers() -> None:
    def fit(self: Center, x: np.ndarray) -> Center:
        if len(x) < 2:
            raise TransformError("one row has no spread")
        return Center.fit(self, x)

    narrow = transform(
        width=lambda self, d: 3, fit=fit, apply=lambda self, x: (x - self.mean)[:, :3].astype(np.float32)
    )
    report = check("transform", narrow)
    assert not report.failures
    assert report.notes == ["it refuses a layer with one row: one row has no spread"]


def test_data_sets_with_a_bug() -> None:
    count = iter(range(9))
    fails("dataset", lambda: Corpus.of("c", [[f"w{next(count)}"]]), "stable fingerprint", "sort files and sets")
    words = Sentence.of(["a", "bank"])
    spans = Corpus("c", (Sentence("a bank", ("a", "bank"), ((0, 1), (1, 5))),))
    fails("dataset", spans, "spans", "the span (1, 5) holds ' ban', the word is 'bank'")
    twice = Corpus("c", (Sentence("a bank", ("bank", "a"), ((2, 6), (0, 1))),))
    fails("dataset", twice, "spans", "spans ascend without overlap")
    fails("dataset", Corpus("c", (words,), (Pair(0, 1, 1.0),)), "pairs and senses", "outside the 1 sentences")
    fails("dataset", Corpus("c", (words,), (), (Sense(0, 2, "s"),)), "pairs and senses", "points to no word")
    fails("dataset", Corpus("", (words,)), "interface", "name is ''")
    fails("dataset", Corpus("c", ()), "interface", "it has no words")
    fails("dataset", Corpus("c", (words,), choices={"n": 3}), "interface", "choices are texts")  # type: ignore[dict-item]
    fails("dataset", [words], "interface", "expected a ctxexp.Corpus, got list")


SETS = """
import ctxexp

def words(*, order: str = "set"):
    "Words of a set."
    found = {f"word{i}" for i in range(50)}
    return ctxexp.Corpus.of("words", [[w] for w in (sorted(found) if order == "sorted" else found)])

@ctxexp.hookimpl
def register_datasets(register):
    register("words", words)
"""


def test_a_data_set_in_the_order_of_a_set(tmp_path: Path) -> None:
    file = tmp_path / "sets.py"
    file.write_text(SETS)
    with pytest.raises(ConformanceError, match=r"BROKEN  the same in another process: .*is it the order of a set"):
        conform("words", {"plugins": [str(file)]})
    assert " 0 broken" in conform("words", {"plugins": [str(file)], "order": "sorted"})
    file.write_text(SETS + "\nimport sys\nif 'dataset/words' in sys.argv: raise OSError('not here')\n")
    with pytest.raises(ConformanceError, match=r"DataError: another process can't build it: .*OSError: not here"):
        conform("words", {"plugins": [str(file)]})


def baseline(draw: Callable[[Occurrences, np.random.Generator], np.ndarray | list[int]]) -> Callable[[], Any]:
    def groups(self: object, occurrences: Occurrences, rng: np.random.Generator) -> Iterator[Any]:
        yield draw(occurrences, rng)

    return type("Mutant", (Baseline,), {"name": "mutant", "groups": groups})


def test_baselines_with_a_bug() -> None:
    rows = "distinct, measured rows (1,500 sentences)"
    check("baseline", baseline(lambda o, rng: rng.permutation(o.distinct.rows)[:9]))
    fails("baseline", baseline(lambda o, rng: rng.choice(o.distinct.rows, 5000)), rows, "has a row twice")
    fails("baseline", baseline(lambda o, rng: np.arange(20)), rows, "which isn't measured")
    fails("baseline", baseline(lambda o, rng: [0.5, 1.5]), rows, "expected two or more row numbers")
    fails("baseline", baseline(lambda o, rng: o.distinct.rows[:9]), "seeded", "another seed gives the same rows")
    fresh = baseline(lambda o, rng: np.random.default_rng().permutation(o.distinct.rows)[:9])
    fails("baseline", fresh, "seeded", "the same generator gives other rows")
    empty = type("Empty", (Baseline,), {"name": "x", "groups": lambda self, o, rng: iter(())})
    fails("baseline", empty, rows, "groups() yields nothing")
    for stranger in (dict, type("Nameless", (Baseline,), {"groups": empty.groups})):
        fails("baseline", stranger, "interface", "expected a ctxexp.Baseline with a name and groups")


@pytest.mark.parametrize("members", [{"baselines": ("size_matched",)}, {"baseline_value": lambda self, x: 0.0}])
def test_a_pair_metrics_idle_baseline_is_noted(members: dict[str, Any]) -> None:
    assert not any("without effect" in note for note in check("metric", STS).notes)
    report = check("metric", type("Idle", (STS,), members))
    assert any(note.startswith(f"{next(iter(members))}") and "without effect" in note for note in report.notes)


# The command.

MUTANT = """
import numpy as np
import ctxexp

class Sum(ctxexp.GroupMean):
    over = "word"
    invariances = frozenset({"scale"})

    def __init__(self, *, power: int = 1):
        super().__init__()
        self.power = power

    def score(self, x):
        return x.astype(float).sum((-2, -1)) ** self.power

@ctxexp.hookimpl
def register_metrics(register):
    register("sum", Sum)
"""


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MUTANT)
    assert run_command_line(["conform", "metric/self_similarity", "sample=3"]) == 0
    printed = capsys.readouterr()
    assert "metric self_similarity sample=3: 13 laws hold, 0 broken" in printed.out
    assert printed.err == ""
    assert run_command_line(["conform", "sum", "power=3", f"plugins=[{file}]"]) == 1
    out = capsys.readouterr().out
    assert f"metric sum power=3 of plugin 'mine' ({file} sha256:" in out
    assert "BROKEN  invariance: scale: it declares scale" in out
    for words, message in (
        (["bret"], "error: no name 'bret'; did you mean 'bert'?"),
        (["metrics/sum"], "error: no name 'metrics/sum'; did you mean metric/sum? ctxexp --help"),
        (["bert", "poling=first"], "error: model 'bert' has no argument 'poling'; did you mean 'pooling'"),
        (["bert", "pooling"], "error: 'pooling': expected key=value; ctxexp conform --help says which"),
        ([], "error: ctxexp conform needs NAME: what it is registered as: bert, or with its kind"),
        (["bert", "pooling=]"], "the value can't be read; quote it"),
        (["bert", "plugins=3"], "error: plugins=3: expected list[str], got int"),
        (["dataset/text"], "error: dataset=text needs a file or folder"),
    ):
        assert run_command_line(["conform", *words]) == 2
        assert message in capsys.readouterr().err
    assert run_command_line(["conform", "--help"]) == 0


def test_names_that_are_ambiguous_or_unknown() -> None:
    registry = registry_of()
    from ctxexp.testing.by_name import find_option

    offer(registry, "metric", "bert", print)
    with pytest.raises(ConfigError, match="'bert' is the name of several things; say model/bert or metric/bert"):
        find_option(registry, "bert")
    with pytest.raises(UnknownName):
        find_option(registry, "metric/brt")


def test_options_that_are_files_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MUTANT.replace('{"scale"}', ""))
    folder = tmp_path / "ctxexp_conf" / "metric" / "sum"
    folder.mkdir(parents=True)
    (folder / "cubed.yaml").write_text("# @package metric.cubed\nname: sum\npower: 3\n")
    (folder / "several.yaml").write_text("defaults:\n  - cubed\n")
    for name in ("metric/sum/cubed", "sum/cubed"):
        assert conform(name, {"plugins": [str(file)]}).startswith("metric sum power=3 of plugin 'mine'")
    assert "metric sum power=1 of" in conform("sum/cubed", {"plugins": [str(file)], "power": 1})
    assert "metric max_explainable_variance definition=centred" in conform("max_explainable_variance_centred", {})
    with pytest.raises(ConfigError, match=r"several\.yaml is no option of one name"):
        conform("metric/sum/several", {"plugins": [str(file)]})
    with pytest.raises(ConfigError, match=r"no name 'sum/cubd'; did you mean 'sum/cubed'\? ctxexp --help") as caught:
        conform("sum/cubd", {"plugins": [str(file)]})
    assert len(str(caught.value)) < 200
    with pytest.raises(ConfigError, match=r"no metric 'sum/cubd'; did you mean 'sum/cubed'\?"):
        conform("metric/sum/cubd", {"plugins": [str(file)]})


SINK = """
import ctxexp

class Mine(ctxexp.Sink):
    def __init__(self, *, api_key: str = ""):
        pass

    def log(self, results, folder):
        pass

@ctxexp.hookimpl
def register_sinks(register):
    register("mine", Mine)
"""


def test_a_sinks_key_is_not_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.py"
    file.write_text(SINK)
    (tmp_path / "ctxexp_conf" / "sink").mkdir(parents=True)
    (tmp_path / "ctxexp_conf" / "sink" / "keyed.yaml").write_text("name: mine\napi_key: ${oc.env:MY_KEY}\n")
    monkeypatch.setenv("MY_KEY", "clear text")
    assert "clear text" not in conform("sink/keyed", {"plugins": [str(file)]})


def test_the_kit_knows_files_named_before_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MUTANT.replace('{"scale"}', ""))
    try:
        assert run_command_line([f"plugins=['{file}']", "conform", "sum"]) == 0
    finally:
        forget_plugin_files()
    assert f"metric sum of plugin 'mine' ({file}" in capsys.readouterr().out
