"""Sinks: destinations to which runs are sent in addition to the disk, where all results are stored already.

A sink that fails loses no results: its error is recorded, the other sinks get theirs, and `ctxexp upload` or the same
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
    """Description of a run, the execution of one job, which a sink gets when it starts; no text in it holds
    credentials.

    Example:
        >>> folder = Path("mlruns/results/sweep/job")
        >>> Run(name="bert", key="k", id="1", folder=folder, store=Path("mlruns"), began_ms=0).name
        'bert'
    """

    name: str  # what charts call it
    key: str  # digest of config, data and code: equal for runs with equal numbers
    id: str  # unique, so that a receiver recognises a run that is sent twice
    folder: Path  # of its files, and of its results once they are there
    store: Path  # the tracking folder that holds `folder`
    began_ms: int  # milliseconds since 1970
    params: Mapping[str, object] = field(default_factory=dict)  # the config, nested, of JSON types
    config: str = ""  # the full config as YAML
    source: Mapping[str, str] = field(default_factory=dict)  # provenance: user, command, commit, dirty
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
        """The folder of the sweep, with one subfolder for each job, and `summary`."""
        return self.store / "results" / self.id

    @property
    def summary(self) -> Path:
        """The folder of the comparison."""
        return self.results / "summary"


@dataclass
class SweepRow:
    """How one job of a sweep ended."""

    label: str  # unique in the sweep
    overrides: list[str]
    status: str
    error: str | None
    folder: Path
    results: Path  # folder of the results; that of an earlier run if `reused`
    link: str = ""
    reused: bool = False
    sinks: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict
    )  # each sink's `metadata()` of the run, by label


@dataclass
class SweepReport:
    """The outcome of a sweep; `error` is the reason why its comparison wasn't made or sent."""

    rows: list[SweepRow] = field(default_factory=list)
    status: Status = "FINISHED"
    compared: list[tuple[str, Results]] = field(default_factory=list)  # in the comparison, by label
    error: str | None = None


class Sink:
    """Takes one run: `start` once, `log` once, `finish` once, also where `start` failed.

    An object serves one run, or, in the process that starts the jobs, one sweep (`prepare_sweep`, `finish_sweep`,
    `charts_url`); with resume=true, `fetch` and `adopt` take the place of `start`, `log` and `finish`.

    All methods have a default; most sinks need `log` alone, or `start` and `log`. What one raises is recorded with the
    run, which is then FAILED; its results are on disk before `log` is called.

    `secrets` names the arguments that are credentials, such as `("api_key",)`: their values reach the sink, and are
    written nowhere. A command line or a config that gives one in clear text is written with a reference to an
    environment variable in its place.

    Example:
        >>> class Lines(Sink):
        ...     def log(self, results, folder):
        ...         print(f"{len(results.frame)} values")
        >>> Lines().log(Results(), Path("."))
        0 values
    """

    secrets: ClassVar[tuple[str, ...]] = ()

    def start(self, run: Run) -> None:
        """Open the run, before anything is computed.

        Args:
            run: Its description.
        """

    def log(self, results: Results, folder: Path) -> None:
        """Send the results: the values of `results.frame` with their layer as the step, and files as wanted.

        Args:
            results: The run's results.
            folder: The run's files, which hold the results too.
        """

    def finish(self, status: Status, error: str | None = None) -> None:
        """Close the run.

        Args:
            status: How it ended.
            error: The reason where it isn't FINISHED.
        """

    def metadata(self) -> Mapping[str, str]:
        """Texts that identify the run at the destination, for the job's status.json.

        Returns:
            Texts by name; `link` is for a person to open.
        """
        return {}

    def read(self) -> Iterable[tuple[str, int, float]] | None:
        """Read the run's values back from the destination.

        Returns:
            Each as (name, layer, value); None: they can't be read back.
        """
        return None

    # Of commands and sweeps, in the process that starts the jobs.

    def prepare_sweep(self, store: Path) -> Mapping[str, object]:
        """Set up, before the first job, whatever the jobs of a command or sweep share.

        Args:
            store: The tracking folder.

        Returns:
            Arguments that replace the sink's own in the jobs.

        Raises:
            TrackingError: The destination can't be used.
        """
        return {}

    def finish_sweep(self, sweep: Sweep, report: SweepReport, metadata: Sequence[Mapping[str, str]]) -> None:
        """Finish a sweep after its last job: settle its runs, and send the comparison in `sweep.summary`.

        Args:
            sweep: The sweep.
            report: The outcome of its jobs.
            metadata: The sink's `metadata()` of each row's run.
        """

    def charts_url(self, sweep: Sweep) -> str:
        """The address where a person finds the sweep's curves side by side.

        Args:
            sweep: The sweep.

        Returns:
            The address; empty for none.
        """
        return ""

    # Of resume=true, in place of `start`, `log` and `finish`.

    def fetch(self, run: Run, folder: Path) -> bool:
        """Fetch the newest finished run of the same key.

        Args:
            run: The run that is about to start.
            folder: The folder that its files are put into.

        Returns:
            Whether there was one.
        """
        return False

    def adopt(self, run: Run, saved: Run) -> None:
        """Assign the finished run of the same key to `run.sweep`, and send it if it wasn't sent.

        Args:
            run: The run that needs no computing.
            saved: The finished one, on disk.
        """
