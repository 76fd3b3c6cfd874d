"""The report of a check: laws that hold, broken laws with their causes, and notes; and what several kinds ask."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from ctxexp.errors import ConformanceError, PluginError, error_text, plugin_call, plugin_line

T = TypeVar("T")
Law = Callable[[T], str | None]
"""A function whose name is the law's: of a subject it raises Breach, or returns a note (None: nothing to say)."""


class Breach(Exception):  # noqa: N818  # it is caught, and reported
    """A law does not hold; the message names the cause and what to do."""


def require(holds: object, cause: str) -> None:
    """Raise Breach with this cause unless it holds."""
    if not holds:
        raise Breach(cause)


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
                with plugin_call("subject", failure=_message, within=_message):
                    yield
        except PluginError as error:
            self.failures[name] = str(error)
        else:
            self.passed.append(name)
            for text in dict.fromkeys(f"{name}: {w.category.__name__}: {w.message}" for w in caught):
                self.notes.append(f"warned in {text}")

    def check(self, subject: T, *laws: Law[T]) -> Report:
        """The report, with each of these laws asked of the subject; raises ConformanceError, with the report as its
        text, if a law is broken: by now, so that laws that build on others come in a later call."""
        for law in laws:
            with self.law(law.__name__.replace("_", " ")):
                if note := law(subject):
                    self.notes.append(note)
        if self.failures:
            raise ConformanceError(str(self))
        return self

    def __str__(self) -> str:
        lines = [f"{self.subject}: {len(self.passed)} laws hold, {len(self.failures)} broken"]
        lines += [f"  ok      {name}" for name in self.passed]
        lines += [f"  BROKEN  {name}: {cause}" for name, cause in self.failures.items()]
        lines += [f"  note    {note}" for note in self.notes]
        return "\n".join(lines)


def _message(error: BaseException) -> str:
    return str(error) if isinstance(error, Breach) else f"it raised {error_text(error)}{plugin_line(error)}"


def report_on(kind: str, thing: object, name: str) -> Report:
    """An empty report, of a subject by this name or its own: `metric 'SelfSimilarity'`."""
    return Report(name or f"{kind} {getattr(thing, '__name__', getattr(thing, 'name', thing))!r}")


def subject_and_factory(make: Callable[[], T] | T, kind: type) -> tuple[T, Callable[[], T] | None]:
    """A subject and a factory of others (None if `make` is the subject itself, an instance of `kind`)."""
    if callable(make) and not isinstance(make, kind):
        return make(), make
    return make, None  # type: ignore[return-value]  # it is no factory, so it is the subject
