"""A training's run: checkpoints kept by the way, folders of a sweep, devices, MLflow."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
import torch
from ctxexp_lab.training import command
from ctxexp_lab.training.recipe import check_options
from ctxexp_lab.training.train import TrainingRun, train
from omegaconf import DictConfig

from ctxexp.errors import ConfigError, ModelError

from .tiny_recipes import TINY, composed, config


def kept(folder: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("step")) for path in (folder / "checkpoints").iterdir())


def test_a_killed_training_keeps_the_same_checkpoints(text: Path, tmp_path: Path) -> None:
    train(config("gpt2", text, tmp_path / "a", "steps=6", "keep=1"))
    TrainingRun(config("gpt2", text, tmp_path / "b", "steps=6", "keep=1", "stop_after=3")).train()
    shutil.copytree(tmp_path / "b" / "checkpoints" / "step2", tmp_path / "b" / "checkpoints" / "step4.part")
    train(config("gpt2", text, tmp_path / "b", "steps=6", "keep=1"))
    assert kept(tmp_path / "a") == kept(tmp_path / "b") == [0, 1, 2, 4, 6]
    for step in (0, 2, 4, 6):
        a, b = (tmp_path / name / "checkpoints" / f"step{step}" / "model.safetensors" for name in "ab")
        assert a.read_bytes() == b.read_bytes()


def test_a_finished_training_isnt_trained_again(text: Path, tmp_path: Path) -> None:
    losses = train(config("gpt2", text, tmp_path, "steps=2"))
    before = (tmp_path / "checkpoint.pt").stat().st_mtime_ns
    assert train(config("gpt2", text, tmp_path, "steps=2")) == losses
    assert (tmp_path / "checkpoint.pt").stat().st_mtime_ns == before
    train(config("gpt2", text, tmp_path, "steps=4"))
    assert json.loads((tmp_path / "export" / "run.json").read_text())["steps"] == 4


def test_a_folder_of_another_training_is_refused(text: Path, tmp_path: Path) -> None:
    TrainingRun(config("gpt2", text, tmp_path, "steps=2")).train()
    with pytest.raises(ConfigError, match=r"holds a training with seed=0, not 1: choose another folder="):
        TrainingRun(config("gpt2", text, tmp_path, "steps=2", "seed=1"))
    with pytest.raises(ConfigError, match=r"holds a training with .*model\.name='gpt2', not 'bert'"):
        TrainingRun(config("bert", text, tmp_path, "steps=2"))
    assert TrainingRun(config("gpt2", text, tmp_path, "steps=9", "log_every=1", "keep=4")).step == 2


def test_a_loss_that_is_no_number_ends_the_training(text: Path, tmp_path: Path) -> None:
    run = TrainingRun(config("gpt2", text, tmp_path, "steps=4"))
    with torch.no_grad():
        run.learner.network.transformer.ln_f.weight.fill_(float("nan"))
    with pytest.raises(ModelError, match=r"the loss of .* is nan by step 2: lower model\.muon_rate=0\.02"):
        run.train()


# --- a sweep --------------------------------------------------------------------------------------------------------


def test_one_command_trains_a_pair_in_folders_of_their_own(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["ctxexp"])
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    words = [str(text), f"cache={text}/cache", "words=null", "steps=1", "tracking=null", *TINY["gpt2"]]
    made = command.train("-m", "model=bert,gpt2", "seed=1", *words)
    folders = sorted(path.name for path in (tmp_path / "outputs/minis").iterdir() if path.is_dir())
    assert folders == ["bert", "gpt2"] == [path.name for path in made.files]
    assert [line.partition(":")[0] for line in made.sentences] == folders
    for name in folders:
        folder = tmp_path / "outputs/minis" / name
        assert (folder / "export" / "model.safetensors").is_file()
        assert json.loads((folder / "export" / "run.json").read_text())["recipe"]["seed"] == 1


def test_commands_of_the_docs_compose() -> None:
    root = Path(__file__).resolve().parents[3]
    if not (root / "docs").is_dir():
        pytest.skip("needs the pages of the checkout")
    pages = [*(root / "docs").rglob("*.md"), root / "ctxexp/models/minis/CARD.md"]
    typed = {m[1] for page in pages for m in re.finditer(r"^ *ctxexp train ([^#\n`]*)", page.read_text("utf-8"), re.M)}
    assert len(typed) > 4
    for line in typed:
        words = [re.sub(r",(?![^\[]*\]).*", "", word) for word in shlex.split(re.sub(r"<[^>]*>", "x", line))]
        words = [word for word in words if not word.startswith(("-", "$"))]
        cfg = composed(*(word for word in words if word != "device=cuda"))
        if words:
            check_options(cfg)


# --- MLflow ---------------------------------------------------------------------------------------------------------


def _train_to(store: Path, folder: Path, text: Path, *words: str) -> DictConfig:
    cfg = config("gpt2", text, folder, "steps=6", "held_out_every=2", f"tracking={store}", *words)
    train(cfg)
    return cfg


@pytest.mark.slow
def test_curves_go_to_one_mlflow_run_across_resumptions(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_store: Path
) -> None:
    """Steps are the training's; what a killed training had logged beyond its checkpoint isn't there twice."""
    from mlflow.tracking import MlflowClient

    monkeypatch.chdir(tmp_path)  # MLflow puts its folders where it runs
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    store, folder = Path(shutil.copytree(empty_store, tmp_path / "mlruns")), tmp_path / "a"
    _train_to(store, folder, text, "stop_after=2")
    shutil.copy(folder / "checkpoint.pt", tmp_path / "early.pt")
    monkeypatch.setattr(TrainingRun, "finish", _fail)
    with pytest.raises(RuntimeError, match="power"):
        _train_to(store, folder, text, "stop_after=4")
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    shutil.copy(tmp_path / "early.pt", folder / "checkpoint.pt")
    client = MlflowClient(f"sqlite:///{store}/mlflow.db")
    experiment = client.get_experiment_by_name("minis")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FAILED"
    _train_to(store, folder, text)
    assert "MLFLOW_TRACKING_URI" not in os.environ  # nothing is left for the next to trip over
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.params["seed"] == "0"
    assert run.data.params["model.shape.layers"] == "1"
    points = client.get_metric_history(run.info.run_id, "curve/loss")
    rows = [r.split(",") for r in (folder / "curve.csv").read_text().splitlines()[1:]]
    assert [(p.step, p.value) for p in points] == [(int(r[0]), float(r[3])) for r in rows]
    assert [p.step for p in client.get_metric_history(run.info.run_id, "held_out/loss")] == [2, 4, 6]
    *_, final = client.get_metric_history(run.info.run_id, "final/loss")
    record = json.loads((folder / "export" / "run.json").read_text())
    assert (final.step, final.value) == (record["best_step"], record["held_out"]["loss"])


def _fail(_: TrainingRun) -> None:
    raise RuntimeError("power")
