"""What MLflow shows of runs: each as it is stored there (the curves that people compare under names that it allows,
flat texts, tags, notes), and what its pages open with: the view of a sweep or a run (headline curves first, overlaid,
under titles that say how to read them), the note above it, the table of models by texts, and the addresses of these.

A view is a tag of the experiment that holds the page's own state, as the page itself writes it when one is saved. The
table is of LoggedModels, one for each model as it was measured, beside a data set for its text.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import math
import re
import socket
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import numpy as np

from ctxexp.files.credentials import redact
from ctxexp.files.process import process_tags
from ctxexp.report.changes import opposite_steps
from ctxexp.report.charts import LOG, PAPER_MEASURES, curve_line, scale
from ctxexp.report.findings import MARKED, comparison_finding, finding, sweep_finding
from ctxexp.report.page import REPORT
from ctxexp.report.style import colours
from ctxexp.report.wording import UNITS_TO_ONE, LabelledResults, direction, full_title, table_number, unit_label
from ctxexp.results import Results
from ctxexp.results.results import keys_beside, main_statistics, may_be_main, mix_mark
from ctxexp.results.run_info import CorpusInfo, RunInfo
from ctxexp.results.values import LAYER, SHARE_OF_ROOM, Key
from ctxexp.sinks import Run, SweepReport
from ctxexp.sinks.database import BUNDLE, KEY, KIND, SWEEP, insert, lock, sqlite_file, version_of

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput

MAX_NAME = 250  # characters that MLflow takes
HEADLINES = 4
COLOUR, NOTE = "mlflow.runColor", "mlflow.note.content"
VIEW = "mlflow.sharedViewState."  # of the experiment, with a sweep or a run behind it
OWN_NOTE = "ctxexp.note"  # of the experiment: the note that we wrote, and may write anew
MODEL = "ctxexp.model"  # of a LoggedModel: digest of what tells its vectors from others'
MAX_TAG = 8000  # characters of a run's tag
MAX_EXPERIMENT_TAG = 5000  # characters of an experiment's tag
FIRST = (3, 15)  # the first version whose page reads these; that of 3.5 breaks down at them
MAX_BANDS = 4  # whose intervals a chart shows
LOGGED_MODELS = (3, 0)  # the first version of a server that knows logged models
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
    """Keys of the values that people compare: a measure's share of the room (adjusted, where it has none), raw and
    baseline, and its metric's main statistic; of a measure without these, all but counts, spreads and levels."""
    by_measure: dict[tuple[str, str, str], list[Key]] = {}
    for key in results.by_key:
        by_measure.setdefault((key.measure, key.task, key.place), []).append(key)
    main_keys: list[Key] = []
    for (measure, *_), keys in by_measure.items():
        statistics = {*main_statistics(results, measure), "baseline"}
        if any(key.name == "share_of_room" for key in keys):
            statistics -= {"adjusted"} - {results.info.measure(measure).main}
        few = [key for key in keys if key.name in statistics]
        main_keys += few or [key for key in keys if may_be_main(key)]
    return main_keys


def headline_keys(runs: Iterable[Results]) -> list[Key]:
    """The curves that come first: of the paper's measures before others, at most four."""
    order = {measure: place for place, measure in enumerate(PAPER_MEASURES)}
    places = {
        key: order.get(results.info.definition_name(key.measure), len(order))
        for results in runs
        for key in results.main_keys
        if key.place == LAYER
    }
    return sorted(places, key=lambda key: places[key])[:HEADLINES]


def interval_names(key: Key) -> tuple[str, str]:
    """The names of the ends of the curve's interval. No slash: their charts come after the curves."""
    return f"{key.curve_name} {key.name} low", f"{key.curve_name} {key.name} high"


def interval_ends(results: Results) -> dict[str, np.ndarray]:
    """The ends of the intervals of headline curves."""
    ends: dict[str, np.ndarray] = {}
    for key in headline_keys([results]):
        _, low, high = results.by_key[key]
        if np.isfinite(low).any():
            ends |= dict(zip(interval_names(key), (low, high), strict=True))
    return ends


def last_layers(results: Results) -> dict[str, int]:
    """The last layer at which each main curve has a value: what the table of models shows of it."""
    finite = {str(key): np.flatnonzero(np.isfinite(results.by_key[key].value)) for key in results.main_keys}
    return {name: int(layers[-1]) for name, layers in finite.items() if layers.size}


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
    """A job's finding in a sentence, its main curves with what stands beside them as a Markdown table, a row a
    layer."""
    keys, lines, columns = results.main_keys, [], []
    for key in keys:
        columns.append((f"{full_title(key.measure, key.task, [results])}, {key.label()}", key))
        columns += [(name, other) for name, other in keys_beside(results, key).items() if name != "adjusted"]
    if keys:
        heads = " | ".join(name for name, _ in columns)
        lines = [finding(results), "", f"| layer | {heads} |", "|---" * (len(columns) + 1) + "|"]
    marked = {key: opposite_steps(results, key) for key in keys}
    for layer in results.info.model.layers or range(results.n_layers if keys else 0):
        values = [(float(results.by_key[key].value[layer]), layer in marked.get(key, [])) for _, key in columns]
        cells = [table_number(value) + "\\*" * star if math.isfinite(value) else "" for value, star in values]
        lines.append(f"| {layer} | {' | '.join(cells)} |")
    notes = [SHARE_OF_ROOM] * any(key.statistic == "share_of_room" for key in keys)
    lines += ["", *notes, *["\\" + MARKED] * any(marked.values())] if notes else []
    files = f"#/experiments/{experiment_id}/runs/{run_id}/artifacts"
    return "\n".join(
        [*lines, "", f"All values, with their intervals, tables and figures are among its [files]({files}). {COMPARE}"]
    )


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


@dataclass(frozen=True)
class ViewChart:
    """A chart of a view: the metric's curves of all runs."""

    metric: str
    title: str
    band: tuple[str, ...] = ()  # metrics of the ends of its intervals
    is_log: bool = False
    range: Mapping[str, float] = field(default_factory=dict)  # of the y axis; empty: the data's own


def install(
    client: MlflowClient, experiment_id: str, view: str, run_filter: str, runs: Sequence[LabelledResults]
) -> None:
    """Save a view of the runs that a search filter selects and that gave these results, where the page that will show
    it reads such views."""
    if version_of(client) < FIRST:
        return
    runs = [(label, marked_results(results)) for label, results in runs]
    headlines, others = _headlines(runs), _others([results for _, results in runs])
    for folded in (others, {}):  # headlines alone where all are too long for a tag
        state = json.dumps(_state(run_filter, headlines, folded)).encode()
        packed = "deflate;" + base64.b64encode(zlib.compress(state)).decode()
        now = int(time.time() * 1000)
        name = f"{', '.join(label for label, _ in runs)[:80]} ({view})"
        text = json.dumps({"name": name, "createdAt": now, "updatedAt": now, "state": packed})
        if len(text) <= MAX_EXPERIMENT_TAG:
            insert(partial(client.set_experiment_tag, experiment_id, f"{VIEW}{view}", text))
            return


def set_note(client: MlflowClient, experiment_id: str, note: str) -> None:
    """Make this the experiment's note, which its page shows above the charts; one that a person wrote stays."""
    tags = client.get_experiment(experiment_id).tags
    if tags.get(NOTE, "") in ("", tags.get(OWN_NOTE)):
        for tag in (OWN_NOTE, NOTE):
            insert(partial(client.set_experiment_tag, experiment_id, tag, note[:MAX_EXPERIMENT_TAG]))


def _headlines(runs: Sequence[LabelledResults]) -> list[ViewChart]:
    """The first charts, of few runs with their intervals. Cosines and shares are on one scale, from which chance, 0, is
    not cut off."""
    every = [results for _, results in runs]
    lines = {
        key: [line for label, r in runs if (line := curve_line(r, key, label=label, colour="", marker=0))]
        for key in headline_keys(every)
    }
    bounded = [key for key in lines if unit_label(every, key.measure) in UNITS_TO_ONE]
    ends = [end for key in bounded for line in lines[key] for end in (line.y, line.low, line.high) if end is not None]
    values = np.concatenate([np.zeros(1), *ends])
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    room = 0.04 * (high - low)
    shared = {"yMin": round(low - room, 4), "yMax": round(high + room, 4)}
    charts = []
    for key, chart_lines in lines.items():
        has_band = len(runs) <= MAX_BANDS and any(line.low is not None for line in chart_lines)
        charts.append(
            ViewChart(
                metric_name(str(key)),
                ", ".join(filter(None, [_title(key, every), direction(every, key.measure)])),
                band=tuple(map(metric_name, interval_names(key))) if has_band else (),
                is_log=scale(every, key.measure, chart_lines) == LOG,
                range=shared if key in bounded else {},
            )
        )
    return charts


def _title(key: Key, runs: Sequence[Results]) -> str:
    """The measure and, unless it is the metric's own main statistic, which statistic of it."""
    title = full_title(key.measure, key.task, runs)
    if any(results.info.measure(key.measure).main == key.name for results in runs):
        return title
    return f"{title}, {key.label()}"


def _others(runs: Sequence[Results]) -> dict[str, list[ViewChart]]:
    """The charts of all curves, a measure at a time."""
    sections: dict[str, list[ViewChart]] = {}
    for key in dict.fromkeys(key for results in runs for key in keys_to_compare(results) if key.place == LAYER):
        title = f"{full_title(key.measure, key.task, runs)}, {key.label()}"
        sections.setdefault(key.measure, []).append(ViewChart(metric_name(str(key)), title))
    return sections


def _state(run_filter: str, headlines: list[ViewChart], folded: dict[str, list[ViewChart]]) -> dict[str, object]:
    """The page's state: sections with their charts, of which the first alone is open."""
    bands = "\ndashes: 95% interval" * any(chart.band for chart in headlines)
    sections = {f"Layer by layer: step = layer; share of the room: 0 = chance{bands}": headlines, **folded}
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
            {"uuid": name, "name": name, "display": name not in folded, "isReordered": True, "deleted": False}
            | {"isGenerated": False, "columns": 2, "cardHeight": 300}
            for name in sections
        ],
        "compareRunCharts": [_chart(section, chart) for section, charts in sections.items() for chart in charts],
    }


def _chart(section: str, chart: ViewChart) -> dict[str, object]:
    return {
        "uuid": f"{section} {chart.metric}",
        "type": "LINE",
        "metricKey": chart.metric,
        "selectedMetricKeys": [chart.metric, *chart.band],
        "displayName": chart.title,
        "nodeLevelSystemMetricConfiguration": {"metric": chart.metric, "type": "node"},  # or the page shows its key
        "metricSectionId": section,
        "runsCountToCompare": 20,
        "xAxisKey": "step",
        "xAxisScaleType": "linear",
        "yAxisKey": "metric",
        "yAxisExpressions": [],
        "scaleType": "log" if chart.is_log else "linear",
        "range": {**chart.range},
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


def logged_model(client: MlflowClient, experiment_id: str, run_id: str, info: RunInfo) -> str:
    """The id of the experiment's LoggedModel of what the run measured, made if it isn't there; empty where the run
    doesn't name its encoder or the server is older than logged models.

    It is one for all runs of an encoder under the same control and transform, each of which changes the vectors as
    another checkpoint would. Values of other options (a word filter, a seed) replace each other: the latest is shown.
    """
    if not info.model.encoder or version_of(client) < LOGGED_MODELS:
        return ""
    fit = info.transform.fit.text if info.transform.fit else ""
    identity = "\n".join((info.model.encoder, info.control, info.transform.name, fit))
    key = hashlib.sha256(identity.encode()).hexdigest()[:32]
    path = sqlite_file(client.tracking_uri)
    with lock(path) if path else contextlib.nullcontext():
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


def base(uri: str) -> str:
    """The UI's address: the server itself, or where `ctxexp ui` serves a local store, or would."""
    return redact(uri).rstrip("/") if uri.startswith("http") else ui_address(uri) or "http://127.0.0.1:5000"


def address_file(store: Path) -> Path:
    """The file in which `ctxexp ui` notes the address at which it serves this SQLite store."""
    return store.with_suffix(".ui")


def ui_address(uri: str) -> str | None:
    """The address at which a UI serves this local store now; None if none answers."""
    if not (store := sqlite_file(uri)):
        return None
    try:
        address = address_file(store).read_text(encoding="utf-8")
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=1).close()
    except (OSError, ValueError, OverflowError):
        return None
    return address


def ui_hint(uri: str) -> str:
    """What serves a store that nothing serves yet, so that its links lead nowhere; empty where something does."""
    return "" if uri.startswith("http") or ui_address(uri) else "after `ctxexp ui`, which serves it"


def run_link(uri: str, experiment_id: str, run_id: str, tab: str = "") -> str:
    """A run's page, or the page of one of its tabs (`model-metrics`: the curves, `artifacts`: the files)."""
    page = f"{run_id}/{tab}" if tab else run_id
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
