"""Texts for MLflow's page of a run: its numbers as a table, links to its figures and to the comparison of curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from ctxexp.report.findings import MARKED, comparison_finding, finding, sweep_finding
from ctxexp.report.findings.claims import opposite_steps
from ctxexp.report.page import REPORT
from ctxexp.report.side_by_side import number
from ctxexp.report.wording import SHARE_OF_ROOM, LabelledResults, full_title, readable
from ctxexp.results import Results
from ctxexp.results.curves import keys_beside, main_keys
from ctxexp.sink import SweepReport
from ctxexp.sinks.mlflow.values import headline

COMPARE = "MLflow's own *Compare* page shows last layers alone; the chart icon above the list of runs shows curves."


def experiment_note(kind: str, runs: Sequence[LabelledResults], experiment_id: str, run_id: str) -> str:
    """The finding of the last sweep or run (`kind`) of an experiment, the sentence that compares its runs first:
    MLflow's page shows the first line. `run_id` has the report."""
    summary, order = sweep_finding(runs), comparison_finding(runs)
    report = f"#/experiments/{experiment_id}/runs/{run_id}/artifacts/{REPORT}"
    return f"[Last {kind}]({report}): {order}\n\n{summary.removesuffix(order)}".replace(": \n\n", ": ").strip()


def job_note(results: Results, folder: Path, experiment_id: str, run_id: str) -> str:
    """A job's finding in a sentence, its main curves with what stands beside them as a Markdown table, a row a layer,
    and links to the figures in its `folder`."""
    keys, lines, columns = main_keys(results), [], []
    for key in keys:
        columns.append((f"{full_title(key.measure, key.task, [results])}, {readable(key)}", key))
        columns += [(name, other) for name, other in keys_beside(results, key).items() if name != "adjusted"]
    if keys:
        heads = " | ".join(name for name, _ in columns)
        lines = [finding(results), "", f"| layer | {heads} |", "|---" * (len(columns) + 1) + "|"]
    marked = {key: opposite_steps(results, key) for key in keys}
    for layer in results.info.model.layers or range(results.n_layers if keys else 0):
        values = [(float(results.by_key[key].value[layer]), layer in marked.get(key, [])) for _, key in columns]
        cells = [number(value) + "\\*" * star if math.isfinite(value) else "" for value, star in values]
        lines.append(f"| {layer} | {' | '.join(cells)} |")
    notes = [SHARE_OF_ROOM] * any(key.statistic == "share_of_room" for key in keys)
    lines += ["", *notes, *["\\" + MARKED] * any(marked.values())] if notes else []
    files = f"#/experiments/{experiment_id}/runs/{run_id}/artifacts"
    figures = [key.curve_name for key in keys if (folder / "figures" / f"{key.curve_name}.png").exists()]
    links = ", ".join(f"[{name}]({files}/figures/{name}.png)" for name in figures)
    lines += ["", f"Figures: {links}."] if figures else []
    return "\n".join(
        [*lines, "", f"All values, with their intervals, and tables are among its [files]({files}). {COMPARE}"]
    )


def sweep_note(report: SweepReport, run_ids: Sequence[str], link: str) -> str:
    """The jobs as a Markdown table, shown on the summary run's page."""
    summary = sweep_finding(report.compared)
    lines = [*([summary, ""] if summary else []), f"[Curves of all jobs](#{link.partition('#')[2]}). {COMPARE}", ""]
    lines += ["| job | status | run | error |", "|---|---|---|---|"]
    for row, run_id in zip(report.rows, run_ids, strict=True):
        error = headline(row.error or "").replace("|", "/")
        run = f"[{run_id[:8]}](#{row.link.partition('#')[2]})" if run_id else ""
        lines.append(f"| {row.label} | {row.status}{' (reused)' if row.reused else ''} | {run} | {error} |")
    return "\n".join(lines)[:7900]
