"""The six kinds of tests, each of which decides by intervals or not at all.

- `layers`: a value within a bound in every layer, or in a share of them (`least`).
- `trend`: a curve rises, or falls, with depth, by a change beyond its bound and beyond what walks of layers do.
- `compare`: one set of layers less another, or one measurement less another, within a bound.
- `ends`: a middle layer beyond the last, or beyond the first and the last, chosen where it isn't tried.
- `share`: of tasks in which the middle layer that is chosen on the others is the better one, within a bound.
- `correlation`: of a value of words with one property of theirs, and with another, each given the other.

A test is passed where the whole interval is on the claim's side, failed where all of it is on the other, and open
between. Intervals are Bonferroni-corrected where any one of several layers or models can confirm or refute the claim:
`n_confirming` and `n_refuting` are how many can.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ctxexp.maths import Stream, spearman
from ctxexp_papers.claims.best_layer import MIN_TASKS, Gain, best_layer_gain
from ctxexp_papers.claims.evidence import Member, Source
from ctxexp_papers.claims.statistics import MIN_WORDS, LayerCurve, NotMeasuredError, mean_of, partial_ranks, wilson
from ctxexp_papers.claims.walks import hump_p, spearman_rows, trend_p

Test = dict[str, Any]
DRAWS = 2000
ALPHA = 0.05  # of walks, that may show a trend or a hump as strong
BOUNDS = ("above", "below", "within")
MEASURED = (
    "metric", "options", "rows", "words", "less", "given", "undefined", "model_options", "twin", "subsets",
)  # fmt: skip
"""The keys of a test that say what is measured; the others say how it decides."""
DECIDING = (
    "kind", "of", "over", "layers", "least", "one", "other", "rises", "rivals", "candidates", "walks", "valley",
    "beyond", "part",
)  # fmt: skip


@dataclass(frozen=True)
class Check:
    """One test on one model: did it come out as claimed (None: open, or not measured), with what effect.

    `low` and `high` are the effect's 95% interval. `brief` is the outcome as a table has it ("6 of 12"), `text` the
    effect in words, or why there is none.
    """

    model: str
    reading: str = ""
    passed: bool | None = None
    effect: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: float = math.nan
    text: str = ""
    brief: str = ""
    link: str = ""

    @property
    def is_measured(self) -> bool:
        return math.isfinite(self.effect)


def key_of(test: Test) -> str:
    """What a test measures, as a text that is the same for the same measurement."""
    return json.dumps({name: test[name] for name in MEASURED if name in test}, sort_keys=True)


def sides_of(test: Test) -> list[Test]:
    """The measurements that a test needs: of both sides that it compares, of itself and what it must be beyond."""
    if test["kind"] == "correlation":
        return []
    if test["kind"] == "compare":
        return [test | test.get("one", {}), test | test.get("other", {})]
    return [test, test | test["beyond"]] if "beyond" in test else [test]


def try_claim(test: Test, readings: Mapping[str, Test], models: tuple[str, ...], source: Source) -> list[Check]:
    """A check a reading and model that has what the test measures, or says why one of `models` doesn't."""
    checks = []
    for name, changes in readings.items():
        own = test | changes
        over = own.get("over", "each")
        members = [m for m in source.members_of(own.get("of", ())) if not _lacks(m, own)]
        n = len(members)
        n_refuting = 1 if over == "any" else max(len(models), n)
        own["n_confirming"] = {"any": n, "most": n - n // 2}.get(over, 1)  # of which one may confirm it
        found = [_try(member, own, n_refuting) for member in members]
        absent = [m.model for m in source.members if m.model in models and m not in members]
        found += [Check(model, text=f"no {own['metric']}") for model in absent]
        found = found if over == "each" else _together(found, over, source)
        checks += [replace(check, reading=name) for check in found]
    return checks


def _lacks(member: Member, test: Test) -> bool:
    if test["kind"] == "correlation":
        return test["metric"] not in member.words
    return any(key_of(side) not in member.curves for side in sides_of(test))


def _try(member: Member, test: Test, n_refuting: int) -> Check:
    try:
        check = TEST_KINDS[test["kind"]](member, test, n_refuting)
    except NotMeasuredError as why:
        check = Check(member.model, text=str(why))
    return replace(check, link=member.link)


def layers(member: Member, test: Test, n_refuting: int) -> Check:
    """Whether the curve lies within its bound in a share `least` of these layers (all, hidden, last, middle). The
    effect is that of the layer that decides."""
    curve = _curve(member, test)
    return _within(member, curve.at(places(test.get("layers", "all"), len(curve.value))), test, n_refuting)


def compare(member: Member, test: Test, n_refuting: int) -> Check:
    """Whether one set of layers less another (of each its mean), or one measurement less another, layer by layer, lies
    within the bound."""
    sides, names = [], []
    for side in sides_of(test):
        curve = _curve(member, side)
        names.append(side.get("layers", "all"))
        sides.append(curve.at(places(names[-1], len(curve.value))))
    if names[0] != names[1]:
        sides = [side.defined(test["metric"]).mean() for side in sides]
    return _within(member, sides[0].less(sides[1]), test, n_refuting)


def _within(member: Member, curve: LayerCurve, test: Test, n_refuting: int) -> Check:
    """Any of the layers that may be missing could be counted wrongly, any of those needed could break the claim, in
    each of its `n_refuting` comparisons: intervals are corrected for so many."""
    curve = curve.defined(test["metric"])
    count = len(curve.value)
    needed = math.ceil(test.get("least", 1.0) * count - 1e-9)
    worst, _ = margins(test, *curve.ends((count - needed + 1) * test.get("n_confirming", 1)))
    broken, best = margins(test, *curve.ends(needed * n_refuting))
    yes, no = int((worst > 0).sum()), int(((best <= 0) & (broken < 0)).sum())
    passed = True if yes >= needed else False if count - no < needed else None
    at = int(np.argsort(worst, kind="stable")[count - needed])
    value, low, high = (float(end[at]) for end in (curve.value, *curve.ends()))
    brief = f"{value:.3f}" if count == 1 else f"{yes} of {count}"
    text = f"{brief} layers, {no} not; layer {curve.layers[at]} decides" if count > 1 else ""
    return Check(member.model, "", passed, value, low, high, curve.n, text, brief)


def margins(test: Test, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far inside a test's bound intervals (n,) are at their worst end and at their best; negative: outside."""
    if (below := test.get("below")) is not None:
        return below - high, below - low
    if (within := test.get("within")) is not None:
        worst = np.minimum(within - high, within + low)
        worst = np.where(np.abs(worst) < 1e-9, 1e-9, worst)  # the margin itself is within it
        return worst, np.minimum(within - low, within + high)
    return low - test.get("above", 0.0), high - test.get("above", 0.0)


def trend(member: Member, test: Test, n_refuting: int) -> Check:
    """Whether the curve rises (`rises`; else it falls) with depth: Spearman's rho of layer and value is on that side of
    0, and the change along the straight line through all layers at least the bound, `above` or `below`.

    Nothing is decided unless fewer than 5% of walks go with depth as far; of 5 layers 1 in 8 does at the least, so that
    6 or fewer decide nothing. A claim that any of `n_refuting` comparisons refutes needs so many times rarer walks.
    """
    curve = _curve(member, test).defined(test["metric"])
    depth, sign = np.arange(len(curve.value)), 1 if test.get("rises") else -1
    if len(depth) < 3:
        raise NotMeasuredError(f"{test['metric']}: a trend needs 3 layers")
    least = abs(float(test.get("above") or test.get("below") or 0.0))
    rho, change = spearman(curve.value, depth), float(_change(curve.value))
    p = trend_p(curve.value, np.random.default_rng([0, Stream.CLAIMS, 2]))
    drawn = curve.redrawn(DRAWS)
    rho_ends, change_ends = _middle(spearman_rows(drawn, depth), rho), _middle(_change(drawn), change)
    sides = [_side(sign, rho_ends, 0.0), _side(sign, change_ends, least)]
    passed = False if False in sides else None if None in sides else True
    if not p < ALPHA / (n_refuting if passed is False else test.get("n_confirming", 1)):
        passed = None
    walks = f"{p:.1%} of walks go as far" if math.isfinite(p) else "the curve doesn't change"
    text = f"rho; change {change:+.3f} [{change_ends[0]:+.3f}, {change_ends[1]:+.3f}]; {walks}"
    return Check(member.model, "", passed, rho, *rho_ends, n=curve.n, text=text, brief=f"{rho:.2f} ({walks})")


def _side(sign: int, ends: tuple[float, float], bound: float) -> bool | None:
    """Whether an interval lies beyond a bound on the side of `sign`: True, False if all of it doesn't, None if open."""
    least, most = sorted((sign * ends[0], sign * ends[1]))
    return True if least > bound else False if most <= bound else None


def _change(values: np.ndarray) -> np.ndarray:
    """From the first layer to the last along the straight line (least squares) through values (..., layers): (...)."""
    x = np.linspace(-0.5, 0.5, values.shape[-1])
    return np.asarray(values @ x / (x @ x))


def _middle(replicates: np.ndarray, estimate: float) -> tuple[float, float]:
    """Their middle 95% and the estimate: noise that is added to a curve brings its rho nearer to 0."""
    low, high = np.nanquantile(replicates, [0.025, 0.975])
    return min(float(low), estimate), max(float(high), estimate)


def ends(member: Member, test: Test, n_refuting: int) -> Check:
    """Whether a middle layer exceeds the better of the first and the last (`rivals = "last"`: the last; `candidates =
    "middle half"`: those of that depth, all others), which is held out sample by sample; `valley`: lies below both;
    `walks`: beyond what walks over layers do; `beyond`: by more than another measurement's; `below`: by less than
    that."""
    values, numbers, families = _samples(member, test)
    margin = test.get("below", 0.0)
    lowered = values * (-1 if test.get("valley") else 1)
    lowered[:, 1:-1] -= margin
    gain = _gain(lowered, numbers, families, test, n_refuting)
    passed, effect = gain.passed, (gain.value + margin, gain.low + margin, gain.high + margin)
    n, at = len(values), ", ".join(str(numbers[i]) for i in gain.layers[:3])
    text = f"layer {at}; any middle layer: [{gain.least + margin:+.3f}, {gain.most + margin:+.3f}]"
    if "below" in test:
        passed = None if passed is None else not passed
    if "beyond" in test:
        other = _gain(*_samples(member, test | test["beyond"]), test, n_refuting)
        wider = max(gain.wider, other.wider)
        more = mean_of(gain.by_task - other.by_task, wider=wider)
        own, rest = mean_of(gain.by_task, wider=gain.wider), mean_of(other.by_task, wider=other.wider)
        fails = own.high <= 0 or (more.high <= 0 and rest.low > 0)  # no effect, or the control's is as large
        passed = False if fails else True if passed and own.low > 0 and more.low > 0 else None
        effect, text = (
            more[:3],
            f"{own.value:+.2f}, of the control {rest.value:+.2f} [{rest.low:+.2f}, {rest.high:+.2f}]",
        )
    check = Check(member.model, "", passed, *effect, n=n, text=text, brief=f"{effect[0]:+.3g}")
    return _beyond_walks(check, lowered.mean(axis=0), test, n_refuting) if test.get("walks") else check


def share(member: Member, test: Test, n_refuting: int) -> Check:
    """The share of tasks in which the middle layer that is chosen on the other tasks exceeds the last."""
    gain = _gain(*_samples(member, test), test, 1)
    n, won = len(gain.by_task), int((gain.by_task > 0).sum())
    own = won / gain.wider**2, n / gain.wider**2  # as many tasks as families leave
    low, high = wilson(*own)
    bound = test.get("above", 0.5)
    holds = wilson(*own, n_comparisons=test.get("n_confirming", 1))[0] > bound
    fails = wilson(*own, n_comparisons=n_refuting)[1] < bound
    passed = True if holds else False if fails else None
    return Check(member.model, "", passed, won / n, low, high, n=n, text=f"{won} of {n} tasks", brief=f"{won} of {n}")


def _samples(member: Member, test: Test) -> tuple[np.ndarray, tuple[int, ...], tuple[str, ...]]:
    """Values by sample or task and layer, the numbers of the layers, and the families of tasks."""
    curve = _curve(member, test)
    values = curve.by_sample
    if values is None or len(values) < MIN_TASKS or values.shape[1] < 3 or not np.isfinite(values).all():
        raise NotMeasuredError(f"{test['metric']}: fewer than {MIN_TASKS} samples or three layers, or undefined")
    return values.copy(), curve.layers, curve.families


def _gain(values: np.ndarray, numbers: tuple[int, ...], families: tuple[str, ...], test: Test, n_refuting: int) -> Gain:
    n, stream = values.shape[1], 3
    if test.get("candidates") == "middle half":
        stream = 5
        depth = np.array(numbers) / numbers[-1]
        inside = (depth >= 0.25) & (depth <= 0.75)
        candidates, rivals = np.flatnonzero(inside), np.flatnonzero(~inside)
    else:
        candidates = np.arange(1 if numbers[0] == 0 else 0, n - 1)
        rivals = np.array([n - 1] if test.get("rivals") == "last" else [0, n - 1])
    rng = np.random.default_rng([0, Stream.CLAIMS, stream])
    n_confirming = test.get("n_confirming", 1)
    if "below" in test:  # whose failure a gain is
        n_refuting, n_confirming = n_confirming, n_refuting
    return best_layer_gain(
        values,
        rivals=rivals.tolist(),
        candidates=candidates.tolist(),
        rng=rng,
        n_refuting=n_refuting,
        n_confirming=n_confirming,
        families=families,
    )


def _beyond_walks(check: Check, curve: np.ndarray, test: Test, n_refuting: int) -> Check:
    """The check of a hump, which holds only where fewer than 5% of walks have as clear a one. It fails only where a
    walk would as rarely be as clearly otherwise: sunk in the middle (2.5%), or a trend from end to end (1.25%); of
    `n_refuting` comparisons in so many times rarer walks."""
    rng = np.random.default_rng([0, Stream.CLAIMS, 15])
    p, sunk, slope = hump_p(curve, rng), hump_p(-curve, rng), trend_p(curve, rng)
    level = ALPHA / (test.get("n_confirming", 1) if check.passed else n_refuting)
    beyond = p < level if check.passed else sunk < level / 2 or slope < level / 4
    text = f"{check.text}; {p:.1%} of walks have as clear a hump, {sunk:.1%} a hollow, {slope:.1%} a trend"
    return replace(check, passed=check.passed if beyond else None, text=text)


def correlation(member: Member, test: Test, n_refuting: int) -> Check:
    """Spearman's partial correlations over words of `metric` with the properties `one` and `other`, each given the
    other and frequency: `one` lowers it, and `other` doesn't (`part = "none"`: within the bound of 0; else: less than
    `one` does)."""
    words = member.words[test["metric"]]
    table = words[["value", test["one"], test["other"], "frequency"]].dropna()
    if len(table) < MIN_WORDS:
        raise NotMeasuredError(f"{len(table)} words with both properties; needs {MIN_WORDS}")
    rng = np.random.default_rng([0, Stream.CLAIMS, 4])
    columns = table.to_numpy(np.float64).T
    found = partial_ranks(columns[0], columns[2], columns[1], columns[3], rng=rng, n_comparisons=n_refuting)
    own, other, more = found.other, found.one, found.difference
    lowered = _side(-1, (own.low, own.high), 0.0)
    if test.get("part") == "none":
        bound, what = test.get("within", 0.0), other
        second = True if max(-other.low, other.high) < bound else False if other.high <= -bound else None
    else:
        second, what = (True if more.low > 0 else False if more.high <= 0 else None), more
    passed = False if False in (lowered, second) else None if None in (lowered, second) else True
    text = f"{test['one']} {own.value:+.3f} [{own.low:+.3f}, {own.high:+.3f}]; {test['other']} {other.value:+.3f} " + (
        f"[{other.low:+.3f}, {other.high:+.3f}]"
    )
    brief = f"{test['one']} {own.value:+.2f}, {test['other']} {other.value:+.2f}"
    return Check(member.model, "", passed, *what[:3], n=what.n, text=text, brief=brief)


TEST_KINDS: dict[str, Callable[[Member, Test, int], Check]] = {
    "layers": layers,
    "trend": trend,
    "compare": compare,
    "ends": ends,
    "share": share,
    "correlation": correlation,
}


def _together(checks: list[Check], over: str, source: Source) -> list[Check]:
    """One check of all models: whether `any` of them is as claimed, or `most`. Others than the paper's can prove that
    there is one, not that there is none."""
    measured = [check for check in checks if check.is_measured]
    if not measured or len(measured) < len(checks):
        return [Check(f"{over} of the models", text="; ".join(c.text for c in checks if c.text))] if checks else []
    text = "; ".join(f"{c.model}: {c.brief} [{c.low:.3g}, {c.high:.3g}]" for c in checks)
    if over == "any":
        best = next((c for c in checks if c.passed), next((c for c in checks if c.passed is None), checks[0]))
        passed = None if source.kind == "other" and not best.passed else best.passed
        return [replace(best, model="any of the models", passed=passed, text=text)]
    n, yes, no = len(checks), *(sum(check.passed is side for check in checks) for side in (True, False))
    needed = n // 2 + 1
    passed = True if yes >= needed else False if n - no < needed else None
    return [Check("most of the models", "", passed, yes / n, n=n, text=text, brief=f"{yes} of {n}, {no} not")]


def _curve(member: Member, test: Test) -> LayerCurve:
    return member.curves[key_of(test)]


def places(layers: str, n: int) -> list[int]:
    """The places of layers among n by their names; of both halves of the hidden layers a middle one is in neither."""
    every, hidden = list(range(n)), n - 1
    return {
        "all": every,
        "hidden": every[1:],
        "first": every[:1],
        "last": every[-1:],
        "middle": [n // 2],
        "lower half": every[1 : 1 + hidden // 2],
        "upper half": every[n - hidden // 2 :],
    }[layers]


def problems(test: Test) -> Iterator[str]:
    """What is wrong with a test, in words."""
    if test.get("kind") not in TEST_KINDS:
        yield f"test kind {test.get('kind')!r}; expected one of {', '.join(TEST_KINDS)}"
        return
    if "/" not in str(test.get("metric", "")):
        yield 'no metric = "name/statistic"'
    if sum(name in test for name in BOUNDS) > 1:
        yield f"more than one of {', '.join(BOUNDS)}"
    if unknown := sorted(set(test) - {*MEASURED, *DECIDING, *BOUNDS}):
        yield f"unknown {', '.join(unknown)}"
    try:
        [places(side.get("layers", "all"), 3) for side in sides_of(test)]
    except KeyError as error:
        yield f"layers = {error}"


def describe(test: Test) -> str:
    """A test in words: what is measured, and where its interval must lie."""
    bound = next((f"{name} {test[name]:g}" for name in BOUNDS if name in test), "above 0")
    least = test.get("least", 1.0)
    layers_ = test.get("layers", "")
    where = f" in {'every layer' if least == 1 else f'{least:.0%} of the layers'}" if test["kind"] == "layers" else ""
    sides = [" ".join(map(str, test[s].values())) for s in ("one", "other") if isinstance(test.get(s), Mapping)]
    less = [" less ".join(side or "as it is" for side in sides)] if sides else []
    told = {"kind", "metric", "layers", "least", "of", *BOUNDS, *({"one", "other"} if sides else ())}
    others = _words({key: value for key, value in test.items() if key not in told})
    parts = [f"`{test['metric']}`", layers_, *less, f"{bound}{where}", others]
    return f"{test['kind']}: {', '.join(filter(None, parts))}"


def _words(options: Mapping[str, Any]) -> str:
    return ", ".join(
        key if value is True else f"{key} {_words(value) if isinstance(value, Mapping) else value}"
        for key, value in options.items()
    )
