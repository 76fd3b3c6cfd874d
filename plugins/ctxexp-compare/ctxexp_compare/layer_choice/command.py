"""`ctxexp layer MODEL tasks=...`: which layer should I use?"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Literal

from ctxexp.command import Progress, typed_model
from ctxexp.errors import ConfigError
from ctxexp.report import Document, write_file
from ctxexp_compare.layer_choice.choice import NONE, choose
from ctxexp_compare.layer_choice.report import as_json, report
from ctxexp_compare.layer_choice.score_file import score_file_table
from ctxexp_compare.layer_choice.task_scores import choice_encoder, load_model, measured_table
from ctxexp_compare.layer_choice.tasks import parse_tasks


def layer(
    model: str,
    *,
    tasks: str = "STS-B,SICK-R",
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
    out: Path = Path("layer"),
) -> Document:
    """Say which layer of a model to use, by its scores on tasks.

    The gain over the last layer, the input layer, the better of both, the mean of the layers and the untrained twin has
    an interval that knows of the choice. Where it spans 0 the answer is that this data can show no difference.

    model: a model, quoted with its words: "minilm dtype=bfloat16"; with scores=, its name in that file
    tasks: by comma: sts (its seven sets), STS12 to STS16, STS-B, SICK-R, WiC, SemCor
    transforms: by comma, such as none,whitening: chosen together with the layer
    over: what intervals draw anew: tasks (for a task like these; eight or more) or the items of these very tasks
    families: of tasks, drawn anew as one; auto: scores='s column, else by name, else by correlation; none: each alone
    pooling: of sentences, as sentence.pooling=; empty: mean, else mean_words
    twin: auto: the same network with weights drawn anew; none; with scores=, its name in that file
    scores: a CSV of scores by layer, in place of tasks: columns model, task, layer, score and, if you like, family
    data: the folder of the tasks' data, or one with a folder for each of sts, wic and semcor; null: downloaded
    options: further words for all runs
    bootstrap: resamples of each task's items
    seed: of resamples and of the untrained twin
    out: the folder for layer.json, layer.csv and, of measured scores, the layer as an encoder: LayerEncoder.load(out)
    example: ctxexp layer bert tasks=STS-B
    """
    if scores is not None:
        table = score_file_table(scores, model, "" if twin in ("auto", "none") else twin)
    else:
        if twin not in ("auto", "none"):
            raise ConfigError(f"twin={twin}: expected auto or none; a name goes with scores=")
        _, words = typed_model(model)
        names = [one.strip() for one in transforms.split(",") if one.strip()]
        given = shlex.split(options)
        of_model = load_model(model, given, twin=twin == "auto", seed=seed)
        table = measured_table(
            of_model,
            parse_tasks(tasks),
            data=data,
            transforms=names,
            pooling=pooling,
            options=[*given, *(word for word in words if not word.startswith("model."))],
            seed=seed,
            bootstrap=bootstrap,
            progress=Progress(),
        )
    choice = choose(table, over=over, families=families, seed=seed)
    files = [write_file(out / "layer.json", json.dumps(as_json(choice), indent=1, ensure_ascii=False) + "\n")]
    if scores is None:
        best = choice_encoder(choice, of_model, tasks=parse_tasks(tasks), data=data, pooling=pooling)
        files.append(best.save(out))
    return report(choice, files)
