"""One job: its folder on disk, its run, and how it ends.

A job's folder holds run.json (what names the run), config.yaml, environment.json, results.json, tables and figures,
and status.json, which says how the job stands without asking MLflow.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxexp.errors import CtxexpError, TrackingError
from ctxexp.paths import user_path
from ctxexp.results import FILE, Results
from ctxexp.tracking.environment import environment
from ctxexp.tracking.process import process_tags, terminated_like_interrupted
from ctxexp.tracking.sink import BUNDLE, COLOUR, KEY, KIND, STATE, SWEEP, Sink, Status, source_tags

RUN = "run.json"
SECRET = re.compile(r"//[^/@]*@")


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
    logged: bool = field(default=False)

    def save(self, results: Results) -> None:
        """Put the results on disk: from here on nothing is lost."""
        results.save(self.folder)
        write_state(self.folder, measured=True)

    def log(self, results: Results) -> None:
        """Send results and folder to the sink; saves them first where that was not done."""
        if not (self.folder / FILE).exists():
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
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    write_json(folder / "environment.json", environment())
    known = {"name": name, "key": key, "sweep": sweep, "began": began, "tags": tags, "params": dict(params)}
    where = {"uri": "" if SECRET.search(uri) else uri, "experiment": experiment}
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
    running: Job | None = None
    status: Status = "FINISHED"
    error: str | None = None
    with terminated_like_interrupted():
        try:
            sink = open_sink() if callable(open_sink) else open_sink
            run_id = sink.start(name=name, tags=tags, params=params, config=config, began=began)
            running = Job(folder, sink, run_id, sink.link())
            write_state(folder, run_id=run_id, link=running.link)
            yield running
        except Exception as raised:
            status, error = "FAILED", describe(raised)
            raise
        except BaseException as raised:
            status, error = "KILLED", f"interrupted ({type(raised).__name__})"
            raise
        finally:
            try:
                if running is not None:
                    running.sink.finish(status, error)
            except TrackingError as refused:
                if error is None:
                    status, error = "FAILED", str(refused)
                    raise
            finally:
                write_state(folder, status=status, error=error)


def describe(error: BaseException) -> str:
    """The message of an error that ctxexp raises on purpose; of any other the whole traceback."""
    if isinstance(error, CtxexpError):
        return str(error)
    return "".join(traceback.format_exception(error))


def _colour(name: str) -> dict[str, str]:
    from ctxexp.palette import colours

    return {COLOUR: colours([name])[name]}


def write_json(path: Path, document: Any) -> None:
    """Atomic: a reader sees the old file or the new one."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(json.dumps(document, indent=1, ensure_ascii=False, default=str), encoding="utf-8")
    part.replace(path)


def read_json(path: Path) -> dict[str, Any]:
    """The file's object; empty if there is none or it was cut short."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_state(folder: Path, *, fresh: bool = False, **changes: Any) -> None:
    """Update status.json; `fresh` forgets what it said."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / STATE, {**({} if fresh else read_json(folder / STATE)), **changes})


def read_state(folder: Path) -> dict[str, Any]:
    return read_json(folder / STATE)
