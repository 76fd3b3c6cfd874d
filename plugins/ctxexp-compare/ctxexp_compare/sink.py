"""`sink=[mlflow,compare]`: at a sweep's end its runs' spaces are compared, heat maps beside the other figures."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ctxexp import Sink
from ctxexp.command import registry, show
from ctxexp.errors import ConfigError
from ctxexp.report.terminal import figure_files
from ctxexp.sink import Sweep, SweepReport
from ctxexp_compare import face
from ctxexp_compare.command import write
from ctxexp_compare.measure import Null, RowNorm


class CompareSink(Sink):
    """Sends nothing: when a sweep is over it compares its runs' spaces, into the summary folder and its report.

    measures: as of `ctxexp compare`
    sample: occurrences that are compared, at most
    layers: of each run at most so many, evenly spaced; null: all
    seed: of the sample and of the draws
    null: chance permutes rows within words (`words`) or freely (`free`)
    rows: at norm 1 (`unit_norm`) or as they are (`as_is`)
    """

    def __init__(
        self,
        *,
        measures: str = ",".join(face.DEFAULT_MEASURES),
        sample: int = 2000,
        layers: int | None = 12,
        seed: int = 0,
        null: Null = "words",
        rows: RowNorm = "unit_norm",
    ) -> None:
        face.parse_measures(measures)  # its mistakes, before anything is encoded
        self.measures, self.sample, self.layers, self.seed = measures, sample, layers, seed
        self.null, self.rows = null, rows

    def finish_sweep(self, sweep: Sweep, report: SweepReport, metadata: Sequence[Mapping[str, str]]) -> None:
        from ctxexp.report.page import REPORT, write_report  # Plotly's

        folders = [row.results for row in report.rows if row.status == "FINISHED" and _can_be_read(row.results)]
        if not folders:
            return
        comparison = face.compare(
            *folders,
            measures=self.measures,
            sample=self.sample,
            layers=self.layers,
            seed=self.seed,
            null=self.null,
            rows=self.rows,
        )
        paths = write(comparison, sweep.summary)
        is_published = any(results.info.published for _, results in report.compared)
        links = {row.label: row.link for row in report.rows}
        pictures = [*figure_files(sweep.summary, registry()), *paths]
        write_report(report.compared, sweep.summary / REPORT, published=is_published, links=links, pictures=pictures)


def _can_be_read(folder: Path) -> bool:
    """Whether the run's space can be read again; warns why not."""
    from ctxexp.command.compose import config_of_run  # Hydra's

    try:
        config_of_run(folder)
    except ConfigError as error:
        show(f"warning: left out of the comparison of spaces: {error}", sys.stderr)
        return False
    return True
