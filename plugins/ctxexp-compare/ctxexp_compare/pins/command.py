"""`ctxexp pin MODEL` and `ctxexp check FILE`."""

from __future__ import annotations

import shlex
from pathlib import Path

from ctxexp.command import Experiment, configured
from ctxexp.errors import ConfigError
from ctxexp.report import Document, Table, check_absent
from ctxexp_compare.pins.check import check as check_pin
from ctxexp_compare.pins.encoding import spare_processor
from ctxexp_compare.pins.make import ROWS, default_file
from ctxexp_compare.pins.make import pin as make_pin
from ctxexp_compare.pins.pin import Pin

STATUS = {"same": 0, "moved": 1}  # 2 is the command's own for what can't be compared


def pin(
    model: str,
    *,
    out: Path | None = None,
    options: str = "",
    text: str = "",
    dtypes: str = "",
    occurrences: int = ROWS,
    replace: bool = False,
) -> Document:
    """Keep what a model gives, layer by layer, in a small file, with the noise of the engine: `ctxexp check` compares.

    model: a model, quoted with its words: "minilm dtype=bfloat16"
    out: the file; null: MODEL.pin
    options: further arguments for the model
    text: sentences to take occurrences from: a file, a folder or a data set; empty: ctxexp's own
    dtypes: types whose rounding counts as noise beside the model's own, by comma: bfloat16
    occurrences: vectors that are kept in each layer, about
    example: ctxexp pin bert out=bert.pin
    """
    given = shlex.split(options)
    path = out or default_file(Experiment(configured(model, options=given)).title)
    if not replace:
        check_absent(path)
    spare_processor()
    types = [one.strip() for one in dtypes.split(",") if one.strip()]
    made = make_pin(
        model, text=text or None, options=given, dtypes=types, occurrences=occurrences,
        progress=True,
    )  # fmt: skip
    size = made.save(path)
    noise = ", ".join(f"{dtype} {values.max():.2g}" for dtype, values in made.noise.items())
    said = (
        f"{len(made.rows)} vectors in {len(made.layers)} layers, {size / 1000:,.0f} kB; "
        f"noise of {len(made.reruns)} reruns at most {noise} of a vector's length"
    )
    return Document([said], files=[path])


def check(file: Path, model: str = "", *, options: str = "", out: Path | None = None) -> Document:
    """Say whether a model still gives what its pin holds.

    In a line: layer, distance, noise, tokenizer, likely cause.

    The exit status is 0 where it does, 1 where a layer, the tokenizer or a setting moved, and 2 where the two can't be
    compared.

    file: a file that `ctxexp pin` wrote
    model: another model than the pinned one, quoted with its words: "./new dtype=bfloat16"
    options: further arguments for the model
    out: a .csv with every layer
    example: ctxexp check bert.pin
    """
    pinned = Pin.load(file)
    if not model and not pinned.model:
        raise ConfigError(f'{file} is of a model in memory: name one, as in ctxexp check {file.name} "minilm"')
    name, args = (model, []) if model else (pinned.model, list(pinned.options))
    spare_processor()
    outcome = check_pin(pinned, Experiment(configured(name, options=[*args, *shlex.split(options)])).encoder)
    said = [outcome.sentence]
    if outcome.verdict == "moved" and outcome.environment:
        said.append(f"note: the environment differs too: {', '.join(outcome.environment)}")
    return Document(said, {"check": Table(f"{name} by {file}", outcome.frame)}, status=STATUS[outcome.verdict])
