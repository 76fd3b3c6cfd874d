"""Throughput of `engine=ray` with two workers beside `engine=local` with two processes and one, in one sitting.

Each encodes a short and a long part of one made-up text with bert-mini, by turns, a thread a process: the difference of
the two times is throughput, what is left of the short one's is the cost of starting.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported, here and in workers

import numpy as np
import ray
from ctxexp_scale.ray.engine import RayEngine

from ctxexp import Corpus, Encoder, Engine
from ctxexp.engines import Local
from ctxexp.models.huggingface import bert
from ctxexp.vectors.encode import open_store
from ctxexp.vectors.encoding import EncodingWorkers

SHARD_TOKENS = 20_000


def made_up(n: int) -> Corpus:
    """Distinct sentences of 5 to 40 words of letters."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("etaoinshrdlu"), k)) for k in rng.integers(2, 9, 5000)]
    return Corpus.of("made-up", [list(rng.choice(words, k)) for k in rng.integers(5, 41, n)])


def model() -> Encoder:
    """The encoder of every worker."""
    return bert(weights="mini", device="cpu", linear="plain")


def seconds(engine: Engine, text: Corpus) -> float:
    """Seconds that it takes to encode the text from nothing."""
    encoder = model()
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        open_store(text, encoder, cache=Path(folder), workers=EncodingWorkers(engine, model))
        return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sentences", type=int, default=12_000, help="of the long text (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=2, help="the least of so many counts (default: %(default)s)")
    options = parser.parse_args()
    long = made_up(options.sentences)
    short = Corpus("short", long.sentences[: options.sentences // 4])
    engines: dict[str, Engine] = {
        "local, 1 process": Local(),
        "local, 2 processes": Local(processes=2, shard_tokens=SHARD_TOKENS),
        "ray, 2 workers": RayEngine(workers=2, shard_tokens=SHARD_TOKENS),
    }
    began = time.perf_counter()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    print(f"Ray's own cluster on this machine, once: {time.perf_counter() - began:.1f} s")
    took: dict[tuple[str, str], float] = {}
    for _ in range(options.turns):
        for name, engine in engines.items():
            for text in (short, long):
                key = name, text.name
                took[key] = min(took.get(key, np.inf), seconds(engine, text))
    words = long.n_words - short.n_words
    base = words / (took["local, 2 processes", "made-up"] - took["local, 2 processes", "short"])
    print(f"{long.n_words:,} and {short.n_words:,} words; least of {options.turns}")
    for name in engines:
        rate = words / (took[name, "made-up"] - took[name, "short"])
        start = took[name, "short"] - short.n_words / rate
        print(f"{name:20} {rate:8,.0f} words/s  {rate / base:5.2f} of local with 2   start {start:5.1f} s   "
              f"long text {took[name, 'made-up']:6.1f} s")  # fmt: skip


if __name__ == "__main__":
    main()
