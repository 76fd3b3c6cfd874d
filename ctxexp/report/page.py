"""A sweep's comparison as files: one self-contained interactive page, the figures, and every curve as a CSV."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp.files.tables import write_csv
from ctxexp.files.writing import write_text
from ctxexp.papers import sweep_tables
from ctxexp.papers.calibration_league.figure import write_league_figure
from ctxexp.papers.ethayarajh_2019 import released as reference
from ctxexp.plugins import Registry
from ctxexp.report import charts, figures, wording
from ctxexp.report.charts import Line, Panel
from ctxexp.report.palette import colours
from ctxexp.report.wording import Run
from ctxexp.run_info import RunInfo

if TYPE_CHECKING:
    import pandas as pd

REPORT, COMPARISON = "report.html", "comparison.csv"
_PAGE = Path(__file__).with_name("page.html")
_STATISTICS = ("adjusted", "raw", "baseline")


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
        "baseline": info.baseline.name,
        "baseline size": info.baseline.size,
        "intervals over": resampled.unit,
        "intervals of pairs over": resampled.pairs,
        "seed": info.seed,
        "corpus choices": text.choices,
        "encoder details": model.details,
    }


def summarise(runs: Sequence[Run], folder: Path, registry: Registry) -> list[Path]:
    """Write what compares the runs of a sweep: figures, report.html, tables and comparison.csv; the paths."""
    published = any(results.info.published for _, results in runs)
    paths = figures.sweep_figures(runs, folder, published=published)
    paths.append(write_report(runs, folder / REPORT, published=published))
    paths += sweep_tables.write_tables(runs, folder, registry)
    paths += write_league_figure(runs, folder)
    comparison = folder / COMPARISON
    write_csv(compare(runs), comparison)
    return [*paths, comparison]


def compare(runs: Sequence[Run]) -> pd.DataFrame:
    """Every curve in long format: model, measure, statistic, layer, value (full precision, NaN undefined)."""
    import pandas as pd

    columns: dict[str, list[Any]] = {name: [] for name in ("model", "measure", "statistic", "layer", "value")}
    for label, results in wording.unique_labels(runs):
        for key, curve in results.curves.items():
            measure, _, statistic = key.rpartition("/")
            for layer, value in enumerate(curve.tolist()):
                for name, cell in zip(columns, (label, measure, statistic, layer, value), strict=True):
                    columns[name].append(cell)
    return pd.DataFrame(columns)


def write_report(
    runs: Sequence[Run], path: Path, *, title: str = "Layer by layer: a comparison", published: bool = False
) -> Path:
    """Write one HTML page with everything in it: interactive charts, the runs, their overview. It fetches nothing."""
    from plotly.offline import get_plotlyjs

    data = page_data(runs, published=published)
    source = f"{reference.SOURCE}; {reference.CAVEAT}"
    parts = {
        "TITLE": html.escape(title),
        "FACTS": html.escape("; ".join(wording.facts(runs))),
        "SOURCE": html.escape(f"Published curves (bert-base-cased, gpt2, the original ELMo): {source}."),
        "TABLES": _runs_table(runs) + _measures_table(runs) + _overview_table(runs),
        "DATA": json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"),
        "PLOTLY": get_plotlyjs(),
    }
    page = _PAGE.read_text(encoding="utf-8")
    head, *rest = page.split("@@")  # text, name, text, name ...: filled in one go, so that no value is searched
    filled = [head] + [parts[piece] if i % 2 == 0 else piece for i, piece in enumerate(rest)]
    return write_text(path, "".join(filled))


def page_data(runs: Sequence[Run], *, published: bool = False) -> dict[str, Any]:
    """What the page's script draws: models, and panels with a view for each statistic; only JSON types."""
    panels: dict[tuple[str, bool], dict[str, Any]] = {}
    for statistic in _STATISTICS:
        for chart in charts.sweep_charts(runs, published=published, statistic=statistic):
            for panel in chart.panels:
                key = (panel.measure, panel.statistic.startswith("size_matched"))
                last = max(len(line.y) for line in panel.lines) - 1
                entry = panels.setdefault(
                    key, {"title": chart.title, "definition": panel.definition, "last": last, "views": {}}
                )
                entry["views"][statistic] = _view(panel)
    labels = [label for label, _ in wording.unique_labels(runs)]
    models = [{"label": label, "colour": colour} for label, colour in colours(labels).items()]
    views = [view for panel in panels.values() for view in panel["views"].values()]
    return {
        "axis": wording.LAYER_AXIS,
        "models": models,
        "panels": list(panels.values()),
        "published": any(line["published"] for view in views for line in view["lines"]),
    }


def _view(panel: Panel) -> dict[str, Any]:
    shown = [y for line in panel.lines for y in (line.y, line.low) if y is not None]
    return {
        "y_label": panel.y_label,
        "threshold": panel.threshold,
        "negative": bool(min(float(np.nanmin(y)) for y in shown) < 0),
        "lines": [_json_line(line) for line in panel.lines],
    }


def _json_line(line: Line) -> dict[str, Any]:
    return {
        "label": line.label,
        "model": line.model,
        "colour": line.colour,
        "marker": line.marker,
        "published": line.published,
        "y": _numbers(line.y),
        "low": None if line.low is None else _numbers(line.low),
        "high": None if line.high is None else _numbers(line.high),
    }


def _numbers(y: np.ndarray) -> list[float | None]:
    return [v if np.isfinite(v) else None for v in y.tolist()]


def _runs_table(runs: Sequence[Run]) -> str:
    """One column a run, one row a fact: identities are long, models few."""
    named = wording.unique_labels(runs)
    facts = [_about(results.info) for _, results in named]
    rows = [[name, *(_cell(each[name]) for each in facts)] for name in facts[0]] if facts else []
    rows = [row for row in rows if any(row[1:])]
    return _table("Runs", ["", *(label for label, _ in named)], rows)


def _measures_table(runs: Sequence[Run]) -> str:
    named = wording.unique_labels(runs)
    measures = dict.fromkeys(measure for _, results in named for measure in results.measures())
    rows = []
    for measure in measures:
        has = [results for _, results in named if measure in results.measures()]
        definitions = dict.fromkeys(wording.define(measure, results) for results in has)
        counts = [wording.count_words(results, measure) for _, results in named]
        rows.append([measure, " | ".join(d for d in definitions if d), *counts])
    return _table("Measures", ["measure", "definition", *(f"n, {label}" for label, _ in named)], rows)


def _overview_table(runs: Sequence[Run]) -> str:
    """Last layer, mean over layers and extremes of each measure's own curve: what a run list can't show."""
    rows = []
    for measure in dict.fromkeys(measure for _, results in runs for measure in results.measures()):
        for label, results in wording.unique_labels(runs):
            statistic = charts.main_statistic(results, measure)
            y = charts.finite(results.get(f"{measure}/{statistic}"))
            if y is not None:
                low, high = int(np.nanargmin(y)), int(np.nanargmax(y))
                extremes = [f"{_number(y[low])} (layer {low})", f"{_number(y[high])} (layer {high})"]
                rows.append([f"{measure}/{statistic}", label, _number(y[-1]), _number(np.nanmean(y)), *extremes])
    columns = ["curve", "model", "last layer", "mean over layers", "lowest", "highest"]
    return _table("Overview", columns, rows, numbers=range(2, 6))


def _number(value: float) -> str:
    """Four decimals for shares and cosines, one for lengths; nothing for an undefined value."""
    return "" if np.isnan(value) else f"{value:.4f}" if abs(value) < 10 else f"{value:,.1f}"


def _cell(value: object) -> str:
    """A fact as text: nested choices as "key: value", nothing for what a run doesn't say."""
    if value is None or value == "":
        return ""
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_cell(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else wording.one_line(value)


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    right = set(numbers)
    style = [' class="number"' if i in right else "" for i in range(len(columns))]
    head = "".join(f"<th{s}>{html.escape(name)}</th>" for s, name in zip(style, columns, strict=True))
    body = ""
    for row in rows:
        first, *cells = (html.escape(cell) for cell in row)
        body += f"<tr><th>{first}</th>" + "".join(f"<td{s}>{c}</td>" for s, c in zip(style[1:], cells, strict=True))
        body += "</tr>\n"
    table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"
    return f'<h2>{html.escape(title)}</h2>\n<div class="table">{table}</div>\n'
