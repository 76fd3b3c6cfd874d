"""A LoggedModel for each model as it was measured, in real MLflow stores: MLflow's table of models by texts."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from mlflow import MlflowClient
from mlflow.entities import LoggedModel

from ctxexp import Results
from ctxexp.sinks.mlflow import database, views
from tests.made import results_with, told
from tests.shipped import MlflowSink
from tests.tracked import client_of, run_of


@pytest.fixture
def store(tmp_path: Path, template: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    shutil.copy(template / "mlflow.db", folder)
    return folder


def measured(text: str = "polysemy", **facts: object) -> Results:
    """Results of an encoder over a text; the second measure is defined in no layer."""
    curves = {"self_similarity/adjusted": np.array([0.5, 0.3]), "word_norm/raw": np.array([np.nan, np.nan])}
    given = {"title": "bert", "encoder": "bert@0", "n_layers": 2, "dim": 4, "corpus": text, "fingerprint": f"{text}#"}
    return results_with(curves, info=told(**(given | facts)))


def send(store: Path, number: int, results: Results) -> str:
    """Send results as a run of a sweep; the run's id."""
    sink, folder = MlflowSink(experiment="study"), store / "results" / str(number)
    sink.start(run_of(folder, store, results.info.title, key=str(number), sweep="s"))
    sink.log(results, folder)
    sink.finish("FINISHED")
    return sink.run_id


def stored(store: Path) -> tuple[MlflowClient, list[LoggedModel]]:
    client = client_of(store)
    return client, list(client.search_logged_models([client.get_experiment_by_name("study").experiment_id]))


def test_a_checkpoint_is_one_model_whatever_text_it_was_measured_on(store: Path) -> None:
    first, *_, last = (send(store, i, measured(text)) for i, text in enumerate(("polysemy", "wikitext", "polysemy")))
    client, [model] = stored(store)
    assert (model.name, model.source_run_id, model.status) == ("bert", first, "READY")
    assert model.params == {"encoder": "bert@0", "n_layers": "2", "dim": "4"}
    values = {(m.key, m.dataset_name, m.dataset_digest): m.value for m in model.metrics}
    last_layer = "self_similarity/adjusted"  # the undefined measure is missing: MLflow would say 0
    assert values == {(last_layer, text, f"{text}#"): 0.3 for text in ("polysemy", "wikitext")}
    assert {metric.run_id for metric in model.metrics} >= {first, last}
    run = client.get_run(last)
    assert [each.model_id for each in run.inputs.model_inputs] == [model.model_id]
    assert run.data.metrics[last_layer] == 0.3


def test_what_changes_the_vectors_is_another_model(store: Path) -> None:
    odd = "owner/name: 'v1.5' 100%"  # characters that MLflow refuses
    runs = [{}, {"control": "shuffled"}, {"transform": "center"}, {"encoder": "bert@1", "title": odd}]
    runs += [{"transform": "center", "fit_on": "wikitext"}]
    for i, facts in enumerate(runs):
        send(store, i, measured(**facts))
    assert sorted(model.name for model in stored(store)[1]) == ["bert"] * 4 + ["owner-name- -v1-5- 100-"]


def test_jobs_that_log_at_once_share_a_model(store: Path) -> None:
    client = client_of(store)
    experiment, info = database.experiment(client, "study", store), measured().info
    together, found = threading.Barrier(6), []

    def look() -> None:
        together.wait()
        found.append(views.logged_model(client, experiment, "", info))

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert set(found) == {model.model_id for model in stored(store)[1]}
    assert len(set(found)) == 1
