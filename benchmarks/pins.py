"""Planted changes that `ctxexp check` names, most of them shown by no vector, and honest reruns, which it must pass.

    python -m benchmarks.pins [reruns=1000] [plants=100] [seed=0] [out=plugins/ctxexp-compare/README.md]

Reruns of the minis, float32 and bfloat16, by other sizes of batch and numbers of threads. Plants are drawn in BERT's:
an embedding row of a piece that the text hasn't, one number of any tensor, two unseen pieces swapped. With out= the
table is written between the page's marks.
"""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ctxexp_compare import check, pin
from ctxexp_compare.pins.encoding import threads
from ctxexp_compare.pins.make import Rerun
from tokenizers import Tokenizer
from transformers import AutoModel, AutoTokenizer

import ctxexp
from ctxexp.command import Experiment, configured
from docs.numbers.marked import write_marked
from tests.shipped import mini, polysemy

TEXT = [one.text for one in polysemy().sentences[::250]]
DTYPES = ("float32", "bfloat16")


def rerun_rows(model: str, n: int, rng: np.random.Generator) -> list[str]:
    """A row a type: n reruns of one model."""
    reference = pin(model, text=TEXT, dtypes=DTYPES, occurrences=40)
    rows = []
    for dtype in DTYPES:
        encoder = Experiment(configured(model, options=[f"dtype={dtype}"])).encoder
        alarms, most = 0, 0.0
        for _ in range(n):
            with threads(int(rng.integers(1, 3))):
                outcome = check(reference, encoder, batch=int(rng.integers(1, len(TEXT) + 1)))
            alarms += outcome.verdict != "same"
            most = max(most, float((outcome.moves.by_layer / outcome.moves.tolerance).max()))
        rows.append(f"| rerun of {model}, {dtype} | {n} | {alarms} | {most:.2f} |")
    return rows


def plant_rows(n: int, rng: np.random.Generator) -> list[str]:
    """A row a kind of change: how often check's exit status would be 1, and how often a layer had moved."""
    folder = mini("bert")
    model, tokenizer = (
        AutoModel.from_pretrained(folder, dtype=torch.float32).eval(),
        AutoTokenizer.from_pretrained(folder),
    )
    encoder = ctxexp.from_transformers(model, tokenizer, name="planted")
    reference = pin(encoder, text=TEXT, occurrences=40, reruns=(Rerun(1),))
    seen = {number for one in encoder.tokenizer.encode_batch(TEXT) for number in one.ids}  # type: ignore[attr-defined]
    unseen = np.array(sorted({*range(model.config.vocab_size)} - seen))
    names = [name for name, _ in model.named_parameters() if not name.startswith("pooler")]

    def row(changed: Any) -> None:
        changed.embeddings.word_embeddings.weight[int(rng.choice(unseen))] += 0.01

    def number(changed: Any) -> None:
        flat = changed.get_parameter(str(rng.choice(names))).view(-1)
        flat[int(rng.integers(len(flat)))] += 0.001

    rows = []
    for label, change in {"an embedding row outside of the text": row, "one number of any tensor": number}.items():
        outcomes = []
        for _ in range(n):
            changed = copy.deepcopy(model)
            with torch.no_grad():
                change(changed)
            outcomes.append(check(reference, ctxexp.from_transformers(changed, tokenizer, name="planted")))
        rows.append(_plant_row(label, outcomes))
    outcomes = []
    for _ in range(n):
        settings, other = json.loads(tokenizer.backend_tokenizer.to_str()), copy.deepcopy(tokenizer)
        vocabulary = settings["model"]["vocab"]
        a, b = (tokenizer.convert_ids_to_tokens(int(i)) for i in rng.choice(unseen[unseen > 5], 2, replace=False))
        vocabulary[a], vocabulary[b] = vocabulary[b], vocabulary[a]
        other._tokenizer = Tokenizer.from_str(json.dumps(settings))
        outcomes.append(check(reference, ctxexp.from_transformers(model, other, name="planted")))
    return [*rows, _plant_row("two pieces swapped that the text hasn't", outcomes)]


def _plant_row(label: str, outcomes: list[Any]) -> str:
    told = sum(one.verdict == "moved" for one in outcomes)
    most = max(float((one.moves.by_layer / one.moves.tolerance).max()) for one in outcomes)
    return f"| {label} | {len(outcomes)} | {told} | {most:.2f} |"


def main(args: list[str]) -> None:
    given = dict(arg.split("=", 1) for arg in args)
    rng = np.random.default_rng(int(given.get("seed", 0)))
    models = ("bert", "gpt2", "elmo")
    each = -(-int(given.get("reruns", 1000)) // len(DTYPES) // len(models))
    lines = ["| | tries | exit 1 | largest move, in tolerances |", "|---|---|---|---|"]
    lines += plant_rows(int(given.get("plants", 100)), rng)
    print(*lines, sep="\n", flush=True)
    for model in models:
        rows = rerun_rows(model, each, rng)
        print(*rows, sep="\n", flush=True)
        lines += rows
    if "out" in given:
        write_marked(Path(given["out"]), "pins", "\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
