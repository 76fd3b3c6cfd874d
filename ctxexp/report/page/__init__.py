"""One self-contained interactive page of runs: charts, tables, the models side by side, the runs.

(Plotly draws each panel; its own page writer has no switch that shows or hides a run in all panels at once.)"""

from __future__ import annotations

import base64
import json
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ctxexp.files import render_page, write_file
from ctxexp.progress import show
from ctxexp.report import charts, reference_curves, wording
from ctxexp.report.findings import comparison_finding
from ctxexp.report.page.explorer import explorer_data
from ctxexp.report.related_runs import Training
from ctxexp.report.style import PALETTE
from ctxexp.report.wording import LabelledResults
from ctxexp.results.results import Results, keys_beside, main_key, mix_mark
from ctxexp.results.run_info import RunInfo
from ctxexp.results.values import Key

REPORT = "report.html"
SPOKEN = 6  # runs of which the page's head has a sentence each
_STATISTICS = {
    "": "each measure's own",
    "raw": "raw",
    "baseline": "chance",
    "share_of_room": "share of the room above chance",
}
_PARTS = ("model", "corpus", "transform", "baseline", "mix", "pooling", "resampled")  # of a run's metadata
PLOTLY = Path(__file__).with_name("plotly-basic.min.js.gz")
"""plotly.js-basic-dist-min 3.7.0, which has the kinds of charts that the page draws; the page unpacks it."""
AT = ("last layer", "highest layer", "lowest layer")  # of a measure, in the table of models side by side
OPEN_FLAG = "--open"
_opens = False  # whether the command asked for its page in the browser


class PageTable(NamedTuple):
    """A table of the page; each row's first cell is its heading."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def write_report(
    runs: Sequence[LabelledResults],
    path: Path,
    *,
    published: bool = False,
    links: Mapping[str, str] | None = None,
    pictures: Sequence[Path] = (),
) -> Path:
    """Write one HTML page with everything in it: interactive charts, tables, the runs, those of the `pictures` that are
    SVG. It fetches nothing."""
    runs = wording.unique_labels(runs)
    explorer = explorer_data(runs)
    data = page_data(runs, published=published) | {"explorer": explorer and explorer.overview}
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    said = [text for label, results in runs for text in results.findings(label)[:1]] if len(runs) <= SPOKEN else []
    page = render_page(
        "ctxexp.report.page",
        "page.html",
        title=f"{runs[0][0]}, layer by layer" if len(runs) == 1 else "Layer by layer: a comparison",
        lead=comparison_finding(runs) if len(runs) > 1 else "".join(said),
        findings=runs[0][1].doubts if len(runs) == 1 else said,
        facts="; ".join(wording.shared_facts(runs)),
        training_runs=reference_curves.training_runs(runs),
        controls=reference_curves.control_lines(runs, most=12),
        source=f"{reference_curves.SOURCE}; {reference_curves.CAVEAT}",
        more=any(not chart["headline"] for chart in data["charts"]),
        side=data["side"],
        steps=len(set(data["steps"].values())),
        seeds=any(results.info.seeds for _, results in runs),
        explorer=explorer,
        labels=[model["label"] for model in data["models"]],
        places=AT,
        statistics=_STATISTICS,
        pictures={
            path.stem: base64.b64encode(path.read_bytes()).decode() for path in pictures if path.suffix == ".svg"
        },
        tables={"measures": _measures_table(runs), "runs": _runs_table(runs)},
        links=[(label, url) for label, url in (links or {}).items() if url.startswith(("http://", "https://"))],
        data=text.replace("<", "\\u003c"),
        plotly=base64.b64encode(PLOTLY.read_bytes()).decode(),
    )
    return write_file(path, page)


def page_data(runs: Sequence[LabelledResults], *, published: bool = False) -> dict[str, Any]:
    """The data of the page's script in JSON's types: models, charts a view per panel and statistic, and the table."""
    chart_entries: dict[str, dict[str, Any]] = {}
    for statistic in _STATISTICS:
        for chart in charts.sweep_charts(runs, all_published=published, statistic=statistic):
            entry = chart_entries.setdefault(chart.name, {"title": chart.title, "panels": {}})
            for panel in chart.panels:
                measure_task = panel.measure, panel.task
                if measure_task not in entry["panels"]:
                    entry["panels"][measure_task] = _panel(panel, runs)
                entry["panels"][measure_task]["views"][statistic] = _view(panel)
    headlines = charts.leading_charts(list(chart_entries))
    models = [{"label": label, "colour": colour} for label, (colour, _) in charts.line_styles(runs).items()]
    panels = [panel for chart in chart_entries.values() for panel in chart["panels"].values()]
    views = [view for panel in panels for view in panel["views"].values()]
    return {
        "axis": wording.LAYER_AXIS,
        "hues": PALETTE,
        "models": models,
        "charts": [
            {**chart, "panels": list(chart["panels"].values()), "headline": name in headlines}
            for name, chart in chart_entries.items()
        ],
        "published": any(line["published"] for view in views for line in view["lines"]),
        "steps": {run.label: run.step for of_model in Training.of(runs).values() for run in of_model},
        "side": [
            side_row(measure, task, runs) for chart in chart_entries.values() for measure, task in chart["panels"]
        ],
    }


def _panel(panel: charts.Panel, runs: Sequence[LabelledResults]) -> dict[str, Any]:
    """A panel without its views; `findings` are by the runs' labels."""
    return {
        "name": _choice(panel, runs),
        "definition": panel.definition,
        "direction": panel.direction,
        "findings": {
            label: results.finding(panel.key).sentence(label) for label, results in runs if panel.key in results.by_key
        },
        "last": max(len(line.y) for line in panel.lines) - 1,
        "views": {},
    }


def _choice(panel: charts.Panel, runs: Sequence[LabelledResults]) -> str:
    """The panel's label in the switch of its chart: a task, or a variant of the measure."""
    variant = wording.info_of([results for _, results in runs], panel.measure).variant
    task = "mean over tasks" if panel.task == wording.AVERAGE else panel.task
    return " ".join(filter(None, [task, variant])) or "plain"


def _view(panel: charts.Panel) -> dict[str, Any]:
    curves = [y for line in panel.lines for y in (line.y, line.low) if y is not None]
    return {
        "y_label": panel.y_label,
        "threshold": panel.threshold,
        "chance": panel.has_chance_at_zero,
        "scale": panel.scale,
        "negative": bool(min(float(np.nanmin(y)) for y in curves) < 0),
        "lines": [_line(line) for line in panel.lines],
    }


def _line(line: charts.Line) -> dict[str, object]:
    """The line in JSON's types, at the layers that were measured; `last` is the model's last."""
    x = line.x
    arrays = {
        name: _plain(None if y is None else y[x]) for name, y in (("y", line.y), ("low", line.low), ("high", line.high))
    }
    return {**vars(line), **arrays, "layers": x, "last": len(line.y) - 1}


def _plain(value: object) -> object:
    """JSON's types; NaN as null."""
    if not isinstance(value, np.ndarray):
        return value
    return [v if np.isfinite(v) else None for v in value.tolist()]


def side_row(measure: str, task: str, runs: Sequence[LabelledResults]) -> dict[str, Any]:
    """A measure's row: its title, its curve's name, the models' labels, and a model's cells by place (`AT`), none where
    it hasn't got the measure."""
    keys = [main_key(results, measure, task) for _, results in runs]
    labels = wording.mix_labels(measure, runs)
    cells = []
    for (label, results), key, shown in zip(runs, keys, labels, strict=True):
        cells.append(_side_cells(results, key, mix_mark(results, measure) * (shown != label)))
    title = wording.full_title(measure, task, [results for _, results in runs])
    return {"title": title, "curve": str(next(filter(None, keys))), "labels": labels, "cells": cells}


def _side_cells(results: Results, key: Key | None, mark: str) -> dict[str, dict[str, Any]]:
    """A model's cells; `mark`: the bands that the run's text fills, where that of another run fills others."""
    if key is None or not np.isfinite(y := results.by_key[key].value).any():
        return {}
    last = max(results.info.model.layers, default=len(y) - 1)
    layers = dict(zip(AT, (last, int(np.nanargmax(y)), int(np.nanargmin(y))), strict=True))
    return {at: _side_cell(results, key, layer, at, mark) for at, layer in layers.items() if np.isfinite(y[layer])}


def _side_cell(results: Results, key: Key, layer: int, at: str, mark: str) -> dict[str, Any]:
    """A value in a layer with its interval (None: not known); how it is read; and what stands beside it there: raw and
    chance, by name and as they are read."""
    value, *ends = (float(part[layer]) for part in results.by_key[key])
    text, has_interval = wording.table_number(value), bool(np.isfinite(ends).all())
    if has_interval and results.info.seeds:
        text += f" ± {wording.table_number((ends[1] - ends[0]) / 2)}"
    elif has_interval:
        text += f" [{', '.join(map(wording.table_number, ends))}]"
    if at != AT[0]:
        text += f" (layer {layer})"
    curves = {name: results.by_key[other].value for name, other in keys_beside(results, key).items()}
    beside = {name: float(curve[layer]) for name, curve in curves.items() if np.isfinite(curve[layer])}
    aside = ", ".join(
        filter(None, [mark, *(f"{name} {wording.table_number(number)}" for name, number in beside.items())])
    )
    low, high = ends if has_interval else (None, None)
    return {"layer": layer, "value": value, "low": low, "high": high, "text": text, "beside": beside, "aside": aside}


def _runs_table(runs: Sequence[LabelledResults]) -> PageTable:
    """One column per run, one row per fact by its name in `Results.info`: identities are long, models few."""
    facts = [_facts(results.info) for _, results in runs]
    names = dict.fromkeys(name for each in facts for name in each)
    rows = [[name, *(_cell(each.get(name)) for each in facts)] for name in names]
    return PageTable("Runs", ["", *(label for label, _ in runs)], [row for row in rows if any(row[1:])])


def _facts(info: RunInfo) -> dict[str, object]:
    """The facts of a run by name, `model.encoder`; measures have a table of their own."""
    facts: dict[str, object] = {}
    for part, value in info.to_json().items():
        if part in _PARTS:
            facts |= {f"{part}.{name}": inner for name, inner in value.items()}
        elif part != "measures":
            facts[part] = value
    return facts


def _measures_table(runs: Sequence[LabelledResults]) -> PageTable:
    rows = []
    for measure, task in dict.fromkeys(measure_task for _, results in runs for measure_task in results.measure_tasks()):
        definitions = dict.fromkeys(results.info.definition(measure, task) for _, results in runs)
        counts = [wording.group_count_phrase(results, measure, task) for _, results in runs]
        rows.append([Key(measure, "", task).curve_name, " | ".join(d for d in definitions if d), *counts])
    return PageTable("Measures", ["measure", "definition", *(f"n, {label}" for label, _ in runs)], rows)


def _cell(value: object) -> str:
    """A fact as text: nested choices as "key: value", nothing for what a run doesn't say."""
    if value is None or value == "":
        return ""
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_cell(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else wording.one_line(value)


def open_when_made() -> None:
    """Open the page of this process's command in the browser, once it is made."""
    global _opens
    _opens = True


def show_page(folder: Path) -> None:
    """Print the path of the page in a folder, where there is one, and open it if that was asked for."""
    page = (folder / REPORT).absolute()
    if not page.exists():
        return
    show(f"report: {page}")
    if _opens:
        open_page(page)


def open_page(page: Path, word: str = "") -> None:
    """Open a page in the browser, at this word."""
    if not webbrowser.open(page.absolute().as_uri() + f"#word={word}" * bool(word)):
        show("warning: no browser to open the report in", sys.stderr)
