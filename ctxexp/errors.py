"""Every exception that ctxexp raises on purpose.

The command line prints the message of these without a traceback: a user's mistake reads as a sentence.
"""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib.metadata import entry_points
from typing import Any

from ctxexp.host import without_autologging

__all__ = [
    "ConfigError",
    "DataError",
    "EncodingError",
    "MetricError",
    "ModelError",
    "TransformError",
    "UnknownName",
    "error_text",
]

FILE_MODULE = "ctxexp_plugin_"  # begins the names of modules that are plugin files


_MEANT = {  # others' words, by ours
    "float16": "fp16 half",
    "float32": "fp32 float",
    "bfloat16": "bf16",
    "first": "cls",
    "max_explainable_variance": "mev",
    "anisotropy": "isotropy",
    "self_similarity": "selfsim similarity",
    "all_but_the_top": "pca abtt",
    "whitening": "whiten zca",
    "metric": "metrics measures",
    "models": "list",
    "run": "measure analyze analyse evaluate eval",
    "report": "plot plots figure figures chart html",
    "check": "quantize quantise regression verify",
    "out": "output export save csv outfile output_file format",
    "text": "dataset data corpus sentences file path input",
    "dataset.column": "column text_column field",
    "tracking.folder": "output output_dir outdir save_dir",
    "sink.mlflow.uri": "tracking_uri mlflow.tracking_uri tracking.uri mlflow.uri",
    "sink.mlflow.experiment": "experiment_name mlflow.experiment_name tracking.experiment project",
    "model.layers": "layer layers",
    "untrained": "random",
    "dtype": "fp16 bf16 half precision",
    "weights=untrained": "untrained random_init pretrained",
    "device": "gpu cuda use_gpu",
    "cuda": "gpu",
    "words.tokenizer": "language lang",
    "words.sample": "max_sentences n limit num_sentences n_sentences subset",
    "words.mean": "words.weights",
    "words.lower": "lowercase do_lower_case uncased",
    "batch_tokens": "batch_size batch bs",
    "bootstrap": "ci n_bootstrap resamples confidence",
    "min_contexts": "min_count min_freq words.min_contexts min_occurrences",
    "seed": "random_state",
    "verbose": "v quiet",
}
SYNONYMS: dict[str, list[str]] = {}
for _ours, _words in _MEANT.items():
    for _theirs in _words.split():
        SYNONYMS.setdefault(_theirs, []).append(_ours)


def suggestions(name: str, known: Iterable[str], cutoff: float = 0.61) -> list[str]:
    """At most two of `known` that `name` may have meant: what it begins, then what it resembles by the cutoff or more,
    in [0, 1]."""
    names = sorted(known)
    if meant := [one for one in SYNONYMS.get(name, ()) if one in names]:
        return meant[:2]
    name = name[:100]
    begun = [n for n in names if (len(name) > 2 and n.startswith(name)) or n.casefold() == name.casefold()]
    return list(dict.fromkeys(begun + difflib.get_close_matches(name, names, n=2, cutoff=cutoff)))[:2]


def near(name: str, known: Iterable[str]) -> str:
    """`; did you mean ...? (all names)`, the end of a message about an unknown name."""
    names = sorted(known)
    close = suggestions(name, names)
    hint = "; did you mean " + " or ".join(map(repr, close)) + "?" if close else "."
    return f"{hint} ({', '.join(names)})"


def short(value: object) -> str:
    """The value as Python writes it, in one line of at most 80 characters: a message is read, whatever was typed."""
    return line(repr(value), 80)


def is_text(text: str) -> bool:
    """Whether files and terminals take the text: half of a surrogate pair, as in a badly decoded file name, is none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def line(text: str, most: int = 1000) -> str:
    """The text in one line of at most so many characters."""
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= most else f"{one_line[: most - 3]}..."


def error_text(error: BaseException) -> str:
    """The error's type and words in one line of at most 500 characters, whatever they are.

    Example:
        >>> error_text(KeyError("x"))
        "KeyError: 'x'"
    """
    if isinstance(error, SystemExit):
        return f"RuntimeError: it called sys.exit({error.code!r})"
    try:
        message = str(error)
    except Exception:  # a plugin's exception may not even print
        message = "(its message can't be shown)"
    return line(f"{type(error).__name__}: {message}".removesuffix(": "), 500)


def plugin_line(error: BaseException) -> str:
    """` (FILE, line N)`: the last line of a plugin, a file or a distribution, that the error passed through; empty if
    it passed none."""
    distributions = {entry.module.partition(".")[0] for entry in entry_points(group="ctxexp")}
    place = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__"))
        if module.startswith(FILE_MODULE) or module.partition(".")[0] in distributions:
            place = f" ({frame.f_code.co_filename}, line {number})"
    return place


class Terminated(SystemExit):
    """SIGTERM asks this process to end: no fault of the code that it interrupts."""


class CtxexpError(Exception):
    """Base class of errors whose message says what was expected, what came, where, and what to do.

    `part` is kind and label of the part at fault (`metric`, `self_similarity`), where that is known.

    Example:
        >>> try:
        ...     raise UnknownName("model", "brt", ["bert", "gpt2"])
        ... except CtxexpError as error:
        ...     print(error)
        no model 'brt'; did you mean 'bert'? (bert, gpt2)
    """

    part: tuple[str, str] | None = None


class ConfigError(CtxexpError):
    """A config value or override cannot be used."""


class UnknownKey(ConfigError):  # noqa: N818  # as UnknownName
    """A key that no chosen option has."""


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

    @classmethod
    def of_key(cls, where: str, key: Sequence[str], first: Mapping[str, Any], row: Mapping[str, Any]) -> DataError:
        """The error of two rows of one key, which names the columns in which they differ."""
        same = ", ".join(f"{name} {row[name]}" for name in key)
        differ = ", ".join(f"{name} ({first[name]!r}, {row[name]!r})" for name in row if first[name] != row[name])
        return cls(f"{where}: {same} stands twice; the rows differ in {differ or 'no column'}; leave one of them")


class ModelError(CtxexpError):
    """A model checkpoint cannot be found or loaded."""


class EncodingError(CtxexpError):
    """An encoder's output breaks the contract of `ctxexp.Encoder`."""


class TransformError(CtxexpError):
    """A transform's input or output breaks its contract."""

    part = ("transform", "")  # whoever calls it


class MetricError(CtxexpError):
    """A metric's input or output breaks its contract."""


class StoreError(CtxexpError):
    """The vector cache cannot be read or written."""


class DiskError(CtxexpError):
    """A file cannot be written: its disk is full, or its place can't be written to."""


class PluginError(CtxexpError):
    """A plugin could not be loaded, or what it supplied misbehaved."""


class ConformanceError(CtxexpError, AssertionError):
    """A model, metric, transform, data set or baseline fails checks of the conformance kit.

    Example:
        >>> raise_ = ConformanceError("metric 'mine': 1 of 12 laws is broken")
        >>> isinstance(raise_, AssertionError)
        True
    """


class TrackingError(CtxexpError):
    """Results could not be sent to the tracking server; they are safe on disk."""


Message = Callable[[BaseException], str]
_CLASSES: dict[str, type[CtxexpError]] = {
    "model": ModelError,
    "encoder": EncodingError,
    "transform": TransformError,
    "control": MetricError,
    "baseline": MetricError,
    "metric": MetricError,
    "sink": TrackingError,
}


@contextmanager
def plugin_call(
    kind: str, name: str = "", failure: str | Message = "failed", *, within: str | Message | None = None
) -> Iterator[None]:
    """The guard of plugin code: whatever the block raises, its `sys.exit()` too, becomes a CtxexpError that is
    attributed (`part`) to this part unless it is attributed already. What ends the process passes.

    Args:
        kind: The part's kind, such as `metric`; of one that is none of a config's, the error is a PluginError.
        name: The part's name, or its label.
        failure: The predicate of the message about a foreign exception, as in "metric 'x' failed: KeyError: 'a'"; or a
            function that writes the whole message.
        within: The same for ctxexp's own errors, as in "metric 'x' at layer 3: ..."; None: their message stays.
    """
    part = f"{kind} {name!r}" if name else f"the {kind}"
    try:  # a suspended encoder would keep autologging off
        with nullcontext() if kind == "encoder" else without_autologging():
            yield
    except (KeyboardInterrupt, GeneratorExit, Terminated):
        raise
    except BaseException as error:  # plugin code may raise anything
        is_own = isinstance(error, CtxexpError)
        phrase = within if is_own else failure
        if callable(phrase):
            message = phrase(error)
        else:
            message = (
                f"{part}{phrase}: {error}" if is_own else f"{part} {phrase}: {error_text(error)}{plugin_line(error)}"
            )
        attributed = error if is_own and phrase is None else _CLASSES.get(kind, PluginError)(message)
        assert isinstance(attributed, CtxexpError)
        attributed.part = attributed.part or ("model" if kind == "encoder" else kind, name)
        if attributed is error:
            raise
        raise attributed from error
