"""Plugins by their distributions: equal names, printed lines, archives."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

RUN = "dataset=text dataset.limit=4 min_contexts=2 metric=self_similarity bootstrap=0 sink=none"
PLUGIN = """
import ctxexp
print("at its import")

@ctxexp.hookimpl
def register_models(register):
    register("{name}", "{module}:made")

def made():
    from ctxexp.models.word_vectors import random_words
    return random_words(dim={dim})
"""


def install(site: Path, name: str, version: str, *, dim: int = 4) -> None:
    """A distribution `ctxexp-<name>` whose entry point is called `models` and supplies the model `<name>`."""
    site.mkdir(exist_ok=True)
    (site / f"{name}_module.py").write_text(PLUGIN.format(name=name, module=f"{name}_module", dim=dim))
    metadata = site / f"ctxexp_{name}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: ctxexp-{name}\nVersion: {version}\n")
    (metadata / "entry_points.txt").write_text(f"[ctxexp]\nmodels = {name}_module\n")


def ctxexp(site: Path, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ctxexp", *args]
    environ = {**os.environ, "PYTHONPATH": str(site), **more}
    return subprocess.run(command, capture_output=True, text=True, env=environ, cwd=site.parent)


def measured(site: Path, tmp_path: Path, model: str) -> tuple[dict[str, str], str]:
    """The plugins that a run of this model records, and what it printed."""
    text = tmp_path / "text.txt"
    text.write_text("".join(f"the bank of {word}\n" for word in ("sand", "mud", "clay", "stone")))
    folder = tmp_path / model
    done = ctxexp(site, *RUN.split(), f"model={model}", f"dataset.path={text}", f"tracking.folder={folder}")
    assert done.returncode == 0, done.stderr
    (run,) = folder.rglob("run.json")
    plugins = json.loads(run.read_text())["params"]["plugins"]
    return plugins, done.stdout


def test_what_a_distribution_supplies_is_its_own(tmp_path: Path) -> None:
    """Whatever its entry is called."""
    site = tmp_path / "site"
    install(site, "one", "1.0")
    install(site, "two", "2.0")
    plugins, stdout = measured(site, tmp_path, "two")
    assert plugins == {"models": "ctxexp-two 2.0"}
    assert "at its import" not in stdout
    told = json.loads(ctxexp(site, "plugins", "json=true").stdout)["tables"]["plugins"]["rows"]
    listed = {row["distribution"]: row["offers"] for row in told}
    assert listed["ctxexp-one"] == ["model=one"]
    assert listed["ctxexp-two"] == ["model=two"]


def test_a_broken_distribution_is_said_once_and_never_while_completing(tmp_path: Path) -> None:
    site = tmp_path / "site"
    install(site, "one", "1.0")
    install(site, "bad", "0.9")
    (site / "bad_module.py").write_text("import nowhere_to_be_found")
    problem = "plugin 'models' of distribution ctxexp-bad 0.9 could not be loaded: ModuleNotFoundError: "
    problem += f"No module named 'nowhere_to_be_found' ({site / 'bad_module.py'}, line 1)"
    shown = ctxexp(site, "--help", "model")
    assert shown.returncode == 0
    assert "\n  one\n" in shown.stdout
    assert [line for line in shown.stderr.splitlines() if "bad" in line] == [f"warning: {problem}"]
    completed = ctxexp(site, "-sc", "query=bash", COMP_LINE="ctxexp model=", COMP_POINT="13")
    assert "model=one" in completed.stdout
    assert "bad" not in completed.stderr
    listed = ctxexp(site, "plugins")
    assert listed.returncode == 1
    assert f"broken, and left out:\n  {problem}" in listed.stdout
    assert "bad" not in listed.stderr


def test_a_plugin_in_an_archive_is_refused_and_plugins_are_listed_without_torch(tmp_path: Path) -> None:
    install(tmp_path / "site", "one", "1.0")
    archive = Path(shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "site"))
    show = (
        "import sys; from ctxexp.command import cli; print(cli.run_command_line(['plugins']), 'torch' in sys.modules)"
    )
    environ = {**os.environ, "PYTHONPATH": str(archive)}
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, env=environ, cwd=tmp_path)
    assert done.stdout.endswith("\n1 False\n"), done.stdout + done.stderr
    assert "lies in an archive: install it unpacked" in done.stdout
