"""Sinks: destinations to which runs are sent, besides the disk, which has everything. The contract, and what ships:
MLflow, on SQLite by default.

A sink that fails costs no numbers: one that can't start ends its run before anything is computed; after that its error
is recorded, the other sinks go on, and `ctxexp upload` or the same command with resume=true continues from the disk.
Importing this package imports no mlflow and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from ctxexp.errors import TrackingError
from ctxexp.files.job_folder import RUN, read_json
from ctxexp.results import Results

Status = Literal["FINISHED", "FAILED", "KILLED"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """Description of a run, the execution of one job, which a sink gets when it starts; no text in it holds
    credentials.

    Example:
        >>> folder = Path("mlruns/results/sweep/job")
        >>> Run(name="bert", key="k", id="1", folder=folder, tracking_folder=Path("mlruns"), began_ms=0).name
        'bert'
    """

    name: str  # its label in charts
    key: str  # of the computation: the same for the same config, data and code
    id: str  # unique: a sink that gets a run twice can tell by it
    folder: Path  # of its files; of its results too, once there are some
    tracking_folder: Path  # the one that holds `folder`
    began_ms: int  # time of its start, ms since 1970
    params: Mapping[str, object] = field(default_factory=dict)  # the config's own values, nested, of JSON types
    config: str = ""  # the complete config as YAML
    source: Mapping[str, str] = field(default_factory=dict)  # its user, command, commit and whether that is dirty
    sweep: str | None = None  # id of the sweep that it belongs to; None: it was started alone


@dataclass(frozen=True)
class Sweep:
    """A sweep that has started."""

    id: str
    tracking_folder: Path
    began_s: float  # time of its start, seconds since 1970
    overrides: tuple[str, ...] = ()

    @property
    def results(self) -> Path:
        """The sweep's folder: it has one folder for each job, and `summary`."""
        return self.tracking_folder / "results" / self.id

    @property
    def summary(self) -> Path:
        """The folder of the comparison of the jobs."""
        return self.results / "summary"


@dataclass
class SweepRow:
    """How one job of a sweep ended."""

    label: str  # unique in the sweep
    overrides: list[str]
    status: str
    error: str | None
    folder: Path
    results: Path  # the folder of its results: an earlier job's where `reused`
    link: str = ""
    reused: bool = False  # a finished job of the same key stands for it
    sinks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # label of a sink -> its `metadata()`


@dataclass
class SweepReport:
    """The outcome of a sweep. `error`: its problems beside those of single jobs, one a line; None: there are none."""

    rows: list[SweepRow] = field(default_factory=list)
    status: Status = "FINISHED"
    compared: list[tuple[str, Results]] = field(default_factory=list)  # (label, results) of jobs in the comparison
    error: str | None = None


class Sink:
    """Sends one run to a destination: `start` once, `log` once, `finish` once, also where `start` failed.

    `finish` may then find nothing that `start` sets: what it reads should have a value from `__init__` on.

    An object serves one run. Of a sweep, one more object in the process that starts the jobs gets `prepare_jobs` before
    the first job, and `finish_sweep` and `charts_link` after the last one; a lone run's gets `prepare_jobs` first.

    All methods have a default; most sinks need `log` alone, or `start` and `log`. An error that one raises is recorded
    with the run, which is then FAILED; its results are on disk before `log` is called. An error of `start` or of
    `metadata` ends the run before anything is computed.

    `secrets` names the arguments that are secrets, such as `("api_key",)`: the environment gives them
    (`${oc.env:MYKEY}`), one in clear text is refused, and errors and links that quote one are masked.

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
        """Send the results: the values of `results.frame` with their layer as the step, and any of the files.

        Args:
            results: The run's results.
            folder: The folder of the run's files, the results among them.
        """

    def finish(self, status: Status, error: str | None = None) -> None:
        """Close the run.

        Args:
            status: The status with which it ended.
            error: The reason where that isn't FINISHED.
        """

    def metadata(self) -> Mapping[str, str]:
        """Return texts that identify the run at the destination, for the job's status.json.

        Returns:
            Texts by name; `link` is for a person to open, `hint` says what has to run first, if anything.
        """
        return {}

    # Of the object that serves a command, in the process that starts the jobs.

    def prepare_jobs(self, tracking_folder: Path) -> Mapping[str, object]:
        """Create what the jobs share, such as a store, before the first job (or the only one) starts.

        Args:
            tracking_folder: The folder of results, and of a store that is a file.

        Returns:
            Arguments by name that the jobs' own sinks get in place of those in the config.

        Raises:
            TrackingError: The destination can't be used.
        """
        return {}

    def finish_sweep(self, sweep: Sweep, report: SweepReport, metadata: Sequence[Mapping[str, str]]) -> None:
        """Finish the sweep after its last job: give its runs their final names and states, and send the comparison.

        Args:
            sweep: The sweep; the comparison is in `sweep.summary`.
            report: The outcome of its jobs.
            metadata: For each of the report's rows, the `metadata()` of this destination's sink of that run.
        """

    def charts_link(self, sweep: Sweep) -> str:
        """Return the link at which a person finds the sweep's curves side by side.

        Args:
            sweep: The sweep.

        Returns:
            The link; empty for none, and where nothing serves it yet.
        """
        return ""

    # Of resume=true, in place of `start`, `log` and `finish`.

    def reuse(self, run: Run, saved: Run) -> None:
        """Let a finished run of the same key stand for this one: mark it as part of `run.sweep`, and send it first if
        the destination doesn't have it.

        Args:
            run: The run that needs no computing.
            saved: The finished run, on disk.
        """


def load_run(folder: Path, tracking_folder: Path) -> Run:
    """Load the run of the job in this folder. Raises TrackingError where its run.json is missing or damaged."""
    document, config = read_json(folder / RUN), folder / "config.yaml"
    try:
        return Run(
            **{key: document[key] for key in ("name", "key", "id", "params", "source", "sweep")},
            began_ms=int(document["began"]),
            folder=folder,
            tracking_folder=tracking_folder,
            config=config.read_text(encoding="utf-8", errors="replace") if config.is_file() else "",
        )
    except (LookupError, TypeError, ValueError, AttributeError):
        raise TrackingError(f"{folder / RUN} is not a run of ctxexp, or is damaged; run the job again") from None
