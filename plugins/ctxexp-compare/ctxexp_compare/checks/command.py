"""`ctxexp pin MODEL` and `ctxexp check REFERENCE CANDIDATE`."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from ctxexp.command import Experiment, configured
from ctxexp.errors import ConfigError
from ctxexp.report import Document, Table, check_absent
from ctxexp_compare.checks import check as checks
from ctxexp_compare.checks.encoding import BATCH, spare_processor
from ctxexp_compare.checks.make import default_file
from ctxexp_compare.checks.make import pin as make_pin


def pin(
    model: str,
    *,
    out: Path | None = None,
    options: str = "",
    text: str = "",
    replace: bool = False,
) -> Document:
    """Keep what a model gives in a small file, a reference for `ctxexp check`.

    model: a model, quoted with its words: "minilm dtype=bfloat16"
    out: the file; null: MODEL.pin
    options: further arguments for the model
    text: sentences: a file, a folder or a data set; empty: ctxexp's own
    example: ctxexp pin bert out=bert.pin
    """
    given = shlex.split(options)
    path = out or default_file(Experiment(configured(model, options=given)).title)
    if not replace:
        check_absent(path)
    spare_processor()
    made = make_pin(model, text=text or None, options=given, progress=True)
    size = made.save(path) / 1000
    said = f"{len(made.texts)} texts, {size:,.0f} kB; reruns move vectors by at most {made.noise:.2g} of their length"
    return Document([said], files=[path])


def check(
    reference: str,
    candidate: str = "",
    *,
    text: str = "",
    queries: str = "",
    cosine: float | None = None,
    rounding: Literal["none", "float16", "bfloat16", "8bit", "4bit"] = "none",
    pooling: str = "",
    model: str = "",
    key: str = "",
    batch: int = BATCH,
    options: str = "",
    out: Path | None = None,
) -> Document:
    """Say whether the candidate's vectors are the reference's: same, rounded, or different and why.

    Then what that does to the ten nearest of each text, and to a threshold. The exit status is 0 where they are the
    same, or rounded no more than rounding= allows, 1 where they aren't, and 2 where the two can't be compared.

    reference: a pin, a model quoted with its words ("minilm dtype=bfloat16"), a folder, a GGUF file, a file of vectors
        (.npy, .npz, .safetensors, .parquet, of texts or of every token's layers), or a server's URL
    candidate: likewise; empty: the model that the pin names, now
    text: the texts, a file with one a line; empty: the pin's, or ctxexp's own. Files of vectors need theirs
    queries: a file of queries, whose nearest texts are looked at
    cosine: your threshold for the reference: which answers to it in the candidate?
    rounding: what passes
    pooling: how the reference makes vectors of texts where its files don't say: mean, cls, last, mean_text
    model: the model's name at the server
    key: the environment variable that holds the server's key
    batch: texts that are encoded at once, or sent in one request
    options: further arguments for the candidate, as dtype=bfloat16; for the reference where that is no model
    out: a .csv with the verdict in numbers
    example: ctxexp check minilm http://localhost:7997
    """
    import pandas as pd

    spare_processor()
    verdict = checks.check(
        reference, candidate or None, text=text or None, queries=queries or None, cosine=cosine, pooling=pooling,
        model=model, key=key, options=shlex.split(options), batch=batch,
    )  # fmt: skip
    fields = asdict(verdict) | {"remedy": verdict.remedy}
    layers, notes = fields.pop("layers"), fields.pop("notes")
    row = {key: tuple(value.values()) if isinstance(value, dict) else value for key, value in fields.items()}
    tables = {"check": Table("Verdict", pd.DataFrame([row]), notes=notes)}
    if layers:
        tables["layers"] = Table("Layers", pd.DataFrame(layers))
    return Document(verdict.sentences, tables, status=0 if verdict.passes(rounding) else 1)


def passport(*args: str) -> int:
    """Now `ctxexp check MODEL FILE text=TEXT`."""
    raise ConfigError("ctxexp passport is ctxexp check now, the model first: ctxexp check MODEL FILE text=TEXT")


def diff(*args: str) -> int:
    """Now `ctxexp check A B`."""
    raise ConfigError("ctxexp diff is ctxexp check now: ctxexp check A B")
