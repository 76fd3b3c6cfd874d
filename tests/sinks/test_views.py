"""What MLflow's page shows of runs: names of curves, and the note above them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mlflow import MlflowClient

from ctxexp import Results
from ctxexp.results import RunInfo
from ctxexp.results.run_info import MixInfo
from ctxexp.sinks import database, views
from ctxexp.sinks.ui import last_sweep_link
from ctxexp.sinks.views import keys_to_compare, marks_of, metric_names
from tests.sample_results import results_with, run_info
from tests.shipped import MlflowSink
from tests.tracked import run_of

MEASURES = {
    "self_similarity": {
        "name": "self_similarity",
        "unit": "cosine",
        "subject": "words",
        "lower": "more context-specific",
        "higher": "less context-specific",
    },
    "word_norm": {"name": "word_norm", "unit": "l2 norm"},
}  # fmt: skip


def measured(title: str = "bert") -> Results:
    """Results of three layers."""
    curve = np.array([0.6, 0.4, 0.2])
    ends = {"_ci_low": curve - 0.005, "_ci_high": curve + 0.005}
    curves = {f"self_similarity/adjusted{end}": values for end, values in {"": curve, **ends}.items()}
    curves |= {"self_similarity/raw": curve + 0.1, "word_norm/raw": curve}
    return results_with(curves, info=run_info(title=title, n_layers=3, measures=MEASURES))


@pytest.fixture
def client(tmp_path: Path, empty_store: Path) -> MlflowClient:
    shutil.copy(empty_store / "mlflow.db", tmp_path)
    client = database.client(database.prepare_store(tmp_path))
    database.open_experiment(client, "study", tmp_path)
    return client


def experiment(client: MlflowClient) -> str:
    return str(client.get_experiment_by_name("study").experiment_id)


def test_a_lone_run_has_a_link_and_a_note(client: MlflowClient, tmp_path: Path) -> None:
    sink, folder = MlflowSink(experiment="study"), tmp_path / "results" / "single" / "0"
    folder.mkdir(parents=True)
    run_id = sink.send(run_of(folder, tmp_path), measured())["run_id"]
    assert f"{run_id}/model-metrics" in str(last_sweep_link(client.tracking_uri, "study", "http://h"))
    note = client.get_experiment(experiment(client)).tags["mlflow.note.content"]
    report = f"#/experiments/{experiment(client)}/runs/{run_id}/artifacts/report.html"
    assert note.startswith(
        f"[Last run]({report}): In bert, self similarity (adjusted) falls from 0.60 at the input to 0.20 at"
    )


def test_lone_runs_of_one_model_differ_in_colour(client: MlflowClient, tmp_path: Path) -> None:
    colours = []
    for i in range(3):
        folder = tmp_path / "results" / str(i) / "0"
        folder.mkdir(parents=True)
        sent = MlflowSink(experiment="study").send(run_of(folder, tmp_path), measured())
        colours.append(client.get_run(sent["run_id"]).data.tags["mlflow.runColor"])
    assert colours[0] == "#1f77b4"  # bert's
    assert len({*colours}) == 3


def test_a_note_that_a_person_wrote_stays(client: MlflowClient) -> None:
    def note() -> str:
        return str(client.get_experiment(experiment(client)).tags["mlflow.note.content"])

    for text in ("first", "second"):
        views.set_note(client, experiment(client), text)
        assert note() == text
    client.set_experiment_tag(experiment(client), "mlflow.note.content", "of a person")
    views.set_note(client, experiment(client), "third")
    assert note() == "of a person"


def test_a_text_that_lacks_bands_has_the_same_names_and_a_tag() -> None:
    mix = replace(RunInfo().mix, weights="bands", filled=(False, True, True))
    measures = {"self_similarity": {"over": "word", "title": "Self-similarity"}, "anisotropy": {"over": "sample"}}
    curves = {"self_similarity/raw": np.array([0.9, 0.5]), "anisotropy/mean_cosine": np.array([0.1, 0.2])}
    short, full = (results_with(curves, info=run_info(measures=measures, mix=each)) for each in (mix, MixInfo()))
    names = [str(key) for key in keys_to_compare(short)]
    assert names == [str(key) for key in keys_to_compare(full)] == ["self_similarity/raw", "anisotropy/mean_cosine"]
    assert [name for name in names if metric_names(names)[name] != name] == []  # MLflow takes them as they are
    assert (marks_of(short), marks_of(full)) == ("2 of 3 bands: self_similarity", "")
