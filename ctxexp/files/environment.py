"""The environment that a job runs in: packages, interpreter, commit, hardware, user, command."""

from __future__ import annotations

import functools
import getpass
import os
import platform
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import Distribution, distributions
from pathlib import Path

from ctxexp.files.code_version import PACKAGE
from ctxexp.files.credentials import mask


@functools.cache
def _commit_of(folder: Path) -> dict[str, object] | None:
    def git(*args: str) -> str | None:
        command = ["git", "--no-optional-locks", "-C", str(folder), *args]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return None

    commit, changes = git("rev-parse", "HEAD"), git("status", "--porcelain", "--untracked-files=no")
    if not commit:
        return None
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def current_commit() -> dict[str, object] | None:
    """Commit of the checkout that ctxexp runs from, else of the working folder, and whether tracked files differ from
    it (`dirty`; None: git didn't answer, or not in time); None outside any repository."""
    source = PACKAGE.resolve().parent
    return _commit_of(source if (source / ".git").exists() else Path.cwd())


def user() -> str:
    """The login name, or the user id if the account has no name, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return str(os.getuid()) if os.name == "posix" else "unknown"


def command() -> str:
    """The command line that started this process, as one would type it, without credentials."""
    program = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path(sys.executable)
    args = ["python", "-m", program.parent.name] if program.name == "__main__.py" else [program.name]
    return mask(shlex.join([*args, *sys.argv[1:]]))


def provenance_tags() -> dict[str, str]:
    """The user, command line and commit of this process, for a run's metadata."""
    known = {key: value for key, value in (current_commit() or {}).items() if value is not None}
    return {"user": user(), "command": command(), **{key: str(value).lower() for key, value in known.items()}}


def _processor() -> str:
    with suppress(OSError, AttributeError):
        return re.search(r"(?m)^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(errors="replace"))[1]  # type: ignore[index]
    return platform.processor() or platform.machine()


def _gpus() -> list[str]:
    """Names of GPUs, where the run needed torch: importing it takes seconds."""
    if not sys.modules.get("torch"):
        return []
    import torch

    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return [*names, "Apple MPS"] if torch.backends.mps.is_available() else names


def _package(distribution: Distribution) -> tuple[str, str] | None:
    """Name and version of an installed distribution, from the first lines of its metadata: parsing all of it would take
    a tenth of a run's start-up time."""
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    fields = dict(re.findall(r"^(Name|Version): *(.*\S)", text.partition("\n\n")[0], re.M))
    return (fields["Name"], fields["Version"]) if len(fields) == 2 else None


def environment() -> dict[str, object]:
    """The machine and software that compute the numbers, in JSON types; environment variables stay out, since they hold
    secrets."""
    packages = dict(filter(None, map(_package, distributions())))
    return {
        "command": command(),
        "user": user(),
        "host": platform.node(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "gpus": _gpus(),
        "git": current_commit(),
        "packages": dict(sorted(packages.items(), key=lambda item: item[0].lower())),
    }
