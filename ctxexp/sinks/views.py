"""What MLflow shows of runs: each as it is stored there (the curves that people compare under names that it allows,
flat texts, tags, notes), and what its pages open with: the view of a sweep or a run (headline curves first, under
titles that say how to read them), the note above it, and the addresses of these.

A view is a tag of the experiment that holds the page's own state, as the page itself writes it when one is saved.
"""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from ctxexp.files.credentials import redact
from ctxexp.files.process import process_tags
from ctxexp.report.charts import HEADLINES
from ctxexp.report.findings import comparison_finding, sweep_finding
from ctxexp.report.page import REPORT
from ctxexp.report.style import colours
from ctxexp.report.terminal import WIDEST, answer
from ctxexp.report.wording import LabelledResults, direction, full_title
from ctxexp.results import Results
from ctxexp.results.results import main_statistics, may_be_main, mix_mark
from ctxexp.results.run_info import CorpusInfo
from ctxexp.results.values import LAYER, Key
from ctxexp.sinks import Run, SweepReport
from ctxexp.sinks.database import BUNDLE, KEY, KIND, SWEEP, retry_insert, version_of

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput

MAX_NAME = 250  # characters that MLflow takes
N_HEADLINES = 5
COLOUR, NOTE = "mlflow.runColor", "mlflow.note.content"
VIEW = "mlflow.sharedViewState."  # of the experiment, with a sweep or a run behind it
OWN_NOTE = "ctxexp.note"  # of the experiment: the note that we wrote, and may write anew
MAX_TAG = 8000  # characters of a run's tag
MAX_EXPERIMENT_TAG = 5000  # characters of an experiment's tag
FIRST = (3, 15)  # the first version whose page reads these; that of 3.5 breaks down at them
OPEN_SECTION = "Layer by layer: step = layer"  # of a view
CHARTS = {"compareRunsMode": "CHART", "workflowType": "machine_learning"}  # else the page is about traces
# MLflow's own columns User, Source and Version, which its client leaves empty.
_SOURCE = {
    "user": "mlflow.user",
    "command": "mlflow.source.name",
    "commit": "mlflow.source.git.commit",
    "dirty": "ctxexp.git_dirty",
}
COMPARE = "MLflow's own *Compare* page shows last layers alone; the chart icon above the list of runs shows curves."


def marked_results(results: Results) -> Results:
    """The results as they are logged: measures over the words of a text that doesn't fill all bands of frequency bear
    that in their name, `self_similarity 2 of 3 bands`, so that no chart lays them beside those of a text that does."""
    marks = {measure: mark for measure in results.info.measures if (mark := mix_mark(results, measure))}
    if not marks:
        return results
    names = {measure: f"{measure} {mark}" for measure, mark in marks.items()}
    measures = {names.get(measure, measure): info for measure, info in results.info.measures.items()}
    frame = results.frame.assign(measure=[names.get(measure, measure) for measure in results.frame.measure])
    replicates = {k._replace(measure=names.get(k.measure, k.measure)): v for k, v in results.replicates.items()}
    return Results(frame, results.tables, replicates, replace(results.info, measures=measures))


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


def headline_keys(runs: Iterable[Results]) -> list[Key]:
    """The curves that come first: of the headline measures before others, at most five."""
    order = {measure: place for place, measure in enumerate(HEADLINES)}
    places = {
        key: order.get(results.info.definition_name(key.measure), len(order))
        for results in runs
        for key in results.main_keys
        if key.place == LAYER
    }
    return sorted(places, key=lambda key: places[key])[:N_HEADLINES]


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
    Options that are not set, null, none or empty, are left out, and a part's name that its label says."""
    texts: dict[str, str] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if value in (None, "", [], {}, "none") or value == {"name": key}:
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
    colour = colours([run.name])[run.name]
    tags = {**source_tags(run.source), KIND: "job", KEY: run.key, BUNDLE: run.id, COLOUR: colour}
    return tags | ({SWEEP: run.sweep} if run.sweep else {})


def source_tags(source: Mapping[str, str]) -> dict[str, str]:
    """Tags for a run's user, command and commit, and for the process that sends it."""
    own = {_SOURCE[key]: value for key, value in source.items() if key in _SOURCE}
    return {"mlflow.source.type": "LOCAL", **process_tags(), **own}


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


def sweep_note(report: SweepReport, run_ids: Sequence[str], link: str) -> str:
    """The jobs as a Markdown table, shown on the summary run's page."""
    summary = sweep_finding(report.compared)
    lines = [*([summary, ""] if summary else []), f"[Curves of all jobs](#{link.partition('#')[2]}). {COMPARE}", ""]
    lines += ["| job | status | run | error |", "|---|---|---|---|"]
    for row, run_id in zip(report.rows, run_ids, strict=True):
        error = headline(row.error or "").replace("|", "/")
        run = f"[{run_id[:8]}](#{row.link.partition('#')[2]})" if run_id else ""
        lines.append(f"| {row.label} | {row.status}{' (reused)' if row.reused else ''} | {run} | {error} |")
    return "\n".join(lines)[:7900]


def install(
    client: MlflowClient, experiment_id: str, view: str, run_filter: str, runs: Sequence[LabelledResults]
) -> None:
    """Save a view of the runs that a search filter selects and that gave these results, where the page that will show
    it reads such views: headline curves first, those of a measure each in a folded section."""
    if version_of(client) < FIRST:
        return
    marked = [marked_results(results) for _, results in runs]
    sections = {OPEN_SECTION: headline_keys(marked)}
    for key in dict.fromkeys(key for results in marked for key in keys_to_compare(results) if key.place == LAYER):
        sections.setdefault(key.measure, []).append(key)
    for names in ([*sections], [OPEN_SECTION]):  # headlines alone where all are too long for a tag
        charts = [_chart(name, key, marked) for name in names for key in sections[name]]
        state = json.dumps(_state(run_filter, names, charts)).encode()
        packed = "deflate;" + base64.b64encode(zlib.compress(state)).decode()
        now = int(time.time() * 1000)
        name = f"{', '.join(label for label, _ in runs)[:80]} ({view})"
        text = json.dumps({"name": name, "createdAt": now, "updatedAt": now, "state": packed})
        if len(text) <= MAX_EXPERIMENT_TAG:
            retry_insert(partial(client.set_experiment_tag, experiment_id, f"{VIEW}{view}", text))
            return


def set_note(client: MlflowClient, experiment_id: str, note: str) -> None:
    """Make this the experiment's note, which its page shows above the charts; one that a person wrote stays."""
    tags = client.get_experiment(experiment_id).tags
    if tags.get(NOTE, "") in ("", tags.get(OWN_NOTE)):
        for tag in (OWN_NOTE, NOTE):
            retry_insert(partial(client.set_experiment_tag, experiment_id, tag, note[:MAX_EXPERIMENT_TAG]))


def _state(run_filter: str, sections: Sequence[str], charts: Sequence[object]) -> dict[str, object]:
    """The page's state: sections with their charts, of which the first alone is open."""
    return {
        "searchFilter": run_filter,
        "orderByKey": "attributes.start_time",
        "orderByAsc": True,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": ["attributes.`Source`", "attributes.`Dataset`"],
        "runsHiddenMode": "FIRST_20_RUNS",
        "runListHidden": False,
        "viewMaximized": False,
        "isAccordionReordered": True,  # or the page sorts sections by name
        "hideEmptyCharts": True,
        "globalLineChartConfig": {"xAxisKey": "step", "lineSmoothness": 0},
        "compareRunSections": [
            {"uuid": name, "name": name, "display": name == OPEN_SECTION, "isReordered": True, "deleted": False}
            | {"isGenerated": False, "columns": 2, "cardHeight": 300}
            for name in sections
        ],
        "compareRunCharts": charts,
    }


def _chart(section: str, key: Key, runs: Sequence[Results]) -> dict[str, object]:
    metric = metric_name(str(key))
    title = [full_title(key.measure, key.task, runs), key.label(), direction(runs, key.measure)]
    return {
        "uuid": f"{section} {metric}",
        "type": "LINE",
        "metricKey": metric,
        "selectedMetricKeys": [metric],
        "displayName": ", ".join(filter(None, title)),
        "nodeLevelSystemMetricConfiguration": {"metric": metric, "type": "node"},  # or the page shows its key
        "metricSectionId": section,
        "runsCountToCompare": 20,
        "xAxisKey": "step",
        "xAxisScaleType": "linear",
        "yAxisKey": "metric",
        "yAxisExpressions": [],
        "scaleType": "linear",
        "range": {},
        "lineSmoothness": 0,
        "useGlobalXaxisKey": True,
        "useGlobalLineSmoothing": True,
        "displayPoints": True,
        "isGenerated": False,
        "deleted": False,
    }


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


def jobs_filter(sweep: str) -> str:
    """The search filter that selects the jobs of a sweep among an experiment's runs."""
    return f"tags.`{SWEEP}` = '{sweep}' AND tags.`{KIND}` = 'job'"


def sweep_link(uri: str, experiment_id: str, sweep: str, tags: Mapping[str, str]) -> str:
    """The page where MLflow overlays the curves of a sweep's jobs, or of a run with a view of its own; `uri` is the
    store's or the UI's address.

    With the view, if the experiment's `tags` hold one; else the run list with all charts. MLflow's front page and its
    Compare button show no curves.
    """
    query = {"viewStateShareKey": sweep}
    if f"{VIEW}{sweep}" not in tags:  # beside a filter the page ignores a view
        order = {"orderByKey": "attributes.start_time", "orderByAsc": "true", "startTime": "ALL"}
        query = {"searchFilter": jobs_filter(sweep), **order, "lifecycleFilter": "Active"}
    return f"{base(uri)}/#/experiments/{experiment_id}/runs?{urlencode(query | CHARTS)}"
