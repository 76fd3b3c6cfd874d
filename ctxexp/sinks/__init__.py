"""Sinks: destinations to which runs are sent from their folders, once they have ended. The contract, and what ships:
MLflow, on SQLite by default.

A run is whole on disk before a sink hears of it, and a sink that fails costs nothing but the sending: `ctxexp upload`,
or the same command with resume=true, repeats it. Importing this package imports no mlflow and changes nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from ctxexp.errors import TrackingError
from ctxexp.files.job_folder import RUN_FILE, read_json, read_state
from ctxexp.lazy import VerbPackage
from ctxexp.results import Results

Status = Literal["FINISHED", "FAILED", "KILLED"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """Description of a run, the execution of one job, as its folder has it; no text in it holds credentials.

    Example:
        >>> folder = Path("mlruns/results/sweep/job")
        >>> Run(name="bert", key="k", id="1", folder=folder, tracking_folder=Path("mlruns"), began_ms=0).name
        'bert'
    """

    name: str  # its label in charts
    key: str  # of the computation: the same for the same config, data and code
    id: str  # unique: a sink that gets a run twice can tell by it
    folder: Path  # of its files, its results among them
    tracking_folder: Path  # the one that holds `folder`
    began_ms: int  # time of its start, ms since 1970
    ended_ms: int | None = None  # time of its end; None: not known
    status: Status = "FINISHED"
    error: str | None = None  # the reason where `status` isn't FINISHED
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
    name: str  # of its run
    results: Path  # the folder of its results: an earlier job's where `reused`
    link: str = ""
    reused: bool = False  # a finished job of the same key stands for it


@dataclass
class SweepReport:
    """The outcome of a sweep. `error`: its problems beside those of single jobs, one a line; None: there are none."""

    rows: list[SweepRow] = field(default_factory=list)
    status: Status = "FINISHED"
    compared: list[tuple[str, Results]] = field(default_factory=list)  # (label, results) of jobs in the comparison
    error: str | None = None


class Sink:
    """Sends runs to a destination, each once it has ended and lies on disk.

    One object serves a command: `check` before anything is computed, `send` for each run, at a sweep's end
    `send_sweep`. A sink needs `send` alone.

    `secrets` names the arguments that are secrets, such as `("api_key",)`: the environment gives them
    (`${oc.env:MYKEY}`), one in clear text is refused, and errors and links that quote one are masked.

    Example:
        >>> class Lines(Sink):
        ...     def send(self, run, results):
        ...         print(f"{run.name}: {len(results.frame)} values")
        ...         return {}
        >>> run = Run(name="bert", key="k", id="1", folder=Path("."), tracking_folder=Path("."), began_ms=0)
        >>> Lines().send(run, Results())
        bert: 0 values
        {}
    """

    secrets: ClassVar[tuple[str, ...]] = ()

    def check(self, tracking_folder: Path) -> Mapping[str, str]:
        """Refuse what no sending could mend, before anything is computed; quick, and without asking a server.

        Args:
            tracking_folder: The folder of results, and of a store that is a file.

        Returns:
            Texts by name that tell where runs are meant to go, for the jobs' status.json.

        Raises:
            TrackingError: No run can be sent with these arguments.
        """
        return {}

    def send(self, run: Run, results: Results) -> Mapping[str, str]:
        """Send a run: the values of `results.frame` with their layer as the step, and any of the folder's files.

        An error leaves the run on disk as it is, unsent.

        Args:
            run: Its description, and how it ended.
            results: The run's results; empty where it has none.

        Returns:
            Texts that identify the run at the destination, for the job's status.json: `link` is for a person to open,
            `hint` says what has to run first, if anything.
        """
        return {}

    def send_again(self, run: Run, results: Results, sent: Mapping[str, str]) -> Mapping[str, str]:
        """Let a run that was sent stand where the command would send it again: a sweep with resume=true takes it over.

        Args:
            run: Its description, with the sweep that takes it over.
            results: The run's results.
            sent: The texts that `send` returned for it.

        Returns:
            The same texts, or newer ones.
        """
        return sent

    def send_sweep(self, sweep: Sweep, report: SweepReport, sent: Sequence[Mapping[str, str]]) -> str:
        """Finish a sweep whose runs have been sent: give them their final names, and send the comparison.

        Args:
            sweep: The sweep; the comparison is in `sweep.summary`.
            report: The outcome of its jobs.
            sent: For each of the report's rows, the texts that `send` returned; empty where it wasn't sent.

        Returns:
            A link at which a person finds the curves side by side; empty for none, and where nothing serves it yet.
        """
        return ""


def load_run(folder: Path, tracking_folder: Path) -> Run:
    """Load the run of the job in this folder. Raises TrackingError where its run.json is missing or damaged."""
    document, state, config = read_json(folder / RUN_FILE), read_state(folder), folder / "config.yaml"
    statuses: dict[str, Status] = {"FINISHED": "FINISHED", "FAILED": "FAILED"}
    try:
        return Run(
            **{key: document[key] for key in ("name", "key", "id", "params", "source", "sweep")},
            began_ms=int(document["began"]),
            ended_ms=state.get("ended"),
            status=statuses.get(state.get("status", ""), "KILLED"),
            error=state.get("error"),
            folder=folder,
            tracking_folder=tracking_folder,
            config=config.read_text(encoding="utf-8", errors="replace") if config.is_file() else "",
        )
    except (LookupError, TypeError, ValueError, AttributeError):
        raise TrackingError(f"{folder / RUN_FILE} is not a run of ctxexp, or is damaged; run the job again") from None


sys.modules[__name__].__class__ = VerbPackage  # ctxexp.sinks(...)
