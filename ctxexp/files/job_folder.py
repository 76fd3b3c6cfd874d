"""A job's folder and its JSON files, of which a reader sees the old or the new one, never half of one."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict, cast

from ctxexp.errors import DiskError
from ctxexp.files import clear_parts, user_path, write_file
from ctxexp.files.credentials import map_texts, mask
from ctxexp.files.process import why_gone

STATE = "status.json"  # what the job is doing: changes, so it is no artifact
RUN_FILE = "run.json"  # what names the job


class State(TypedDict, total=False):
    """The contents of status.json: a job's latest state, and its own and its sinks' descriptions of it."""

    status: str
    name: str
    key: str
    results: str  # the folder that they are in, where it is an earlier job's
    error: str
    link: str
    overrides: list[str]
    process: dict[str, str]
    ended: int  # ms since 1970
    meant: dict[str, dict[str, str]]  # by label of a sink, where it sends runs to
    sinks: dict[str, dict[str, str]]  # by label of a sink that has the run, what identifies it there
    reused: bool


def new_id() -> str:
    """A name for a sweep or a single run: readable, sortable, and no two alike within a second."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(3)}"


def job_folder(folder: Path | str, group: str, number: int | None = None, overrides: Sequence[str] = ()) -> Path:
    """`<folder>/results/<sweep or single id>/<number and overrides>`: the same path from the same arguments."""
    text = "_".join(o for o in overrides if not o.lstrip("+~").startswith(("tracking.", "sink", "plugins=")))
    label = re.sub(r"[^\w.=+-]+", "_", text)[:80].strip("_")
    name = "_".join(part for part in ("" if number is None else f"{number:03d}", label) if part)
    return user_path(folder).resolve() / "results" / group / (name or "run")


def write_json(path: Path, document: object) -> None:
    """Atomic: a reader sees the old file or the new one. Credentials are left out."""
    write_file(path, json.dumps(map_texts(mask, document), indent=1, ensure_ascii=False, default=str))


def read_json(path: Path) -> dict[str, Any]:
    """The file's object; empty if there is none or it is damaged."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def write_state(folder: Path, *, fresh: bool = False, **changes: object) -> None:
    """Update status.json; `fresh` forgets what it said."""
    write_json(folder / STATE, {**({} if fresh else read_json(folder / STATE)), **changes})


def try_state(folder: Path, *, fresh: bool = False, **changes: object) -> None:
    """Update status.json where a more important error is being reported: a full disk is ignored."""
    with suppress(DiskError):
        write_state(folder, fresh=fresh, **changes)


def read_state(folder: Path) -> State:
    """The contents of status.json; empty if there is none or it is damaged."""
    return cast(State, read_json(folder / STATE))


def mark_killed_jobs(store: Path) -> None:
    """Write KILLED to the status.json of jobs under `<store>/results` whose process is gone.

    What a killed job's process was writing a minute ago, there or in a sweep's summary, is removed.
    """
    closed: list[Path] = []
    for path in sorted((store / "results").glob(f"*/*/{STATE}")):
        state = read_state(path.parent)
        why = state.get("status") == "RUNNING" and why_gone(state.get("process", {}))
        if why:
            write_state(path.parent, status="KILLED", error=why)
        if why or state.get("status") == "KILLED":  # by its sweep's end, while a worker wrote
            closed.append(path.parent)
    for place in (*closed, *(store / "results").glob("*/summary")):
        clear_parts(place, "**/*")
