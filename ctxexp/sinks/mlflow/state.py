"""What a job's folder says of it without asking MLflow: JSON files that a reader sees old or new, never half."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from ctxexp.errors import DiskError
from ctxexp.files.writing import write_text
from ctxexp.sinks.mlflow.credentials import masked

STATE = "status.json"  # what the job is doing: changes, so it is no artifact
SUMMARY = "summary"  # the folder of a sweep's comparison, and the kind of its run


def write_json(path: Path, document: Any) -> None:
    """Atomic: a reader sees the old file or the new one. Credentials are left out."""
    write_text(path, json.dumps(masked(document), indent=1, ensure_ascii=False, default=str))


def read_json(path: Path) -> dict[str, Any]:
    """The file's object; empty if there is none or it is damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write_state(folder: Path, *, fresh: bool = False, **changes: Any) -> None:
    """Update status.json; `fresh` forgets what it said."""
    write_json(folder / STATE, {**({} if fresh else read_json(folder / STATE)), **changes})


def try_state(folder: Path, **changes: Any) -> None:
    """The same where more important things are said: that the disk takes no file is no news then."""
    with suppress(DiskError):
        write_state(folder, **changes)


def read_state(folder: Path) -> dict[str, Any]:
    """What status.json says; entries of another type than we write are left out."""
    types = {"overrides": list, "process": dict, "results": str, "status": str, "key": str, "name": str, "error": str}
    state: dict[str, Any] = {k: v for k, v in read_json(folder / STATE).items() if isinstance(v, types.get(k, object))}
    if "overrides" in state:
        state["overrides"] = [o for o in state["overrides"] if isinstance(o, str)]
    return state
