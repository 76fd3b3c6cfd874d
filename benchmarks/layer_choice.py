"""Coverage of the intervals of `ctxexp layer` and regret of its choice, in worlds whose truth is planted.

    python -m benchmarks.layer_choice [worlds]
    python -m benchmarks.layer_choice [worlds] --families [--out docs/how-to/choose-and-check-a-model.md] [--seed 0]
    STS=FOLDER python -m benchmarks.layer_choice [worlds] --loss [--out ...]

Ten layers, neighbouring ones alike, and the mean of the layers; scores of tasks are normal, or of Student's t with four
degrees of freedom. Tasks differ in difficulty by far more than layers do. Coverage counts worlds where the chosen layer
isn't the rival itself; a cell of fewer than 50 is left out. `plain` is the interval that doesn't know of the choice.
With --families tasks are alike by families (`rho`), and a cell has three shares, with families given, found by
correlation, and not known: of intervals that cover (against the last layer and the mean), of worlds without a
difference where a layer is called better than the last, and of worlds of a hump likewise; --out writes that table
between marks. With --loss it is how often the loss of the lowest layer that `loss=` takes lies within its interval, in
planted worlds, and of minilm on pairs drawn of STS-B and SICK-R, whose truth is that of all their pairs.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from ctxexp_compare.layer_choice import winner
from ctxexp_compare.layer_choice.choice import MEAN, Candidate, LayerChoice, ScoreTable, choose
from ctxexp_compare.light.pairs import cosines_of
from scipy.stats import t

from ctxexp.command import Experiment, configured, registry
from ctxexp.maths import resampled_spearman
from docs.numbers.marked import write_marked

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
FAMILIES = {
    "8 in 4": [2] * 4,
    "8 in 2": [4] * 2,
    "12 in 4": [3] * 4,
    "12: 6, 3, 2, 1": [6, 3, 2, 1],
    "32 in 5": [10, 9, 6, 4, 3],
}
WAYS = ("given", "correlation", "none")


def sample(
    truth: np.ndarray, tasks: int, heavy: bool, rng: np.random.Generator, sizes: Sequence[int] = (), rho: float = 0
) -> ScoreTable:
    """Scores of tasks in a world; of families of these sizes a share `rho` of each task's variance is the family's."""
    at = np.arange(LAYERS)
    root = np.linalg.cholesky(4 * np.exp(-np.abs(at[:, None] - at) / 3))
    z = rng.standard_t(4, (tasks, LAYERS)) / np.sqrt(2) if heavy else rng.standard_normal((tasks, LAYERS))
    number = np.repeat(np.arange(len(sizes)), sizes)
    if rho:
        z = np.sqrt(1 - rho) * z + np.sqrt(rho) * rng.standard_normal((len(sizes), LAYERS))[number]
    x = truth + z @ root.T + rng.normal(0, 10, (tasks, 1))
    x = np.c_[x, x.mean(axis=1) + rng.normal(0, 0.5, tasks)]
    candidates = (*map(Candidate, range(LAYERS)), Candidate(MEAN))
    return ScoreTable(
        "planted", tuple(map(str, range(tasks))), candidates, x, families=tuple(map(str, number.tolist()))
    )


def family_shares(
    sizes: Sequence[int], rho: float, n_worlds: int, rng: np.random.Generator
) -> dict[str, tuple[float, float, float]]:
    """By how families are known: the share of intervals that cover, and of layers called better than the last in worlds
    where none is and where one is."""
    covered: dict[str, list[bool]] = {way: [] for way in WAYS}
    better: dict[tuple[str, str], list[bool]] = {}
    for name in ("all alike", "a hump"):
        truth = WORLDS[name]
        values = np.append(truth, truth.mean())
        for world in range(n_worlds):
            table = sample(truth, sum(sizes), False, rng, sizes, rho)
            for way in WAYS:
                chosen = choose(table, families="auto" if way == "given" else way, seed=world)  # type: ignore[arg-type]
                covered[way] += _coverage(chosen, values)
                better.setdefault((way, name), []).append(chosen.gains["last"].verdict == "better")
    return {
        way: (
            float(np.mean(covered[way])),
            float(np.mean(better[way, "all alike"])),
            float(np.mean(better[way, "a hump"])),
        )
        for way in WAYS
    }


def _coverage(chosen: LayerChoice, values: np.ndarray) -> list[bool]:
    """Whether the intervals of the gains over the last layer and the mean hold the truth."""
    at = dict(zip(chosen.table.candidates, values.tolist(), strict=True))
    gains = [chosen.gains[name] for name in ("last", "mean") if chosen.gains[name].rival != chosen.best]
    return [one.estimate.low <= at[chosen.best] - at[one.rival] <= one.estimate.high for one in gains]


def family_table(n_worlds: int, seed: int) -> list[str]:
    """A row a way to be in families, of independent tasks and of tasks that are much alike; and what comes of it where
    these are taken as independent."""
    lines = ["| tasks | rho | families given | by correlation |", "|---" * 4 + "|"]
    alone = []
    for i, (name, sizes) in enumerate(FAMILIES.items()):
        for rho, j in ((0.0, 0), (0.7, 2)):
            shares = family_shares(sizes, rho, n_worlds, np.random.default_rng([seed, 2 + 3 * i + j]))
            given, found, none = (f"{covers:.2f}; {null:.0%}; {hump:.0%}" for covers, null, hump in shares.values())
            lines.append(f"| {name} | {rho:g} | {given} | {found} |")
            alone += [f"{none} ({name})"] * bool(rho)
            print(lines[-1], flush=True)
    return [*lines, "", f"With `families=none` and a rho of 0.7: {', '.join(alone)}."]


def loss_cell(tables: Iterable[tuple[ScoreTable, np.ndarray]], loss: float) -> tuple[str, list[tuple[float, float]]]:
    """How often a layer below the last is taken, of which share of the blocks; and, of enough such choices, how often
    the loss lies within its interval and is at most `loss`. `tables` have the truth of each layer."""
    cuts = []
    for seed, (table, truth) in enumerate(tables):
        cut = choose(table, loss=loss, seed=seed).cut
        assert cut is not None
        layer = int(cut.layer.layer)
        true = float(truth[-1] - truth[layer])
        cuts.append((layer / (len(truth) - 1), cut.low - 1e-9 <= true <= cut.high + 1e-9, true <= loss + 1e-9))
    share, covered, kept = np.array(cuts, np.float64).T
    below = share < 1
    blocks = f" ({share[below].mean():.2f})" if below.any() else ""
    held = [(float(covered[below].mean()), float(kept[below].mean()))] if below.sum() >= FEWEST else []
    return f"{below.mean():.0%}{blocks}", held


def real_tables(n_worlds: int, pairs: int, rng: np.random.Generator) -> Iterator[tuple[ScoreTable, np.ndarray]]:
    """Scores of minilm's layers on pairs drawn of STS-B's and SICK-R's, and those on all of them."""
    view = Experiment(configured("minilm")).encoder.sentence_encoder()
    assert view is not None
    tasks = []
    for name in ("STS-B", "SICK-R"):
        corpus = registry().find("dataset", "sts").factory(path=os.environ["STS"], tasks=[name])
        x = np.stack([one.layers[:, 0] for one in view.encode(corpus.sentences)], axis=1)
        ends = np.array([(pair.first, pair.second) for pair in corpus.pairs])
        cosines = [cosines_of(layer, *ends.T) for layer in x]
        tasks.append(np.array([*cosines, [pair.gold for pair in corpus.pairs]]))

    def scores(columns: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return 100 * resampled_spearman(list(columns), counts)[:, :-1, -1]

    truth = np.mean([scores(one, np.ones((1, one.shape[1])))[0] for one in tasks], axis=0)
    candidates = tuple(map(Candidate, range(len(truth))))
    for _ in range(n_worlds):
        drawn = [one[:, rng.integers(0, one.shape[1], pairs)] for one in tasks]
        counts = rng.multinomial(pairs, np.full(pairs, 1 / pairs), 200).astype(np.float64)
        own = np.stack([scores(one, np.ones((1, pairs)))[0] for one in drawn])
        covariance = np.stack([np.cov(scores(one, counts).T) for one in drawn])
        yield ScoreTable("minilm", ("STS-B", "SICK-R"), candidates, own, covariance), truth


def loss_table(n_worlds: int, seed: int) -> list[str]:
    """A row a planted world, a sentence on minilm, and what holds in all of them."""
    shapes = [(loss, tasks) for loss in (1, 2) for tasks in (8, 32)]
    head = ["world", *(f"`loss={loss}`, {tasks} tasks" for loss, tasks in shapes)]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    held = []
    for i, (name, truth) in enumerate(WORLDS.items()):
        cells = []
        for loss, tasks in shapes:
            rng = np.random.default_rng([seed, tasks, 12 * loss + 2 * i + tasks // 32 - 10])
            worlds = ((sample(truth, tasks, False, rng), truth) for _ in range(n_worlds))
            cell, of_cell = loss_cell(worlds, loss)
            cells.append(cell)
            held += of_cell
        lines.append("| " + " | ".join([name, *cells]) + " |")
        print(lines[-1], flush=True)
    real = [*real_tables(n_worlds, 1000, np.random.default_rng([seed, 1000]))]
    of_minilm = []
    for loss in (12, 13, 14, 15):  # its last block gives 11.6 points
        cell, of_cell = loss_cell(real, loss)
        of_minilm.append(f"`loss={loss}` {cell}")
        held += of_cell
    covered, kept = map(min, zip(*held, strict=True))
    return [
        *lines,
        "",
        f"minilm, 1,000 pairs of each task: {', '.join(of_minilm)}.",
        f"In cells of {FEWEST} such choices or more the loss lies within its interval in {covered:.3f} of them or "
        f"more, and is at most what was asked for in {kept:.3f}.",
    ]


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
                plain.append(abs(difference.mean() - true) <= t.ppf(0.975, tasks - 1) * error)
    cells = [f"{np.mean(of):.3f}" if len(of) >= FEWEST else "" for of in hits.values()]
    shape = "t4" if heavy else "normal"
    cells += [f"{np.mean(plain):.3f}", f"{np.mean(regret):.2f}", f"{np.mean(bounded):.3f}"]
    return [name, str(tasks), shape, *cells]


def _difference(table: ScoreTable, best: Candidate) -> np.ndarray:
    """(tasks,) the best candidate's score less that of the mean of the layers."""
    columns = [table.candidates.index(one) for one in (best, Candidate(MEAN))]
    return table.scores[:, columns[0]] - table.scores[:, columns[1]]


def main(args: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("worlds", type=int, nargs="?", default=500)
    parser.add_argument("--draws", type=int, default=1500, help="behind simultaneous quantiles")
    parser.add_argument("--families", action="store_true", help="the table of tasks in families")
    parser.add_argument("--loss", action="store_true", help="the table of layers that lose little")
    parser.add_argument("--seed", type=int, default=0, help="of the worlds of families")
    parser.add_argument("--out", type=Path, help="the page that has the marks of the table")
    options = parser.parse_args(args)
    winner.DRAWS = options.draws
    if options.families or options.loss:
        table = (family_table if options.families else loss_table)(options.worlds, options.seed)
        if options.out:
            write_marked(options.out, "families" if options.families else "loss", "\n".join(table))
        return
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
