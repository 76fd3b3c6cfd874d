"""W&B's and trackio's stores hold what MLflow's holds."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from struct import unpack_from
from typing import Any

import numpy as np
import pytest

from ctxexp.command import registry
from ctxexp.errors import ConfigError
from ctxexp.files.job_folder import read_state
from ctxexp.testing import check
from tests.sample_results import results_with
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


Point = tuple[str, int, float]
BLOCK, HEADER = 32768, 7  # bytes of an offline file's blocks; of its beginning, and of a record's
LAST, WAIT = (1, 4), 10  # kinds of a record's last part; seconds, at most, for what a finished run still writes


def of_mlflow_store(sink: Any, sent: dict[str, str]) -> list[Point]:
    keys = sink.client.get_run(sent["run_id"]).data.metrics
    return [(key, p.step, p.value) for key in keys for p in sink.client.get_metric_history(sent["run_id"], key)]


def of_trackio_store(sink: Any, sent: dict[str, str]) -> list[Point]:
    from trackio.sqlite_storage import SQLiteStorage

    rows = SQLiteStorage.get_logs(sink.project, "bert", run_id=sent["run_id"])
    return [(name, row["step"], row[name]) for row in rows for name in row if name not in ("step", "timestamp")]


def of_wandb_store(sink: Any, sent: dict[str, str]) -> list[Point]:
    from wandb.proto.wandb_internal_pb2 import Record

    end, kept = time.monotonic() + WAIT, list[Any]()
    while time.monotonic() < end and not any(one.HasField("exit") for one in kept):  # another process writes it
        [file] = Path(sent["hint"].removeprefix("wandb sync ")).glob("*.wandb")
        kept = [Record.FromString(each) for each in wandb_records(file)]
    items = [(one.history.step.num, item) for one in kept for item in one.history.item]
    points = [(item.nested_key[0] if item.nested_key else item.key, i, item.value_json) for i, item in items]
    return [(name, i, float(json.loads(value))) for name, i, value in points if not name.startswith("_")]


def wandb_records(path: Path) -> Iterator[bytes]:
    """The records of an offline file, which is a log of LevelDB's format."""
    data, at, record = path.read_bytes(), HEADER, b""
    while at + HEADER <= len(data):
        if (left := BLOCK - at % BLOCK) < HEADER:
            at += left
            continue
        _, length, kind = unpack_from("<IHB", data, at)
        record, at = record + data[at + HEADER : at + HEADER + length], at + HEADER + length
        if kind in LAST and at <= len(data):
            yield record
            record = b""


STORES = {"MlflowSink": of_mlflow_store, "TrackioSink": of_trackio_store, "WandbSink": of_wandb_store}


def read_back(folder: Path, sink: Any) -> set[tuple[str, int, float]]:
    """The finite values at the destination of a finished run."""
    job_folder = folder / "results" / "one" / "000"
    job_folder.mkdir(parents=True)
    params = {"model": {"name": "bert – é", "layers": [1, 2]}, "seed": 0}
    with tracked(run_of(job_folder, folder, params=params), own=sink) as job:
        job.save(results_with(CURVES))
    sent = read_state(job_folder)["sinks"]["own"]
    assert {"run_id", "hint"} <= {*sent}
    return {point for point in STORES[type(sink).__name__](sink, sent) if point[2] == point[2]}


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
    assert capfd.readouterr().out == ""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_it_keeps_the_contract(sink: Any) -> None:
    check("sink", sink)


@pytest.mark.parametrize("library", ["wandb", "trackio"])
def test_without_its_library_it_says_what_to_install(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxexp_hub.trackers.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=f"pip install {library}"):
        registry().find("sink", library).factory()


def test_a_data_set_of_the_hub_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)  # as if it were not there
    with pytest.raises(ConfigError, match=r"datasets, which isn't installed: pip install datasets$"):
        registry().find("dataset", "huggingface").factory(path="some/data")
