"""`ctxexp.measure` inside somebody's program: what is theirs stays as it was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MEASURE = """
import ctxexp
TEXT = [f"the bank of the {word}" for word in ("sand", "mud", "clay", "stone", "grass")]

def measure():
    return ctxexp.measure("random_words", TEXT, metrics="self_similarity", options=["bootstrap=0"], progress=False)
"""

HYDRA = """
import sys
from hydra import compose
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.core.utils import JobRuntime
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.version import VersionBase
from omegaconf import OmegaConf
from mine import measure

class Theirs(SearchPathPlugin):
    def manipulate_search_path(self, search_path):
        search_path.prepend("theirs", "file://{folder}/other")

Plugins.instance().register(Theirs)
ConfigStore.instance().store(group="model", name="random_words", node={{"size": "of the host"}})
ConfigStore.instance().store(name="ctxexp", node={{"model": "of the host"}})
def state():
    plugins = Plugins.instance().plugin_type_to_subclass_list
    return (
        GlobalHydra.instance().hydra, JobRuntime.instance().conf, VersionBase.instance().getbase(),
        HydraConfig.instance().cfg, {{kind: list(classes) for kind, classes in plugins.items()}},
        list(ConfigStore.instance().repo), list(ConfigStore.instance().repo["model"].items()),
        OmegaConf.create({{"x": "${{now:%Y}}"}}).x, sys.modules["hydra._internal.core_plugins.basic_sweeper"],
    )

def check():
    OmegaConf.register_new_resolver("now", lambda form: "their now", replace=True)
    before = state()
    composed = compose("config", overrides=["+model=random_words"])
    results = measure()
    assert state() == before
    assert compose("config", overrides=["+model=random_words"]) == composed == {{"model": {{"size": "of the host"}}}}
    assert results.info.model.dim == 768
    print("untouched")
"""

MAIN = """
import hydra

@hydra.main(version_base="1.2", config_path="conf", config_name="config")
def main(cfg):
    check()

main()
"""

INITIALIZE = """
import hydra
with hydra.initialize(config_path="conf", job_name="theirs", version_base="1.1"):
    check()
"""


@pytest.mark.parametrize("way", ["sweep", "context"])
def test_a_hydra_application_stays_as_it_was(way: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MEASURE)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text("{}\n")
    (tmp_path / "other" / "dataset").mkdir(parents=True)
    (tmp_path / "other" / "dataset" / "text.yaml").write_text("theirs: true\n")
    (tmp_path / "app.py").write_text(HYDRA.format(folder=tmp_path) + (MAIN if way == "sweep" else INITIALIZE))
    command = [sys.executable, "app.py", *(["-m", "+seed=1,2"] if way == "sweep" else [])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("untouched") == (2 if way == "sweep" else 1)


STATE = """
import logging, os, random, torch
from mine import ctxexp, TEXT

def state():
    libraries = {"KMP_DUPLICATE_LIB_OK", "TORCHINDUCTOR_CACHE_DIR"}  # scikit-learn's and torch's imports set them
    environ = {key: value for key, value in os.environ.items() if key not in libraries}
    level = logging.getLogger("mlflow.store.db.utils").level
    return environ, random.getstate(), torch.random.get_rng_state().tolist(), level

before = state()
ctxexp.measure("bert", TEXT, metrics="self_similarity", options=["bootstrap=0"], progress=False)
assert state() == before
"""


def test_environment_and_random_numbers_stay_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MEASURE)
    done = subprocess.run([sys.executable, "-c", STATE], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_users_config_folder_comes_before_ours(tmp_path: Path) -> None:
    (tmp_path / "baseline").mkdir()
    (tmp_path / "baseline" / "b100.yaml").write_text("# seven of them\nname: uniform\nsize: 7\n")
    (tmp_path / "config.yaml").write_text("of: another application\n")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "random_words.yaml").write_text("name: random_words\ndim: 3\n")
    command = [sys.executable, "-m", "ctxexp", "--config-dir", str(tmp_path), "baseline=b100", "model=random_words"]
    done = subprocess.run([*command, "--cfg", "job"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "  size: 7\n" in done.stdout
    assert "  dim: 3\n" in done.stdout
    assert "min_contexts: 5\n" in done.stdout  # of our own config
