"""The report of a check (laws that hold, broken laws with their causes, and notes), the sentences on which an
encoder's laws are checked, and those of its view of whole sentences: units named after poolings, vectors of their
sentence alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ctxexp.dataset import Sentence
from ctxexp.datasets.reading import tokenizer
from ctxexp.errors import ConformanceError, EncodingError, PluginError, error_text, plugin_call, plugin_line
from ctxexp.groups import Group
from ctxexp.metrics import Estimate, Metric, Output
from ctxexp.model import EncodedSentence, Encoder, check_separate, contract_violation

T = TypeVar("T")
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
ANY_TYPE = 6e-2  # share of a layer's root mean square, wide enough for half-precision types


class Breach(Exception):  # noqa: N818  # it is caught, and reported
    """A law does not hold; the message names the cause and what to do."""


@dataclass
class Report:
    """The laws that were checked of one subject; `str(report)` is a line each.

    Example:
        >>> report = Report("metric 'mine'")
        >>> with report.law("one and one"):
        ...     assert 1 + 1 == 2
        >>> report.failures
        {}
    """

    subject: str
    passed: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)  # law -> cause
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def law(self, name: str) -> Iterator[None]:
        """The block checks this law: whatever it raises breaks the law, and the next one is checked."""
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with plugin_call("subject", failure=_raised, within=_raised):
                    yield
        except PluginError as error:
            self.failures[name] = str(error)
        else:
            self.passed.append(name)
            for text in dict.fromkeys(f"{name}: {w.category.__name__}: {w.message}" for w in caught):
                self.notes.append(f"warned in {text}")

    def conclude(self) -> Report:
        """The report itself; raises ConformanceError, with the whole report as its text, if a law is broken."""
        if self.failures:
            raise ConformanceError(str(self))
        return self

    def __str__(self) -> str:
        lines = [f"{self.subject}: {len(self.passed)} laws hold, {len(self.failures)} broken"]
        lines += [f"  ok      {name}" for name in self.passed]
        lines += [f"  BROKEN  {name}: {cause}" for name, cause in self.failures.items()]
        lines += [f"  note    {note}" for note in self.notes]
        return "\n".join(lines)


def _raised(error: BaseException) -> str:
    return str(error) if isinstance(error, Breach) else f"it raised {error_text(error)}{plugin_line(error)}"


def subject_label(kind: str, thing: object) -> str:
    """`metric 'SelfSimilarity'`: the label of a factory, or of a subject with a name, in a report."""
    return f"{kind} {getattr(thing, '__name__', getattr(thing, 'name', thing))!r}"


def subject_and_factory(make: Callable[[], T] | T, kind: type) -> tuple[T, Callable[[], T] | None]:
    """A subject and a factory of others (None if `make` is the subject itself, an instance of `kind`)."""
    if callable(make) and not isinstance(make, kind):
        return make(), make
    return make, None  # type: ignore[return-value]  # it is no factory, so it is the subject


def equal(a: Mapping[str, npt.ArrayLike], b: Mapping[str, npt.ArrayLike], *, tolerance: float = 1e-9) -> bool:
    """Whether two sets of statistics agree, NaN equal to NaN."""
    return a.keys() == b.keys() and all(
        np.allclose(a[key], b[key], rtol=tolerance, atol=tolerance, equal_nan=True) for key in a
    )


def difference(a: dict[str, float], b: dict[str, float]) -> str:
    """`raw: 0.5 instead of 0.25`: the first statistic that differs most."""
    if a.keys() != b.keys():
        return f"statistics {sorted(a)} instead of {sorted(b)}"
    key = max(b, key=lambda k: np.nan_to_num(abs(a[k] - b[k]), nan=0.0 if np.isnan(a[k]) == np.isnan(b[k]) else np.inf))
    return f"{key}: {a[key]:.6g} instead of {b[key]:.6g}"


def updated_metric(make: Callable[[], Metric], groups: Iterable[Group]) -> Metric:
    """A new metric, updated with these groups."""
    metric = make()
    for group in groups:
        metric.update(group)
    return metric


def check_statistics(stats: object) -> None:
    """Raise Breach unless these are statistics by name, as `compute` gives them."""
    if not isinstance(stats, Mapping) or not stats:
        raise Breach(f"compute() gave {stats!r}; expected statistics by name, such as {{'raw': 0.5}}")
    for key, value in stats.items():
        if not isinstance(key, str) or not isinstance(value, float | int | np.number | Estimate):
            raise Breach(
                f"compute() gave {key!r}: {value!r} ({type(value).__name__}); expected a number by its name; "
                "with an interval ctxexp.Estimate(value, low, high)"
            )


def numbers(found: Mapping[str, float | Estimate]) -> dict[str, float]:
    """A metric's statistics as numbers alone: of an estimate itself, `_ci_low` and `_ci_high`."""
    flat: dict[str, float] = {}
    for name, value in found.items():
        if isinstance(value, Estimate):
            flat |= {name: value.value, f"{name}_ci_low": value.low, f"{name}_ci_high": value.high}
        else:
            flat[name] = value
    return flat


def check_outputs(metric: Metric, folder: Path) -> None:
    """Raise Breach unless `outputs` gives files and rows of tables by name; write the files to `folder`."""
    outputs: object = metric.outputs()
    if not isinstance(outputs, Mapping):
        raise Breach(f"outputs() gave {outputs!r:.80}; expected outputs by name")
    for name, output in outputs.items():
        if isinstance(output, Output):
            output.write(folder)
            output.write_together({"layer_00": output}, folder, n_layers=1, title="check")
        elif not isinstance(output, list) or not all(isinstance(row, dict) and "layer" not in row for row in output):
            raise Breach(f"outputs() gave {name!r}: {output!r:.80}; expected an Output, or dicts without a key `layer`")


class Probes:
    """An encoder with its vectors of the probe sentences, each encoded alone."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        split = tokenizer("english")
        self.plain = [split(text) for text in PLAIN]
        self.long = Sentence.of(("the bank by the river " * 150).split())
        self.empty = [Sentence("", (), ()), Sentence("  ", (), ())]
        self.odd = [*map(split, ODD), *self.empty, self.long]
        self.vectors: dict[Sentence, EncodedSentence] = {}
        self.refuses = ""  # what it says of what is long, if it refuses that

    def alone(self, sentence: Sentence) -> EncodedSentence:
        if sentence not in self.vectors:
            (self.vectors[sentence],) = self.run([sentence])
        return self.vectors[sentence]

    def run(self, batch: Sequence[Sentence]) -> list[EncodedSentence]:
        results = list(self.encoder.encode(batch))
        if len(results) != len(batch):
            raise Breach(f"encode gave {len(results)} results for {len(batch)} sentences; expected one each, in order")
        return results

    def rows(self, words: Sequence[str]) -> np.ndarray | None:
        """(n_layers, len(words), dim), or None where a word has no row."""
        vectors = self.alone(Sentence.of(words))
        return vectors.layers if vectors.units == tuple(words) else None

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


def check_sentences(view: Encoder, encoder: Encoder) -> None:
    """Raise Breach unless the encoder's `sentence_encoder()` returned a view as the contract, `ctxexp.Encoder`,
    documents it."""
    if wrong := contract_violation(view):
        raise Breach(f"sentence_encoder(): what it gave {wrong}")
    if not view.poolings:
        raise Breach("sentence_encoder(): what it gave has no poolings; expected the names of its units")
    if view.name == encoder.name:
        raise Breach("sentence_encoder(): its name is the encoder's own, so the cache would mix up words and sentences")
    if (view.n_layers, view.dim) != (encoder.n_layers, encoder.dim):
        raise Breach(
            f"sentence_encoder() has {view.n_layers} layers of {view.dim}, "
            f"the encoder {encoder.n_layers} of {encoder.dim}"
        )
    together = list(view.encode(SENTENCES))
    try:
        for i, vectors in enumerate(together):
            view.check_encoded(i, vectors)
        check_separate(view, together)
    except EncodingError as error:
        raise Breach(f"sentence_encoder(): {error}") from error
    for sentence, vectors in zip(SENTENCES, together, strict=True):
        if strange := [unit for unit in vectors.units if unit not in view.poolings]:
            raise Breach(
                f"sentence_encoder() gave units {strange} that aren't among its poolings {list(view.poolings)}"
            )
        (alone,) = view.encode([sentence])
        scale = np.sqrt((alone.layers.astype(np.float64) ** 2).mean()) + 1e-12
        if alone.units != vectors.units or np.abs(alone.layers - vectors.layers).max(initial=0) > ANY_TYPE * scale:
            raise Breach(
                "sentence_encoder(): a sentence's vectors depend on the others in its batch; is padding pooled?"
            )
