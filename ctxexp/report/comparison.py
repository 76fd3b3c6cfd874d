"""Finished runs side by side: as a sweep's files (the interactive page, the figures, tables, and every curve as a CSV),
and in a notebook as a frame, figures and a table; and how one run's `Results` show themselves.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.errors import MetricError, near
from ctxexp.files import user_path, write_csv
from ctxexp.plugins.registry import Registry
from ctxexp.report import captions, terminal
from ctxexp.report.drawing import page, svg, write_sweep_charts
from ctxexp.report.findings import sweep_finding
from ctxexp.report.page import REPORT, write_report
from ctxexp.report.plots import chart_figure, draw_on
from ctxexp.report.related_runs import average_seeds
from ctxexp.report.style import display_in_notebook, save_figure
from ctxexp.report.wording import LabelledResults, unique_labels
from ctxexp.results.results import mix_mark
from ctxexp.results.values import COLUMNS, Key, Values

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ctxexp.results import Results

COMPARISON = "comparison.csv"


def write_summary(
    runs: Sequence[LabelledResults],
    folder: Path,
    registry: Registry,
    *,
    links: Mapping[str, str] | None = None,
    pictures: bool = False,
) -> list[Path]:
    """Write the comparison of a sweep's runs (figures as SVG, report.html, tables, comparison.csv); return the paths.

    `pictures` adds each figure as PNG, which takes matplotlib. `links` are where sinks show the runs, by label. Figures
    and page show means over seeds; tables and comparison.csv have every run.
    """
    published = any(results.info.published for _, results in runs)
    runs = unique_labels(runs)
    averages = average_seeds(runs)
    paths = write_sweep_charts(averages, folder, published=published)
    for chart, caption in captions.sweep_figures(averages, published=published) if pictures else ():
        paths += save_figure(chart_figure(chart, caption), folder, chart.name, ("png",))
    paths += terminal.write_main_table(runs, folder)
    paths += terminal.write_tables(runs, folder, registry)
    more = terminal.write_figures(runs, folder, registry)
    page = write_report(averages, folder / REPORT, published=published, links=links, pictures=more)
    paths += [page, *more]
    comparison = folder / COMPARISON
    write_csv(Comparison(tuple(runs)).frame, comparison)
    return [*paths, comparison]


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

    def summary(self) -> pd.DataFrame:
        """The main curve of each measure, as `ctxexp.Results.summary`: a row a run and layer, a column a measure."""
        import pandas as pd

        return pd.concat({label: results.summary() for label, results in self.runs}, names=["run"])

    def plot(self, measure: str | None = None, *, ax: Axes | None = None) -> Figure:
        """The runs' curves of one measure by layer, one panel for each of its variants; None: the overview. A notebook
        shows it. On axes of one's own (`ax`) the first panel is drawn, without the texts around it. Raises MetricError
        for an unknown measure, and where there is no value to draw."""
        figures = captions.sweep_figures(self.runs)
        curve_names = dict.fromkeys(
            Key(m, "", task).curve_name for _, results in self.runs for m, task in results.measure_tasks()
        )
        for chart, caption in figures:
            own = (chart.name, *(Key(panel.measure, "", panel.task).curve_name for panel in chart.panels))
            if measure is None or (measure in own and chart is not figures[0][0]):
                return _shown((chart, caption), ax)
        if measure is None:
            raise MetricError(_nothing_to_draw(list(curve_names)))
        if measure in curve_names or any(key.startswith(f"{measure}/") for key in curve_names):
            raise MetricError(_nothing_to_draw([measure]))
        names = [chart.name for chart, _ in figures[1:]]
        raise MetricError(f"no measure {measure!r} in these runs{near(measure, names)}")

    def report(self, path: str | Path = "report.html") -> Path:
        """Write the interactive page of the runs, which fetches nothing; returns its path."""
        published = any(results.info.published for _, results in self.runs)
        return write_report(self.runs, user_path(path).absolute(), published=published)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(label for label, _ in self.runs)}>"

    @property
    def sentence(self) -> str:
        """What was found, in a few sentences: how the runs go from layer to layer, and their order at the last."""
        return sweep_finding(self.runs)

    def _repr_html_(self) -> str:
        """The sentences, and each measure's main curve by run and layer, each value above its 95% interval."""
        rows = {(key.curve_name, label): (results, key) for label, results in self.runs for key in results.main_keys}
        order = list(dict.fromkeys(curve for curve, _ in rows))
        at = sorted(rows, key=lambda row: order.index(row[0]))
        return f"<p>{escape(self.sentence)}</p>{_html_table({f'{row[0]}: {row[1]}': rows[row] for row in at})}"


def run_plot(results: Results, measure: str | None, ax: Axes | None = None) -> Figure:
    """One run's figure of a measure, with raw values and baseline; else as `Comparison.plot` of this run."""
    keys = results.main_keys
    measure = measure or (keys[0].curve_name if ax is not None and keys else None)
    figure = captions.run_figure(results, *measure.partition("/")[::2]) if measure else None
    return _shown(figure, ax) if figure else of_run(results).plot(measure, ax=ax)


def _shown(figure: captions.Figure, ax: Axes | None) -> Figure:
    """The figure, which a notebook shows; or, on these axes, theirs."""
    return display_in_notebook(chart_figure(*figure)) if ax is None else draw_on(ax, figure[0])


def run_html(results: Results) -> str:
    """The leading measure's figure, or the run's sentence where there is nothing to draw, and each measure's main curve
    by layer, each value above its 95% interval, as HTML."""
    keys = results.main_keys
    figure = captions.run_figure(results, keys[0].measure, keys[0].task) if keys else None
    says = f"<p>{escape(results.sentence)}</p>"
    if figure is not None:  # which says the same
        picture = base64.b64encode(svg(*page(*figure)).encode()).decode()
        says = f'<img width="640" alt="{escape(results.sentence)}" src="data:image/svg+xml;base64,{picture}">'
    return says + _html_table({key.curve_name: (results, key) for key in keys})


def of_run(results: Results) -> Comparison:
    """The comparison of one run alone, under its title."""
    return Comparison(((results.info.title or "run", results),))


def _html_table(rows: Mapping[str, tuple[Results, Key]]) -> str:
    """A row a curve, its cells by layer; an interval stands below its value."""
    import pandas as pd

    cells: dict[str, list[str]] = {}
    for name, (results, key) in rows.items():
        scale = ", ".join(filter(None, [key.label(), mix_mark(results, key.measure)]))
        line = cells.setdefault(f"{escape(name)}<br><small>{escape(scale)}</small>", [])
        for numbers in zip(*results.by_key[key], strict=True):
            text, *ends = (f"{number:.3f}" if np.isfinite(number) else "" for number in numbers)
            line.append(f"{text}<br><small>[{', '.join(ends)}]</small>" if all(ends) else text)
    table = pd.DataFrame.from_dict(cells, orient="index").rename_axis("layer", axis="columns")
    return table.to_html(escape=False, na_rep="")


def _nothing_to_draw(measures: list[str]) -> str:
    """Why there is nothing to draw."""
    if not measures:
        return "nothing to draw: these runs hold no curve by layer"
    which = f"{', '.join(measures)} {'are' if len(measures) > 1 else 'is'}"
    return (
        f"nothing to draw: {which} undefined (NaN) in every layer, for want of contexts: lower min_contexts, or give "
        "more text"
    )
