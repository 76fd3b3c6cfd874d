"""The environment of a run: packages, interpreter, commit, hardware, user, command."""

from __future__ import annotations

import functools
import getpass
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import TypedDict

from ctxexp.files.code_version import PACKAGE
from ctxexp.files.credentials import mask


class Commit(TypedDict):
    """A checkout: its commit, and whether tracked files differ from it (None: git didn't answer, or not in time)."""

    commit: str
    dirty: bool | None


@functools.cache
def _commit_of(folder: Path) -> Commit | None:
    def git(*args: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "--no-optional-locks", "-C", str(folder), *args], capture_output=True, text=True, timeout=10
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "HEAD")
    if commit is None:
        return None
    changes = git("status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def current_commit() -> Commit | None:
    """Commit of the checkout that ctxexp runs from, else of the working folder; None outside any repository."""
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
    checkout = current_commit()
    commit = {"commit": checkout["commit"]} if checkout else {}
    if checkout and checkout["dirty"] is not None:
        commit["dirty"] = str(checkout["dirty"]).lower()
    return {"user": user(), "command": command(), **commit}


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.lower().startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _gpus() -> tuple[str, ...]:
    if sys.modules.get("torch"):  # asked only where the run itself needed it: importing it takes seconds
        import torch

        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        return (*names, "Apple MPS") if torch.backends.mps.is_available() else tuple(names)
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    try:
        done = subprocess.run(
            [program, "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(done.stdout.split("\n")[:-1]) if done.returncode == 0 else ()


def _package(distribution: Distribution) -> tuple[str, str] | None:
    """Name and version of an installed distribution, from the first lines of its metadata: parsing all of it would take
    a tenth of a run's start-up time."""
    try:
        text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    except UnicodeDecodeError:
        return None
    fields = {
        key: value.strip() for key, value in re.findall(r"^(Name|Version): *(.*)", text.partition("\n\n")[0], re.M)
    }
    return (fields["Name"], fields["Version"]) if fields.keys() >= {"Name", "Version"} else None


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
        "gpus": list(_gpus()),
        "git": current_commit(),
        "packages": dict(sorted(packages.items(), key=lambda item: item[0].lower())),
    }
