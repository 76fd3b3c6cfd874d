"""What MLflow's page opens on: a view of the curves with their chance level and intervals, and a note above it."""

from __future__ import annotations

import base64
import json
import shutil
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlflow import MlflowClient

from ctxexp import Results
from ctxexp.results import RunInfo
from ctxexp.results.run_info import MixInfo
from ctxexp.sinks import database, views
from ctxexp.sinks.ui import last_sweep_link
from ctxexp.sinks.views import experiment_note, keys_to_compare, marked_results, metric_names
from tests.made import results_with, told
from tests.shipped import MlflowSink
from tests.tracked import run_of

MEASURES = {
    "self_similarity": {
        "name": "self_similarity",
        "unit": "cosine",
        "subject": "words",
        "lower": "more context-specific",
    },
    "word_norm": {"name": "word_norm", "unit": "l2 norm"},
}  # fmt: skip


def measured(width: float, title: str = "bert") -> Results:
    """Results of three layers with intervals of this width, and lengths that differ by factors."""
    curve, lengths = np.array([0.6, 0.4, 0.2]), np.array([1.0, 20.0, 300.0])
    ends = {"_ci_low": curve - width / 2, "_ci_high": curve + width / 2}
    curves = {f"self_similarity/adjusted{end}": values for end, values in {"": curve, **ends}.items()}
    return results_with({**curves, "word_norm/raw": lengths}, info=told(title=title, n_layers=3, measures=MEASURES))


@pytest.fixture
def client(tmp_path: Path, template: Path) -> MlflowClient:
    shutil.copy(template / "mlflow.db", tmp_path)
    client = database.client(database.prepare(tmp_path))
    database.experiment(client, "study", tmp_path)
    return client


def experiment(client: MlflowClient) -> str:
    return str(client.get_experiment_by_name("study").experiment_id)


def state(client: MlflowClient, view: str) -> dict[str, Any]:
    """The page's state that a view holds."""
    if database.version_of(client) < (3, 15):
        pytest.skip("this version of MLflow has no views by name")
    text = json.loads(client.get_experiment(experiment(client)).tags[f"mlflow.sharedViewState.{view}"])["state"]
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text.removeprefix("deflate;"))))
    return found


def headlines(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The charts of the open section by metric."""
    [opened] = [section for section in found["compareRunSections"] if section["display"]]
    return {c["metricKey"]: c for c in found["compareRunCharts"] if c["metricSectionId"] == opened["uuid"]}


def test_wide_intervals_are_drawn_beside_their_curve(client: MlflowClient) -> None:
    views.install(client, experiment(client), "wide", "filter", [("bert", measured(0.1))])
    found = state(client, "wide")
    chart = headlines(found)["self_similarity/adjusted"]
    ends = ["self_similarity adjusted low", "self_similarity adjusted high"]
    assert chart["selectedMetricKeys"] == ["self_similarity/adjusted", *ends]
    assert chart["displayName"] == "Self similarity, adjusted, lower = more context-specific"
    assert chart["range"]["yMin"] < 0 < 0.65 < chart["range"]["yMax"] < 0.7  # chance isn't cut off
    lengths = headlines(found)["word_norm/raw"]
    assert (lengths["scaleType"], lengths["range"]) == ("log", {})
    assert found["compareRunSections"][0]["name"].endswith("\ndashes: 95% interval")
    assert found["searchFilter"] == "filter"


def test_many_runs_or_none_with_intervals_are_drawn_without_them(client: MlflowClient) -> None:
    for view, width, n_runs in (("many", 0.1, 5), ("none", np.nan, 1)):
        views.install(client, experiment(client), view, "", [(f"run {i}", measured(width)) for i in range(n_runs)])
        found = state(client, view)
        assert headlines(found)["self_similarity/adjusted"]["selectedMetricKeys"] == ["self_similarity/adjusted"]
        assert found["compareRunSections"][0]["name"].endswith("share of the room: 0 = chance")


def test_a_lone_run_has_a_view_and_a_note(client: MlflowClient, tmp_path: Path) -> None:
    sink, folder = MlflowSink(experiment="study"), tmp_path / "results" / "single" / "0"
    sink.start(run_of(folder, tmp_path))
    sink.log(measured(0.01), folder)
    sink.finish("FINISHED")
    assert state(client, sink.run_id)["searchFilter"] == f"attributes.run_id = '{sink.run_id}'"
    assert f"viewStateShareKey={sink.run_id}" in str(last_sweep_link(client.tracking_uri, "study", "http://h"))
    note = client.get_experiment(experiment(client)).tags["mlflow.note.content"]
    report = f"#/experiments/{experiment(client)}/runs/{sink.run_id}/artifacts/report.html"
    assert note.startswith(
        f"[Last run]({report}): In bert, words grow more context-specific up to the last layer, 2 (0.60"
    )
    history = client.get_metric_history(sink.run_id, "self_similarity adjusted low")
    assert [point.value for point in history] == pytest.approx([0.595, 0.395, 0.195])


def test_a_note_that_a_person_wrote_stays(client: MlflowClient) -> None:
    def note() -> str:
        return str(client.get_experiment(experiment(client)).tags["mlflow.note.content"])

    for text in ("first", "second"):
        views.set_note(client, experiment(client), text)
        assert note() == text
    client.set_experiment_tag(experiment(client), "mlflow.note.content", "of a person")
    views.set_note(client, experiment(client), "third")
    assert note() == "of a person"


def test_a_database_that_is_no_file_is_served_by_the_ui() -> None:
    assert views.run_link("postgresql://me@host/db", "1", "r").startswith(
        "http://127.0.0.1:5000/#/experiments/1/runs/r"
    )
    assert views.ui_hint("postgresql://me@host/db")


def test_the_note_begins_with_the_order_of_the_runs() -> None:
    other = results_with(
        {"self_similarity/adjusted": np.array([0.9, 0.9, 0.9])}, info=told(title="elmo", measures=MEASURES)
    )
    first, _, rest = experiment_note("sweep", [("bert", measured(0.01)), ("elmo", other)], "1", "r").splitlines()
    assert first.startswith("[Last sweep](#/experiments/1/runs/r/artifacts/report.html): At the last measured layer ")
    assert rest.startswith("In bert, words grow more context-specific")


def test_measures_over_a_text_that_lacks_bands_have_a_name_of_their_own() -> None:
    mix = replace(RunInfo().mix, weights="bands", filled=(False, True, True))
    measures = {"self_similarity": {"over": "word", "title": "Self-similarity"}, "anisotropy": {"over": "sample"}}
    curves = {"self_similarity/share_of_room": np.array([0.9, 0.5]), "anisotropy/mean_cosine": np.array([0.1, 0.2])}
    short, full = (results_with(curves, info=told(measures=measures, mix=each)) for each in (mix, MixInfo()))
    names = [str(key) for key in keys_to_compare(marked_results(short))]
    assert names == ["self_similarity 2 of 3 bands/share_of_room", "anisotropy/mean_cosine"]
    assert marked_results(full) is full
    assert [name for name in names if metric_names(names)[name] != name] == []  # MLflow takes them as they are
