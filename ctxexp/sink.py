"""Sinks: where runs are sent beside the disk, on which everything is already.

A sink that fails costs no numbers: its error is recorded, the other sinks get theirs, and `ctxexp upload` or the same
command with resume=true goes on from the disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from ctxexp.results import Results

Status = Literal["FINISHED", "FAILED", "KILLED"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """One job, as a sink is told of it when it starts; no text in it holds credentials."""

    name: str  # what charts call it
    key: str  # what is computed: the same for the same config, data and code
    id: str  # no other run has it: who is sent a run twice can tell
    folder: Path  # its files; its results too, once there are some
    store: Path  # the tracking folder that holds `folder`
    began: int  # ms since 1970
    params: Mapping[str, object] = field(default_factory=dict)  # what was asked for, nested, of JSON types
    config: str = ""  # the same whole, as YAML
    source: Mapping[str, str] = field(default_factory=dict)  # user, command, commit, dirty: where it comes from
    sweep: str | None = None  # the sweep that it belongs to


@dataclass(frozen=True)
class Sweep:
    """A sweep that has started."""

    id: str
    store: Path  # the tracking folder
    began: float  # seconds since 1970
    overrides: tuple[str, ...] = ()

    @property
    def results(self) -> Path:
        """The folder with a folder a job, and one with the comparison."""
        return self.store / "results" / self.id

    @property
    def summary(self) -> Path:
        """The folder of the comparison."""
        return self.results / "summary"


@dataclass
class Row:
    """How one job of a sweep ended."""

    label: str  # no two alike
    overrides: list[str]
    status: str
    error: str | None
    folder: Path
    results: Path  # where they are: elsewhere if they were finished before
    link: str = ""
    reused: bool = False
    sinks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # what each sink said of the run, by label


@dataclass
class SweepReport:
    """What became of a sweep; `error` says what kept its comparison from being made or sent."""

    rows: list[Row] = field(default_factory=list)
    status: Status = "FINISHED"
    compared: list[tuple[str, Results]] = field(default_factory=list)  # in the comparison, by label
    error: str | None = None


class Sink:
    """Takes one run: `start` once, `log` once, `finish` once, also where `start` failed. An object serves one run.

    All methods have a default; most sinks need `log` alone, or `start` and `log`. What one raises is recorded with the
    run, which is then FAILED; its results are on disk before `log` is called.

    `secrets` names the arguments that are credentials, such as `("api_key",)`: their values reach the sink, and are
    written nowhere. A command line or a config that gives one in clear text is written with a reference to an
    environment variable in its place.
    """

    secrets: ClassVar[tuple[str, ...]] = ()

    def start(self, run: Run) -> None:
        """Open the run, before anything is computed."""

    def log(self, results: Results, folder: Path) -> None:
        """Send the values of `results.frame` with their layer as the step, and what else of `folder` is wanted."""

    def finish(self, status: Status, error: str | None = None) -> None:
        """Close the run; `error` says why it isn't FINISHED."""

    def about(self) -> Mapping[str, str]:
        """What finds the run again, for the job's status.json; `link` is what a person opens."""
        return {}

    def read(self) -> Iterable[tuple[str, int, float]] | None:
        """What the destination holds of the run: (name, layer, value) of each value. None: it can't be read back."""
        return None

    # Of commands and sweeps, in the process that starts the jobs.

    def prepare(self, store: Path) -> Mapping[str, object]:
        """Before the first job: make what the jobs share, or raise TrackingError. What is returned takes the place of
        the sink's own arguments in the jobs."""
        return {}

    def close(self, sweep: Sweep, report: SweepReport, about: Sequence[Mapping[str, str]]) -> None:
        """After the last job: settle the runs, send the comparison in `sweep.summary`. `about` says what was said of
        each row's run."""

    def charts(self, sweep: Sweep) -> str:
        """Where a person finds the sweep's curves side by side; empty if nowhere."""
        return ""

    # Of resume=true, in place of `start`, `log` and `finish`.

    def fetch(self, run: Run, folder: Path) -> bool:
        """Put the files of the newest finished run of the same key into `folder`; False if there is none."""
        return False

    def adopt(self, run: Run, saved: Run) -> None:
        """Count the finished run of the same key to `run.sweep`; send `saved`, the one on disk, if none was sent."""
