"""Finished runs side by side: a frame, figures, and a table for a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ctxexp.errors import MetricError, near
from ctxexp.report.charts import sweep_charts
from ctxexp.report.figures import overview_figure, sweep_figure
from ctxexp.report.wording import main
from ctxexp.results.values import COLUMNS, Key, Values

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ctxexp.results import Results


@dataclass(frozen=True)
class Comparison:
    """Runs by label, each label once."""

    runs: tuple[tuple[str, Results], ...]

    @property
    def frame(self) -> pd.DataFrame:
        """The runs' frames (`ctxexp.Results.frame`) under each other, the run's label in the first column."""
        import pandas as pd

        parts = [results.frame.assign(run=label) for label, results in self.runs] or [Values().frame().assign(run="")]
        return pd.concat(parts, ignore_index=True)[["run", *COLUMNS]]

    def plot(self, measure: str | None = None) -> Figure:
        """The runs' curves of one measure by layer (all its definitions); None: the overview. Raises MetricError."""
        charts = sweep_charts(self.runs)
        if measure is None:
            return overview_figure(charts, self.runs)
        for chart in charts:
            if measure in (chart.name, *(Key(panel.measure, "", panel.task).subject for panel in chart.panels)):
                return sweep_figure(chart, self.runs)
        raise MetricError(f"no measure {measure!r} in these runs{near(measure, [chart.name for chart in charts])}")

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(label for label, _ in self.runs)}>"

    def _repr_html_(self) -> str:
        """Main curve of each measure by run and layer."""
        import pandas as pd

        rows = {}
        for label, results in self.runs:
            for subject in results.subjects():
                if key := main(results, *subject, wanted="adjusted"):
                    rows[key.subject, key.statistic, label] = results.held[key].value
        table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("layer", axis="columns")
        table.index = pd.MultiIndex.from_tuples(list(rows), names=["measure", "statistic", "run"])
        html: str = table.sort_index(sort_remaining=False).to_html(float_format="{:.3f}".format, na_rep="")
        return html
