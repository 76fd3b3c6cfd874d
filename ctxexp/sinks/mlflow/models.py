"""Text and model of a run, as MLflow knows them: a data set, and a LoggedModel for each model as it was measured, so
that the Models tab is a table of models by texts."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from typing import TYPE_CHECKING

from ctxexp.results.run_info import CorpusInfo, RunInfo
from ctxexp.sinks.mlflow.database import version_of
from ctxexp.sinks.mlflow.sqlite import sqlite_file
from ctxexp.sinks.mlflow.tags import MODEL
from ctxexp.sinks.mlflow.values import flat

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput

FIRST = (3, 0)  # the first version of a server that knows logged models
MAX_DIGEST = 36
LOCK_TIMEOUT = 20.0  # seconds; as long as MLflow waits for a locked database


def dataset_inputs(corpus: CorpusInfo) -> list[DatasetInput]:
    """The corpus as a run's input; empty where it has no name or fingerprint."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    if not corpus.name or not corpus.fingerprint:
        return []
    counts = {"n_sentences": corpus.sentences, "n_occurrences": corpus.occurrences, "n_words": corpus.words}
    data = Dataset(
        name=corpus.name[:500],
        digest=corpus.fingerprint[:MAX_DIGEST],
        source_type="local",
        source=json.dumps({"uri": corpus.name, **corpus.choices}, default=str)[:60000],
        profile=json.dumps(counts),
    )
    return [DatasetInput(data, [InputTag("mlflow.data.context", "evaluation")])]


def logged_model(client: MlflowClient, experiment_id: str, run_id: str, info: RunInfo) -> str:
    """The id of the experiment's LoggedModel of what the run measured, made if it isn't there; empty where the run
    doesn't name its encoder or the server is older than logged models.

    It is one for all runs of an encoder under the same control and transform, each of which changes the vectors as
    another checkpoint would. Values of other options (a word filter, a seed) replace each other: the latest is shown.
    """
    if not info.model.encoder or version_of(client) < FIRST:
        return ""
    fit = info.transform.fit.text if info.transform.fit else ""
    identity = "\n".join((info.model.encoder, info.control, info.transform.name, fit))
    key = hashlib.sha256(identity.encode()).hexdigest()[:32]
    with _alone(client.tracking_uri):
        if oldest_model := _oldest(client, experiment_id, key):
            return oldest_model
        sizes = {"n_layers": info.model.n_layers or None, "dim": info.model.dim or None}
        facts = {"encoder": info.model.encoder, "weights": info.model.weights, **sizes}
        new_model = client.create_logged_model(
            experiment_id,
            name=re.sub(r"[/:.%\"']+", "-", info.title or info.model.encoder)[:250],  # characters that MLflow refuses
            source_run_id=run_id,
            tags={MODEL: key},
            params=flat(facts),
            model_type="encoder",
        )
        client.finalize_logged_model(new_model.model_id, "READY")
        first = _oldest(client, experiment_id, key)
        if first != new_model.model_id:  # of a server, where another process made it meanwhile
            client.delete_logged_model(new_model.model_id)
        return first


def _oldest(client: MlflowClient, experiment_id: str, key: str) -> str:
    models = client.search_logged_models(
        [experiment_id],
        f"tags.`{MODEL}` = '{key}'",
        max_results=1,
        order_by=[{"field_name": "creation_time", "ascending": True}],
    )
    return str(models[0].model_id) if models else ""


def _alone(uri: str) -> contextlib.AbstractContextManager[object]:
    """Keep other processes from looking for a model in this SQLite store and making it too. Where its folder takes no
    lock of ours, models may be there twice."""
    from filelock import FileLock, Timeout

    file = sqlite_file(uri)
    waiting = contextlib.ExitStack()
    if file:
        with contextlib.suppress(OSError, Timeout):
            waiting.enter_context(FileLock(file.with_name(f".{file.name}.lock"), timeout=LOCK_TIMEOUT))
    return waiting
