"""Finished runs side by side: a frame, figures, and a table for a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.errors import MetricError, near
from ctxexp.files.paths import user_path
from ctxexp.report.charts import sweep_charts
from ctxexp.report.figures import overview_figure, run_figure, sweep_figure
from ctxexp.report.frame import display_in_notebook
from ctxexp.report.page import write_report
from ctxexp.results.curves import keys_beside, main_key, mix_mark
from ctxexp.results.values import COLUMNS, Key, Values

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ctxexp.results import Results


@dataclass(frozen=True)
class Comparison:
    """Runs by label, each label once.

    Example:
        >>> import ctxexp
        >>> both = ctxexp.compare([ctxexp.Results(), ctxexp.Results()])
        >>> both, list(both.frame.columns[:4])
        (<Comparison of run, run #2>, ['run', 'measure', 'task', 'statistic'])
    """

    runs: tuple[tuple[str, Results], ...]

    @property
    def frame(self) -> pd.DataFrame:
        """The runs' frames (`ctxexp.Results.frame`) under each other, the run's label in the first column; `bands` says
        which means over words are of a text that doesn't fill all bands of frequency: `2 of 3 bands`."""
        import pandas as pd

        parts = [
            results.frame.assign(run=label, bands=[mix_mark(results, measure) for measure in results.frame.measure])
            for label, results in self.runs
        ] or [Values().frame().assign(run="", bands="")]
        return pd.concat(parts, ignore_index=True)[["run", *COLUMNS, "bands"]]

    def plot(self, measure: str | None = None) -> Figure:
        """The runs' curves of one measure by layer, one panel for each of its variants; None: the overview. A notebook
        shows it. Raises MetricError for an unknown measure, and where there is no value to draw."""
        charts = sweep_charts(self.runs)
        curve_names = dict.fromkeys(
            Key(m, "", task).curve_name for _, results in self.runs for m, task in results.measure_tasks()
        )
        if measure is None:
            if not charts:
                raise MetricError(_nothing_to_draw(list(curve_names)))
            return display_in_notebook(overview_figure(charts, self.runs))
        for chart in charts:
            if measure in (chart.name, *(Key(panel.measure, "", panel.task).curve_name for panel in chart.panels)):
                return display_in_notebook(sweep_figure(chart, self.runs))
        if measure in curve_names or any(key.startswith(f"{measure}/") for key in curve_names):
            raise MetricError(_nothing_to_draw([measure]))
        raise MetricError(f"no measure {measure!r} in these runs{near(measure, [chart.name for chart in charts])}")

    def report(self, path: str | Path = "report.html") -> Path:
        """Write the interactive page of the runs, which fetches nothing; returns its path."""
        published = any(results.info.published for _, results in self.runs)
        return write_report(self.runs, user_path(path).absolute(), published=published)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(label for label, _ in self.runs)}>"

    def _repr_html_(self) -> str:
        """Main curve of each measure by run and layer, each value above its 95% interval, and beside it raw values, the
        level of chance and adjusted values."""
        import pandas as pd

        rows: dict[tuple[str, str, str], list[str]] = {}
        for label, results in self.runs:
            for measure_task in results.measure_tasks():
                if key := main_key(results, *measure_task):
                    mark = mix_mark(results, key.measure)
                    name = key.curve_name + (f" ({mark})" if mark else "")
                    for statistic, each in {key.name: key, **keys_beside(results, key)}.items():
                        rows[name, statistic, label] = _html_cells(*results.by_key[each])
        table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("layer", axis="columns")
        order = {curve: i for i, curve in enumerate(dict.fromkeys(row[:2] for row in rows))}
        names = [tuple(map(escape, row)) for row in rows]
        table.index = pd.MultiIndex.from_tuples(names, names=["measure", "statistic", "run"]) if names else table.index
        places = sorted(range(len(names)), key=[order[row[:2]] for row in rows].__getitem__)
        html: str = table.iloc[places].to_html(escape=False, na_rep="")
        return html


def run_plot(results: Results, measure: str | None) -> Figure:
    """One run's figure of a measure, with raw values and baseline; else as `Comparison.plot` of this run."""
    figure = run_figure(results, measure) if measure else None
    return display_in_notebook(figure) if figure else of_run(results).plot(measure)


def run_html(results: Results) -> str:
    """The run's facts and each measure's main curve by layer, as HTML for a notebook."""
    comparison, info = of_run(results), results.info
    ((label, _),) = comparison.runs
    head = f"{label}, {info.corpus.name}: {results.n_layers} layers, baseline {info.baseline.name or 'none'}"
    return f"<p>{escape(head)}</p>{comparison._repr_html_()}"


def of_run(results: Results) -> Comparison:
    """The comparison of one run alone, under its title."""
    return Comparison(((results.info.title or "run", results),))


def _html_cells(value: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[str]:
    """The values, each with its interval below it where there is one."""
    cells = []
    for numbers in zip(value, low, high, strict=True):
        text, *ends = (f"{number:.3f}" if np.isfinite(number) else "" for number in numbers)
        cells.append(f"{text}<br><small>[{', '.join(ends)}]</small>" if all(ends) else text)
    return cells


def _nothing_to_draw(measures: list[str]) -> str:
    """Why there is nothing to draw."""
    if not measures:
        return "nothing to draw: these runs hold no curve by layer"
    which = f"{', '.join(measures)} {'are' if len(measures) > 1 else 'is'}"
    return (
        f"nothing to draw: {which} undefined (NaN) in every layer, for want of contexts: lower min_contexts, or give "
        "more text"
    )
