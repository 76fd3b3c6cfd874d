"""W&B's and trackio's stores hold what MLflow's holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ctxexp import Results
from ctxexp.command import registry
from ctxexp.errors import ConfigError
from ctxexp.testing import check
from tests.made import results_with
from tests.shipped import MlflowSink
from tests.tracked import run_of, tracked

CURVES = {
    "self_similarity/raw": np.array([0.1, np.nan, 1 / 3]),
    "self_similarity/raw_ci_low": np.array([0.0, np.nan, 0.2]),
    "self_similarity/raw_ci_high": np.array([0.2, np.nan, 0.4]),
    "anisotropy/mean_cosine": np.array([0.25, -1e-9, 0.75]),
    "sts/STS12/spearman": np.array([0.5, 0.25, 0.125]),
}


@pytest.fixture(params=["wandb", "trackio"])
def sink(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip(request.param, reason=f"{request.param} isn't installed: pip install {request.param}")
    for name in ("WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "wandb"))
    if request.param == "trackio":
        for module in ("trackio.utils", "trackio.sqlite_storage"):
            monkeypatch.setattr(f"{module}.TRACKIO_DIR", tmp_path / "trackio")
    return registry().find("sink", request.param).factory


def read_back(folder: Path, sink: Any) -> set[tuple[str, int, float]]:
    """The finite values at the destination of a finished run."""
    job_folder = folder / "results" / "one" / "000"
    job_folder.mkdir(parents=True)
    params = {"model": {"name": "bert – é", "layers": [1, 2]}, "seed": 0}
    with tracked(run_of(job_folder, folder, params=params), own=sink) as job:
        job.log(results_with(CURVES))
    assert json.loads((job_folder / "status.json").read_text())["status"] == "FINISHED"
    assert Results.load(job_folder).measures()
    return {point for point in sink.read() if point[2] == point[2]}


@pytest.fixture(scope="module")
def of_mlflow(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, int, float]]:
    return read_back(tmp_path_factory.mktemp("mlflow"), MlflowSink(experiment="p", metrics="all"))


@pytest.mark.filterwarnings("ignore")
def test_its_store_equals_mlflow_s(
    sink: Any, tmp_path: Path, of_mlflow: set[tuple[str, int, float]], capfd: pytest.CaptureFixture[str]
) -> None:
    own = sink(project="p")
    finite = {(n, i, x) for n, curve in CURVES.items() for i, x in enumerate(curve.tolist()) if np.isfinite(x)}
    assert read_back(tmp_path, own) == finite == {point for point in of_mlflow if point[0] in CURVES}
    assert set(own.metadata()) == {"run_id", "hint"}
    assert capfd.readouterr().out == ""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_it_keeps_the_contract(sink: Any) -> None:
    check("sink", sink)


@pytest.mark.parametrize("library", ["wandb", "trackio"])
def test_without_its_library_it_says_what_to_install(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxexp_lab.sinks.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=rf"pip install 'ctxexp-lab\[{library}\]'"):
        registry().find("sink", library).factory()
