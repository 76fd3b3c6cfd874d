"""A sweep's comparison as files: the interactive page, the figures, tables, and every curve as a CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ctxexp.files.writing import write_csv
from ctxexp.plugins import Registry
from ctxexp.report import sweep_tables, wording
from ctxexp.report.comparison import Comparison
from ctxexp.report.figures import sweep_figures
from ctxexp.report.page import REPORT, write_report
from ctxexp.report.seeds import average_seeds
from ctxexp.report.wording import LabelledResults

COMPARISON = "comparison.csv"


def write_summary(
    runs: Sequence[LabelledResults], folder: Path, registry: Registry, *, links: Mapping[str, str] | None = None
) -> list[Path]:
    """Write the comparison of a sweep's runs (figures, report.html, tables, comparison.csv); return the paths.

    `links` are where sinks show the runs, by label. Figures and page show means over seeds; tables and comparison.csv
    have every run.
    """
    published = any(results.info.published for _, results in runs)
    averages = average_seeds(runs)
    paths = sweep_figures(averages, folder, published=published)
    paths += sweep_tables.write_tables(runs, folder, registry)
    more = sweep_tables.write_figures(runs, folder, registry)
    page = write_report(averages, folder / REPORT, published=published, links=links, pictures=more)
    paths += [page, *more]
    comparison = folder / COMPARISON
    write_csv(Comparison(tuple(wording.unique_labels(runs))).frame, comparison)
    return [*paths, comparison]
