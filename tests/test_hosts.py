"""`ctxexp.measure` inside somebody's program: what is theirs stays as it was."""

from __future__ import annotations

import shutil
import sqlite3
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
import io, logging, os, random, signal, sys, threading, warnings
import matplotlib, mlflow, numpy as np, scipy.special, torch, transformers
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from matplotlib import pyplot as plt
from mine import ctxexp, TEXT
from omegaconf import OmegaConf
from omegaconf.basecontainer import BaseContainer

mlflow.set_tracking_uri("sqlite:///mine.db")
mlflow.set_experiment("mine")
mlflow.autolog(silent=True)
plt.rcParams["lines.linewidth"] = 7
names = [*logging.Logger.manager.loggerDict]

def state():
    libraries = {"KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "TORCHINDUCTOR_CACHE_DIR"}  # set by imports of theirs
    loggers = [logging.getLogger(), *map(logging.getLogger, names)]
    return {
        "environ": {key: value for key, value in os.environ.items() if key not in libraries},
        "random": (random.getstate(), str(np.random.get_state()), torch.random.get_rng_state().tolist()),
        "torch": (torch.get_num_threads(), torch.is_grad_enabled(), torch.get_default_dtype()),
        "warnings": (list(warnings.filters), warnings.showwarning),
        "loggers": [(one.name, one.level, one.propagate, one.disabled, list(one.handlers)) for one in loggers],
        "logging": (logging.raiseExceptions, logging.root.manager.disable, transformers.logging.get_verbosity()),
        "signals": {one: signal.getsignal(one) for one in signal.valid_signals()},
        "numpy": (np.geterr(), np.get_printoptions()),
        "figures": (dict(matplotlib.rcParams), matplotlib.get_backend(), plt.get_fignums()),
        "hydra": (GlobalHydra.instance().hydra, list(ConfigStore.instance().repo), sorted(BaseContainer._resolvers)),
        "process": (os.getcwd(), sys.argv, sys.path[:], sys.stdout, sys.excepthook, threading.active_count()),
        "mlflow": (mlflow.get_tracking_uri(), mlflow.get_registry_uri(), len(mlflow.search_experiments()),
                   len(mlflow.search_runs(search_all_experiments=True)), dict(mlflow.active_run().data.params)),
    }

def measure(model, text=None, **keywords):
    chosen = {"metrics": "self_similarity", "min_contexts": 2, "options": {"baseline.size": 5}}
    return ctxexp.measure(model, text, **{**chosen, **keywords}, bootstrap=0, progress=False)

chosen = OmegaConf.create({"metrics": ["self_similarity", "anisotropy"], "layers": [0, -1], "text": TEXT})
bert = measure("bert", chosen.text, metrics=chosen.metrics, layers=chosen.layers)
assert (bert.measures(), set(bert.frame.layer)) == (["self_similarity", "anisotropy"], {0, 4})
arrays = ctxexp.from_arrays([np.random.default_rng(i).normal(size=(2, 5, 3)) for i, _ in enumerate(TEXT)],
                            [line.split() for line in TEXT])
with mlflow.start_run():
    mlflow.log_param("theirs", 1)
    for name, call in {
        "measure": lambda: measure("bert", TEXT),
        "fits": lambda: measure("random_words", TEXT, transform="clusterwise", options={"transform.components": 1}),
        "arrays": lambda: measure(arrays),
        "an error": lambda: measure("none of that name", TEXT),
        "compare": lambda: (ctxexp.compare([bert, bert]).plot(), bert.plot("anisotropy"), bert.report("r.html")),
        "files": lambda: ctxexp.load(bert.save("results")),
    }.items():
        before = state()
        try:
            call()
        except ctxexp.CtxexpError:
            assert name == "an error"
        after = state()
        assert after == before, (name, {key: (before[key], after[key]) for key in before if before[key] != after[key]})
window = type("OfAWindow", (), {"write": lambda self, text: len(text), "flush": lambda self: None})()
for stream in (None, window, io.TextIOWrapper(io.BytesIO(), encoding="ascii")):
    (err, out), sys.stderr, sys.stdout = (sys.stderr, sys.stdout), stream, stream
    again = ctxexp.measure("random_words", ["\u00e9tude", *TEXT], metrics="self_similarity", bootstrap=0)
    sys.stderr, sys.stdout = err, out
    assert "self_similarity" in again.measures()
"""


def test_the_host_stays_as_it_was(empty_store: Path, tmp_path: Path) -> None:
    """Its environment, random numbers, warnings, logging, signals, NumPy, torch, figures, Hydra and MLflow, whose
    autologging is on; and it is served whatever its streams are."""
    (tmp_path / "mine.py").write_text(MEASURE)
    shutil.copy(empty_store / "mlflow.db", tmp_path / "mine.db")
    done = subprocess.run([sys.executable, "-c", STATE], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_command_without_streams_does_its_work(tmp_path: Path) -> None:
    """No file of ours gets the number of a stream, into which C libraries print."""
    measure = "model=random_words metric=[anisotropy] bootstrap=0 figures.explorer=0"
    command = f"{sys.executable} -m ctxexp {measure} <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, stdout=subprocess.DEVNULL).returncode == 0
    with sqlite3.connect(tmp_path / "mlruns" / "mlflow.db") as database:
        assert database.execute("pragma integrity_check").fetchall() == [("ok",)]


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
