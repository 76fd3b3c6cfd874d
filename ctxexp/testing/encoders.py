"""Laws of encoders: shapes, rows that follow their words, a context-free layer 0, no memory, no effect of padding;
and names that differ where vectors differ, with each argument's other values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.errors import ConfigError, EncodingError, ModelError
from ctxexp.model import EncodedSentence, Encoder, check_separate, contract_violation
from ctxexp.testing.report import Breach, Probes, Report, check_sentences, subject_and_factory, subject_label

ENDS = [("money", "river"), ("house", "seven"), ("water", "days"), ("he", "under")]  # last words to exchange
FRAME = ("The", "internationalisation", "of", "unbelievably", "big")
LAW = "the name changes when the vectors do"
Others = Mapping[str, Callable[[], Encoder] | Encoder]
# Texts that stand for something outside, which another text would not find, or would look for on a network.
OUTSIDE = re.compile(r"path|file|folder|dir|url|uri|repo|checkpoint|revision|model|name|token|key")


def check_encoder(
    make: Callable[[], Encoder] | Encoder,
    *,
    others: Others | None = None,
    neighbours: Mapping[str, Others] | None = None,
    name: str = "",
) -> Report:
    """The laws of `ctxexp.Encoder`, checked on one encoder; raises ConformanceError naming each that is broken.

    `make` builds the encoder (or is one, then a fresh one isn't compared). `others` are encoders with other settings,
    by what sets them apart (`pooling=first`): where their vectors differ their names must. `neighbours` are encoders
    with guessed values, by the argument (`{"window": {"window=3": make}}`): an argument of which none is accepted is
    noted as unchecked.

    Example:
        >>> from ctxexp.command import registry
        >>> check_encoder(registry().find("model", "random_words").factory).failures
        {}
    """
    encoder, again = subject_and_factory(make, Encoder)
    report = Report(name or subject_label("encoder", encoder))
    with report.law("interface"):
        _interface(encoder)
    if report.failures:
        return report.conclude()
    kit = Probes(encoder)
    with report.law("shapes and units, long and odd sentences included"):
        _shapes(kit)
    if report.failures:
        return report.conclude()
    if kit.refuses:
        report.notes.append(f"refuses what is long: {kit.refuses}")
    with report.law("memory of its own for each sentence"):
        _memory(kit)
    if report.failures:
        return report.conclude()
    if encoder.details.get("pooling") != "pieces":
        with report.law("each row follows its word"):
            _alignment(kit)
    with report.law("layer 0 is the input layer"):
        report.notes.append(_input_layer(kit))
    with report.law("every layer is another"):
        _layers(kit)
    with report.law("determinism"):
        _determinism(kit)
    if encoder.sequential:
        report.notes.append("declared sequential: independence of batch and order isn't asked")
    elif "determinism" not in report.failures:
        with report.law("independence of batch, padding and order"):
            _independence(kit)
    with report.law("lengths"):
        _lengths(encoder)
    with report.law("unknown pieces"):
        _unknown(encoder)
    if (view := encoder.sentence_encoder()) is not None:
        with report.law("sentence vectors"):
            check_sentences(view, encoder)
    if again is not None:
        with report.law("a fresh encoder gives the same"):
            _fresh(kit, again())
    if others or neighbours:
        with report.law(LAW):
            check_names(kit, others or {})
            if unchecked := check_neighbours(kit, neighbours or {}):
                report.notes.append(f"unchecked: whether the name changes with {', '.join(unchecked)}")
    return report.conclude()


def _interface(encoder: Encoder) -> None:
    if wrong := contract_violation(encoder):
        raise Breach(f"it {wrong}")
    try:
        json.dumps(dict(encoder.details), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Breach(f"details can't be logged: {error}; texts, numbers and booleans only") from None


def _shapes(kit: Probes) -> None:
    encoder, types = kit.encoder, set()
    pieces = encoder.details.get("pooling") == "pieces"
    for i, sentence in enumerate([*kit.plain, *kit.odd]):
        what = f"{sentence.text[:40]!r}" + (f" ({len(sentence)} words)" if len(sentence) > 50 else "")
        try:
            vectors = kit.alone(sentence)
            encoder.check_encoded(i, vectors)
        except Breach:
            raise
        except EncodingError as error:
            if len(sentence.text) > 250 and sentence not in kit.vectors:  # its own words, not check_encoded's
                kit.refuses = str(error)
                continue
            if not sentence.words:
                raise Breach(f"a sentence without words: {error}; give np.empty((n_layers, 0, dim))") from error
            raise Breach(f"on {what}: {error}") from error
        except Exception as error:
            raise Breach(f"on {what}: {type(error).__name__}: {error}") from error
        units = tuple(vectors.units)
        types.add(vectors.layers.dtype)
        if not all(isinstance(unit, str) for unit in units):
            raise Breach(f"on {what}: units must be texts, got {units[:3]}")
        if units and not (sentence.text if pieces else sentence.words):
            raise Breach(f"an empty sentence has units {units[:3]}: give (n_layers, 0, dim); special tokens are none")
        left = iter(sentence.words)
        if not pieces and not all(unit in left for unit in units):
            raise Breach(
                f"on {what}: units {units[:6]} aren't the sentence's words {sentence.words[:6]}: pool pieces to words, "
                "or say details['pooling'] = 'pieces' where pieces are meant"
            )
    if len(types) > 1:
        raise Breach(f"vectors come as {' and '.join(sorted(map(str, types)))}; one type a run")


def _memory(kit: Probes) -> None:
    try:
        check_separate(kit.encoder, [*kit.run(kit.plain[:3]), *kit.run(kit.plain[3:])])
    except EncodingError as error:
        raise Breach(str(error)) from error


def _alignment(kit: Probes) -> None:
    """Exchange the last word: its own row must move, in layer 0."""
    n_pairs = 0
    for first, second in ENDS:
        a, b = kit.rows((*FRAME, first)), kit.rows((*FRAME, second))
        if a is None or b is None:
            continue
        n_pairs += 1
        if kit.deviation(a[:1, -1:], b[:1, -1:], over=a[:1]) > 0.05:
            return
    if n_pairs:
        first, second = ENDS[0]
        raise Breach(
            f"in {' '.join(FRAME)!r} + {first!r} the last row of layer 0 stays as it was with {second!r} for {first!r}"
            ": rows aren't the words' own. Are pieces counted as words, or special tokens as pieces? "
            "Pool pieces by character span (ctxexp.models.transformer.pieces)"
        )


def _input_layer(kit: Probes) -> str:
    """Layer 0 of a word may follow its position, never other words."""
    hint = (
        "layer 0 holds context. Give what enters the first block (transformers: hidden_states[0]) as layers[0]; "
        "are the layers off by one?"
    )
    for first, second in ENDS:
        a, b = kit.rows((*FRAME, first)), kit.rows((*FRAME, second))
        if a is not None and b is not None and kit.deviation(a[:1, :-1], b[:1, :-1]) > 1:
            raise Breach(f"the last word, {second!r} for {first!r}, moves the words before it in layer 0: {hint}")
    words = ("We", "saw", "money", "by", "the", "river", "bank")
    swapped = ("We", "money", "saw", "by", "the", "river", "bank")
    a, b = kit.rows(words), kit.rows(swapped)
    if a is not None and b is not None and kit.deviation(a[:1, 3:], b[:1, 3:]) > 1:
        raise Breach(f"two words that change places move those behind them in layer 0: {hint}")
    a = kit.rows(("the", "bank", "the", "bank"))
    fixed = a is not None and kit.deviation(a[:1, :2], a[:1, 2:]) <= 1
    if kit.encoder.positional is False and not fixed:
        raise Breach("positional = False promises one vector a word in layer 0, but 'bank' has others at other places")
    return f"layer 0 holds the word{'' if fixed else ' and its position'}"


def _layers(kit: Probes) -> None:
    stacked = np.concatenate([kit.alone(s).layers for s in kit.plain], axis=1)
    for i, j in combinations(range(len(stacked)), 2):
        if stacked.shape[1] and np.array_equal(stacked[i], stacked[j]):
            raise Breach(f"layers {i} and {j} are the same to the last bit: one of them was taken twice, off by one?")


def _determinism(kit: Probes) -> None:
    for sentence in kit.plain:
        (again,) = kit.run([sentence])
        if kit.deviation(again.layers, kit.alone(sentence).layers) > 0.01:
            raise Breach(
                f"two calls with {sentence.text!r} give different vectors: dropout (call eval()), an unseeded draw, or "
                "state kept from call to call"
            )


def _independence(kit: Probes) -> None:
    def off(batch: Sequence[Sentence]) -> list[bool]:
        pairs = zip(kit.run(batch), map(kit.alone, batch), strict=True)
        return [a.units != b.units or kit.deviation(a.layers, b.layers) > 1 for a, b in pairs]

    one, two = kit.plain[:2]
    every = [*kit.plain, kit.odd[0], kit.empty[0], one]
    if not any([*off([one, two]), *off([two, one]), *off([one, one]), *off(every), *off(every[::-1])]):
        return
    if off([one, two])[1] and off([two, one])[1] and not off([one, two])[0] and not off([two, one])[0]:
        raise Breach(
            "a sentence's vectors depend on the sentences before it in the batch: the encoder carries state from "
            "sentence to sentence. Reset it for each sentence, or declare sequential = True"
        )
    if any([*off([one, two]), *off([two, one])]):
        raise Breach(
            "a sentence's vectors depend on the others in its batch, of equal length too: statistics over the batch "
            "(batch normalisation, in training mode?), or results that come in another order than the sentences"
        )
    raise Breach(
        "a sentence's vectors depend on the others in its batch where their lengths differ: padding is attended to or "
        "pooled. Pass an attention mask, or encode sentences of equal length together"
    )


def _lengths(encoder: Encoder) -> None:
    sentences = [Sentence.of(["one", "two", "three"]), Sentence.of(["one"]), Sentence("", (), ())]
    got = np.asarray(encoder.lengths(sentences))
    if got.shape != (3,) or not np.issubdtype(got.dtype, np.integer) or (got < 0).any() or got[0] < got[1]:
        raise Breach(f"lengths of sentences of 3, 1 and 0 words are {got.tolist()}; expected whole numbers, one each")


def _unknown(encoder: Encoder) -> None:
    none, some = (
        encoder.count_unknown([]),
        encoder.count_unknown([Sentence.of(["one", "\u0378"])]),
    )  # a character that Unicode hasn't assigned
    if tuple(none) != (0, 0) or not 0 <= some[0] <= some[1]:
        raise Breach(
            f"count_unknown() gives {none} for no sentence and {some} for one; expected how many pieces are unknown, "
            "and of how many"
        )


def _fresh(kit: Probes, other: Encoder) -> None:
    if other.name != kit.encoder.name:
        raise Breach(
            f"built twice, it is named {kit.encoder.name!r} and {other.name!r}: cached vectors would never be found"
        )
    fresh = [vectors for sentence in kit.plain[:3] for vectors in other.encode([sentence])]
    if any(kit.deviation(a.layers, kit.alone(s).layers) > 1 for a, s in zip(fresh, kit.plain, strict=False)):
        raise Breach("built twice under one name, it gives other vectors: draw random weights from a seed in the name")


def check_names(kit: Probes, others: Others) -> None:
    """Raise Breach where an encoder of `others` has the name of another one and other vectors; one that refuses its
    setting is left out."""
    first_by_name: dict[str, tuple[str, Callable[[], Encoder] | Encoder]] = {
        kit.encoder.name: ("its settings here", kit.encoder)
    }
    for label, make in others.items():
        try:
            other, _ = subject_and_factory(make, Encoder)
        except (ConfigError, ModelError):
            continue  # a setting that this model refuses
        _compare(kit, first_by_name, label, make, other)


def check_neighbours(kit: Probes, neighbours: Mapping[str, Others]) -> list[str]:
    """The arguments of which no neighbour value is accepted. `neighbours` holds encoders with other values of an
    argument, by the argument; raises Breach as `check_names` does.

    The values are guesses, so that any exception refuses one; the first one that is accepted is compared.
    """
    unchecked = []
    for argument, candidates in neighbours.items():
        for label, make in candidates.items():
            try:
                other, _ = subject_and_factory(make, Encoder)
                _compare(kit, {kit.encoder.name: ("its settings here", kit.encoder)}, label, make, other)
            except Breach:
                raise
            except Exception:
                continue
            break
        else:
            unchecked.append(argument)
    return unchecked


def _compare(
    kit: Probes,
    first_by_name: dict[str, tuple[str, Callable[[], Encoder] | Encoder]],
    label: str,
    make: Callable[[], Encoder] | Encoder,
    other: Encoder,
) -> None:
    """Raise Breach where the first encoder of this name has other vectors. Only encoders of one name encode."""
    before, first = first_by_name.setdefault(other.name, (label, make))
    if first is make:
        return
    expected, got = _sample(kit, subject_and_factory(first, Encoder)[0]), _sample(kit, other)
    pairs = [(a, b) for a, b in zip(got, expected, strict=True) if a is not None and b is not None]
    if any(
        a.units != b.units or a.layers.dtype != b.layers.dtype or kit.deviation(a.layers, b.layers) > 0.01
        for a, b in pairs
    ):
        raise Breach(
            f"with {label} the vectors are others than with {before}, but the name is the same, {other.name!r}: "
            "the cache would mix them up. Put the setting in the name"
        )


def _sample(kit: Probes, encoder: Encoder) -> list[EncodedSentence | None]:
    vectors: list[EncodedSentence | None] = list(encoder.encode(kit.plain))
    try:
        return [*vectors, *encoder.encode([kit.long])]
    except EncodingError:
        return [*vectors, None]


def neighbour_values(argument: str, value: object) -> Iterator[object]:
    """Values beside this one of an argument, for numbers and texts; none where another value makes no sense."""
    values: tuple[object, ...] = ()
    if isinstance(value, int) and not isinstance(value, bool):
        values = (value + 1, 2 * value, value - 1, value // 2)  # some are refused, such as an odd width
    elif isinstance(value, float):
        values = (value / 2, 2 * value, value + 1)
    elif isinstance(value, str) and value and not OUTSIDE.search(argument) and not re.search(r"[/.~\\:]", value):
        values = ("bfloat16", "float16") if value == "float32" else (f"{value}s", value[::-1])
    yield from (other for other in dict.fromkeys(values) if other != value)
