"""A run as MLflow stores it: the curves that people compare under names it allows, flat texts, the tags by which it
is found, and the notes that its page shows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ctxexp.files.process import process_tags
from ctxexp.report.charts import PAPER_MEASURES
from ctxexp.report.claims import number, opposite_steps
from ctxexp.report.findings import MARKED, comparison_finding, finding, sweep_finding
from ctxexp.report.frame import colours
from ctxexp.report.page import REPORT
from ctxexp.report.wording import SHARE_OF_ROOM, LabelledResults, full_title
from ctxexp.results import Results
from ctxexp.results.frame import keys_beside, main_statistics, may_be_main, mix_mark
from ctxexp.results.values import LAYER, Key
from ctxexp.sinks import Run, SweepReport

MAX_VALUE, MAX_NAME = 6000, 250  # characters that MLflow takes
HEADLINES = 4
# `kind` is job or summary; `key` names what was computed, for resume; `bundle` names the folder on disk, so that
# sending it twice makes one run; `logged` is set last: whoever sees it sees a whole run.
SWEEP, KEY, KIND, BUNDLE, LOGGED, ERROR = (f"ctxexp.{n}" for n in ("sweep", "job", "kind", "bundle", "logged", "error"))
COLOUR, NOTE = "mlflow.runColor", "mlflow.note.content"
VIEW = "mlflow.sharedViewState."  # of the experiment, with a sweep or a run behind it
OWN_NOTE = "ctxexp.note"  # of the experiment: the note that we wrote, and may write anew
MODEL = "ctxexp.model"  # of a LoggedModel: digest of what tells its vectors from others'
MAX_TAG = 8000
# MLflow's own columns User, Source and Version, which its client leaves empty.
_SOURCE = {
    "user": "mlflow.user",
    "command": "mlflow.source.name",
    "commit": "mlflow.source.git.commit",
    "dirty": "ctxexp.git_dirty",
}
COMPARE = "MLflow's own *Compare* page shows last layers alone; the chart icon above the list of runs shows curves."


def marked_results(results: Results) -> Results:
    """The results as they are logged: measures over the words of a text that doesn't fill all bands of frequency bear
    that in their name, `self_similarity 2 of 3 bands`, so that no chart lays them beside those of a text that does."""
    marks = {measure: mark for measure in results.info.measures if (mark := mix_mark(results, measure))}
    if not marks:
        return results
    names = {measure: f"{measure} {mark}" for measure, mark in marks.items()}
    measures = {names.get(measure, measure): info for measure, info in results.info.measures.items()}
    frame = results.frame.assign(measure=[names.get(measure, measure) for measure in results.frame.measure])
    replicates = {k._replace(measure=names.get(k.measure, k.measure)): v for k, v in results.replicates.items()}
    return Results(frame, results.tables, replicates, replace(results.info, measures=measures))


def keys_to_compare(results: Results) -> list[Key]:
    """Keys of the values that people compare: a measure's share of the room (adjusted, where it has none), raw and
    baseline, and its metric's main statistic; of a measure without these, all but counts, spreads and levels."""
    by_measure: dict[tuple[str, str, str], list[Key]] = {}
    for key in results.by_key:
        by_measure.setdefault((key.measure, key.task, key.place), []).append(key)
    main_keys: list[Key] = []
    for (measure, *_), keys in by_measure.items():
        statistics = {*main_statistics(results, measure), "baseline"}
        if any(key.name == "share_of_room" for key in keys):
            statistics -= {"adjusted"} - {results.info.measure(measure).main}
        few = [key for key in keys if key.name in statistics]
        main_keys += few or [key for key in keys if may_be_main(key)]
    return main_keys


def headline_keys(runs: Iterable[Results]) -> list[Key]:
    """The curves that come first: of the paper's measures before others, at most four."""
    order = {measure: place for place, measure in enumerate(PAPER_MEASURES)}
    places = {
        key: order.get(results.info.definition_name(key.measure), len(order))
        for results in runs
        for key in results.main_keys
        if key.place == LAYER
    }
    return sorted(places, key=lambda key: places[key])[:HEADLINES]


def interval_names(key: Key) -> tuple[str, str]:
    """The names of the ends of the curve's interval. No slash: their charts come after the curves."""
    return f"{key.curve_name} {key.name} low", f"{key.curve_name} {key.name} high"


def interval_ends(results: Results) -> dict[str, np.ndarray]:
    """The ends of the intervals of headline curves."""
    ends: dict[str, np.ndarray] = {}
    for key in headline_keys([results]):
        _, low, high = results.by_key[key]
        if np.isfinite(low).any():
            ends |= dict(zip(interval_names(key), (low, high), strict=True))
    return ends


def last_layers(results: Results) -> dict[str, int]:
    """The last layer at which each main curve has a value: what the table of models shows of it."""
    finite = {str(key): np.flatnonzero(np.isfinite(results.by_key[key].value)) for key in results.main_keys}
    return {name: int(layers[-1]) for name, layers in finite.items() if layers.size}


def metric_name(key: str) -> str:
    """The key in the characters that MLflow allows (letters, digits, `_-./: `); keys of ctxexp pass unchanged."""
    text = "".join(c if c.isalnum() or c in "_-./: " else "_" for c in key)
    return "/".join(part for part in text.replace("..", "_").split("/") if part)[:MAX_NAME]


def metric_names(keys: Iterable[str]) -> dict[str, str]:
    """Each key's name in MLflow, none of them twice: keys that differ in other characters only get a number."""
    names: dict[str, str] = {}
    names_in_use: set[str] = set()
    for key in keys:
        name, n = metric_name(key), 1
        while name in names_in_use:
            n += 1
            name = f"{metric_name(key)[: MAX_NAME - 8]} {n}"
        names[key] = name
        names_in_use.add(name)
    return names


def flat(values: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """Values nested once as MLflow params: dotted keys, texts as they are, all else as JSON; too long ones say so.
    Options that are not set, null, none or empty, are left out, and a part's name that its label says."""
    texts: dict[str, str] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if value in (None, "", [], {}, "none") or value == {"name": key}:
            continue
        if isinstance(value, Mapping):
            if not prefix:
                texts.update(flat(value, f"{name}."))
                continue
            value = {option: one for option, one in value.items() if one is not None}
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        if len(text) > MAX_VALUE:
            note = " ... (whole in run.json or results.json)"
            text = text[: MAX_VALUE - len(note)] + note
        texts[metric_name(name)] = text
    return texts


def headline(error: str) -> str:
    """The line that says what went wrong: the last one of a traceback, the first of a plain message."""
    lines = [line for line in error.strip().splitlines() if line.strip()]
    if not lines:
        return ""
    if not lines[0].startswith("Traceback"):
        return lines[0][:500]
    return next((x for x in reversed(lines) if not x.startswith((" ", "\t"))), lines[-1])[:500]


def tags_of(run: Run) -> dict[str, str]:
    """The tags of a job's run."""
    colour = colours([run.name])[run.name]
    tags = {**source_tags(run.source), KIND: "job", KEY: run.key, BUNDLE: run.id, COLOUR: colour}
    return tags | ({SWEEP: run.sweep} if run.sweep else {})


def source_tags(source: Mapping[str, str]) -> dict[str, str]:
    """Tags for a run's user, command and commit, and for the process that sends it."""
    own = {_SOURCE[key]: value for key, value in source.items() if key in _SOURCE}
    return {"mlflow.source.type": "LOCAL", **process_tags(), **own}


def experiment_note(kind: str, runs: Sequence[LabelledResults], experiment_id: str, run_id: str) -> str:
    """The finding of the last sweep or run (`kind`) of an experiment, the sentence that compares its runs first:
    MLflow's page shows the first line. `run_id` has the report."""
    summary, order = sweep_finding(runs), comparison_finding(runs)
    report = f"#/experiments/{experiment_id}/runs/{run_id}/artifacts/{REPORT}"
    return f"[Last {kind}]({report}): {order}\n\n{summary.removesuffix(order)}".replace(": \n\n", ": ").strip()


def job_note(results: Results, folder: Path, experiment_id: str, run_id: str) -> str:
    """A job's finding in a sentence, its main curves with what stands beside them as a Markdown table, a row a layer,
    and links to the figures in its `folder`."""
    keys, lines, columns = results.main_keys, [], []
    for key in keys:
        columns.append((f"{full_title(key.measure, key.task, [results])}, {key.label()}", key))
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
