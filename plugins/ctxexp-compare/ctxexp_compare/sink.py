"""`sink=[mlflow,compare]`: at a sweep's end its runs' spaces are compared, heat maps beside the other figures."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ctxexp import Sink, compare
from ctxexp.command import registry, show
from ctxexp.errors import ConfigError
from ctxexp_compare import face
from ctxexp_compare.command import document
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

    def finish_sweep(self, sweep: Any, report: Any, metadata: Sequence[Mapping[str, str]]) -> None:
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
        paths = document(comparison).save(sweep.summary)
        links = {row.label: row.link for row in report.rows}
        figures = (sweep.summary / f"{name}.svg" for name in registry().names("report"))
        pictures = [*filter(Path.exists, figures), *paths]
        compare(dict(report.compared)).report(sweep.summary / "report.html", links=links, pictures=pictures)


def _can_be_read(folder: Path) -> bool:
    """Whether the run's space can be read again; warns why not."""
    from ctxexp.command import Built  # Hydra's

    try:
        Built.of_run(folder)
    except ConfigError as error:
        show(f"warning: left out of the comparison of spaces: {error}", sys.stderr)
        return False
    return True
