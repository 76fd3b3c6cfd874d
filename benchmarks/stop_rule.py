"""How soon a rule stops a training that collapses, and how often a healthy one: `python -m benchmarks.stop_rule TEXT`.

Trainings of `ctxexp train size=quick text=TEXT`, smaller and shorter, of GPT-2 and BERT by turns, a seed each. In those
that collapse all dimensions of the last layer but two fade, from one step on, to a tenth at each measurement.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import ctxexp_lab
import numpy as np
import torch
from ctxexp_lab import LayerCurves
from ctxexp_lab.training.train import TrainingRun
from hydra import compose, initialize_config_dir
from transformers import AutoTokenizer

from benchmarks.bench import report

SMALL = [
    "model.shape={vocabulary: 1024, layers: 2, width: 32, inner: 128}", "model.rows=16", "model.window=32",
    "model.long=64", "words=200000", "tracking=null", "keep=null", "log_every=1000", "held_out_every=1000",
    "save_every=10000", "threads=1", "held_out_limit=20",
]  # fmt: skip


def watch(seed: int, collapse: int | None, args: argparse.Namespace) -> LayerCurves:
    """The curves of a training, which collapses from the step `collapse` on."""
    conf = str(Path(ctxexp_lab.__file__).parent / "training" / "conf")
    with TemporaryDirectory() as folder, initialize_config_dir(conf, version_base="1.3"):
        own = [f"model={('gpt2', 'bert')[seed % 2]}", "size=quick", f"text={args.text}", f"seed={seed}", *SMALL]
        own += [f"cache={args.cache}", f"folder={folder}/run", f"steps={args.steps}"]
        cfg = compose("train", overrides=own)
        run = TrainingRun(cfg)
        run.learner.export(Path(folder) / "tokenizer")
        tokenizer = AutoTokenizer.from_pretrained(Path(folder) / "tokenizer")
        curves = LayerCurves(every=args.every, stop_when=args.rule, tokenizer=tokenizer)
        for stop in sorted({*range(0, args.steps + 1, args.every), collapse or 0}):
            cfg.stop_after = stop
            run.train()
            if collapse and stop >= collapse:
                fade(run.learner.base)
            curves.step(run.learner.network, stop)
            if curves.should_stop:
                break
    return curves


@torch.no_grad()
def fade(network: torch.nn.Module) -> None:
    """Scale all dimensions that the last norm gives but two down to a tenth."""
    *_, norm = (module for module in network.modules() if isinstance(module, torch.nn.LayerNorm))
    for weights in norm.parameters():
        weights[2:] *= 0.1


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", help="folder of *.txt.xz, as of ctxexp train")
    parser.add_argument("--runs", type=int, default=100, help="healthy ones; a tenth as many collapse")
    parser.add_argument("--steps", type=int, default=256)
    parser.add_argument("--every", type=int, default=25)
    parser.add_argument("--rule", default="effective_rank < 3 or contextuality > .9 after step 100")
    args = parser.parse_args(words)
    torch.set_num_threads(1)
    with TemporaryDirectory() as args.cache:
        began, stops = time.perf_counter(), 0
        for seed in range(args.runs):
            curves = watch(seed, None, args)
            stops += curves.should_stop
            if (seed + 1) % 10 == 0 or seed + 1 == args.runs:
                took = f"{time.perf_counter() - began:.0f} s"
                report(f"healthy runs stopped by {args.rule!r}", f"{stops} of {seed + 1}", took)
        collapse, delays = args.steps // 2 + 1, []
        for seed in range(max(2, args.runs // 10)):
            curves = watch(seed, collapse, args)
            delays.append(list(curves.results)[-1] - collapse if curves.should_stop else np.inf)
        report("steps from a planted collapse to the stop, of each run", " ".join(f"{one:g}" for one in sorted(delays)),
               f"measured every {args.every} steps")  # fmt: skip


if __name__ == "__main__":
    main()
