"""What a check found: laws that hold, laws that are broken and why, and remarks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ctxexp.errors import ConformanceError, said, stranger
from ctxexp.metric import Estimate, Group, Metric

T = TypeVar("T")


class Broken(Exception):  # noqa: N818  # it says what is broken
    """A law does not hold; the message names the cause and what to do."""


@dataclass
class Report:
    """The laws that were checked of one subject; `str(report)` is a line each."""

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
                with stranger():
                    yield
        except Broken as broken:
            self.failures[name] = str(broken)
        except Exception as error:  # the subject is anyone's code
            self.failures[name] = f"it raised {said(error)}"
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


def called(kind: str, thing: object) -> str:
    """`metric 'SelfSimilarity'`: what a report calls a factory, or a subject with a name."""
    return f"{kind} {getattr(thing, '__name__', getattr(thing, 'name', thing))!r}"


def built(make: Callable[[], T] | T, kind: type) -> tuple[T, Callable[[], T] | None]:
    """A subject and how to build another: `make` is a factory, or the subject itself, of this kind."""
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


def fed(make: Callable[[], Metric], groups: Iterable[Group]) -> Metric:
    """A new metric that has seen these groups."""
    metric = make()
    for group in groups:
        metric.update(group)
    return metric


def check_statistics(stats: object) -> None:
    """Raise Broken unless these are statistics by name, as `compute` gives them."""
    if not isinstance(stats, Mapping) or not stats:
        raise Broken(f"compute() gave {stats!r}; expected statistics by name, such as {{'raw': 0.5}}")
    for key, value in stats.items():
        if not isinstance(key, str) or not isinstance(value, float | int | np.number | Estimate):
            raise Broken(f"compute() gave {key!r}: {value!r} ({type(value).__name__}); expected a number by its name")


def numbers(found: Mapping[str, float | Estimate]) -> dict[str, float]:
    """A metric's statistics as numbers alone: of an estimate itself, `_ci_low` and `_ci_high`."""
    flat: dict[str, float] = {}
    for name, value in found.items():
        if isinstance(value, Estimate):
            flat |= {name: value.value, f"{name}_ci_low": value.low, f"{name}_ci_high": value.high}
        else:
            flat[name] = value
    return flat


def written(metric: Metric, folder: Path) -> None:
    """Raise Broken unless the metric gives rows for its table, and writes what it saves."""
    rows: object = metric.table_rows()
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "layer" not in row for row in rows):
        raise Broken(f"table_rows() gave {rows!r:.80}; expected dicts without a key `layer`, which is added")
    metric.save(folder)
