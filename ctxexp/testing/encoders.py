"""Laws of encoders, and of their views of whole sentences."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.datasets.words import tokenizer
from ctxexp.errors import ConfigError, EncodingError, ModelError
from ctxexp.model import EncodedSentence, Encoder, check_separate, contract_violation
from ctxexp.testing.report import Breach, Report, report_on, require, subject_and_factory

TOLERANCE = {"float32": 2e-3, "float16": 6e-2}  # share of a layer's root mean square that rounding may move a number by
PLAIN = [
    "The bank closed its doors early today .",
    "today the bank closed its doors early .",  # nearly the first one's words, and so of its length in pieces too
    "Internationalisation bewildered the unbelievably underprepared committee .",
    "the bank the bank the the",
    "It rained .",
    "Yes",
]
ODD = [
    "naïve café owners — “quite” e\u0301te\u0301 ﬁn",
    "👩‍👩‍👧 🙂 costs 3.50 € !",
    "漢字 かな 한국어 кириллица عربى",
    "  two   spaced\twords ",
    "x" * 300 + " is long",
]
SENTENCES = [Sentence.of(text.split()) for text in ("The bank closed early .", "It rained .", "the river", "It rained")]
ENDS = [("money", "river"), ("house", "seven"), ("water", "days"), ("he", "under")]  # last words to exchange
FRAME = ("The", "internationalisation", "of", "unbelievably", "big")
LAW = "the name changes when the vectors do"
Others = Mapping[str, Callable[[], Encoder] | Encoder]


def check_encoder(make: Callable[[], Encoder] | Encoder, *, others: Others | None = None, name: str = "") -> Report:
    """The laws of `ctxexp.Encoder`, checked on one encoder; raises ConformanceError naming each that is broken.

    `make` builds the encoder (or is one, then a fresh one isn't compared). `others` are encoders with other settings,
    by what sets them apart (`pooling=first`): where their vectors differ their names must.
    """
    encoder, again = subject_and_factory(make, Encoder)
    report = report_on("encoder", encoder, name).check(encoder, interface)
    kit = Probes(encoder)
    report.check(kit, shapes_and_units).check(kit, determinism)
    if encoder.details.get("pooling") != "pieces":
        report.check(kit, each_row_follows_its_word)
    report.check(kit, layer_0_is_the_input_layer, every_layer_is_another, independence_of_the_batch, counts)
    if (view := encoder.sentence_encoder()) is not None:
        with report.law("sentence vectors"):
            check_sentences(view, encoder)
    if again is not None:
        with report.law("a fresh encoder gives the same"):
            _fresh(kit, again())
    with report.law(LAW):
        check_names(kit, others or {})
    return report.check(kit)


class Probes:
    """An encoder with its vectors of the probe sentences, each encoded alone."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        split = tokenizer("english")
        self.plain = [split(text) for text in PLAIN]
        self.long = Sentence.of(("the bank by the river " * 150).split())
        self.empty = [Sentence("", (), ()), Sentence("  ", (), ())]
        odd = map(tokenizer("whitespace"), ODD)  # ICU may be missing
        self.odd = [*odd, *self.empty, self.long]
        self.pieces = encoder.details.get("pooling") == "pieces"
        self.vectors: dict[Sentence, EncodedSentence] = {}

    def alone(self, sentence: Sentence) -> EncodedSentence:
        if sentence not in self.vectors:
            (self.vectors[sentence],) = self.run([sentence])
        return self.vectors[sentence]

    def run(self, batch: Sequence[Sentence]) -> list[EncodedSentence]:
        results = list(self.encoder.encode(batch))
        what = f"encode gave {len(results)} results for {len(batch)} sentences; expected one each, in order"
        require(len(results) == len(batch), what)
        return results

    def shift(self, first: Sequence[str], second: Sequence[str], places: slice) -> float:
        """The deviation in layer 0 of the rows at these places, between two sentences of as many words; NaN where a
        word has no row."""
        a, b = self.alone(Sentence.of(first)), self.alone(Sentence.of(second))
        if a.units != tuple(first) or b.units != tuple(second):
            return np.nan
        return self.deviation(a.layers[:1, places], b.layers[:1, places], over=a.layers[:1])

    def deviation(self, a: np.ndarray, b: np.ndarray, *, over: np.ndarray | None = None) -> float:
        """The largest difference of a and b, in multiples of the rounding tolerance of its layer: above 1 they
        differ."""
        if a.shape != b.shape:
            return np.inf
        if not a.size:
            return 0.0
        wide = np.asarray(b if over is None else over, np.float64)
        scale = np.sqrt((wide**2).mean(axis=tuple(range(1, wide.ndim)), keepdims=True)) + 1e-12
        gap = np.abs(np.asarray(a, np.float64) - b) / scale
        half = a.dtype == np.float16 or "float16" in str(self.encoder.details.get("dtype"))  # bfloat16 too
        return float(gap.max() / TOLERANCE["float16" if half else "float32"])


def interface(encoder: Encoder) -> None:
    if wrong := contract_violation(encoder):
        raise Breach(f"it {wrong}")
    try:
        json.dumps(dict(encoder.details), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Breach(f"details can't be logged: {error}; texts, numbers and booleans only") from None


def shapes_and_units(kit: Probes) -> str | None:
    types, refusal = set(), None
    for i, sentence in enumerate([*kit.plain, *kit.odd]):
        what = f"on {sentence.text[:40]!r}" + (f" ({len(sentence)} words)" if len(sentence) > 50 else "")
        try:
            vectors = kit.alone(sentence)
            kit.encoder.check_encoded(i, vectors)
        except EncodingError as error:
            if len(sentence.text) > 250 and sentence not in kit.vectors:  # its own words, not check_encoded's
                refusal = f"refuses what is long: {error}"
                continue
            hint = "" if sentence.words else "; of no word give np.empty((n_layers, 0, dim))"
            raise Breach(f"{what}: {error}{hint}") from error
        units, left = tuple(vectors.units), iter(sentence.words)
        types.add(vectors.layers.dtype)
        require(all(isinstance(unit, str) for unit in units), f"{what}: units must be texts, got {units[:3]}")
        require(not units or sentence.words or (kit.pieces and sentence.text), f"{what}: an empty sentence has units")
        require(
            kit.pieces or all(unit in left for unit in units),
            f"{what}: units {units[:6]} aren't the sentence's words {sentence.words[:6]}: pool pieces to words, "
            "or say details['pooling'] = 'pieces' where pieces are meant",
        )
    require(len(types) == 1, f"vectors come as {' and '.join(sorted(map(str, types)))}; one type a run")
    return refusal


def determinism(kit: Probes) -> None:
    for sentence in kit.plain:
        (again,) = kit.run([sentence])
        require(
            kit.deviation(again.layers, kit.alone(sentence).layers) <= 0.01,
            f"two calls with {sentence.text!r} give different vectors: dropout (call eval()), an unseeded draw, or "
            "state kept from call to call",
        )


def each_row_follows_its_word(kit: Probes) -> None:
    """Exchange the last word: its own row must move, in layer 0."""
    moves = [kit.shift((*FRAME, first), (*FRAME, second), slice(-1, None)) for first, second in ENDS]
    require(
        np.isnan(moves).all() or np.nanmax(moves) > 0.05,
        f"another word after {' '.join(FRAME)!r} leaves the last row of layer 0 as it was: rows aren't the words' own. "
        "Are pieces counted as words, or special tokens as pieces? Pool pieces by character span "
        "(ctxexp.models.transformer.pieces)",
    )


def layer_0_is_the_input_layer(kit: Probes) -> str:
    """Layer 0 of a word may follow its position, never other words."""
    hint = (
        "layer 0 holds context. Give what enters the first block (transformers: hidden_states[0]) as layers[0]; "
        "are the layers off by one?"
    )
    for first, second in ENDS:
        shift = kit.shift((*FRAME, first), (*FRAME, second), slice(-1))
        require(not shift > 1, f"the last word, {second!r} for {first!r}, moves the words before it in layer 0: {hint}")
    behind = ("by", "the", "river", "bank")
    shift = kit.shift(("We", "saw", "money", *behind), ("We", "money", "saw", *behind), slice(3, None))
    require(not shift > 1, f"two words that change places move those behind them in layer 0: {hint}")
    twice = kit.alone(Sentence.of(["the", "bank"] * 2))
    fixed = len(twice.units) == 4 and kit.deviation(twice.layers[:1, :2], twice.layers[:1, 2:]) <= 1
    promise = "positional = False promises one vector a word in layer 0, but 'bank' has others at other places"
    require(fixed or kit.encoder.positional is not False, promise)
    return f"layer 0 holds the word{'' if fixed else ' and its position'}"


def every_layer_is_another(kit: Probes) -> None:
    stacked = np.concatenate([kit.alone(s).layers for s in kit.plain], axis=1)
    for i, j in combinations(range(len(stacked)), 2):
        same = stacked.shape[1] and np.array_equal(stacked[i], stacked[j])
        require(not same, f"layers {i} and {j} are the same to the last bit: one of them was taken twice, off by one?")


def independence_of_the_batch(kit: Probes) -> str | None:
    if kit.encoder.sequential:
        return "declared sequential: independence of batch and order isn't asked"

    def off(batch: Sequence[Sentence]) -> list[bool]:
        pairs = zip(kit.run(batch), map(kit.alone, batch), strict=True)
        return [a.units != b.units or kit.deviation(a.layers, b.layers) > 1 for a, b in pairs]

    one, two = kit.plain[:2]
    pairs = [off([one, two]), off([two, one])]
    require(
        pairs != [[False, True]] * 2,
        "a sentence's vectors depend on the sentences before it in the batch: the encoder carries state from sentence "
        "to sentence. Reset it for each sentence, or declare sequential = True",
    )
    require(
        not any(map(any, pairs)),
        "a sentence's vectors depend on the others in its batch, of equal length too: statistics over the batch (batch "
        "normalisation, in training mode?), or results that come in another order than the sentences",
    )
    every = [*kit.plain, kit.odd[0], kit.empty[0], one]
    require(
        not any([*off(every), *off(every[::-1])]),
        "a sentence's vectors depend on the others in its batch where their lengths differ: padding is attended to or "
        "pooled. Pass an attention mask, or encode sentences of equal length together",
    )
    return None


def counts(kit: Probes) -> None:
    encoder, odd = kit.encoder, Sentence.of(["one", "\u0378"])  # a character that Unicode hasn't assigned
    lengths = np.asarray(encoder.lengths([Sentence.of(["one", "two", "three"]), Sentence.of(["one"]), kit.empty[0]]))
    whole = lengths.shape == (3,) and np.issubdtype(lengths.dtype, np.integer) and (lengths >= 0).all()
    what = f"lengths of sentences of 3, 1 and 0 words are {lengths.tolist()}; expected whole numbers, one each"
    require(whole and lengths[0] >= lengths[1], what)
    none, some = encoder.count_unknown([]), encoder.count_unknown([odd])
    what = f"count_unknown() gives {none} for no sentence and {some} for one"
    sound = tuple(none) == (0, 0) and 0 <= some[0] <= some[1]
    require(sound, f"{what}; expected how many pieces are unknown, and of how many")


def check_sentences(view: Encoder, encoder: Encoder) -> None:
    """Raise Breach unless the encoder's `sentence_encoder()` returned a view as the contract, `ctxexp.Encoder`,
    documents it."""
    who = "sentence_encoder()"
    if wrong := contract_violation(view):
        raise Breach(f"{who}: what it gave {wrong}")
    require(view.poolings, f"{who}: what it gave has no poolings; expected the names of its units")
    require(view.name != encoder.name, f"{who}: its name is the encoder's own, so the cache would mix up the two")
    same = (view.n_layers, view.dim) == (encoder.n_layers, encoder.dim)
    require(same, f"{who} has {view.n_layers} layers of {view.dim}, the encoder {encoder.n_layers} of {encoder.dim}")
    together = list(view.encode(SENTENCES))
    try:
        for i, vectors in enumerate(together):
            view.check_encoded(i, vectors)
        check_separate(view, together)
    except EncodingError as error:
        raise Breach(f"{who}: {error}") from error
    for sentence, vectors in zip(SENTENCES, together, strict=True):
        strange = [unit for unit in vectors.units if unit not in view.poolings]
        require(not strange, f"{who} gave units {strange} that aren't among its poolings {list(view.poolings)}")
        (alone,) = view.encode([sentence])
        scale = np.sqrt((alone.layers.astype(np.float64) ** 2).mean()) + 1e-12
        gap = TOLERANCE["float16"] * scale  # wide enough for each type
        same = alone.units == vectors.units and np.abs(alone.layers - vectors.layers).max(initial=0) <= gap
        require(same, f"{who}: a sentence's vectors depend on the others in its batch; is padding pooled?")


def _fresh(kit: Probes, other: Encoder) -> None:
    named = f"built twice, it is named {kit.encoder.name!r} and {other.name!r}"
    require(other.name == kit.encoder.name, f"{named}: cached vectors would never be found")
    fresh = [vectors for sentence in kit.plain[:3] for vectors in other.encode([sentence])]
    same = all(kit.deviation(a.layers, kit.alone(s).layers) <= 1 for a, s in zip(fresh, kit.plain, strict=False))
    require(same, "built twice under one name, it gives other vectors: draw random weights from a seed in the name")


def check_names(kit: Probes, others: Others) -> None:
    """Raise Breach where an encoder of `others` has the name of another one and other vectors; one that refuses its
    setting is left out. Only encoders of one name encode."""
    first_by_name: dict[str, tuple[str, Callable[[], Encoder] | Encoder]] = {
        kit.encoder.name: ("its settings here", kit.encoder)
    }
    for label, make in others.items():
        try:
            other, _ = subject_and_factory(make, Encoder)
        except (ConfigError, ModelError):
            continue  # a setting that this model refuses
        before, first = first_by_name.setdefault(other.name, (label, make))
        if first is make:
            continue
        for a, b in zip(_sample(kit, other), _sample(kit, subject_and_factory(first, Encoder)[0]), strict=False):
            same = a.units == b.units and a.layers.dtype == b.layers.dtype and kit.deviation(a.layers, b.layers) <= 0.01
            require(
                same,
                f"with {label} the vectors are others than with {before}, but the name is the same, {other.name!r}: "
                "the cache would mix them up. Put the setting in the name",
            )


def _sample(kit: Probes, encoder: Encoder) -> list[EncodedSentence]:
    """Vectors of the plain sentences, and of the long one unless it is refused."""
    vectors = list(encoder.encode(kit.plain))
    try:
        return [*vectors, *encoder.encode([kit.long])]
    except EncodingError:
        return vectors
