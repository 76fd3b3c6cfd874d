"""Coverage of the intervals of `ctxexp layer` and regret of its choice, in worlds whose truth is planted.

    python benchmarks/layer_choice.py [worlds]

Ten layers, neighbouring ones alike, and the mean of the layers; scores of tasks are normal, or of Student's t with four
degrees of freedom. Tasks differ in difficulty by far more than layers do. Coverage counts worlds where the chosen layer
isn't the rival itself; a cell of fewer than 50 is left out. `plain` is the interval that doesn't know of the choice.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from ctxexp_compare.layer_choice import choice
from ctxexp_compare.layer_choice.choice import MEAN, Candidate, ScoreTable, choose

LAYERS, FEWEST = 10, 50
DEPTH = np.linspace(0, 1, LAYERS)
WORLDS = {
    "all alike": np.zeros(LAYERS),
    "a hump": -8 * (DEPTH - 0.6) ** 2,
    "one good layer": np.where(np.arange(LAYERS) == 5, 3.0, 0.0),
    "rising to the last": 3 * DEPTH,
    "a plateau": np.where(DEPTH < 0.3, -3.0, 0.0),
}
RIVALS = ("last", "ends", "mean")


def sample(truth: np.ndarray, tasks: int, heavy: bool, rng: np.random.Generator) -> ScoreTable:
    """Scores of tasks in a world."""
    at = np.arange(LAYERS)
    root = np.linalg.cholesky(4 * np.exp(-np.abs(at[:, None] - at) / 3))
    z = rng.standard_t(4, (tasks, LAYERS)) / np.sqrt(2) if heavy else rng.standard_normal((tasks, LAYERS))
    x = truth + z @ root.T + rng.normal(0, 10, (tasks, 1))
    x = np.c_[x, x.mean(axis=1) + rng.normal(0, 0.5, tasks)]
    candidates = (*map(Candidate, range(LAYERS)), Candidate(MEAN))
    return ScoreTable("planted", tuple(map(str, range(tasks))), candidates, x)


def row(name: str, tasks: int, heavy: bool, n_worlds: int) -> list[str]:
    """Coverage and regret in one kind of world."""
    truth = WORLDS[name]
    values = np.append(truth, truth.mean())
    rng = np.random.default_rng([tasks, heavy, list(WORLDS).index(name)])
    hits: dict[str, list[bool]] = {rival: [] for rival in RIVALS}
    plain: list[bool] = []
    regret, bounded = [], []
    for world in range(n_worlds):
        chosen = choose(sample(truth, tasks, heavy, rng), seed=world)
        at = dict(zip(chosen.table.candidates, values.tolist(), strict=True))
        regret.append(truth.max() - at[chosen.best])
        bounded.append(regret[-1] <= chosen.regret + 1e-9)
        for rival in RIVALS:
            gain = chosen.gains[rival]
            if gain.rival == chosen.best:
                continue
            true = at[chosen.best] - at[gain.rival]
            hits[rival].append(gain.estimate.low <= true <= gain.estimate.high)
            if rival == "mean":
                difference = _difference(chosen.table, chosen.best)
                error = difference.std(ddof=1) / np.sqrt(tasks)
                plain.append(abs(difference.mean() - true) <= winners_quantile(tasks) * error)
    cells = [f"{np.mean(of):.3f}" if len(of) >= FEWEST else "" for of in hits.values()]
    shape = "t4" if heavy else "normal"
    cells += [f"{np.mean(plain):.3f}", f"{np.mean(regret):.2f}", f"{np.mean(bounded):.3f}"]
    return [name, str(tasks), shape, *cells]


def _difference(table: ScoreTable, best: Candidate) -> np.ndarray:
    """(tasks,) the best candidate's score less that of the mean of the layers."""
    columns = [table.candidates.index(one) for one in (best, Candidate(MEAN))]
    result: np.ndarray = table.scores[:, columns[0]] - table.scores[:, columns[1]]
    return result


def winners_quantile(n: int) -> float:
    """Student's 97.5% quantile over n tasks."""
    from scipy.stats import t

    return float(t.ppf(0.975, n - 1))


def main(args: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("worlds", type=int, nargs="?", default=500)
    parser.add_argument("--draws", type=int, default=1500, help="behind simultaneous quantiles")
    options = parser.parse_args(args)
    choice.DRAWS = options.draws
    head = ["world", "tasks", "scores", *(f"against {rival}" for rival in RIVALS), "plain, against mean"]
    head += ["mean regret", "regret within its bound"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name in WORLDS:
        for tasks in (8, 16, 32):
            for heavy in (False, True):
                lines.append("| " + " | ".join(row(name, tasks, heavy, options.worlds)) + " |")
                print(lines[-1], flush=True)


if __name__ == "__main__":
    main()
