"""`.ci/environment.py`, which `make setup` and `.ci/` install with: pip's settings in uv's words, and what there is
where uv or pip is missing."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / ".ci" / "environment.py"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_pip_s_settings_are_those_of_its_files_and_the_environment_goes_first(script: dict[str, Any]) -> None:
    listing = "\n".join([
        ":env:.find-links='/of/the/environment'",
        "global.cert='/etc/ca.crt'",
        "global.extra-index-url='\\nfile:///a/simple\\nfile:///b/simple'",
        "global.find-links='/of/a/file'",
        "global.index-url='http://mirror/simple'",
        "global.no-index='false'",
        "install.index-url='http://other/simple'",
        "download.cert='/no/matter'",
    ])  # fmt: skip
    environ = {"PIP_FIND_LINKS": "/of/the/environment", "PIP_CERT": "", "HOME": "/h", "PIP_TRUSTED_HOST": "a b"}
    assert script["pip_settings"](listing, environ) == {
        "cert": "/etc/ca.crt",
        "extra-index-url": "\nfile:///a/simple\nfile:///b/simple",
        "find-links": "/of/the/environment",
        "index-url": "http://other/simple",
        "no-index": "false",
        "trusted-host": "a b",
    }
    assert script["pip_settings"]("", {}) == {}


def test_uv_is_told_what_pip_is_told(script: dict[str, Any]) -> None:
    settings = {"cert": "/my files/ca.crt", "extra-index-url": "\nu\n  v", "find-links": "/a /b", "index-url": " i "}
    told = {
        "SSL_CERT_FILE": "/my files/ca.crt",
        "UV_INDEX": "u v",
        "UV_FIND_LINKS": "/a,/b",
        "UV_DEFAULT_INDEX": "i",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
    assert script["uv_variables"](settings, {}) == told
    assert script["uv_variables"]({}, {}) == {}
    assert script["uv_variables"]({"trusted-host": "m n"}, {}) == {"UV_INSECURE_HOST": "m n"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder, with a space in its name, that has the script and, in `wheels`, a wheel of the package `greeting`."""
    folder = tmp_path / "a checkout"
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(SCRIPT, folder / ".ci")
    shutil.copy(ROOT / "constraints.txt", folder)
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    info = "greeting-1.0.dist-info"
    files = {
        "greeting.py": "WORD = 'hello'\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(wheels / "greeting-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(name, text)
    # what a machine without a network says to pip: in a file, which uv doesn't read
    (tmp_path / "pip.conf").write_text(f"[global]\nno-index = true\n[install]\nfind-links = {wheels}\n")
    return folder


def run(checkout: Path, *args: str, python: str = sys.executable, **environ: str) -> subprocess.CompletedProcess[str]:
    """The script, without any setting for uv or pip but those of the fixture's file."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_", "PYTHON", "INSTALLER"))}
    kept |= {
        "PIP_CONFIG_FILE": str(checkout.parent / "pip.conf"),
        "UV_CACHE_DIR": str(checkout.parent / "uv"),
        **environ,
    }
    return subprocess.run(
        [python, ".ci/environment.py", *args], cwd=checkout, env=kept, capture_output=True, text=True, timeout=100
    )


def greeting(folder: Path) -> str:
    command = "import greeting, pathlib; print(greeting.WORD, pathlib.Path(greeting.__cached__).exists())"
    done = subprocess.run([str(folder / "bin" / "python"), "-B", "-c", command], capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.nightly
def test_pip_installs_where_uv_can_t_be_had(checkout: Path) -> None:
    """No uv on PATH, none where packages come from, and a Python that has ensurepip but no pip."""
    pytest.importorskip("ensurepip")
    bare = checkout / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    asked = ("env", "-c", "constraints.txt", "greeting")
    done = run(checkout, *asked, python=str(bare / "bin" / "python"), PATH="/nowhere")
    assert done.returncode == 0, done.stderr
    assert "uv is fetched into .venv-tools" in done.stderr
    assert done.stdout.startswith("installed with pip in ")
    assert greeting(checkout / "env") == "hello True"
    assert [path.name for path in (checkout / ".venv-tools").iterdir()] == ["pip"]
