"""The report of a check: laws that hold, broken laws with their causes, and notes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ctxexp.errors import ConformanceError, PluginError, error_text, plugin_call, plugin_line
from ctxexp.measuring.groups import Group
from ctxexp.metric import Estimate, Metric, Output

T = TypeVar("T")


class Breach(Exception):  # noqa: N818  # it is caught, and reported
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
