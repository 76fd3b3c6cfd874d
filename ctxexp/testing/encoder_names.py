"""The law of encoders' names: where vectors differ, names differ, with each argument's other values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ctxexp.errors import ConfigError, EncodingError, ModelError
from ctxexp.model import EncodedSentence, Encoder
from ctxexp.testing.probes import Probes
from ctxexp.testing.report import Breach, subject_and_factory

LAW = "the name changes when the vectors do"
Others = Mapping[str, Callable[[], Encoder] | Encoder]
# Texts that stand for something outside, which another text would not find, or would look for on a network.
OUTSIDE = re.compile(r"path|file|folder|dir|url|uri|repo|checkpoint|revision|model|name|token|key")


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
