"""The plugins in `plugins/`, as strangers get them: installed far from the tree; and new ones of the template."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"


def new_plugin() -> Any:
    spec = importlib.util.spec_from_file_location("new_plugin", PLUGINS / "new_plugin.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.nightly
def test_those_that_setup_leaves_out_pass_their_own_tests_where_they_are_installed(tmp_path: Path) -> None:
    """Models of packages, and a freshly generated plugin; that every wheel is whole is held by `.ci/distribution`."""
    pytest.importorskip("hatchling")
    pytest.importorskip("pip", reason="this environment has no pip, so no folder can be filled")
    new_plugin().main(["my-model", "--to", str(tmp_path / "ctxexp-my-model")])
    site, sources = tmp_path / "site", [PLUGINS / "ctxexp-packaged-models", tmp_path / "ctxexp-my-model"]
    pip = [sys.executable, "-m", "pip", "-q", "install", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", site, *sources], check=True)
    for source in sources:
        shutil.copytree(source / "tests", tmp_path / "tests" / source.name)
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\nmarkers = slow: takes seconds\n")
    env = {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    words = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) > 15
    reasons = re.findall(r"^SKIPPED \[\d+\] \S+: (.*)", done.stdout, flags=re.MULTILINE)
    assert [reason for reason in reasons if "installed" not in reason and "names no folder" not in reason] == []


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
