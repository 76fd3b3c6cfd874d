"""The flow's speed on one thread, as ratios to what it can't do without and to what a plain loop would take.

`python benchmarks/flow.py` fits `transform=flow` with its defaults (2 levels, depth 3, width
32, batches of 32) on made-up rows and prints rows/s, and per training step the least of alternating rounds over: the
bare matrix products of the step, and training row by row.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from ctxexp_measures.calibration.flow.network import AdditiveFlow, likelihood_steps
from ctxexp_measures.calibration.flow.transform import Flow


def made(dim: int) -> AdditiveFlow:
    return AdditiveFlow(dim, levels=2, depth=3, width=32, generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def products(flow: AdditiveFlow, batches: list[torch.Tensor]) -> Iterator[float]:
    """The step's matrix products, forwards and backwards, and nothing else."""
    for batch in batches:
        for step in flow.steps:
            kept = batch[:, : step.same]
            first = kept @ step.w1
            second = first @ step.w2
            shift = second @ step.w3
            _ = shift @ step.w3.T, second.T @ shift, second @ step.w2.T, first.T @ second, first @ step.w1.T
            _ = kept.T @ first
        yield 0.0


def seconds_a_step(run: Callable[[], Iterator[float]]) -> float:
    """The lower quartile over steps: neighbours' load only adds."""
    times, before = [], time.perf_counter()
    for _ in run():
        now = time.perf_counter()
        times.append(now - before)
        before = now
    return statistics.quantiles(times[2:], n=4)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dims", type=int, nargs="+", default=[192, 384, 768])
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=4)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print("columns   fit rows/s   apply rows/s   step / products   row by row / batch of 32")
    for dim in asked.dims:
        x = np.random.default_rng(0).normal(size=(32 * asked.steps, dim)).astype(np.float32)
        batches = list(torch.from_numpy(x).split(32))
        rows = list(torch.from_numpy(x[: 2 * asked.steps]).split(1))
        runs: dict[str, Callable[[], Iterator[float]]] = {
            "ours": lambda dim=dim, batches=batches: likelihood_steps(made(dim), batches, rate=1e-3),  # type: ignore[misc]
            "products": lambda dim=dim, batches=batches: products(made(dim), batches),  # type: ignore[misc]
            "rows": lambda dim=dim, rows=rows: likelihood_steps(made(dim), rows, rate=1e-3),  # type: ignore[misc]
        }
        rounds = [{name: seconds_a_step(run) for name, run in runs.items()} for _ in range(asked.rounds)]
        least = {name: min(r[name] for r in rounds) for name in runs}
        fitted = Flow(device="cpu", epochs=1).fit(x)
        applied = []
        for _ in range(asked.rounds):
            before = time.perf_counter()
            fitted.apply(x)
            applied.append(len(x) / (time.perf_counter() - before))
        print(
            f"{dim:7d} {32 / least['ours']:12,.0f} {max(applied):14,.0f} {least['ours'] / least['products']:17.1f} "
            f"{32 * least['rows'] / least['ours']:20.1f}"
        )


if __name__ == "__main__":
    main()
