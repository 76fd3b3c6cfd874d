"""What a job's folder is called and what it says of the job: JSON files that a reader sees old or new, never half."""

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
from ctxexp.files.paths import user_path
from ctxexp.files.writing import write_text
from ctxexp.sinks.disk.credentials import masked

STATE = "status.json"  # what the job is doing: changes, so it is no artifact
RUN = "run.json"  # what names the job


class State(TypedDict, total=False):
    """What status.json says of a job: its latest state, and its own and its sinks' words on it."""

    status: str
    name: str
    key: str
    results: str  # the folder that they are in, where it is an earlier job's
    error: str
    link: str
    overrides: list[str]
    process: dict[str, str]
    sinks: dict[str, dict[str, str]]
    reused: bool


def new_id() -> str:
    """A name for a sweep or a single run: readable, sortable, and no two alike within a second."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(3)}"


def job_folder(folder: Path | str, group: str, number: int | None = None, overrides: Sequence[str] = ()) -> Path:
    """`<folder>/results/<sweep or single id>/<number and overrides>`: the same path from the same arguments."""
    words = "_".join(o for o in overrides if not o.lstrip("+~").startswith(("tracking.", "sink", "plugins=")))
    label = re.sub(r"[^\w.=+-]+", "_", words)[:80].strip("_")
    name = "_".join(part for part in ("" if number is None else f"{number:03d}", label) if part)
    return user_path(folder).resolve() / "results" / group / (name or "run")


def write_json(path: Path, document: object) -> None:
    """Atomic: a reader sees the old file or the new one. Credentials are left out."""
    write_text(path, json.dumps(masked(document), indent=1, ensure_ascii=False, default=str))


def read_json(path: Path) -> dict[str, Any]:
    """The file's object; empty if there is none or it is damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write_state(folder: Path, *, fresh: bool = False, **changes: object) -> None:
    """Update status.json; `fresh` forgets what it said."""
    write_json(folder / STATE, {**({} if fresh else read_json(folder / STATE)), **changes})


def try_state(folder: Path, *, fresh: bool = False, **changes: object) -> None:
    """The same where more important things are said: that the disk takes no file is no news then."""
    with suppress(DiskError):
        write_state(folder, fresh=fresh, **changes)


def read_state(folder: Path) -> State:
    """What status.json says; entries of another type than we write are left out."""
    texts = ("results", "status", "key", "name", "error", "link")
    types = dict.fromkeys(texts, str) | {"overrides": list, "process": dict, "sinks": dict}
    state: dict[str, Any] = {k: v for k, v in read_json(folder / STATE).items() if isinstance(v, types.get(k, object))}
    if "overrides" in state:
        state["overrides"] = [o for o in state["overrides"] if isinstance(o, str)]
    if "sinks" in state:
        state["sinks"] = {label: about for label, about in state["sinks"].items() if isinstance(about, dict)}
    return cast(State, state)
