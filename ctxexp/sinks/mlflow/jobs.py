"""One job: its folder on disk, its run, and how it ends.

A job's folder holds run.json (what names the run), config.yaml, environment.json, results.json, tables and figures,
and status.json, which says how the job stands without asking MLflow.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxexp.errors import CtxexpError, TrackingError
from ctxexp.files.manifest import MANIFEST, seal
from ctxexp.files.paths import user_path
from ctxexp.files.writing import full, unwritten, write_text
from ctxexp.results import FILE, Results
from ctxexp.sinks.mlflow.credentials import mask, masked, redact
from ctxexp.sinks.mlflow.environment import environment
from ctxexp.sinks.mlflow.process import held_back, process_tags, terminated_like_interrupted
from ctxexp.sinks.mlflow.sink import BUNDLE, COLOUR, KEY, KIND, SWEEP, Sink, Status, source_tags
from ctxexp.sinks.mlflow.state import try_state, write_json, write_state

RUN = "run.json"


def new_id() -> str:
    """A name for a sweep or a single run: readable, sortable, and no two alike within a second."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(3)}"


def job_folder(folder: Path | str, group: str, number: int | None = None, overrides: Sequence[str] = ()) -> Path:
    """`<folder>/results/<sweep or single id>/<number and overrides>`: the same path from the same arguments."""
    words = "_".join(o for o in overrides if not o.lstrip("+~").startswith(("tracking.", "plugins=")))
    label = re.sub(r"[^\w.=+-]+", "_", words)[:80].strip("_")
    name = "_".join(part for part in ("" if number is None else f"{number:03d}", label) if part)
    return user_path(folder).resolve() / "results" / group / (name or "run")


@dataclass
class Job:
    """A running job: where its files go, and its run."""

    folder: Path
    sink: Sink
    run_id: str = ""
    link: str = ""
    saved: bool = False
    logged: bool = False

    def save(self, results: Results) -> None:
        """Put the results on disk: from here on nothing is lost."""
        results.save(self.folder)
        seal(self.folder)
        self.saved = True
        write_state(self.folder, measured=True)

    def log(self, results: Results) -> None:
        """Send results and folder to the sink; saves them first where that was not done."""
        if not self.saved:
            self.save(results)
        self.sink.log(results, self.folder)
        self.logged = True
        write_state(self.folder, logged=True)


@contextlib.contextmanager
def job(
    open_sink: Callable[[], Sink] | Sink,
    folder: Path,
    *,
    name: str,
    key: str,
    params: Mapping[str, Any],
    config: str,
    overrides: Sequence[str] = (),
    sweep: str | None = None,
    uri: str = "",
    experiment: str = "",
    tags: Mapping[str, str] | None = None,
) -> Iterator[Job]:
    """Run the block as one job and record how it ends: FINISHED, FAILED with its error, or KILLED.

    `key` names what is computed (config and data), for resume. `open_sink` is a sink or what makes one: then a store
    that can't be opened is this job's failure too. `uri` and `experiment` are noted for `upload`.
    """
    began = int(time.time() * 1000)
    tags = {KIND: "job", KEY: key, BUNDLE: secrets.token_hex(16), **source_tags(), **_colour(name), **(tags or {})}
    if sweep:
        tags[SWEEP] = sweep
    for stale in (MANIFEST, FILE):  # of an earlier job in this place: not this one's results
        (folder / stale).unlink(missing_ok=True)
    config, params, tags = mask(config), masked(dict(params)), masked(tags)
    write_text(folder / "config.yaml", config)
    write_json(folder / "environment.json", environment())
    known = {"name": name, "key": key, "sweep": sweep, "began": began, "tags": tags, "params": params}
    where = {"uri": redact(uri), "experiment": experiment}
    write_json(folder / RUN, {**known, **where, "overrides": list(overrides)})
    write_state(
        folder,
        fresh=True,
        status="RUNNING",
        name=name,
        key=key,
        overrides=list(overrides),
        process=process_tags(),
    )
    sink: Sink | None = None
    status: Status = "FINISHED"
    error: str | None = None
    with terminated_like_interrupted():
        try:
            sink = open_sink() if callable(open_sink) else open_sink
            run_id = sink.start(name=name, tags=tags, params=params, config=config, began=began)
            link = sink.link()
            write_state(folder, run_id=run_id, link=link)
            yield Job(folder, sink, run_id, link)
        except Exception as raised:
            status, error = "FAILED", describe(raised)
            raise
        except BaseException as raised:
            status, error = "KILLED", f"interrupted ({type(raised).__name__})"
            raise
        finally:
            with held_back():
                _finish(sink, folder, status, error)


def _finish(sink: Sink | None, folder: Path, status: Status, error: str | None) -> None:
    """Close the run and say on disk how the job ended."""
    try:
        if sink is not None:
            sink.finish(status, error)
    except TrackingError as refused:
        if error is None:
            status, error = "FAILED", str(refused)
            raise
    finally:
        (try_state if error else write_state)(folder, status=status, error=error)


def describe(error: BaseException) -> str:
    """The message of an error that ctxexp raises on purpose, or that a full disk raises; else the whole traceback."""
    if isinstance(error, OSError) and full(error):
        return unwritten(error)
    return mask(str(error) if isinstance(error, CtxexpError) else "".join(traceback.format_exception(error)))


def _colour(name: str) -> dict[str, str]:
    from ctxexp.report.palette import colours

    return {COLOUR: colours([name])[name]}
