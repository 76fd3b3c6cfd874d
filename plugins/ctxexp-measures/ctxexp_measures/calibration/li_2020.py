"""Tables 2 to 4 of BERT-flow (Li et al. 2020): sentence similarity without and with NLI, and QNLI; ours below."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxexp import Results
from ctxexp.report import LabelledResults, Table
from ctxexp.results import Key
from ctxexp_measures.calibration.league.standings import measure_of, model_name, one_line, tasks, transform_name, value

STS_TASKS = ("STS-B", "SICK-R", "STS12", "STS13", "STS14", "STS15", "STS16")  # in the paper's order
POOLINGS = ("mean", "cls")  # as published: over all pieces, and the first piece
PAPER_MIX, TRUE_MIX = "flow_paper_last2", "last2"
ONLY_TASK = {"sts_b": "STS-B", "sick_r": "SICK-R", "qnli": "QNLI"}  # of a corpus of one
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
OTHERS_WEIGHTS = "the paper's own weights were not published: ours are Sentence-BERT's, trained on the same data"
SUBSETS = (
    "sub-sets of STS12 to STS16: all = one correlation over all pairs (so the rows from Reimers 2019); wmean = "
    "correlations of the sub-sets weighted by their numbers of pairs (so the paper's own); the two don't compare"
)
FITTED = (
    "fitted on: target = the measured sentences, all = those of all splits, as the paper's target is; one flow for all "
    "tasks of a run, the paper's one for each: sweep dataset.tasks=[STS-B],[SICK-R],... for that"
)


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper: what it scores, its models by the checkpoints that ours are, and notes."""

    number: int
    title: str
    file: str  # of the published rows, beside this module
    metric: str
    kinds: tuple[str, ...]  # statistics of ours: published rows are of either
    tasks: tuple[str, ...]
    models: dict[str, str]
    notes: tuple[str, ...]

    def published(self) -> list[dict[str, str | float]]:
        """The rows as printed."""
        text = Path(__file__).with_name(self.file).read_text(encoding="utf-8")
        rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
        return [{**row, **{task: float(row[task]) for task in self.tasks}} for row in rows]


NLI_MODELS = {"bert-base-nli": "bert-base-nli-mean-tokens", "bert-large-nli": "bert-large-nli-mean-tokens"}
TABLE_2 = PaperTable(
    2, "Sentence similarity without supervision, Spearman × 100", "li_2020.csv", "sts", ("all", "wmean"), STS_TASKS,
    {"bert-base": "bert-base-uncased", "bert-large": "bert-large-uncased"}, (SUBSETS, FITTED),
)  # fmt: skip
TABLE_3 = PaperTable(
    3, "Sentence similarity of models trained on NLI, Spearman × 100", "li_2020_nli.csv", "sts", ("all", "wmean"),
    STS_TASKS, NLI_MODELS, (OTHERS_WEIGHTS, SUBSETS, FITTED),
)  # fmt: skip
TABLE_4 = PaperTable(
    4, "Questions and answers without training, AUC × 100 (50 is chance)", "li_2020_qnli.csv", "qnli", ("auc",),
    ("QNLI",), NLI_MODELS, (OTHERS_WEIGHTS,),
)  # fmt: skip


def table_li_2020(runs: Sequence[LabelledResults]) -> Table | None:
    """The paper's Table 2 with these runs' rows under the published ones; None unless a run measured `sts` on sentence
    vectors as the paper's (`sentence.pooling` mean or cls) with the mix that it averaged.

    A run's row is chosen by its metadata: pooling, mixes, transform, fitted text. Several runs of a method, a task each
    (`dataset.tasks`), make one row. Without a run on its weights a published row is followed by `not run`.
    """
    return _table(TABLE_2, [row for row in _own(TABLE_2, runs) if row["model"] not in NLI_MODELS])


def table_li_2020_nli(runs: Sequence[LabelledResults]) -> Table | None:
    """Table 3 likewise, of models that were trained on natural-language inference; None without a run on one."""
    return _table(TABLE_3, [row for row in _own(TABLE_3, runs) if row["model"] in NLI_MODELS])


def table_li_2020_qnli(runs: Sequence[LabelledResults]) -> Table | None:
    """Table 4 likewise; None unless a run measured `qnli` by one of the paper's methods."""
    return _table(TABLE_4, list(_own(TABLE_4, runs)))


def _table(paper: PaperTable, ours: Sequence[dict[str, str | float]]) -> Table | None:
    import pandas as pd

    if not ours:
        return None
    rows: list[dict[str, str | float]] = []
    for printed in paper.published():
        rows.append({"source": "published", **printed})
        model, method = str(printed["model"]), str(printed["method"])
        if str(printed.get("reported_by", "Li")).startswith("Li") or method == "cls":
            mine = [row for row in ours if (row["model"], row["method"]) == (model, method)]
            about = {"source": "ours", "row": f"{model}, {METHODS.get(method)}: not run", "model": model}
            rows += mine or [{**about, "method": method, "note": f"no run with the weights of {paper.models[model]}"}]
    rows += [row for row in ours if row not in rows]
    keys = ["source", "row", "model", "method", "fitted_on", "reported_by", "aggregation", *paper.tasks, "mean", "note"]
    numbers = pd.DataFrame(rows).reindex(columns=keys)
    numbers["mean"] = numbers[list(paper.tasks)].mean(axis=1, skipna=False)
    texts = numbers.drop(columns=["model", "method", "reported_by", "note"]).astype(object)
    cells = [[_cell(cell) for cell in line] for line in texts.itertuples(index=False)]
    columns = ["source", "row", "fitted on", "sub-sets", *paper.tasks, "mean"]
    source = f"published: Li et al. 2020 (BERT-flow), Table {paper.number}, doi:10.18653/v1/2020.emnlp-main.733"
    doubts = [f"{row['row']}: {row['note']}" for row in rows if row.get("note") and row["source"] == "published"]
    title = f"{paper.title} (Li et al. 2020, Table {paper.number})"
    return Table(title, numbers, columns, cells, [source, *paper.notes, *doubts])


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.2f}"
    return str(value)


def _own(paper: PaperTable, runs: Sequence[LabelledResults]) -> Iterator[dict[str, str | float]]:
    """The rows that the runs make, one for each model, method, fitted text and kind; later runs of a task don't replace
    earlier ones."""
    measured = [(results, measure_of(results, paper.metric)) for _, results in runs if _pooling(results) in POOLINGS]
    if not any(label and PAPER_MIX in results.info.pooling.mixes for results, label in measured):
        return
    scores: dict[tuple[str, str, str, str, str], dict[str, float]] = {}
    for results, label in measured:
        name = model_name(results).partition(" fitted on ")[0]  # the fitted text is the row's
        for method, at in _methods(results) if label else ():
            fitted = _fitted_on(results) if method.startswith("flow") else ""
            for kind in paper.kinds:
                row = scores.setdefault((name, _paper_model(results) or name, method, fitted, kind), {})
                for task in tasks(results, label or "") or [""]:
                    row.setdefault(task or _only_task(results), value(results, Key(label or "", kind, task), at))
    for (name, model, method, fitted, kind), row in scores.items():
        if row.keys() & set(paper.tasks):
            about = {"source": "ours", "row": f"{name}, {METHODS[method]}", "model": model, "method": method}
            yield {**about, "fitted_on": fitted, "aggregation": kind, **row}


def _methods(results: Results) -> Iterator[tuple[str, int | str]]:
    """The paper's methods that a run measured, each with its layer or mix."""
    transform, mixes = transform_name(results).partition(" fitted on ")[0], results.info.pooling.mixes
    last = results.n_layers - 1
    if transform == "none":
        if _pooling(results) == "cls":
            yield "cls", last
            return
        yield "avg", last
        yield from (
            (method, mix) for method, mix in (("last2avg", PAPER_MIX), ("true last2", TRUE_MIX)) if mix in mixes
        )
    elif transform == "flow" and _pooling(results) == "mean":  # with arguments of its own it isn't the paper's
        text = _fitted_on(results)
        kind = "flow-target" if text in ("target", "all") else "" if text == "train" else "flow-nli"
        for method, mix in ((kind, PAPER_MIX), (f"{kind}, true last2", TRUE_MIX)):
            if kind and mix in mixes:
                yield method, mix


def _pooling(results: Results) -> str:
    return one_line(results.info.pooling.name)


def _fitted_on(results: Results) -> str:
    fit = results.info.transform.fit
    return one_line(fit.text) if fit else "target"


def _paper_model(results: Results) -> str:
    """The paper's model (of Tables 3 and 4 the nearest to it) whose weights a run used, by the checkpoint's name; or
    ""."""
    names = [one_line(results.info.model.weights), *map(str, results.info.model.details.values())]
    if names[0].startswith("untrained"):
        return ""
    for name, checkpoint in (TABLE_2.models | NLI_MODELS).items():
        if any(text == checkpoint or text.endswith(f"/{checkpoint}") for text in names):
            return name
    return ""


def _only_task(results: Results) -> str:
    """The task of a corpus of one, in the paper's spelling."""
    corpus = one_line(results.info.corpus.name)
    return ONLY_TASK.get(corpus, one_line(results.info.corpus.choices.get("tasks") or ""))
