"""Tables 2 and 3 of BERT-flow (Li et al. 2020), sentence similarity: published figures and ours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxexp import Results
from ctxexp.report import LabelledResults, Table
from ctxexp.results import Key
from ctxexp_measures.calibration.league.standings import measure_of, model_name, one_line, tasks, transform_name, value
from ctxexp_measures.calibration.li_2020 import published as li_2020

TITLE = "Sentence similarity without supervision (Li et al. 2020, Table 2), Spearman × 100"
AGGREGATIONS = ("all", "wmean")  # of a task's sub-sets: the published rows are of either kind
POOLINGS = ("mean", "cls")  # as published: over all pieces, and the first piece
PAPER_MIX, TRUE_MIX = "flow_paper_last2", "last2"
NLI_TITLE = "Sentence similarity of models trained on NLI (Li et al. 2020, Table 3), Spearman × 100"
_MODELS = {"bert-base": "bert-base-uncased", "bert-large": "bert-large-uncased"}
NLI_MODELS = {"bert-base-nli": "bert-base-nli-mean-tokens", "bert-large-nli": "bert-large-nli-mean-tokens"}
METHODS = {
    "avg": "mean of the last layer",
    "cls": "CLS vector of the last layer",
    "last2avg": "mean of the first and the last block (flow_paper_last2)",
    "true last2": "mean of the last two layers (last2)",
    "flow-nli": "flow on flow_paper_last2, fitted on NLI",
    "flow-target": "flow on flow_paper_last2, fitted on the target",
    "flow-nli, true last2": "flow on last2, fitted on NLI",
    "flow-target, true last2": "flow on last2, fitted on the target",
}


@dataclass
class OwnRow:
    """One method of one model: the tasks of all runs that measured it, and the choices behind them."""

    model: str
    checkpoint: str  # bert-base, bert-large, or "" for what the paper hasn't
    method: str
    fitted_on: str
    scores: dict[tuple[str, str], float] = field(default_factory=dict)  # (task, aggregation) -> Spearman x 100


def table_li_2020(runs: Sequence[LabelledResults]) -> Table | None:
    """The paper's table with these runs' rows under the published ones; None unless a run measured `sts` on sentence
    vectors as the paper's (`sentence.pooling` mean or cls) with the mix that it averaged.

    A run's row is chosen by its metadata: pooling, mixes, transform, fitted text. Several runs
    of a method, a task each (`dataset.tasks`), make one row. Without a run on its weights a published row is followed
    by `not run`.
    """
    ours = [row for row in _own(runs) if row.checkpoint not in NLI_MODELS]
    return _table(ours, li_2020.table(), TITLE, _notes(ours, li_2020.SOURCE)) if ours else None


def table_li_2020_nli(runs: Sequence[LabelledResults]) -> Table | None:
    """Table 3 likewise, of models that were trained on natural-language inference; None without a run on one."""
    ours = [row for row in _own(runs) if row.checkpoint in NLI_MODELS]
    notes = [
        "the paper's own weights were not published: ours are Sentence-BERT's, trained on the same data by others",
        *_notes(ours, li_2020.NLI_SOURCE),
    ]
    return _table(ours, li_2020.table("published_nli"), NLI_TITLE, notes) if ours else None


def _own(runs: Sequence[LabelledResults]) -> list[OwnRow]:
    """The rows that the runs make, if any of them measured the mix that the paper averaged."""
    has_mix = any(PAPER_MIX in r.info.pooling.mixes and _pooling(r) in POOLINGS for _, r in runs)
    return own_rows(runs) if has_mix else []


def _table(
    ours: Sequence[OwnRow], published: Sequence[li_2020.PublishedRow], title: str, notes: Iterable[str]
) -> Table:
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for paper_row in published:
        rows.append(
            {"source": "published", "row": paper_row.name, "model": paper_row.model, "method": paper_row.method}
            | {"fitted_on": paper_row.method.partition("-")[2], "reported_by": paper_row.reported_by}
            | {"aggregation": paper_row.aggregation, **paper_row.scores, "note": paper_row.note}
        )
        if paper_row.reported_by.startswith("Li") or paper_row.method == "cls":
            mine = [m for m in ours if m.checkpoint == paper_row.model and m.method == paper_row.method]
            rows += [row for m in mine for row in _rows(m)] or [_not_run(paper_row.model, paper_row.method)]
    rest = [m for m in ours if not any(row["source"] == "ours" and row["row"] == _name(m) for row in rows)]
    rest.sort(key=lambda m: (m.model, list(METHODS).index(m.method)))
    rows += [row for m in rest for row in _rows(m)]
    for model in dict.fromkeys(m.model for m in ours if not m.checkpoint):
        missing = {"flow-target", "flow-nli"} - {m.method for m in ours if m.model == model}
        rows += [_not_run(model, method) for method in sorted(missing, reverse=True)]
    keys = ["source", "row", "model", "method", "fitted_on", "reported_by", "aggregation"]
    keys += [*li_2020.TASKS, "mean", "note"]
    for row in rows:
        scores = [row.get(task, math.nan) for task in li_2020.TASKS]
        row["mean"] = math.fsum(scores) / len(scores) if not any(map(math.isnan, scores)) else math.nan
    numbers = pd.DataFrame(rows)[keys]
    lines = [
        [row["source"], row["row"], row["fitted_on"], row["aggregation"]]
        + [_cell(row.get(task, math.nan)) for task in (*li_2020.TASKS, "mean")]
        for row in rows
    ]
    columns = ["source", "row", "fitted on", "sub-sets", *li_2020.TASKS, "mean"]
    return Table(title, numbers, columns, lines, list(notes))


def own_rows(runs: Sequence[LabelledResults]) -> list[OwnRow]:
    """The rows that the runs make, one for each model, method and fitted text; later runs of a task don't replace
    earlier ones."""
    row_by_key: dict[tuple[str, ...], OwnRow] = {}
    for _, results in runs:
        label = measure_of(results, "sts")
        if label is None or _pooling(results) not in POOLINGS:
            continue
        for method, at in methods(results):
            fitted = fitted_on(results) if method.startswith("flow") else ""
            model = plain_name(results)
            row = row_by_key.setdefault((model, method, fitted), OwnRow(model, checkpoint_of(results), method, fitted))
            for task in tasks(results, label):
                for kind in AGGREGATIONS:
                    score = value(results, Key(label, kind, task), at)
                    row.scores.setdefault((task or _only_task(results), kind), score)
    return [row for row in row_by_key.values() if any(task in li_2020.TASKS for task, _ in row.scores)]


def methods(results: Results) -> Iterator[tuple[str, int | str]]:
    """Yields the table's methods that a run measured, each with its layer or mix."""
    transform, mixes = transform_name(results).partition(" fitted on ")[0], results.info.pooling.mixes
    text = fitted_on(results)
    last = results.n_layers - 1
    if transform == "none":
        if _pooling(results) == "cls":
            yield "cls", last
            return
        yield "avg", last
        for method, mix in (("last2avg", PAPER_MIX), ("true last2", TRUE_MIX)):
            if mix in mixes:
                yield method, mix
    elif transform == "flow" and _pooling(results) == "mean":  # with arguments of its own it isn't the paper's
        kind = "flow-target" if text in ("target", "all") else "" if text == "train" else "flow-nli"
        for method, mix in ((kind, PAPER_MIX), (f"{kind}, true last2", TRUE_MIX)):
            if kind and mix in mixes:
                yield method, mix


def _rows(row: OwnRow) -> list[dict[str, Any]]:
    about = {"source": "ours", "row": _name(row), "model": row.model, "method": row.method, "fitted_on": row.fitted_on}
    about |= {"reported_by": "", "note": ""}
    return [
        about | {"aggregation": kind} | {task: row.scores.get((task, kind), math.nan) for task in li_2020.TASKS}
        for kind in AGGREGATIONS
    ]


def _not_run(model: str, method: str) -> dict[str, Any]:
    name = (_MODELS | NLI_MODELS).get(model)
    weights = f"no run with the weights of {name}" if name else ""
    nli = "" if method != "flow-nli" else "no run with fit_on=nli:<path>"
    return {
        "source": "ours", "row": f"{model}, {METHODS[method]}: not run", "model": model, "method": method,
        "fitted_on": "", "reported_by": "", "aggregation": "", "note": "; ".join(filter(None, (weights, nli))),
    }  # fmt: skip


def _name(row: OwnRow) -> str:
    return f"{row.model}, {METHODS[row.method]}"


def _notes(ours: Sequence[OwnRow], source: str) -> Iterator[str]:
    yield f"published: {source}; the rows from Reimers 2019 are by `all`, the paper's own by `wmean`"
    yield (
        "sub-sets of STS12 to STS16: all = one correlation over all pairs; wmean = correlations of the sub-sets "
        "weighted by their numbers of pairs; the two don't compare. STS-B and SICK-R have one set of pairs"
    )
    if source == li_2020.SOURCE:
        yield from dict.fromkeys(f"{row.name}: {row.note}" for row in li_2020.table() if row.note)
    if any(row.method.startswith("flow") for row in ours):
        yield "fitted on: target = the measured sentences, all = those of all splits; the paper's target is all splits"
        yield (
            "ours is one flow for the sentences of all tasks of a run together, the paper's one for each task; sweep "
            "dataset.tasks=[STS-B],[SICK-R],... for that"
        )
    for row in ours:
        if not row.checkpoint:
            yield f"{row.model}: not among the paper's models (bert-base-uncased, bert-large-uncased)"
            break


def _cell(score: float) -> str:
    return "" if math.isnan(score) else f"{score:.2f}"


def _pooling(results: Results) -> str:
    return one_line(results.info.pooling.name)


def fitted_on(results: Results) -> str:
    fit = results.info.transform.fit
    return one_line(fit.text) if fit else "target"


def plain_name(results: Results) -> str:
    """The model with its weights, less the fitted text, which is the row's."""
    return model_name(results).partition(" fitted on ")[0]


def checkpoint_of(results: Results) -> str:
    """The paper's model (of Table 3 the nearest to it) whose weights a run used, by the checkpoint's name; or ""."""
    names = [one_line(results.info.model.weights), *map(str, results.info.model.details.values())]
    if names[0].startswith("untrained"):
        return ""
    for name, checkpoint in (_MODELS | NLI_MODELS).items():
        if any(text == checkpoint or text.endswith(f"/{checkpoint}") for text in names):
            return name
    return ""


def _only_task(results: Results) -> str:
    """The task of a corpus of one, in the paper's spelling."""
    corpus = one_line(results.info.corpus.name)
    names = one_line(results.info.corpus.choices.get("tasks") or "")
    return {"sts_b": "STS-B", "sick_r": "SICK-R"}.get(corpus, names)
