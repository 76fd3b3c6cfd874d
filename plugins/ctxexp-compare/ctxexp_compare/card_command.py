"""`ctxexp card RUN`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

from ctxexp import Results, load, measure
from ctxexp.errors import ConfigError, DataError
from ctxexp.report import Document
from ctxexp_compare.checks.encoding import light_errors
from ctxexp_compare.floors.command import high_cosines
from ctxexp_compare.interface import run_folders
from ctxexp_compare.light.floor import Floor
from ctxexp_compare.model_card import card as card_of
from ctxexp_compare.model_card import write

RESULTS = "results.json"  # of a run


def card(
    run: str,
    *,
    text: str = "",
    options: str = "",
    title: str = "",
    layer: Path | None = None,
    floor: Path | None = None,
    out: Path = Path("card"),
) -> Document:
    """Write a model's card: Markdown, JSON, its curves as SVG.

    run: a run's folder, or a model, quoted with its words: "minilm dtype=bfloat16"
    text: of a model: a file, a folder or a data set; empty: the embedded one
    options: more words
    title: what the card calls the model; empty: what the run does
    layer: the folder that `ctxexp layer` wrote of the model: which layer to use
    floor: the file that `ctxexp floor` wrote of the model: which cosine is high
    out: the folder for card.md, card.json and card.svg
    example: ctxexp card bert
    """
    words = {"text": text, "options": options, "title": title}
    command = ["ctxexp", "card", run, *(f"{key}={value}" for key, value in words.items() if value)]
    typed = "" if run_folders(run, RESULTS) else shlex.join(command)
    measured = []
    if layer:
        try:
            measured = [str(json.loads((layer / "layer.json").read_text(encoding="utf-8"))["answer"])]
        except (OSError, ValueError, LookupError, TypeError):
            wanted = f"as ctxexp layer MODEL out={layer} writes it"
            raise DataError(f"layer={layer}: it holds no layer.json, {wanted}") from None
    with light_errors():
        measured += high_cosines(Floor.load(floor)) if floor else []
    model_card = card_of(_results(run, text, options), title, typed, measured)
    return Document([f"warning: {line}" for line in model_card.warnings], files=write(model_card, out))


def _results(run: str, text: str, options: str) -> Results:
    """A run's results from its folder, or a model measured now."""
    if folders := run_folders(run, RESULTS):
        if text or options:
            raise ConfigError(f"{run} is a run, with its own text: leave text= and options= out, or name a model")
        if len(folders) > 1:
            raise ConfigError(f"{run} holds {len(folders)} runs; name one: {', '.join(map(str, folders[:3]))}")
        return load(folders[0])
    with TemporaryDirectory() as place:
        return measure(run, text or None, options=options, folder=place)
