"""Throughput of `engine=ray` with two workers beside `engine=local` with two processes and one, in one sitting.

Each encodes a short and a long part of one made-up text with bert-mini, by turns, a thread a process: the difference of
the two times is throughput, what is left of the short one's is the cost of starting.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported, here and in workers

import numpy as np
import ray

from ctxexp.command import Experiment, configured

SHARD = "engine.shard_tokens=20000"
ENGINES = {
    "local, 1 process": ["engine=local"],
    "local, 2 processes": ["engine=local", "engine.processes=2", SHARD],
    "ray, 2 workers": ["engine=ray", "engine.workers=2", SHARD],
}


def made_up(n: int) -> list[str]:
    """Distinct sentences of 5 to 40 words of letters."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("etaoinshrdlu"), k)) for k in rng.integers(2, 9, 5000)]
    return [" ".join(rng.choice(words, k)) for k in rng.integers(5, 41, n)]


def seconds(engine: list[str], text: list[str]) -> float:
    """Seconds that it takes to encode the text from nothing."""
    with tempfile.TemporaryDirectory() as folder:
        options = [*engine, "model.device=cpu", f"cache.folder={folder}"]
        experiment = Experiment(configured("bert", text, options))
        study = experiment.study
        began = time.perf_counter()
        study.space(experiment.vectors)
        return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sentences", type=int, default=12_000, help="of the long text (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=2, help="the least of so many counts (default: %(default)s)")
    options = parser.parse_args()
    long = made_up(options.sentences)
    texts = {"long": long, "short": long[: options.sentences // 4]}
    n_words = {name: sum(len(sentence.split()) for sentence in text) for name, text in texts.items()}
    began = time.perf_counter()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    print(f"Ray's own cluster on this machine, once: {time.perf_counter() - began:.1f} s")
    took: dict[tuple[str, str], float] = {}
    for _ in range(options.turns):
        for name, engine in ENGINES.items():
            for length, text in texts.items():
                took[name, length] = min(took.get((name, length), np.inf), seconds(engine, text))
    words = n_words["long"] - n_words["short"]
    base = words / (took["local, 2 processes", "long"] - took["local, 2 processes", "short"])
    print(f"{n_words['long']:,} and {n_words['short']:,} words; least of {options.turns}")
    for name in ENGINES:
        rate = words / (took[name, "long"] - took[name, "short"])
        start = took[name, "short"] - n_words["short"] / rate
        print(f"{name:20} {rate:8,.0f} words/s  {rate / base:5.2f} of local with 2   start {start:5.1f} s   "
              f"long text {took[name, 'long']:6.1f} s")  # fmt: skip


if __name__ == "__main__":
    main()
