"""The number that a run returns to a sweeper, and sweepers and launchers that are or aren't installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from ctxexp.errors import ConfigError, MetricError
from ctxexp.plugins.registry import add_config_folder
from ctxexp.results.objective import Objective
from tests.composed import check_command, run_command_line
from tests.sample_results import results_with, run_info
from tests.shipped import polysemy
from tests.warm import Warm

CURVE = [0.5, np.nan, 0.75, 0.25]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("m/adjusted@last", 0.25),
        ("m/adjusted@2", 0.75),
        ("m/adjusted@highest", 0.75),
        ("m/adjusted@lowest", 0.25),
        ("m/adjusted@mean", 0.5),
        ("m/adjusted@1", np.nan),
        ("m/none@mean", np.nan),
        ("sts/STS12/all@0", 4.0),
        ("sts.last2/all", 7.0),
    ],
)
def test_an_objective_is_a_curves_value_or_a_scalar(text: str, value: float) -> None:
    curves = {"m/adjusted": CURVE, "m/none": [np.nan] * 4, "sts/STS12/all": [4.0, 5, 6, 7]}
    results = results_with(curves, {"sts.last2/all": 7.0})
    assert Objective.read(text).of(results) == pytest.approx(value, nan_ok=True)


def test_the_last_layer_is_the_last_measured_one() -> None:
    info = run_info(n_layers=4, layers=(0, 2))
    results = results_with({"m/adjusted": CURVE}, info=info)
    assert Objective.read("m/adjusted@last").of(results) == 0.75
    with pytest.raises(MetricError, match="no layer 3; the model gives 0, 2"):
        Objective.read("m/adjusted@3").of(results)
    with pytest.raises(MetricError, match=r"objective=m/raw@last: this run has no such value\..*m/adjusted"):
        Objective.read("m/raw@last").of(results)


def test_a_wrong_measure_is_refused_with_what_there_is() -> None:
    loaded = "torch" in sys.modules
    with pytest.raises(ConfigError, match=r"no measure 'slef_similarity'; did you mean 'self_similarity' or "):
        check_command(["objective=slef_similarity/raw@last"])
    assert ("torch" in sys.modules) == loaded


def test_an_experiment_that_names_one_says_so_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a folder of the user's own, which experiments may lie in."""
    (tmp_path / "experiment").mkdir()
    text = "# @package _global_\ndefaults:\n  - override /hydra/launcher: ray\n"
    (tmp_path / "experiment" / "mine.yaml").write_text(text)
    try:
        assert run_command_line(["--config-dir", str(tmp_path), "-m", "experiment=mine", "model=bert,elmo"]) == 2
    finally:
        add_config_folder(None)
    assert "no hydra/launcher 'ray'; the plugin hydra-ray-launcher brings it" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="no experiment 'mine'"):
        check_command(["experiment=mine"])


def test_what_optimises_needs_an_objective() -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="pip install 'ctxexp[optuna]'")
    words = ["hydra/sweeper=optuna", "transform=whitening", "transform.shrinkage=interval(0,1)"]
    with pytest.raises(ConfigError, match="hydra/sweeper=optuna needs a number to optimise, as in objective="):
        check_command(words, multirun=True)
    check_command([*words, "objective=self_similarity/raw@last"], multirun=True)


@pytest.mark.slow
def test_optuna_finds_the_best_despite_failed_trials(tmp_path: Path, warm: Warm) -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="pip install 'ctxexp[optuna]'")
    sweep = ["hydra/sweeper=optuna", "hydra.sweeper.n_trials=3", "hydra.sweeper.direction=maximize"]
    sweep += ["hydra.sweeper.sampler.seed=1", "transform=whitening", "transform.shrinkage=interval(0,2)"]
    one = ["model=random_words", "metric=self_similarity", "bootstrap=0", "figures.explorer=0", "sink=none"]
    lines = [sentence.text for sentence in polysemy().sentences[:200]]
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    words = ["-m", "text.txt", *sweep, *one, "objective=self_similarity/adjusted@last"]
    done = subprocess.run([str(warm.python), "-m", "ctxexp", *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr  # one trial failed
    assert "Traceback" not in done.stderr
    (found,) = tmp_path.glob("mlruns/hydra/*/*/optimization_results.yaml")
    best = yaml.safe_load(found.read_text())
    values = [float(line.rpartition(" = ")[2]) for line in done.stdout.splitlines() if "@last = " in line]
    assert len(values) == 2
    assert best["best_value"] == pytest.approx(max(values), rel=1e-5)
    assert str(best["best_params"]["transform.shrinkage"]) in done.stdout.partition("the optimum, in")[2]
    assert "failed, transform.shrinkage=1.4" in done.stdout
