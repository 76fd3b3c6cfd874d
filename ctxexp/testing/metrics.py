"""Laws of metrics: order of groups, blocks, borrowed memory, declared invariances, degenerate groups; of those over
sentence pairs: order of sub-sets, borrowed memory, seeds, intervals, odd vectors.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from ctxexp.errors import near
from ctxexp.groups import Block, Group, Pairs
from ctxexp.maths.statistics import aggregate
from ctxexp.maths.sums import Batch, SumForm, Sums
from ctxexp.measuring import lacking
from ctxexp.metrics import GroupMean, Metric, Over
from ctxexp.testing.report import (
    Breach,
    Report,
    check_outputs,
    check_statistics,
    difference,
    equal,
    numbers,
    subject_label,
    updated_metric,
)

DIM = 12
INVARIANCES = ("rotation", "scale", "row_scale", "shift", "permutation")
PROFILE = (2, 3, 5, 10, 20, 50)  # rows of the groups of the bias profile

Make = Callable[[], Metric]


def check_metric(make: Make, *, name: str = "") -> Report:
    """The laws of `ctxexp.Metric`, checked on random groups (or pairs); raises ConformanceError naming each that is
    broken.

    `make` builds one instance per layer. The report's notes hold the score that groups of few rows of pure noise get:
    the bias of small n.

    Example:
        >>> from ctxexp.command import registry
        >>> check_metric(registry().find("metric", "word_norm").factory).failures
        {}
    """
    report = Report(name or subject_label("metric", make))
    with report.law("interface"):
        _interface(make)
    if report.failures:
        return report.conclude()
    prototype = make()
    if type(prototype).bind_text is not Metric.bind_text:
        report.notes.append("it meets a text, which random groups have none of: its interface alone was checked")
        return report.conclude()
    if prototype.over == "pair":
        return pair_laws(make, report)
    groups = _groups(prototype.over)
    with report.law("statistics"):
        _statistics(make, groups)
    if report.failures:
        return report.conclude()
    for law, check in (
        ("order of groups", _order),
        ("a block equals its groups", _blocks),
        ("lent memory", _memory),
        ("float32 agrees with float64", _precision),
    ):
        with report.law(law):
            check(make, groups)
    for kind in INVARIANCES:
        if kind in prototype.invariances:
            with report.law(f"invariance: {kind}"):
                _invariance(make, groups, kind)
    if prototype.reading.unit == "share":
        with report.law("a share is a share"):
            _share(make)
    with report.law("degenerate groups"):
        _degenerate(make, groups)
    with report.law("one pass"):
        _sums(make)
    with report.law("outputs"), tempfile.TemporaryDirectory() as folder:
        check_outputs(updated_metric(make, groups), Path(folder))
    invariances = [k for k in INVARIANCES if k not in prototype.invariances and _holds(make, groups, k)]
    if invariances and not report.failures:
        report.notes.append(f"not declared, but it held here: invariance to {', '.join(invariances)}")
    if isinstance(prototype, GroupMean):
        report.notes.append(_profile(make))
    return report.conclude()


def _interface(make: Make) -> None:
    metric = make()
    if wrong := lacking(metric):
        raise Breach(wrong)
    declared: object = metric.invariances
    if not isinstance(declared, Set):
        raise Breach(f"invariances={declared!r}: expected a set of names")
    if unknown := min(declared - set(INVARIANCES), default=""):
        raise Breach(f"invariances: no such invariance {unknown!r}{near(unknown, INVARIANCES)}")


def _groups(over: Over, *, seed: int = 0) -> list[Group]:
    """Groups of the kind, float64, with a common direction, columns of unlike spread and rows of unlike length."""
    rng = np.random.default_rng(seed)
    sizes = {"occurrence": [1] * 30, "corpus": [80], "sample": [40] * 5}.get(over, [2, 2, 3, 3, 3, 4, 5, 7, 11, 20])
    spread, common = np.linspace(0.3, 2.0, DIM), rng.normal(size=DIM)
    groups: list[Group] = []
    for i, n in enumerate(sizes):
        x = (rng.normal(size=(n, DIM)) * spread + common) * rng.uniform(0.5, 2.0, (n, 1))
        groups.append(_group(over, i, x))
    return groups


def _group(over: Over, i: int, x: np.ndarray) -> Group:
    """The rows as a group of the kind; `i` orders them."""
    labels = tuple("ab"[j % 2] for j in range(len(x))) if over == "sense" else ()
    return Group(f"word{i:05d}" if over in ("word", "sense") else "corpus" if over == "corpus" else i, x, labels)


def _values(make: Make, groups: Sequence[Group]) -> dict[str, float]:
    """All that the metric says of these groups, its chance level on the largest included."""
    metric = updated_metric(make, groups)
    return {
        **numbers(metric.compute()),
        "baseline_value()": metric.baseline_value(max((group.x for group in groups), key=len)),
    }


def _statistics(make: Make, groups: Sequence[Group]) -> None:
    stats = updated_metric(make, groups).compute()
    check_statistics(stats)
    if set(make().compute()) != set(stats):
        raise Breach("compute() before any group has other statistics than after; undefined ones are NaN")
    if not any(np.isfinite(value) for value in numbers(stats).values()):
        raise Breach("every statistic of ordinary random groups is NaN or infinite")


def _order(make: Make, groups: Sequence[Group]) -> None:
    expected = numbers(updated_metric(make, groups).compute())
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(groups))
        got = numbers(updated_metric(make, [groups[i] for i in order]).compute())
        if not equal(got, expected):
            raise Breach(f"groups in another order give {difference(got, expected)}")


def _blocks(make: Make, groups: Sequence[Group]) -> None:
    by_size: dict[int, list[Group]] = {}
    for group in groups:
        by_size.setdefault(len(group.x), []).append(group)
    blocks = make()
    for same in by_size.values():
        x, labels = np.stack([group.x for group in same]), [group.labels for group in same]
        blocks.update_block(Block([group.key for group in same], x, labels=labels))
    got, expected = numbers(blocks.compute()), numbers(updated_metric(make, groups).compute())
    if not equal(got, expected, tolerance=1e-6):
        raise Breach(
            f"a block gives {difference(got, expected)}, compared with one update a group: does "
            "score reduce over the last two axes only?"
        )


def _memory(make: Make, groups: Sequence[Group]) -> None:
    metric, buffer = make(), np.empty((max(len(group.x) for group in groups), DIM))
    for group in groups:
        rows = buffer[: len(group.x)]
        rows[...] = group.x
        metric.update(replace(group, x=rows))
        if not np.array_equal(rows, group.x):
            raise Breach("update changes the rows that it is lent: other metrics read them too; work on a copy")
        buffer[...] = 1e6
    got, expected = numbers(metric.compute()), numbers(updated_metric(make, groups).compute())
    if not equal(got, expected):
        raise Breach(
            f"once the lent rows are overwritten it gives {difference(got, expected)}: x is only lent for "
            "the call; copy what must be kept"
        )


def _precision(make: Make, groups: Sequence[Group]) -> None:
    got, expected = (
        _values(make, [replace(group, x=group.x.astype(np.float32)) for group in groups]),
        _values(make, groups),
    )
    if not equal(got, expected, tolerance=1e-4):
        raise Breach(f"float32 rows give {difference(got, expected)} with float64 rows: sum in float64")


def _invariance(make: Make, groups: Sequence[Group], kind: str) -> None:
    rng = np.random.default_rng(5)
    rotation = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0]
    shift = 3 * rng.normal(size=DIM)
    change: Callable[[np.ndarray], np.ndarray] = {
        "rotation": lambda x: x @ rotation,
        "scale": lambda x: 3.7 * x,
        "row_scale": lambda x: x * rng.uniform(0.2, 5.0, (len(x), 1)),
        "shift": lambda x: x + shift,
        "permutation": lambda x: rng.permutation(x, axis=0),
    }[kind]
    causes = {
        "rotation": "the value depends on the axes. Eigenvectors are the columns of numpy's eigh and the rows of svd's "
        "third result; are rows taken for columns?",
        "shift": "adding one vector to all rows must not matter. Is the mean taken out in one place and not in the "
        "other, say of the numerator and not of the total?",
        "scale": "one factor on all rows must not matter; is a ratio's denominator of its numerator's power?",
        "row_scale": "a row's length must not matter; are rows at norm 1 before anything is summed?",
        "permutation": "the order of a group's rows must not matter",
    }
    got, expected = _values(make, [replace(group, x=change(group.x)) for group in groups]), _values(make, groups)
    if not equal(got, expected, tolerance=1e-6):
        raise Breach(f"it declares {kind}, but gives {difference(got, expected)}: {causes[kind]}")


def _holds(make: Make, groups: Sequence[Group], kind: str) -> bool:
    try:
        _invariance(make, groups, kind)
    except Exception:  # broken, or it can't be asked; either way it isn't worth a remark
        return False
    return True


def _share(make: Make) -> None:
    """Shares of variance: in [0, 1], all of it on a line through the origin, the chance level by the same formula."""
    rng = np.random.default_rng(7)
    hint = "are numerator, total and chance level of one matrix, centred in all places or in none (and by one ddof)?"
    for n in sorted({max(n, make().min_rows) for n in (2, 3, 10, 40)}):  # smaller groups have no score
        line = np.outer(rng.uniform(1, 5, n), rng.normal(size=DIM))
        noise = rng.normal(size=(n, DIM)) + rng.normal(size=DIM)
        for what, x in (("on one line", line), ("at random", noise)):
            metric = updated_metric(make, [_group(make().over, 0, x)])
            raw, null = numbers(metric.compute()).get("raw", np.nan), metric.baseline_value(x)
            if x is line and not np.isclose(raw, 1, atol=1e-6):
                raise Breach(f"{n} rows {what} through the origin have the share {raw:.6g} instead of 1: {hint}")
            if not -1e-9 <= raw <= 1 + 1e-9:
                raise Breach(f"{n} rows {what} have the share {raw:.6g}, outside 0 to 1: {hint}")
            if not np.isclose(raw, null, atol=1e-6):
                raise Breach(f"{n} rows {what} have the share {raw:.6g}, but as a chance level {null:.6g}: {hint}")


def _degenerate(make: Make, groups: Sequence[Group]) -> None:
    """Nothing raises, and a group without a value is NaN and counted, not 0, and doesn't spoil the mean."""
    over = make().over
    x = groups[0].x
    nan, infinite = x.copy(), x.copy()
    nan[0, 0], infinite[-1, -1] = np.nan, np.inf
    cases = {
        "one row": x[:1],
        "rows of zeros": np.zeros((4, DIM)),
        "identical rows": np.repeat(x[:1], 4, axis=0),
        "a NaN": nan,
        "an infinity": infinite,
    }
    good = numbers(updated_metric(make, groups).compute())
    for what, rows in cases.items():
        group = _group(over, 10_000, rows[:1] if over == "occurrence" else rows)
        try:
            for dtype in (np.float32, np.float64):
                cast = replace(group, x=group.x.astype(dtype))
                alone = updated_metric(make, [cast])
                stats, null = numbers(alone.compute()), alone.baseline_value(cast.x)
                together = {} if over == "corpus" else numbers(updated_metric(make, [*groups, cast]).compute())
        except Exception as error:
            raise Breach(f"a group with {what} raises {type(error).__name__}: {error}; undefined is NaN") from error
        if not isinstance(null, float | np.floating):
            raise Breach(f"baseline_value() of a group with {what} is {null!r}; expected a number or NaN")
        if set(stats) != set(good):
            raise Breach(f"a group with {what} gives other statistics: {sorted(stats)} instead of {sorted(good)}")
        if what in ("a NaN", "an infinity") and not isinstance(make(), GroupMean):
            continue
        if what == "a NaN" and np.isfinite(stats.get("raw", np.nan)):
            raise Breach(f"a group with {what} has the value {stats['raw']:.6g}; undefined is NaN, never a number")
        mean = "raw" in stats and not np.isclose(together.get("raw", np.nan), good["raw"], equal_nan=True)
        if stats.get("undefined") and mean:
            raise Breach(f"a group with {what} is undefined, yet moves the mean: {difference(together, good)}")


def _sums(make: Make) -> None:
    """Sums of a text's sentences, in parts and in any order, give the statistics of its groups, where there are any."""
    if (form := pickle.loads(pickle.dumps(make().sum_form()))) is None:
        return
    rng, metric, n_sentences = np.random.default_rng(13), make(), 40
    lengths = rng.integers(1, 8, n_sentences)
    sentence, word = np.repeat(np.arange(n_sentences), lengths), rng.integers(0, 7, lengths.sum())
    x = (rng.normal(size=(len(word), DIM)) + rng.normal(size=DIM)) * rng.uniform(0.5, 2.0, (len(word), 1))
    of = {"word": word, "sentence": sentence, "corpus": np.zeros_like(word)}.get(metric.over, np.arange(len(word)))
    expected = numbers(updated_metric(make, [Group(i, x[of == i]) for i in range(of.max() + 1)]).compute())
    for cuts in ([0, n_sentences], [0, 11, 12, 30, n_sentences]):
        parts = [(at, low) for low, high in pairwise(cuts) for at in [(sentence >= low) & (sentence < high)]]
        for order in (parts, parts[::-1]):
            total = Sums(np.zeros(7, np.int64))
            for at, low in order:
                total.merge(_sums_of(form, word[at], x[at], sentence[at] - low), np.arange(7))
            scores = form.scores(total)
            statistics = form.statistics(total) | ({} if scores is None else aggregate(scores))
            if extra := sorted(statistics.keys() - expected.keys()):
                raise Breach(f"statistics() has statistics that compute() hasn't: {', '.join(extra)}")
            if (main := metric.reading.main or "raw") not in statistics and main != metric._cosine_statistic:
                raise Breach(f"sum_form() gives no {main!r}: expected it of statistics(), or scores()")
            if not equal(statistics, {name: expected[name] for name in statistics}, tolerance=1e-9):
                batches = f"{len(parts)} batches sum up to"
                raise Breach(f"{batches} {difference(statistics, expected)}, of the same rows in groups")


def _sums_of(form: SumForm, word: np.ndarray, x: np.ndarray, sentence: np.ndarray) -> Sums:
    """The sums of a batch, over seven words."""
    import torch

    batch = Batch(torch.from_numpy(x), torch.from_numpy(sentence), int(sentence.max()) + 1)
    part = Sums(np.bincount(word, minlength=7), overall={k: v.numpy() for k, v in form.addends(batch).items()})
    for name, values in form.word_addends(batch).items():
        part.by_word[name] = np.zeros((7, *values.shape[1:]))
        np.add.at(part.by_word[name], word, values.numpy())
    return part


def _profile(make: Make) -> str:
    """The mean score of groups of n rows of isotropic noise."""
    rng, parts = np.random.default_rng(11), []
    for n in PROFILE:
        over = make().over
        noise = (rng.normal(size=(n, 32)).astype(np.float32) for _ in range(200))
        stats = numbers(updated_metric(make, (_group(over, i, x) for i, x in enumerate(noise))).compute())
        parts.append(f"{n}: {stats.get('raw', np.nan):.3f} ± {stats.get('sd', np.nan):.3f}")
    return f"score of n rows of noise in 32 dimensions (mean ± sd over groups), {'; '.join(parts)}"


PAIR_DIM = 8
SIZES = (23, 40, 9)
REPLICATES = 30


def pair_laws(make: Make, report: Report) -> Report:
    """The laws of a metric over pairs, checked on random ones whose gold is 0 or 1, added to the report; raises
    ConformanceError naming each that is broken."""
    report.notes += _without_effect(make())
    parts = _parts(0)
    with report.law("statistics"):
        _pair_statistics(make, parts)
    if report.failures:
        return report.conclude()
    for law, check in (
        ("order of sub-sets", _pair_order),
        ("lent memory", _pair_memory),
        ("the generator decides all chance", _seeded),
        ("no intervals without replicates", _intervals),
        ("float32 agrees with float64", _pair_precision),
        ("degenerate pairs", _pair_degenerate),
        ("rows and save", _output),
    ):
        with report.law(law):
            check(make, parts)
    return report.conclude()


def _without_effect(metric: Metric) -> list[str]:
    """A note on what a metric over pairs declares in vain: no baseline is drawn for pairs."""
    declared = [f"baselines={metric.baselines!r}"] if metric.baselines != Metric.baselines else []
    declared += ["baseline_value()"] if type(metric).baseline_value is not Metric.baseline_value else []
    hint = "a metric over pairs gives its own `baseline` and `adjusted` from compute()"
    return [f"{' and '.join(declared)}: without effect; {hint}"] if declared else []


def _parts(seed: int) -> list[Group]:
    """Three sub-sets of two tasks; similar vectors and texts where gold is 1."""
    rng = np.random.default_rng(seed)
    parts = []
    for subset, n in zip(("one/a", "one/b", "two"), SIZES, strict=True):
        gold = (np.arange(n) % 3 == 0).astype(np.float64)
        x = rng.normal(size=(n, PAIR_DIM)).astype(np.float32)
        y = (x + rng.normal(size=(n, PAIR_DIM)) * (2 - gold)[:, None]).astype(np.float32)
        texts = [("some words here", "some words" if g else f"others {i}") for i, g in enumerate(gold)]
        parts.append(_pair_group(subset, x, y, gold, texts))
    return parts


def _pair_group(subset: str, x: np.ndarray, y: np.ndarray, gold: np.ndarray, texts: Sequence[tuple[str, str]]) -> Group:
    return Group(subset, np.stack([x, y], axis=1), pairs=Pairs(gold, texts))


def _compute(make: Make, parts: Sequence[Group], replicates: int = 0) -> dict[str, float]:
    metric = updated_metric(make, parts)
    metric.resampling = np.random.default_rng(1), replicates
    return numbers(metric.compute())


def _pair_statistics(make: Make, parts: Sequence[Group]) -> None:
    for some in (parts, parts[2:]):
        metric = updated_metric(make, some)
        metric.resampling = np.random.default_rng(1), REPLICATES
        stats = metric.compute()
        check_statistics(stats)
        main = make().reading.main
        if main and not any(key.rsplit("/", 1)[-1] == main for key in stats):
            raise Breach(f"main is {main!r}, which compute() doesn't give: {', '.join(stats)}")


def _pair_order(make: Make, parts: Sequence[Group]) -> None:
    a, b = _compute(make, parts), _compute(make, parts[::-1])
    if not equal(a, b):
        raise Breach(f"sub-sets in another order give other numbers: {difference(a, b)}")


def _pair_memory(make: Make, parts: Sequence[Group]) -> None:
    expected, metric = _compute(make, parts), make()
    for group in parts:
        x, gold = group.x.copy(), _pairs_of(group).gold.copy()
        metric.update(replace(group, x=x, pairs=Pairs(gold, list(_pairs_of(group).texts))))
        x[:], gold[:] = 0, 0
    metric.resampling = np.random.default_rng(1), 0
    got = numbers(metric.compute())
    if not equal(expected, got):
        raise Breach(f"it kept arrays that were only lent: copy in update(): {difference(expected, got)}")


def _seeded(make: Make, parts: Sequence[Group]) -> None:
    a, b = _compute(make, parts, REPLICATES), _compute(make, parts, REPLICATES)
    if not equal(a, b):
        raise Breach(f"the same generator gives other numbers; draw from `rng` alone: {difference(a, b)}")


def _intervals(make: Make, parts: Sequence[Group]) -> None:
    without, resampled = _compute(make, parts), _compute(make, parts, REPLICATES)
    if without.keys() != resampled.keys():
        raise Breach("the names of statistics depend on the number of replicates")
    for key, value in without.items():
        if key.endswith(("_ci_low", "_ci_high")):
            if np.isfinite(value):
                raise Breach(f"{key} is {value:.6g} without replicates; undefined is NaN")
        elif not equal({key: value}, {key: resampled[key]}):
            raise Breach(f"{key} depends on the number of replicates: {value!r}, {resampled[key]!r}")


def _pair_precision(make: Make, parts: Sequence[Group]) -> None:
    wide = [replace(group, x=group.x.astype(np.float64)) for group in parts]
    a, b = _compute(make, parts), _compute(make, wide)
    if not equal(a, b, tolerance=1e-4):
        raise Breach(f"the same numbers as float64 give others: {difference(a, b)}")


def _pair_degenerate(make: Make, parts: Sequence[Group]) -> None:
    """Zero vectors, equal vectors, a single pair: a value or NaN, never an exception."""
    p, gold = parts[0], _pairs_of(parts[0])
    half_zero = p.x.copy()
    half_zero[:, 0] = 0
    cases = {
        "zero vectors": replace(p, x=half_zero),
        "equal vectors": replace(p, x=np.ones_like(p.x)),
        "one pair": replace(p, x=p.x[:1], pairs=Pairs(gold.gold[:1], list(gold.texts)[:1])),
        "one gold value": replace(p, pairs=Pairs(0 * gold.gold, gold.texts)),
    }
    for what, group in cases.items():
        for some in ([group], [group, *parts[1:]]):
            try:
                _compute(make, some, REPLICATES)
            except Exception as error:
                raise Breach(f"{what}: it raised {type(error).__name__}: {error}; undefined is NaN") from error


def _output(make: Make, parts: Sequence[Group]) -> None:
    metric = updated_metric(make, parts)
    metric.resampling = np.random.default_rng(1), REPLICATES
    metric.compute()
    with tempfile.TemporaryDirectory() as folder:
        check_outputs(metric, Path(folder))


def _pairs_of(group: Group) -> Pairs:
    assert group.pairs is not None
    return group.pairs
