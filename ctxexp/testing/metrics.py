"""Laws of metrics, on random groups of rows, or on sub-sets of sentence pairs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ctxexp.errors import near
from ctxexp.groups import Block, Group, Pairs
from ctxexp.measuring.record import checked_statistics, contract_violation
from ctxexp.metrics import Estimate, GroupMean, Metric, Output, Over
from ctxexp.testing.report import Breach, Law, Report, report_on, require

DIM = 12
REPLICATES = 30
SMALL_N = 0.1  # of the score of noise, or of 1: a larger change with the number of rows is said
INVARIANCES = {  # with the causes of what breaks them
    "rotation": "the value depends on the axes. Eigenvectors are the columns of numpy's eigh and the rows of svd's "
    "third result; are rows taken for columns?",
    "scale": "one factor on all rows must not matter; is a ratio's denominator of its numerator's power?",
    "row_scale": "a row's length must not matter; are rows at norm 1 before anything is summed?",
    "shift": "adding one vector to all rows must not matter. Is the mean taken out in one place and not in the other, "
    "say of the numerator and not of the total?",
    "permutation": "the order of a group's rows must not matter",
}

Make = Callable[[], Metric]


def check_metric(make: Make, *, name: str = "") -> Report:
    """The laws of `ctxexp.Metric`, checked on random groups (or pairs); raises ConformanceError naming each that is
    broken.

    `make` builds one instance per layer.
    """
    report = report_on("metric", make, name).check(make, interface)
    metric = make()
    if type(metric).bind_text is not Metric.bind_text:
        report.notes.append("it meets a text, which random groups have none of: its interface alone was checked")
        return report
    trial = Trial(make, _pairs() if metric.over == "pair" else _groups(metric.over))
    report.check(trial, statistics)
    every = order_of_groups, lent_memory, float32_agrees_with_float64, outputs
    if metric.over == "pair":
        return report.check(trial, *every, seeds, intervals, degenerate_pairs)
    more: list[Law[Trial]] = [a_share_is_a_share] if metric.reading.unit == "share" else []
    more += [noise_at_small_n] if metric.over in ("word", "sense", "sentence") else []
    return report.check(trial, *every, a_block_equals_its_groups, invariances, *more, degenerate_groups)


@dataclass(frozen=True)
class Trial:
    """A metric's factory, and groups to try its metrics with."""

    make: Make
    groups: Sequence[Group]

    @property
    def over(self) -> Over:
        return self.make().over

    def new_metric(self, groups: Sequence[Group], replicates: int = 0) -> Metric:
        """A new metric, updated with these groups."""
        metric = self.make()
        metric.resampling = np.random.default_rng(1), replicates
        for group in groups:
            metric.update(group)
        return metric

    def compute(self, groups: Sequence[Group], replicates: int = 0) -> dict[str, float]:
        """The statistics of a new metric on these groups."""
        return numbers(self.new_metric(groups, replicates).compute())

    def compute_changed(self, change: Callable[[np.ndarray], np.ndarray]) -> dict[str, float]:
        """All that a new metric says of the groups with changed rows, its chance level on the largest included."""
        groups = [replace(group, x=change(group.x)) for group in self.groups]
        level = np.nan if self.over == "pair" else self.make().baseline_value(max((g.x for g in groups), key=len))
        return {**self.compute(groups), "baseline_value()": level}


def require_equal(
    got: Mapping[str, float], expected: Mapping[str, float], what: str, hint: str, *, tolerance: float = 1e-9
) -> None:
    """Raise Breach, `{what} raw: 0.5 instead of 0.25: {hint}`, unless statistics agree, NaN equal to NaN."""
    require(got.keys() == expected.keys(), f"{what} statistics {sorted(got)} instead of {sorted(expected)}: {hint}")
    for key, value in expected.items():
        near = np.isclose(got[key], value, rtol=tolerance, atol=tolerance, equal_nan=True)
        require(near, f"{what} {key}: {got[key]:.6g} instead of {value:.6g}: {hint}")


def numbers(found: Mapping[str, float | Estimate]) -> dict[str, float]:
    """A metric's statistics as numbers alone: of an estimate itself, `_ci_low` and `_ci_high`."""
    flat: dict[str, float] = {}
    for name, value in found.items():
        if isinstance(value, Estimate):
            flat |= {name: value.value, f"{name}_ci_low": value.low, f"{name}_ci_high": value.high}
        else:
            flat[name] = value
    return flat


def interface(make: Make) -> str | None:
    metric = make()
    if wrong := contract_violation(metric):
        raise Breach(wrong)
    declared: object = metric.invariances
    if not isinstance(declared, Set):
        raise Breach(f"invariances={declared!r}: expected a set of names")
    if unknown := min(declared - INVARIANCES.keys(), default=""):
        raise Breach(f"invariances: no such invariance {unknown!r}{near(unknown, INVARIANCES)}")
    own_level = metric.baselines != Metric.baselines or type(metric).baseline_value is not Metric.baseline_value
    if metric.over == "pair" and own_level:
        return "baselines and baseline_value() are without effect over pairs: compute() gives `baseline` and `adjusted`"
    return None


def _groups(over: Over) -> list[Group]:
    """Groups of the kind, float64, with a common direction, columns of unlike spread and rows of unlike length."""
    rng = np.random.default_rng(0)
    sizes = {"occurrence": [1] * 30, "corpus": [80], "sample": [40] * 5}.get(over, [2, 2, 3, 3, 3, 4, 5, 7, 11, 20])
    spread, common = np.linspace(0.3, 2.0, DIM), rng.normal(size=DIM)
    rows = ((rng.normal(size=(n, DIM)) * spread + common) * rng.uniform(0.5, 2.0, (n, 1)) for n in sizes)
    return [_group(over, i, x) for i, x in enumerate(rows)]


def _group(over: Over, i: int, x: np.ndarray) -> Group:
    """The rows as a group of the kind; `i` orders them."""
    labels = tuple("ab"[j % 2] for j in range(len(x))) if over == "sense" else ()
    key: object = i
    if over in ("word", "sense"):
        key = f"word{i:05d}"
    elif over == "corpus":
        key = "corpus"
    return Group(key, x, labels)


def _pairs() -> list[Group]:
    """Three sub-sets of two tasks; similar vectors and texts where gold is 1, else 0."""
    rng, parts = np.random.default_rng(0), []
    for subset, n in (("one/a", 23), ("one/b", 40), ("two", 9)):
        gold = (np.arange(n) % 3 == 0).astype(np.float64)
        x = rng.normal(size=(n, DIM)).astype(np.float32)
        y = (x + rng.normal(size=(n, DIM)) * (2 - gold)[:, None]).astype(np.float32)
        texts = [("some words here", "some words" if g else f"others {i}") for i, g in enumerate(gold)]
        parts.append(Group(subset, np.stack([x, y], axis=1).astype(np.float64), pairs=Pairs(gold, texts)))
    return parts


def statistics(trial: Trial) -> None:
    metric = trial.new_metric(trial.groups, REPLICATES)
    found = checked_statistics("of the kit", metric.compute())
    require(np.isfinite([*numbers(found).values()]).any(), "every statistic of ordinary groups is NaN or infinite")
    if metric.over == "pair":
        main = metric.reading.main
        given = not main or any(key.rsplit("/", 1)[-1] == main for key in found)
        require(given, f"main is {main!r}, which compute() doesn't give: {', '.join(found)}")
    else:
        before = trial.make().compute().keys()
        require(before == found.keys(), "compute() before any group has other statistics than after; undefined is NaN")


def order_of_groups(trial: Trial) -> None:
    expected = trial.compute(trial.groups)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(trial.groups))
        got = trial.compute([trial.groups[i] for i in order])
        require_equal(got, expected, "groups in another order give", "their order must not matter")


def a_block_equals_its_groups(trial: Trial) -> None:
    by_size: dict[int, list[Group]] = {}
    for group in trial.groups:
        by_size.setdefault(len(group.x), []).append(group)
    blocks = trial.make()
    for same in by_size.values():
        x, labels = np.stack([group.x for group in same]), [group.labels for group in same]
        blocks.update_block(Block([group.key for group in same], x, labels=labels))
    got, expected = numbers(blocks.compute()), trial.compute(trial.groups)
    hint = "compared with one update a group; does score reduce over the last two axes only?"
    require_equal(got, expected, "a block gives", hint, tolerance=1e-6)


def lent_memory(trial: Trial) -> None:
    metric = trial.new_metric([])
    for group in trial.groups:
        x, pairs = group.x.copy(), group.pairs and Pairs(group.pairs.gold.copy(), list(group.pairs.texts))
        metric.update(replace(group, x=x, pairs=pairs))
        require(np.array_equal(x, group.x), "update changes the rows that it is lent; work on a copy")
        x[...] = 1e6
        if pairs:
            pairs.gold[...] = 0
    hint = "x is only lent for the call; copy what must be kept"
    got, expected = numbers(metric.compute()), trial.compute(trial.groups)
    require_equal(got, expected, "once the lent rows are overwritten it gives", hint)


def float32_agrees_with_float64(trial: Trial) -> None:
    got, expected = trial.compute_changed(lambda x: x.astype(np.float32)), trial.compute_changed(lambda x: x)
    require_equal(got, expected, "float32 rows give", "of float64 rows; sum in float64", tolerance=1e-4)


def invariances(trial: Trial) -> None:
    rng = np.random.default_rng(5)
    rotation, shift = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0], 3 * rng.normal(size=DIM)
    changes: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "rotation": lambda x: x @ rotation,
        "scale": lambda x: 3.7 * x,
        "row_scale": lambda x: x * rng.uniform(0.2, 5.0, (len(x), 1)),
        "shift": lambda x: x + shift,
        "permutation": lambda x: rng.permutation(x, axis=0),
    }
    expected = trial.compute_changed(lambda x: x)
    for kind in sorted(trial.make().invariances):
        what = f"it declares {kind}, but gives"
        require_equal(trial.compute_changed(changes[kind]), expected, what, INVARIANCES[kind], tolerance=1e-6)


def a_share_is_a_share(trial: Trial) -> None:
    """In [0, 1], all of it on a line through the origin, the chance level by the same formula."""
    rng = np.random.default_rng(7)
    hint = "are numerator, total and chance level of one matrix, centred in all places or in none (and by one ddof)?"
    for n in sorted({max(n, trial.make().min_rows) for n in (2, 3, 10, 40)}):  # smaller groups have no score
        line = np.outer(rng.uniform(1, 5, n), rng.normal(size=DIM))
        at_random = rng.normal(size=(n, DIM)) + rng.normal(size=DIM)
        for what, x in (("on one line", line), ("at random", at_random)):
            metric = trial.new_metric([_group(trial.over, 0, x)])
            raw, null = numbers(metric.compute()).get("raw", np.nan), metric.baseline_value(x)
            share = f"{n} rows {what} through the origin have the share {raw:.6g}"
            require(x is not line or np.isclose(raw, 1, atol=1e-6), f"{share} instead of 1: {hint}")
            require(-1e-9 <= raw <= 1 + 1e-9, f"{share}, outside 0 to 1: {hint}")
            require(np.isclose(raw, null, atol=1e-6), f"{share}, but as a chance level {null:.6g}: {hint}")


def noise_at_small_n(trial: Trial) -> str | None:
    """A note on the score of random rows by their number: one that depends on it needs a baseline of each group's own
    size."""
    rng, raw = np.random.default_rng(9), dict[int, float]()
    for n in (2, 3, 5, 10, 40):
        groups = [_group(trial.over, i, rng.normal(size=(n, DIM))) for i in range(50)]
        raw[n] = trial.compute(groups).get("raw", np.nan)
    scores = {n: score for n, score in raw.items() if np.isfinite(score)}
    if not scores:
        return None
    text = "noise scores " + ", ".join(f"{score:.2f} at n={n}" for n, score in scores.items())
    is_flat = np.ptp([*scores.values()]) <= SMALL_N * max(np.abs([*scores.values()]).max(), 1)
    if is_flat or "size_matched" in trial.make().baselines:
        return text
    return f"{text}: it depends on n; baselines = ('size_matched',) compares each group with random ones of its size"


def degenerate_groups(trial: Trial) -> None:
    """Nothing raises, and a group without a value is NaN and counted, not 0, and doesn't spoil the mean."""
    x, over, good = trial.groups[0].x, trial.over, trial.compute(trial.groups)
    nan, infinite = x.copy(), x.copy()
    nan[0, 0], infinite[-1, -1] = np.nan, np.inf
    cases = {
        "one row": x[:1],
        "rows of zeros": np.zeros((4, DIM)),
        "identical rows": np.repeat(x[:1], 4, axis=0),
        "a NaN": nan,
        "an infinity": infinite,
    }
    for what, rows in cases.items():
        group = _group(over, 10_000, rows[:1] if over == "occurrence" else rows)
        try:
            for dtype in (np.float32, np.float64):
                cast = replace(group, x=group.x.astype(dtype))
                alone, null = trial.compute([cast]), trial.make().baseline_value(cast.x)
                together = {} if over == "corpus" else trial.compute([*trial.groups, cast])
        except Exception as error:
            raise Breach(f"a group with {what} raises {type(error).__name__}: {error}; undefined is NaN") from error
        level = isinstance(null, float | np.floating)
        require(level, f"baseline_value() of a group with {what} is {null!r}; expected a number or NaN")
        same = alone.keys() == good.keys()
        require(same, f"a group with {what} gives other statistics: {sorted(alone)} instead of {sorted(good)}")
        if what in ("a NaN", "an infinity") and not isinstance(trial.make(), GroupMean):
            continue
        raw = alone.get("raw", np.nan)
        number = what == "a NaN" and np.isfinite(raw)
        require(not number, f"a group with {what} has the value {raw:.6g}; undefined is NaN, never a number")
        if alone.get("undefined") and "raw" in alone:
            moved = not np.isclose(together.get("raw", np.nan), good["raw"], equal_nan=True)
            require(not moved, f"a group with {what} is undefined, yet moves the mean: {together} instead of {good}")


def outputs(trial: Trial) -> None:
    metric = trial.new_metric(trial.groups, REPLICATES)
    metric.compute()
    found: object = metric.outputs()
    if not isinstance(found, Mapping):
        raise Breach(f"outputs() gave {found!r:.80}; expected outputs by name")
    for name, output in found.items():
        if isinstance(output, Output):
            with tempfile.TemporaryDirectory() as folder:
                output.write(Path(folder))
                output.write_together({"layer_00": output}, Path(folder), n_layers=1, title="check")
        elif not isinstance(output, list) or not all(isinstance(row, dict) and "layer" not in row for row in output):
            raise Breach(f"outputs() gave {name!r}: {output!r:.80}; expected an Output, or dicts without a key `layer`")


def seeds(trial: Trial) -> None:
    first, again = trial.compute(trial.groups, REPLICATES), trial.compute(trial.groups, REPLICATES)
    require_equal(again, first, "the same generator gives", "draw from `rng` alone")


def intervals(trial: Trial) -> None:
    without, resampled = trial.compute(trial.groups), trial.compute(trial.groups, REPLICATES)
    for key, value in without.items():
        if key.endswith(("_ci_low", "_ci_high")):
            require(not np.isfinite(value), f"{key} is {value:.6g} without replicates; undefined is NaN")
            resampled[key] = value
    require_equal(resampled, without, "with replicates it gives", "beside intervals they must not matter")


def degenerate_pairs(trial: Trial) -> None:
    """A value or NaN, never an exception."""
    first, *others = trial.groups
    assert first.pairs is not None
    half_zero = first.x.copy()
    half_zero[:, 0] = 0
    cases = {
        "zero vectors": replace(first, x=half_zero),
        "equal vectors": replace(first, x=np.ones_like(first.x)),
        "one pair": replace(first, x=first.x[:1], pairs=Pairs(first.pairs.gold[:1], list(first.pairs.texts)[:1])),
        "one gold value": replace(first, pairs=Pairs(0 * first.pairs.gold, first.pairs.texts)),
    }
    for what, group in cases.items():
        for some in ([group], [group, *others]):
            try:
                trial.compute(some, REPLICATES)
            except Exception as error:
                raise Breach(f"{what}: it raised {type(error).__name__}: {error}; undefined is NaN") from error
