"""`ctxexp layer MODEL tasks=...`: which layer should I use?"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ctxexp.command import Progress, typed_model
from ctxexp.errors import ConfigError, ModelError
from ctxexp.report import Document, Table, check_absent, write_file
from ctxexp_compare.layer_choice.checkpoint import plain_view
from ctxexp_compare.layer_choice.choice import NONE, LayerChoice, choose
from ctxexp_compare.layer_choice.score_file import score_file_table
from ctxexp_compare.layer_choice.tasks import (
    load_model,
    measured_table,
    parse_tasks,
    save_choice,
    sentence_pooling,
    task_runs,
)
from ctxexp_compare.layer_choice.winner import WinnerEstimate

if TYPE_CHECKING:
    import pandas as pd


SHOWN_TASKS = 9  # by name
RIVALS = {
    "last": "the last layer",
    "input": "the input layer",
    "ends": "the better of both",
    "mean": "the mean of the layers",
    "twin": "the untrained twin",
}


def layer(
    model: str,
    *,
    tasks: str = "STS-B,SICK-R",
    documents: Path | None = None,
    loss: float | None = None,
    transforms: str = NONE,
    over: Literal["auto", "tasks", "items"] = "auto",
    families: Literal["auto", "correlation", "none"] = "auto",
    pooling: str = "",
    twin: str = "auto",
    scores: Path | None = None,
    data: Path | None = None,
    options: str = "",
    bootstrap: int = 1000,
    seed: int = 0,
    out: Path | None = None,
    replace: bool = False,
) -> Document:
    """Say which layer of a model to use, by its scores on tasks.

    The gain over the last layer, the input layer, the better of both, the mean of the layers and the untrained twin has
    an interval that knows of the choice. Where it spans 0 the answer is that this data can show no difference.

    model: a model, quoted with its words: "minilm dtype=bfloat16"; with scores=, its name in that file
    tasks: by comma: sts (its seven sets), STS12 to STS16, STS-B, SICK-R, WiC, SemCor; tables of your own: pairs
        (text_a, text_b, score), or queries (query, document)
    documents: further documents for queries of your own: a table with a column document
    loss: points that a lower layer may lose: the lowest one that loses no more against the last; null: the best layer
    transforms: by comma, such as none,whitening: chosen together with the layer
    over: what intervals draw anew: tasks (for a task like these; eight or more) or the items of these very tasks
    families: of tasks, drawn anew as one; auto: scores='s column, else by name, else by correlation; none: each alone
    pooling: of sentences, as sentence.pooling=; empty: the model's own, mean where no file names one
    twin: auto: the same network with weights drawn anew; none; with scores=, its name in that file
    scores: a table of scores by layer, in place of tasks: columns model, task, layer, score and, if you like, family
    data: the folder of the tasks' data, or one with a folder for each of sts, wic and semcor; null: downloaded
    options: further words for all runs
    bootstrap: resamples of each task's items
    seed: of resamples and of the untrained twin
    out: a folder: the layer as a plain checkpoint of sentence-transformers, with layer.json and layer.csv; of scores=
        these alone
    example: ctxexp layer bert tasks=STS-B
    """
    if out and not replace:
        check_absent(out / "layer.json")
    if scores is not None:
        table = score_file_table(scores, model, "" if twin in ("auto", "none") else twin)
    else:
        if twin not in ("auto", "none"):
            raise ConfigError(f"twin={twin}: expected auto or none; a name goes with scores=")
        _, words = typed_model(model)
        names = [one.strip() for one in transforms.split(",") if one.strip()]
        given = shlex.split(options)
        of_model = load_model(model, given, twin=twin == "auto", seed=seed)
        if out:  # before anything is measured
            plain_view(of_model.encoder, sentence_pooling(of_model.encoder, pooling))
        table = measured_table(
            of_model,
            parse_tasks(tasks),
            data=data,
            documents=documents,
            transforms=names,
            pooling=pooling,
            options=[*given, *(word for word in words if not word.startswith("model."))],
            seed=seed,
            bootstrap=bootstrap,
            progress=Progress(),
        )
    choice = choose(table, over=over, families=families, loss=loss, seed=seed)
    if out is None:
        return report(choice)
    files = [write_file(out / "layer.json", json.dumps(as_json(choice), indent=1, ensure_ascii=False) + "\n")]
    if scores is None:
        chosen, runs = choice.cut.layer if choice.cut else choice.best, task_runs(parse_tasks(tasks), data, documents)
        try:
            files.append(save_choice(chosen, of_model, out, runs=runs, pooling=pooling, options=given))
        except ModelError as error:  # what was measured is shown all the same
            found = report(choice, files)
            said = [*found.sentences, f"no checkpoint is written: {error}"]
            return Document(said, found.tables, files=files, status=1)
    return report(choice, files)


def report(choice: LayerChoice, files: Sequence[Path] = ()) -> Document:
    """The gains over each rival, notes, and the answer."""
    rows = [["its score", "", span(choice.score, sign=""), number(choice.held_out, sign=""), ""]]
    for name, gain in choice.gains.items():
        if gain.rival == choice.best:
            rows.append([f"above {RIVALS[name]}", str(gain.rival), "it is that layer", "", ""])
            continue
        cells = [span(gain.estimate), number(gain.held_out), gain.verdict]
        rows.append([f"above {RIVALS[name]}", str(gain.rival), *cells])
    n = len(choice.table.tasks)
    tasks = ", ".join(choice.table.tasks) if n <= SHOWN_TASKS else f"{n} tasks"
    title = f"{choice.table.model}: {choice.best}, chosen on {tasks}"
    columns = [f"points, of {n} task{'s' * (n > 1)}", "rival", "95%", "held out", ""]
    table = Table(title, frame(choice), columns, rows, _notes(choice))
    return Document([answer(choice)], {"layer": table}, files=files)


def answer(choice: LayerChoice) -> str:
    """Which layer to use, in a sentence that says no more than the data allow."""
    last, ends, cut = choice.gains["last"], choice.gains.get("ends"), choice.cut
    if cut is not None:
        if cut.layer == last.rival:
            return f"no layer below {cut.layer}, the last, loses as little for certain"
        share = f"{cut.layer.layer} of {last.rival.layer} blocks"
        points = f"{cut.value:.1f} [{cut.low:.1f}, {cut.high:.1f}] points"
        return f"use {cut.layer}, {share}: it loses {points} to the last layer"
    most = f"by more than {choice.regret:.1f} points" if round(choice.regret, 1) else "for certain"
    regret = f"no other choice is better {most}" if len(choice.may_be_best) > 1 else "every other choice is worse"
    if last.rival == choice.best:
        return f"use the last layer, {last.rival}: {regret}"
    gain = f"{last.estimate.value:+.1f} [{last.estimate.low:+.1f}, {last.estimate.high:+.1f}] points"
    if last.verdict != "better":
        return f"no difference that this data can show: {choice.best} is {gain} from the last layer ({regret})"
    if ends is not None and ends.rival not in (choice.best, last.rival) and ends.verdict != "better":
        return (
            f"use {choice.best} rather than the last, {gain} above it; no difference from {ends.rival} that this data "
            f"can show ({regret})"
        )
    return f"use {choice.best}: {gain} above the last layer ({regret})"


def frame(choice: LayerChoice) -> pd.DataFrame:
    """The score of every task and candidate: task, layer, transform, twin, score, and whether the candidate is the best
    of the other tasks."""
    import pandas as pd

    rows = []
    for task, scores in zip(choice.table.tasks, choice.table.scores, strict=True):
        for candidate, score in zip(choice.table.candidates, scores.tolist(), strict=True):
            chosen = choice.chosen_without.get(task) == candidate
            rows.append((task, str(candidate.layer), candidate.transform, candidate.twin, score, chosen))
    return pd.DataFrame(rows, columns=["task", "layer", "transform", "twin", "score", "best_of_other_tasks"])


def as_json(choice: LayerChoice) -> dict[str, object]:
    """The choice as plain values; `answer` is its sentence."""

    def numbers(estimate: WinnerEstimate, held_out: float) -> dict[str, float | None]:
        values = {**vars(estimate), "held_out": held_out}
        return {key: None if math.isnan(value) else value for key, value in values.items()}

    return {
        "model": choice.table.model,
        "tasks": list(choice.table.tasks),
        "intervals_over": choice.over,
        "families": list(choice.families),
        "families_by": choice.families_by,
        "best": choice.best._asdict(),
        "score": numbers(choice.score, choice.held_out),
        "gains": {
            name: {"rival": gain.rival._asdict(), **numbers(gain.estimate, gain.held_out), "verdict": gain.verdict}
            for name, gain in choice.gains.items()
        },
        "regret_at_most": choice.regret,
        "may_be_best": [one._asdict() for one in choice.may_be_best],
        "cut": None if choice.cut is None else {**choice.cut._asdict(), "layer": choice.cut.layer._asdict()},
        "answer": answer(choice),
        "notes": list(choice.table.notes),
    }


def span(estimate: WinnerEstimate, sign: str = "+") -> str:
    """An estimate with its interval."""
    return f"{estimate.value:{sign}.1f} [{estimate.low:{sign}.1f}, {estimate.high:{sign}.1f}]"


def number(value: float, sign: str = "+") -> str:
    return "" if math.isnan(value) else f"{value:{sign}.1f}"


def _notes(choice: LayerChoice) -> list[str]:
    over = "other tasks like these" if choice.over == "tasks" else "other items of these very tasks, not of other tasks"
    notes = [f"intervals speak of {over}; they know that the layer was chosen by the same scores"]
    if choice.over == "tasks":
        notes.append(_families(choice))
    if len(choice.table.tasks) > 1:
        others = "tasks of other families" if choice.families else "the other tasks"
        notes.append(f"held out: on each task by the layers that are best on {others}")
    if len(choice.may_be_best) > 1:
        notes.append(f"may be the best as well: {', '.join(str(c) for c in choice.may_be_best if c != choice.best)}")
    if any(c.transform != "none" for c in choice.table.candidates):
        notes.append("transforms are fitted on the text of each task itself")
    return [*notes, *choice.table.notes]


def _families(choice: LayerChoice) -> str:
    """What is drawn anew as one, and how that is known."""
    if choice.families_by == "none":
        return "no family of tasks is known: tasks are taken as independent, and are not if some of them are alike"
    n, names = len(set(choice.families)), ", ".join(dict.fromkeys(choice.families))
    if not n:
        return "tasks are drawn anew one by one: each is of a family of its own"
    if choice.families_by == "correlation":
        return (
            f"no family of tasks is known: those whose scores go together over layers are drawn anew as one, {n} in all"
        )
    return f"tasks are drawn anew by {n} families{' of their names' * (choice.families_by == 'name')}: {names}"
