"""Every exception that ctxexp raises on purpose.

CtxexpError
├── ConfigError          an override or a config value is wrong
│   └── UnknownName      a name that nothing registered, with its near matches
├── DataError            a dataset file is missing or not in its format
├── ModelError           a checkpoint is missing, unreadable or not of the expected shape
├── EncodingError        an encoder broke its contract (units, shapes, NaN)
├── TransformError       a transform broke its contract (shapes, NaN)
├── MetricError          a metric broke its contract or was asked the impossible
├── StoreError           the vector cache cannot be read or written
├── EngineError          an engine's workers die, or can't be reached
├── DiskError            a file cannot be written: the disk is full, or the place can't be written to
├── PluginError          a plugin could not be loaded or misbehaved
├── ConformanceError     a check of `ctxexp.testing` failed; also an AssertionError
└── TrackingError        MLflow refused or could not be reached; results are on disk

The command line prints the message of these without a traceback: a user's mistake reads as a sentence.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


def suggestions(name: str, known: Iterable[str]) -> list[str]:
    """At most two of `known` that `name` may have meant: what it begins, then what it resembles."""
    names = sorted(known)
    name = name[:100]
    begun = [n for n in names if (len(name) > 2 and n.startswith(name)) or n.casefold() == name.casefold()]
    return list(dict.fromkeys(begun + difflib.get_close_matches(name, names, n=2, cutoff=0.6)))[:2]


def near(name: str, known: Iterable[str]) -> str:
    """`; did you mean ...? (all names)`, the end of a message about an unknown name."""
    names = sorted(known)
    close = suggestions(name, names)
    hint = "; did you mean " + " or ".join(map(repr, close)) + "?" if close else "."
    return f"{hint} ({', '.join(names)})"


def short(value: object) -> str:
    """The value as Python writes it, in one line of at most 80 characters: a message is read, whatever was typed."""
    try:
        return line(repr(value), 80)
    except RecursionError:
        return f"a {type(value).__name__} of many levels"


def is_text(text: str) -> bool:
    """Whether files and terminals take the text: half of a surrogate pair, as in a badly decoded file name, is none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def line(text: str, most: int = 1000) -> str:
    """The text in one line of at most so many characters."""
    joined = " ".join(text.split())
    return joined if len(joined) <= most else f"{joined[: most - 3]}..."


def said(error: BaseException) -> str:
    """The error's type and words, `KeyError: 'x'`, in one line of at most 500 characters, whatever they are."""
    try:
        words = str(error)
    except Exception:  # a stranger's exception may not even print
        words = "(its message can't be shown)"
    return line(f"{type(error).__name__}: {words}".removesuffix(": "), 500)


class Terminated(SystemExit):
    """SIGTERM asks this process to end: no fault of the code that it interrupts."""


@contextmanager
def stranger() -> Iterator[None]:
    """Code that isn't ours runs inside: its `sys.exit()` is an exception like any other, not the end of the command."""
    try:
        yield
    except (Exception, KeyboardInterrupt, GeneratorExit, Terminated):
        raise
    except SystemExit as error:
        raise RuntimeError(f"it called sys.exit({error.code!r})") from error
    except BaseException as error:
        raise RuntimeError(f"it raised {said(error)}") from error


class CtxexpError(Exception):
    """Base class: what was expected, what came, where, and what to do.

    `of` is kind and label of what is at fault (`metric`, `self_similarity`), where that is known.
    """

    of: tuple[str, str] | None = None


class ConfigError(CtxexpError):
    """A config value or override cannot be used."""


class UnknownName(ConfigError):  # noqa: N818  # it is a name that is unknown, as KeyError is a key
    """A name that nothing registered."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        self.hint = hint
        super().__init__(f"no {kind} {short(name)}{hint}{near(name, self.known)}")

    def __reduce__(self) -> tuple[object, ...]:  # another process may raise it
        return type(self), (self.kind, self.name, self.known, self.hint)


class DataError(CtxexpError):
    """A dataset file is missing or malformed."""


class ModelError(CtxexpError):
    """A model checkpoint cannot be found or loaded."""


class EncodingError(CtxexpError):
    """An encoder's output breaks the contract of `ctxexp.model.Encoder`."""


class TransformError(CtxexpError):
    """A transform's input or output breaks its contract."""


class MetricError(CtxexpError):
    """A metric's input or output breaks its contract."""


class StoreError(CtxexpError):
    """The vector cache cannot be read or written."""


class EngineError(CtxexpError):
    """An engine can't do its work: its workers die, or can't be reached."""


class DiskError(CtxexpError):
    """A file cannot be written: its disk is full, or its place can't be written to."""


class PluginError(CtxexpError):
    """A plugin could not be loaded, or what it supplied misbehaved."""


class ConformanceError(CtxexpError, AssertionError):
    """A model, metric, transform, data set or baseline fails checks of the conformance kit."""


class TrackingError(CtxexpError):
    """Results could not be sent to the tracking server; they are safe on disk."""


@contextmanager
def blamed(kind: str) -> Iterator[None]:
    """What is raised inside is this kind's fault (`model`, `control`, `transform`), unless it says whose it is."""
    try:
        yield
    except CtxexpError as error:
        if error.of is None and (kind != "transform" or isinstance(error, TransformError)):
            error.of = kind, ""
        raise
    except Exception as error:  # a stranger's code may raise anything
        if kind not in ("model", "control"):
            raise
        failure = (ModelError if kind == "model" else MetricError)(
            f"the {kind} failed: {type(error).__name__}: {error}"
        )
        failure.of = kind, ""
        raise failure from error
