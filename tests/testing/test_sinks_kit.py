"""The kit fails sinks with a planted bug, and says the cause."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ctxexp import Results, Run
from ctxexp.errors import TrackingError
from ctxexp.testing import MemorySink, check
from tests.laws import fails

VALUES = "each value once, the layer as its step"


def mutant(**members: Any) -> type[MemorySink]:
    return type("Mutant", (MemorySink,), members)


def reads(change: Callable[[str, int, float], list[tuple[str, int, float]]]) -> type[MemorySink]:
    """A sink whose destination holds something else than it was sent."""

    def read(self: MemorySink) -> list[tuple[str, int, float]]:
        return [point for held in MemorySink.read(self) for point in change(*held)]

    return mutant(read=read)


class Shared(MemorySink):
    """What one run is sent, every run has."""

    points: ClassVar[list[tuple[str, int, float]]] = []

    def log(self, results: Results, folder: Path) -> None:
        super().log(results, folder)
        assert self.run is not None
        self.points.extend((f"{self.run.name}/{name}", layer, value) for name, layer, value in MemorySink.read(self))

    def read(self) -> list[tuple[str, int, float]]:
        return self.points


def _needs_a_start(self: MemorySink, status: Any, error: str | None = None) -> None:
    assert self.run is not None
    self.run.folder.exists()


def _writes(self: MemorySink, results: Results, folder: Path) -> None:
    MemorySink.log(self, results, folder)
    (folder / "sent").touch()


def _rounds(self: MemorySink, results: Results, folder: Path) -> None:
    MemorySink.log(self, results, folder)
    results.frame["value"] = results.frame["value"].round(3)


def _short_names_only(self: MemorySink, run: Run) -> None:
    self.run = run
    run.name.encode("ascii")


def _some_values(self: MemorySink, results: Results, folder: Path) -> None:
    MemorySink.log(self, results, folder)
    float(results.frame["value"].iloc[0])


def _fetches_anything(self: MemorySink, run: Run, folder: Path) -> bool:
    return True


def _charts(self: MemorySink, sweep: object) -> None:
    return None


def _refuses(self: MemorySink, store: Path) -> Any:
    raise TrackingError("the store does not answer")


def test_a_sound_sink_passes_and_the_environment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://somewhere")
    here = Path.cwd()
    assert len(check("sink", MemorySink).passed) == 12
    assert Path.cwd() == here
    assert os.environ["MLFLOW_TRACKING_URI"] == "http://somewhere"


def test_what_cannot_be_read_back_is_said_to_be_unchecked() -> None:
    assert "it is unchecked that each value" in str(check("sink", mutant(read=lambda self: None)))


@pytest.mark.parametrize(
    ("make", "law", "cause"),
    [
        (dict, "interface", "expected a ctxexp.Sink, got dict"),
        (mutant(prepare_jobs=lambda self, store: None), "prepared before the first job", "prepare_jobs() gave None"),
        (mutant(prepare_jobs=_refuses), "prepared before the first job", "it raised TrackingError: the store does not"),
        (mutant(metadata=lambda self: {"link": None}), "a run from start to end", "metadata() gave {'link': None}"),
        (mutant(log=_rounds), "what it is given stays as it is", "log() changes the results"),
        (mutant(log=_writes), "what it is given stays as it is", "the run's folder has other files than before"),
        (reads(lambda k, i, v: [(k, i, v), (k, i, v)]), VALUES, "is there twice, under 'alpha//raw'"),
        (reads(lambda k, i, v: [(k, i + 1, v)]), VALUES, "not at their layers; the layer, from 0, is the step"),
        (reads(lambda k, i, v: [(k, 4 - i, v)]), VALUES, "not at their layers"),
        (reads(lambda k, i, v: [(k, i, round(v, 6))]), VALUES, "not there, or not to the last digit"),
        (
            reads(lambda k, i, v: [(k, i, v)] if "beta" not in k else []),
            VALUES,
            "beta/one/mean_cosine: its values are not",
        ),
        (
            reads(lambda k, i, v: [(k, i, v if abs(v) < 99 else 0.0)]),
            "NaN and infinity are no numbers",
            "but there it is 0.0, a number",
        ),
        (Shared, "runs side by side", "one run has values of another"),
        (mutant(finish=_needs_a_start), "a run that fails, is killed, or never started", "AssertionError"),
        (mutant(start=_short_names_only), "odd names and long parameters", "UnicodeEncodeError"),
        (mutant(log=_some_values), "nothing measured", "IndexError"),
        (mutant(fetch=_fetches_anything), "resume", "of a key that was never sent finds something"),
        (mutant(charts_link=_charts), "the end of a sweep", "charts_link() gave None; expected a text"),
    ],
)
def test_sinks_with_a_bug(make: Any, law: str, cause: str) -> None:
    fails("sink", make, law, cause)
