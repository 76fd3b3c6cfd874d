"""What MLflow shows of runs: each as it is stored there (the curves that people compare under names that it allows,
flat texts, tags, notes), the note above an experiment's runs, and the addresses of its pages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from ctxexp.files.credentials import redact
from ctxexp.report.findings import comparison_finding, sweep_finding
from ctxexp.report.page import REPORT
from ctxexp.report.terminal import WIDEST, answer
from ctxexp.report.wording import LabelledResults
from ctxexp.results import Results
from ctxexp.results.results import main_statistics, may_be_main, mix_mark
from ctxexp.results.run_info import CorpusInfo
from ctxexp.results.values import Key
from ctxexp.sinks import Run, SweepReport
from ctxexp.sinks.database import BUNDLE, KEY, KIND, SWEEP, retry_insert

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput

MAX_NAME = 250  # characters that MLflow takes
COLOUR, NOTE = "mlflow.runColor", "mlflow.note.content"
OWN_NOTE = "ctxexp.note"  # of the experiment: the note that we wrote, and may write anew
MAX_TAG = 8000  # characters of a run's tag
MAX_EXPERIMENT_TAG = 5000  # characters of an experiment's tag
# MLflow's own columns User, Source and Version, which its client leaves empty.
_SOURCE = {
    "user": "mlflow.user",
    "command": "mlflow.source.name",
    "commit": "mlflow.source.git.commit",
    "dirty": "ctxexp.git_dirty",
}
COMPARE = "MLflow's own *Compare* page shows last layers alone; the chart icon above the list of runs shows curves."


def marks_of(results: Results) -> str:
    """The measures over words of a text that doesn't fill all bands of frequency, by what it fills: `2 of 3 bands:
    self_similarity, max_explainable_variance`; empty for a text that does."""
    by_mark: dict[str, list[str]] = {}
    for measure in results.info.measures:
        by_mark.setdefault(mix_mark(results, measure), []).append(measure)
    return "; ".join(f"{mark}: {', '.join(measures)}" for mark, measures in by_mark.items() if mark)


def keys_to_compare(results: Results) -> list[Key]:
    """Keys of the values that people compare: a measure's main statistic, raw and baseline; of a measure without
    these, all but counts, spreads and levels."""
    by_measure: dict[tuple[str, str, str], list[Key]] = {}
    for key in results.by_key:
        by_measure.setdefault((key.measure, key.task, key.place), []).append(key)
    main_keys: list[Key] = []
    for (measure, *_), keys in by_measure.items():
        own = [name for name in main_statistics(results, measure) if any(key.name == name for key in keys)]
        statistics = {*own[:1], *["raw", "baseline"] * bool(own)}
        few = [key for key in keys if key.name in statistics]
        main_keys += few or [key for key in keys if may_be_main(key)]
    return main_keys


def metric_name(key: str) -> str:
    """The key in the characters that MLflow allows (letters, digits, `_-./: `); keys of ctxexp pass unchanged."""
    text = "".join(c if c.isalnum() or c in "_-./: " else "_" for c in key)
    return "/".join(part for part in text.replace("..", "_").split("/") if part)[:MAX_NAME]


def metric_names(keys: Iterable[str]) -> dict[str, str]:
    """Each key's name in MLflow, none of them twice: keys that differ in other characters only get a number."""
    names: dict[str, str] = {}
    names_in_use: set[str] = set()
    for key in keys:
        name, n = metric_name(key), 1
        while name in names_in_use:
            n += 1
            name = f"{metric_name(key)[: MAX_NAME - 8]} {n}"
        names[key] = name
        names_in_use.add(name)
    return names


def flat(values: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """Values nested once as MLflow params: dotted keys, texts as they are, all else as JSON.
    Options that are not set, null or empty, are left out, and a part's name that its label says."""
    texts: dict[str, str] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if value in (None, "", [], {}) or value == {"name": key}:
            continue
        if isinstance(value, Mapping) and not prefix:
            texts.update(flat(value, f"{name}."))
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        texts[metric_name(name)] = text
    return texts


def headline(error: str) -> str:
    """The line that says what went wrong: the last one of a traceback, the first of a plain message."""
    lines = error.strip().splitlines() or [""]
    return lines[-1 if lines[0].startswith("Traceback") else 0][:500]


def tags_of(run: Run) -> dict[str, str]:
    """The tags of a job's run."""
    tags = {**source_tags(run.source), KIND: "job", KEY: run.key, BUNDLE: run.id}
    return tags | ({SWEEP: run.sweep} if run.sweep else {})


def source_tags(source: Mapping[str, str]) -> dict[str, str]:
    """Tags for a run's user, command and commit."""
    return {"mlflow.source.type": "LOCAL"} | {_SOURCE[key]: value for key, value in source.items() if key in _SOURCE}


def experiment_note(kind: str, runs: Sequence[LabelledResults], experiment_id: str, run_id: str) -> str:
    """The finding of the last sweep or run (`kind`) of an experiment, the sentence that compares its runs first:
    MLflow's page shows the first line. `run_id` has the report."""
    summary, order = sweep_finding(runs), comparison_finding(runs)
    report = f"#/experiments/{experiment_id}/runs/{run_id}/artifacts/{REPORT}"
    return f"[Last {kind}]({report}): {order}\n\n{summary.removesuffix(order)}".replace(": \n\n", ": ").strip()


def job_note(results: Results, experiment_id: str, run_id: str) -> str:
    """A job's finding in a sentence, and its main curves as a table, a line a layer."""
    found, _, table = answer([(results.info.title or "this run", results)], WIDEST).partition("\n\n")
    shown = [found, "", f"```\n{table}\n```"] if table else []
    files = f"#/experiments/{experiment_id}/runs/{run_id}/artifacts"
    return "\n".join([*shown, "", f"All values, tables and figures are among its [files]({files}). {COMPARE}"])


def sweep_note(report: SweepReport, sent: Sequence[Mapping[str, str]], link: str) -> str:
    """The jobs as a Markdown table, shown on the summary run's page."""
    summary = sweep_finding(report.compared)
    lines = [*([summary, ""] if summary else []), f"[Curves of all jobs](#{link.partition('#')[2]}). {COMPARE}", ""]
    lines += ["| job | status | run | error |", "|---|---|---|---|"]
    for row, of_run in zip(report.rows, sent, strict=True):
        error = headline(row.error or "").replace("|", "/")
        run = f"[{of_run['run_id'][:8]}](#{of_run['link'].partition('#')[2]})" if of_run else ""
        lines.append(f"| {row.label} | {row.status}{' (reused)' if row.reused else ''} | {run} | {error} |")
    return "\n".join(lines)[:7900]


def set_note(client: MlflowClient, experiment_id: str, note: str) -> None:
    """Make this the experiment's note, which its page shows above the charts; one that a person wrote stays."""
    tags = client.get_experiment(experiment_id).tags
    if tags.get(NOTE, "") in ("", tags.get(OWN_NOTE)):
        for tag in (OWN_NOTE, NOTE):
            retry_insert(partial(client.set_experiment_tag, experiment_id, tag, note[:MAX_EXPERIMENT_TAG]))


def dataset_inputs(corpus: CorpusInfo) -> list[DatasetInput]:
    """The corpus as a run's input; empty where it has no name or fingerprint."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    if not corpus.name or not corpus.fingerprint:
        return []
    counts = {"n_sentences": corpus.sentences, "n_occurrences": corpus.occurrences, "n_words": corpus.words}
    data = Dataset(
        name=corpus.name[:500],
        digest=corpus.fingerprint[:36],  # as much as MLflow takes
        source_type="local",
        source=json.dumps({"uri": corpus.name, **corpus.choices}, default=str)[:60000],
        profile=json.dumps(counts),
    )
    return [DatasetInput(data, [InputTag("mlflow.data.context", "evaluation")])]


def base(uri: str) -> str:
    """The UI's address: the server itself, or where `ctxexp ui` would serve a local store."""
    return redact(uri).rstrip("/") if uri.startswith("http") else "http://127.0.0.1:5000"


def run_link(uri: str, experiment_id: str, page: str) -> str:
    """A run's page: its id, or with one of the tabs behind it (`<id>/model-metrics`: the curves)."""
    return f"{base(uri)}/#/experiments/{experiment_id}/runs/{page}?workflowType=machine_learning"


def sweep_link(uri: str, experiment_id: str, sweep: str) -> str:
    """The page where MLflow overlays the curves of a sweep's jobs; `uri` is the store's or the UI's address. (Its front
    page and its Compare button show no curves.)"""
    query = {
        "searchFilter": f"tags.`{SWEEP}` = '{sweep}' AND tags.`{KIND}` = 'job'",
        "orderByKey": "attributes.start_time",
        "orderByAsc": "true",
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "compareRunsMode": "CHART",
        "workflowType": "machine_learning",
    }
    return f"{base(uri)}/#/experiments/{experiment_id}/runs?{urlencode(query)}"
