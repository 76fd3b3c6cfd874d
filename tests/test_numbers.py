"""docs/numbers.py: its steps name commands that the docs name, modules that are there and data that they need."""

from __future__ import annotations

import importlib.util
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[1]
DRIVER = SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "numbers.py")))


@pytest.mark.parametrize("name", DRIVER.STEPS)
def test_a_step_is_what_the_docs_say_and_what_is_there(name: str) -> None:
    step = DRIVER.STEPS[name]
    words = shlex.split(step.write)
    assert importlib.util.find_spec(words[2]) if words[1] == "-m" else (ROOT / words[1]).is_file()
    pages = [page.read_text(encoding="utf-8") for top in ("docs", "plugins") for page in (ROOT / top).rglob("*.md")]
    told = " ".join(" ".join([(ROOT / "README.md").read_text(encoding="utf-8"), *pages]).split())
    for line in step.measure.splitlines():
        assert line.partition('"$')[0].rpartition(" ")[0] in told, line
        assert line.count("$") <= len(step.needs)


def test_what_is_measured_in_an_empty_folder_is_told_to_what_writes(capfd: pytest.CaptureFixture[str]) -> None:
    DRIVER.STEPS["one"] = DRIVER.Step("echo", "mkdir -p 'a b'; pwd > 'a b/c'", made="*/c")
    assert DRIVER.make("one") == 0
    told = capfd.readouterr().out.splitlines()[-1]
    assert told.endswith("a b/c")
    assert not Path(told).exists()
    DRIVER.STEPS["two"] = DRIVER.Step("echo written", "exit 3")
    assert DRIVER.make("two") == 3
    assert "written" not in capfd.readouterr().out


def test_without_its_data_a_step_is_left_out() -> None:
    words = [sys.executable, str(ROOT / "docs" / "numbers.py"), "card", "usages"]
    done = subprocess.run(words, env={"PATH": "/usr/bin:/bin", "WIC": "x"}, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "card is left out: STS is not given",
        "usages is left out: DWUG is not given",
    ]
