"""A sweep's comparison as files: one self-contained interactive page, the figures, and every curve as a CSV.

(Plotly draws each panel; its own page writer has no switch that shows or hides a run in all panels at once.)
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ctxexp.files.tables import write_csv
from ctxexp.files.templates import filled
from ctxexp.files.writing import write_text
from ctxexp.papers import sweep_tables
from ctxexp.papers.ethayarajh_2019 import released as reference
from ctxexp.plugins import Registry
from ctxexp.report import charts, figures, wording
from ctxexp.report.charts import Line, Panel
from ctxexp.report.comparison import Comparison
from ctxexp.report.explorer import explorer_data
from ctxexp.report.negative_controls import control_lines, training_runs
from ctxexp.report.palette import PALETTE
from ctxexp.report.seeds import over_seeds
from ctxexp.report.side_by_side import AT, side_by_side
from ctxexp.report.wording import Run, contexts_words
from ctxexp.results.run_info import RunInfo
from ctxexp.results.values import Key

REPORT, COMPARISON = "report.html", "comparison.csv"
_STATISTICS = ("adjusted", "raw", "baseline")


class Table(NamedTuple):
    """A table of the page; each row's first cell is its heading."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def _about(info: RunInfo) -> dict[str, object]:
    """The facts of a run by the names that the page gives them."""
    model, text, resampled = info.model, info.corpus, info.resampled
    return {
        "encoder": model.encoder,
        "weights": model.weights,
        "layers": model.n_layers or "",
        "width": model.dim or "",
        "dtype": model.dtype,
        "transform": info.transform.name,
        "corpus": text.name,
        "control": info.control,
        "occurrences left out": text.left_out,
        "words without a vector": text.skipped,
        "unknown pieces": text.unknown,
        "pieces": text.pieces,
        "fingerprint": text.fingerprint,
        "sentences": text.sentences,
        "occurrences": text.occurrences,
        "words": text.words,
        "contexts a word needs": text.min_contexts,
        "contexts": contexts_words(text),
        "words of the whole text": text.text_words or "",
        "baseline": info.baseline.name,
        "baseline size": info.baseline.size,
        "intervals over": resampled.unit,
        "intervals of pairs over": resampled.pairs,
        "seed": list(info.seeds) or info.seed,
        "corpus choices": text.choices,
        "encoder details": model.details,
    }


def summarise(
    runs: Sequence[Run], folder: Path, registry: Registry, *, links: Mapping[str, str] | None = None
) -> list[Path]:
    """Write what compares the runs of a sweep: figures, report.html, tables and comparison.csv; the paths. `links` are
    where sinks show the runs, by label. Figures and page show means over seeds; tables and comparison.csv have every
    run."""
    published = any(results.info.published for _, results in runs)
    shown = over_seeds(runs)
    paths = figures.sweep_figures(shown, folder, published=published)
    paths += sweep_tables.write_tables(runs, folder, registry)
    more = sweep_tables.write_figures(runs, folder, registry)
    page = write_report(shown, folder / REPORT, published=published, links=links, pictures=more)
    paths += [page, *more]
    comparison = folder / COMPARISON
    write_csv(Comparison(tuple(wording.unique_labels(runs))).frame, comparison)
    return [*paths, comparison]


def write_report(
    runs: Sequence[Run],
    path: Path,
    *,
    title: str = "Layer by layer: a comparison",
    published: bool = False,
    links: Mapping[str, str] | None = None,
    pictures: Sequence[Path] = (),
) -> Path:
    """Write one HTML page with everything in it: interactive charts, tables, the runs, those of the `pictures` that are
    SVG. It fetches nothing."""
    from plotly.offline import get_plotlyjs

    data = page_data(runs, published=published)
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    page = filled(
        "ctxexp.report",
        "page.html",
        title=title,
        facts="; ".join(wording.facts(runs)),
        training_runs=training_runs(runs),
        controls=control_lines(runs, most=12),
        source=f"{reference.SOURCE}; {reference.CAVEAT}",
        more=any(not chart["headline"] for chart in data["charts"]),
        side=data["side"],
        seeds=any(results.info.seeds for _, results in runs),
        explorer=data["explorer"] is not None,
        labels=[model["label"] for model in data["models"]],
        places=AT,
        pictures={path.stem: _embedded(path) for path in pictures if path.suffix == ".svg"},
        tables={"measures": _measures_table(runs), "runs": _runs_table(runs)},
        links=[(label, url) for label, url in (links or {}).items() if url.startswith(("http://", "https://"))],
        data=text.replace("<", "\\u003c"),
        plotly=get_plotlyjs(),
    )
    return write_text(path, page)


def _embedded(path: Path) -> str:
    """The picture as the address of itself."""
    return f"data:image/svg+xml;base64,{base64.b64encode(path.read_bytes()).decode()}"


def page_data(runs: Sequence[Run], *, published: bool = False) -> dict[str, Any]:
    """What the page's script draws: models, charts with a view a panel and statistic, and the table; JSON's types."""
    drawn: dict[str, dict[str, Any]] = {}
    for statistic in _STATISTICS:
        for chart in charts.sweep_charts(runs, published=published, statistic=statistic):
            entry = drawn.setdefault(chart.name, {"title": chart.title, "panels": {}})
            for panel in chart.panels:
                last = max(len(line.y) for line in panel.lines) - 1
                fresh = {"name": _choice(panel, runs), "definition": panel.definition, "last": last, "views": {}}
                views = entry["panels"].setdefault((panel.measure, panel.task), fresh)["views"]
                views["matched" if panel.statistic.startswith("size_matched") else statistic] = _view(panel)
    headlines = charts.headlines(list(drawn))
    named = wording.unique_labels(runs)
    models = [{"label": label, "colour": colour} for label, (colour, _) in charts.looks(named).items()]
    views = [view for chart in drawn.values() for panel in chart["panels"].values() for view in panel["views"].values()]
    return {
        "axis": wording.LAYER_AXIS,
        "hues": PALETTE,
        "explorer": explorer_data(runs),
        "models": models,
        "charts": [
            {**chart, "panels": list(chart["panels"].values()), "headline": name in headlines}
            for name, chart in drawn.items()
        ],
        "published": any(line["published"] for view in views for line in view["lines"]),
        "side": [
            {**row._asdict(), "cells": [{at: cell._asdict() for at, cell in cells.items()} for cells in row.cells]}
            for row in side_by_side(runs)
        ],
    }


def _choice(panel: Panel, runs: Sequence[Run]) -> str:
    """What the switch of a chart calls one of its panels: a task, or a variant of the measure."""
    said = next((info.variant for _, r in runs if (info := wording.about(r, panel.measure)).variant), "")
    task = "mean over tasks" if panel.task == wording.AVERAGE else panel.task
    return " ".join(filter(None, [task, said])) or "plain"


def _view(panel: Panel) -> dict[str, Any]:
    shown = [y for line in panel.lines for y in (line.y, line.low) if y is not None]
    return {
        "y_label": panel.y_label,
        "threshold": panel.threshold,
        "negative": bool(min(float(np.nanmin(y)) for y in shown) < 0),
        "lines": [_line(line) for line in panel.lines],
    }


def _line(line: Line) -> dict[str, object]:
    """The line in JSON's types, at the layers that were measured; `last` is the model's last."""
    x = line.x
    arrays = {
        name: _plain(None if y is None else y[x]) for name, y in (("y", line.y), ("low", line.low), ("high", line.high))
    }
    return {**vars(line), **arrays, "layers": x, "last": len(line.y) - 1}


def _plain(value: object) -> object:
    """JSON's types; NaN as null."""
    return [v if np.isfinite(v) else None for v in value.tolist()] if isinstance(value, np.ndarray) else value


def _runs_table(runs: Sequence[Run]) -> Table:
    """One column a run, one row a fact: identities are long, models few."""
    named = wording.unique_labels(runs)
    facts = [_about(results.info) for _, results in named]
    rows = [[name, *(_cell(each[name]) for each in facts)] for name in _about(RunInfo())]
    return Table("Runs", ["", *(label for label, _ in named)], [row for row in rows if any(row[1:])])


def _measures_table(runs: Sequence[Run]) -> Table:
    named = wording.unique_labels(runs)
    rows = []
    for measure, task in dict.fromkeys(subject for _, results in named for subject in results.subjects()):
        definitions = dict.fromkeys(wording.define(measure, results, task) for _, results in named)
        counts = [wording.count_words(results, measure, task) for _, results in named]
        rows.append([Key(measure, "", task).subject, " | ".join(d for d in definitions if d), *counts])
    return Table("Measures", ["measure", "definition", *(f"n, {label}" for label, _ in named)], rows)


def _cell(value: object) -> str:
    """A fact as text: nested choices as "key: value", nothing for what a run doesn't say."""
    if value is None or value == "":
        return ""
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_cell(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else wording.one_line(value)
