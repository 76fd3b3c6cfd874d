"""The view of a sweep, or of a run alone, with which MLflow's page opens: headline curves first, overlaid, under titles
that say how to read them; and the note above it.

A view is a tag of the experiment that holds the page's own state, as the page itself writes it when one is saved.
"""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.report.charts import LOG, Line, curve_line, scale
from ctxexp.report.wording import (
    UNITS_TO_ONE,
    LabelledResults,
    direction,
    full_title,
    measure_info,
    readable,
    unit_label,
)
from ctxexp.results import Results
from ctxexp.results.values import LAYER, Key
from ctxexp.sinks.mlflow.database import insert, version_of
from ctxexp.sinks.mlflow.tags import NOTE, OWN_NOTE, VIEW
from ctxexp.sinks.mlflow.values import headline_keys, interval_names, keys_to_compare, marked_results, metric_name

if TYPE_CHECKING:
    from mlflow import MlflowClient

MAX_TAG = 5000  # characters of an experiment's tag
FIRST = (3, 15)  # the first version whose page reads these; that of 3.5 breaks down at them
THIN = 0.03  # of a chart's height: what a line with its points covers
MAX_NAMES = 4  # lines that a chart's two lines of legend name beside no list of runs


@dataclass(frozen=True)
class ViewChart:
    """A chart of a view: the metric's curves of all runs."""

    metric: str
    title: str
    has_interval: bool = False
    band: tuple[str, ...] = ()  # metrics of the ends of its intervals, where these are wider than a line
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
        state = json.dumps(_state(run_filter, headlines, folded, len(runs))).encode()
        packed = "deflate;" + base64.b64encode(zlib.compress(state)).decode()
        now = int(time.time() * 1000)
        name = f"{', '.join(label for label, _ in runs)[:80]} ({view})"
        text = json.dumps({"name": name, "createdAt": now, "updatedAt": now, "state": packed})
        if len(text) <= MAX_TAG:
            insert(partial(client.set_experiment_tag, experiment_id, f"{VIEW}{view}", text))
            return


def describe(client: MlflowClient, experiment_id: str, note: str) -> None:
    """Make this the experiment's note, which its page shows above the charts; one that a person wrote stays."""
    tags = client.get_experiment(experiment_id).tags
    if tags.get(NOTE, "") in ("", tags.get(OWN_NOTE)):
        for tag in (OWN_NOTE, NOTE):
            insert(partial(client.set_experiment_tag, experiment_id, tag, note[:MAX_TAG]))


def _headlines(runs: Sequence[LabelledResults]) -> list[ViewChart]:
    """The first charts. Cosines and shares are on one scale, from which chance, 0, is not cut off."""
    every = [results for _, results in runs]
    lines = {
        key: [line for label, r in runs if (line := curve_line(r, key, label=label, colour="", marker=0))]
        for key in headline_keys(every)
    }
    bounded = [key for key in lines if unit_label(every, key.measure) in UNITS_TO_ONE]
    low, high = _limits([line for key in bounded for line in lines[key]], 0.0)
    room = 0.04 * (high - low)
    shared = {"yMin": round(low - room, 4), "yMax": round(high + room, 4)}
    charts = []
    for key, chart_lines in lines.items():
        bottom, top = (low, high) if key in bounded else _limits(chart_lines)
        band = _widest_interval(chart_lines)
        charts.append(
            ViewChart(
                metric_name(str(key)),
                ", ".join(filter(None, [_title(key, every), direction(every, key.measure)])),
                has_interval=band > 0,
                band=tuple(map(metric_name, interval_names(key))) if band > THIN * (top - bottom) else (),
                is_log=scale(every, key.measure, chart_lines) == LOG,
                range=shared if key in bounded else {},
            )
        )
    return charts


def _widest_interval(lines: Sequence[Line]) -> float:
    widths = [line.high - line.low for line in lines if line.low is not None and line.high is not None]
    return max((float(np.nanmax(width)) for width in widths), default=0.0)


def _heading(charts: Sequence[ViewChart]) -> str:
    """Axes and dashes explained, in two short lines."""
    certain = [chart for chart in charts if chart.has_interval]
    visible = [chart for chart in certain if chart.band]
    thin = "95% intervals are thinner than the lines" if certain else "without intervals"
    bands = f"dashes: 95% interval{'' if visible == certain else '; elsewhere thinner than lines'}" if visible else thin
    return f"Layer by layer: step = layer; share of the room: 0 = chance\n{bands}"


def _limits(lines: Sequence[Line], *more: float) -> tuple[float, float]:
    """The lowest and the highest end of the lines' intervals, or value where there is none, and of `more` values."""
    ends = [end for line in lines for end in (line.y, line.low, line.high) if end is not None]
    values = np.concatenate([np.array(more), *ends])
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)


def _title(key: Key, runs: Sequence[Results]) -> str:
    """The measure and, unless it is the metric's own main statistic, which statistic of it."""
    title = full_title(key.measure, key.task, runs)
    if any(measure_info(results, key.measure).main == key.name for results in runs):
        return title
    return f"{title}, {readable(key)}"


def _others(runs: Sequence[Results]) -> dict[str, list[ViewChart]]:
    """The charts of all curves, a measure at a time."""
    sections: dict[str, list[ViewChart]] = {}
    for key in dict.fromkeys(key for results in runs for key in keys_to_compare(results) if key.place == LAYER):
        words = f"{full_title(key.measure, key.task, runs)}, {readable(key)}"
        sections.setdefault(key.measure, []).append(ViewChart(metric_name(str(key)), words))
    return sections


def _state(
    run_filter: str, headlines: list[ViewChart], folded: dict[str, list[ViewChart]], n_runs: int
) -> dict[str, object]:
    """The page's state: sections with their charts, of which the first alone is open."""
    sections = {_heading(headlines): headlines, **folded}
    n_lines = n_runs * max([1 + len(chart.band) for chart in headlines], default=0)
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
        "runListHidden": n_lines <= MAX_NAMES,  # the legends name all runs, given its room
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
