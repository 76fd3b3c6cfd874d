"""`python .ci/environment.py FOLDER ARGUMENTS`: `pip install ARGUMENTS` into a virtual environment, which it makes.

uv installs: the one on PATH, else one that pip puts into .venv-tools. pip does where neither can be had, or where
INSTALLER=pip asks for it. uv reads none of pip's settings, so those that say where packages come from are handed on.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".venv-tools"
OLDEST_UV = (0, 5)  # knows UV_INDEX and UV_DEFAULT_INDEX
HANDED_ON = {  # pip's setting: uv's variable, older or other names of it, and what stands between several values
    "find-links": ("UV_FIND_LINKS", (), ","),
    "index-url": ("UV_DEFAULT_INDEX", ("UV_INDEX_URL",), ""),
    "extra-index-url": ("UV_INDEX", ("UV_EXTRA_INDEX_URL",), " "),
    "trusted-host": ("UV_INSECURE_HOST", (), " "),
    "cert": ("SSL_CERT_FILE", (), ""),
}
Command = list[str]


def pip_settings(listing: str, environ: Mapping[str, str]) -> dict[str, str]:
    """pip's settings for `pip install`, of its files (`listing`: what `pip config list` prints) and of the environment,
    which goes first. Empty values count for nothing, as in pip."""
    settings: dict[str, str] = {}
    for section in ("global", "install"):
        for line in listing.splitlines():
            key, _, value = line.partition("=")
            if key.startswith(f"{section}."):
                settings[key.partition(".")[2]] = ast.literal_eval(value)
    settings.update({k[4:].lower().replace("_", "-"): v for k, v in environ.items() if k.startswith("PIP_") and v})
    return {key: value for key, value in settings.items() if value.strip()}


def uv_variables(settings: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """uv's variables that say the same as pip's settings. What the environment says to uv already stays as it is."""
    variables = {}
    for key, (name, other_names, separator) in HANDED_ON.items():
        if key in settings and not any(n in environ for n in (name, *other_names)):
            values = settings[key].split() if separator else [settings[key].strip()]
            variables[name] = separator.join(values)
    if "UV_INDEX" in variables:  # pip takes the best version of all indexes, uv by itself that of the first
        variables["UV_INDEX_STRATEGY"] = environ.get("UV_INDEX_STRATEGY", "unsafe-best-match")
    return variables


def uv_options(settings: Mapping[str, str]) -> list[str]:
    """uv's options for settings that it has no variable for."""
    return ["--no-index"] if settings.get("no-index", "").lower() in ("1", "true", "yes", "on") else []


def find_pip() -> Command | None:
    """This Python's pip, else one that it makes in .venv-tools; None where it has no means to."""
    own = [sys.executable, "-m", "pip"]
    if output_of([*own, "--version"]):
        return own
    made = TOOLS / "pip" / "bin" / "python"
    if not made.exists() and output_of([sys.executable, "-m", "venv", str(TOOLS / "pip")]) is None:
        return None  # Debian's python3 without python3-venv
    return [str(made), "-m", "pip"]


def find_uv() -> Command | None:
    """The uv on PATH, else the one of .venv-tools, which pip puts there; None where it can't."""
    fetched = TOOLS / "uv" / "bin" / "uv"
    for uv in (shutil.which("uv"), str(fetched)):
        if uv and uv_version([uv]) >= OLDEST_UV:
            return [uv]
    if pip := find_pip():
        print("uv is fetched into .venv-tools", file=sys.stderr, flush=True)
        fetch = [*pip, "install", "-q", "--disable-pip-version-check", "--upgrade", "--target", str(TOOLS / "uv")]
        if output_of([*fetch, "-c", str(ROOT / "constraints.txt"), "uv"]) is not None:
            return [str(fetched)]
    return None


def uv_version(uv: Command) -> tuple[int, ...]:
    """As in (0, 13, 9); empty where the command doesn't work, as a version manager's placeholder may not."""
    words = (output_of([*uv, "--version"]) or "").split()
    return tuple(int(part) for part in words[1].split(".") if part.isdigit()) if len(words) > 1 else ()


def output_of(command: Command) -> str | None:
    """What a command that succeeds prints; None of one that fails or isn't there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def install(python: Path, arguments: list[str]) -> int:
    """The installer's exit status."""
    began = time.monotonic()
    uv = find_uv() if os.environ.get("INSTALLER") != "pip" else None
    if uv:
        settings = pip_settings(output_of([sys.executable, "-m", "pip", "config", "list"]) or "", os.environ)
        command = [*uv, "pip", "install", "--python", str(python), *uv_options(settings)]
        environ = {"UV_COMPILE_BYTECODE": "1", **os.environ, **uv_variables(settings, os.environ)}
    elif pip := find_pip():
        command, environ = [*pip, "--python", str(python), "install", "--disable-pip-version-check"], {**os.environ}
    else:
        print("error: neither uv nor pip can be had; install one of them (Debian: python3-pip)", file=sys.stderr)
        return 2
    status = subprocess.run([*command, "-q", *arguments], env=environ, check=False).returncode
    if status and uv:
        print("error: uv can't install this (above); INSTALLER=pip, in front, tries pip", file=sys.stderr)
    elif not status:
        print(f"installed with {'uv' if uv else 'pip'} in {time.monotonic() - began:.0f} s", flush=True)
    return status


def main(arguments: list[str]) -> int:
    """The exit status."""
    if arguments == ["--uv"]:  # its path alone, for scripts that ask uv for more
        uv = find_uv()
        print(*uv or ())
        return 0 if uv else 2
    folder, *rest = arguments
    python = Path(folder) / "bin" / "python"
    if not python.exists():  # --without-pip, since Debian's python3 may lack ensurepip
        made = subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=False)
        if made.returncode:
            return made.returncode
    return install(python, rest)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
