"""The view of a sweep with which MLflow's page opens: headline curves first, overlaid, under readable titles.

A view is a tag of the experiment that holds the page's own state, as the page itself writes it when one is saved.
"""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ctxexp.report.charts import PAPER_MEASURES
from ctxexp.report.wording import LabelledResults, definition_name, full_title, main_keys, readable
from ctxexp.results import Results
from ctxexp.results.values import LAYER, Key
from ctxexp.sinks.mlflow.database import version_of
from ctxexp.sinks.mlflow.links import jobs_filter
from ctxexp.sinks.mlflow.tags import VIEW
from ctxexp.sinks.mlflow.values import keys_to_compare, metric_name

if TYPE_CHECKING:
    from mlflow import MlflowClient

MAX_TAG = 5000  # characters of an experiment's tag
FIRST = (3, 15)  # the first version whose page reads these; that of 3.5 breaks down at them
HEADLINES = 4
HEADING = "Adjusted, layer by layer"
SHORT = {  # what fits above a chart beside the list of runs and the page's assistant
    "anisotropy": "Anisotropy",
    "self_similarity": "Self-similarity",
    "intra_sentence_similarity": "Intra-sentence sim.",
    "max_explainable_variance": "Max. expl. variance",
}


def install(client: MlflowClient, experiment_id: str, sweep: str, runs: Sequence[LabelledResults]) -> None:
    """Save the view of a sweep whose jobs gave these runs, where the page that will show it reads such views."""
    if version_of(client) < FIRST:
        return
    headlines, others = _charts(runs)
    for folded in (others, {}):  # headlines alone where all are too long for a tag
        state = json.dumps(_state(sweep, headlines, folded)).encode()
        packed = "deflate;" + base64.b64encode(zlib.compress(state)).decode()
        now = int(time.time() * 1000)
        name = f"{', '.join(label for label, _ in runs)[:80]} ({sweep})"
        text = json.dumps({"name": name, "createdAt": now, "updatedAt": now, "state": packed})
        if len(text) <= MAX_TAG:
            client.set_experiment_tag(experiment_id, f"{VIEW}{sweep}", text)
            return


def _charts(runs: Sequence[LabelledResults]) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Title by metric: of the first charts, the paper's measures before others; and of all, a measure at a time."""
    every = [results for _, results in runs]
    names = {key: definition_name(results, key.measure) for results in every for key in main_keys(results)}
    order = {measure: place for place, measure in enumerate(PAPER_MEASURES)}
    first = sorted(names, key=lambda key: order.get(names[key], len(order)))[:HEADLINES]
    headlines = {metric_name(str(key)): _words(key, every, SHORT.get(names[key], "")) for key in first}
    folded: dict[str, dict[str, str]] = {}
    for key in dict.fromkeys(key for results in every for key in keys_to_compare(results) if key.place == LAYER):
        folded.setdefault(key.measure, {})[metric_name(str(key))] = _words(key, every)
    return headlines, folded


def _words(key: Key, runs: Sequence[Results], short: str = "") -> str:
    if short and key.statistic != "raw":
        return short
    return f"{short or full_title(key.measure, key.task, runs)}, {readable(key)}"


def _state(sweep: str, headlines: dict[str, str], folded: dict[str, dict[str, str]]) -> dict[str, object]:
    """The page's state: sections with their charts, of which the first alone is open."""
    sections = {HEADING: headlines, **folded}
    return {
        "searchFilter": jobs_filter(sweep),
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
            | {"isGenerated": False, "columns": 2, "cardHeight": 225}
            for name in sections
        ],
        "compareRunCharts": [
            _chart(section, metric, words) for section, charts in sections.items() for metric, words in charts.items()
        ],
    }


def _chart(section: str, metric: str, words: str) -> dict[str, object]:
    return {
        "uuid": f"{section} {metric}",
        "type": "LINE",
        "metricKey": metric,
        "displayName": words,
        "nodeLevelSystemMetricConfiguration": {"metric": metric, "type": "node"},  # or the page shows the metric's key
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
