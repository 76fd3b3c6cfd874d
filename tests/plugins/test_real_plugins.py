"""The plugins in `plugins/`, as strangers get them: wheels in an environment of their own, far from the tree."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = ROOT / "plugins"
REAL = sorted(path.parent for path in PLUGINS.glob("ctxexp-*/pyproject.toml"))
OURS = re.compile(r".*ctxexp.*|.*\.pth")  # what is not shared


def run(*words: str | Path, cwd: Path, check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "HYDRA_", "PYTHON", "CTXEXP_", "COV_"))}
    done = subprocess.run(
        [str(w) for w in words],
        cwd=cwd,
        env={**kept, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1", **env},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 or not check, f"{words}\n{done.stdout}\n{done.stderr}"
    return done


def new_plugin() -> Any:
    spec = importlib.util.spec_from_file_location("new_plugin", PLUGINS / "new_plugin.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Place:
    """An environment that shares the heavy libraries of this one, but none of its ctxexp distributions."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.python = folder, folder / "env" / "bin" / "python"
        run(sys.executable, "-m", "venv", "--without-pip", folder / "env", cwd=folder)
        heavy = folder / "heavy"  # links, since metadata of what is installed here must not be seen there
        heavy.mkdir()
        for place in sys.path:
            if Path(place).name in ("site-packages", "dist-packages"):
                for entry in Path(place).iterdir():
                    if not OURS.fullmatch(entry.name) and not (heavy / entry.name).exists():
                        (heavy / entry.name).symlink_to(entry)
        (own,) = (folder / "env" / "lib").glob("python*/site-packages")
        (own / "heavy.pth").write_text(f"{heavy}\n")
        self.wheels = folder / "wheels"

    def pip(self, *words: str | Path) -> None:
        run(self.python, "-m", "pip", "--disable-pip-version-check", "-q", *words, cwd=self.folder)

    def build(self, *sources: Path) -> list[Path]:
        """The wheel of each source, outside of the tree."""

        def one(source: Path) -> Path:
            to = self.wheels / source.name
            run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", to, cwd=source)
            (wheel,) = to.glob("*.whl")
            return wheel

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(one, sources))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """ctxexp, every real plugin and a freshly generated one, installed from wheels."""
    pytest.importorskip("hatchling")
    pytest.importorskip("pip", reason="this environment has no pip, so no other one can be filled")
    folder = tmp_path_factory.mktemp("plugins")
    new_plugin().main(["my-model", "--to", str(folder / "ctxexp-my-model")])
    place = Place(folder)
    wheels = place.build(ROOT, *REAL, folder / "ctxexp-my-model")
    place.pip("install", "--no-deps", "--no-index", *wheels)
    return place


@pytest.mark.nightly
def test_their_own_tests_pass_where_only_wheels_are_installed(place: Place, tmp_path: Path) -> None:
    in_the_suite = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["testpaths"]
    for source in [*REAL, place.folder / "ctxexp-my-model"]:
        if f"plugins/{source.name}/tests" in in_the_suite:
            continue
        shutil.copytree(source / "tests", tmp_path / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\nmarkers = slow: takes seconds\n")
    done = run(place.python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", cwd=tmp_path)
    ran = run(
        place.python, "-c", "import ctxexp, ctxexp_compare; print(ctxexp.__file__, ctxexp_compare.__file__)",
        cwd=tmp_path,
    )  # fmt: skip
    assert ran.stdout.count(str(place.folder / "env")) == 2
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|skipped)", done.stdout)}
    assert counts["passed"] > 20
    reasons = re.findall(r"^SKIPPED \[\d+\] \S+: (.*)", done.stdout, flags=re.MULTILINE)
    missing = [reason for reason in reasons if "installed" in reason or "names no folder" in reason]
    assert missing == reasons, done.stdout
    assert bool(reasons) == bool(counts.get("skipped"))


def test_a_rendered_plugin_is_complete(tmp_path: Path) -> None:
    module = new_plugin()
    module.main(["two-words", "--to", str(tmp_path / "new")])
    files = sorted(p.relative_to(tmp_path / "new").as_posix() for p in (tmp_path / "new").rglob("*") if p.is_file())
    assert files == ["README.md", "ctxexp_two_words.py", "pyproject.toml", "tests/test_two_words.py"]
    text = "\n".join((tmp_path / "new" / name).read_text() for name in files)
    assert not re.search("plugin[-_]?name", text, flags=re.IGNORECASE)
    assert 'name = "ctxexp-two-words"' in text
    assert "class TwoWordsModel" in text  # its tests run where wheels are installed


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Foo", "NAME='Foo': expected lower-case letters, digits and single dashes, as in my-model"),
        ("my--model", "expected lower-case letters"),
        ("1st", "expected lower-case letters"),
        ("../up", "expected lower-case letters"),
        ("ctxexp-foo", "leave out 'ctxexp-', it is put in front: NAME=foo"),
        ("null", "the command line gives this word a meaning of its own; take another"),
        ("bert", "NAME=bert: ctxexp has a model 'bert'; take another name"),
        ("self-similarity", "ctxexp has a metric 'self_similarity'; take another name"),
        ("measures", "ctxexp-measures is there already; give a new folder with TO="),
    ],
)
def test_a_bad_or_taken_name_is_refused(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = new_plugin()
    monkeypatch.setattr(module, "entry_points", lambda **_: [])
    before = sorted(PLUGINS.iterdir())
    with pytest.raises(SystemExit, match=re.escape(message)):
        module.main([name])
    assert sorted(PLUGINS.iterdir()) == before


def test_the_name_of_an_installed_plugin_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    module = new_plugin()
    monkeypatch.setattr(module, "entry_points", lambda **_: [EntryPoint("theirs", "their_module", "ctxexp")])
    with pytest.raises(SystemExit, match=r"NAME=theirs: the installed distribution .* brings a plugin of this name"):
        module.main(["theirs"])
