"""Corrections and thresholds behind verdicts on claims, a row each: a planted case, and its right value by SciPy, a
loop or by hand. Without the correction, or with another factor, the row fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ctxexp_compare.layer_choice.families import design_effect
from ctxexp_papers.claims import kinds
from ctxexp_papers.claims.best_layer import best_layer_gain, family_widening
from ctxexp_papers.claims.evidence import Member, Source
from ctxexp_papers.claims.kinds import key_of, try_claim
from ctxexp_papers.claims.released import DRAWS, PAIRED, ROUNDING, _curves, bounded_mean
from ctxexp_papers.claims.statistics import (
    LayerCurve,
    matched_difference,
    mean_of,
    partial_ranks,
    wilson,
    within_strata,
)
from ctxexp_papers.monosemy import SelfSimilarityBySenses
from scipy import stats

NORMAL, STUDENT = stats.norm.ppf, stats.t.ppf
RNG = np.random.default_rng(0)
SAMPLES = RNG.normal(size=(6, 1))
FACTOR = [NORMAL(1 - 0.025 / k) / NORMAL(0.975) for k in range(1, 13)]  # of a 95% interval for one more comparison each
METRIC = "m/raw"


def t_end(values: np.ndarray, comparisons: int = 1) -> float:
    """The upper end of Student's interval of a mean."""
    half = STUDENT(1 - 0.025 / comparisons, len(values) - 1) * stats.sem(values)
    return float(values.mean() + half)


def interval_of(value: float, half: float, n: int = 1) -> LayerCurve:
    y = np.full(n, value)
    return LayerCurve(y, y - half, y + half, tuple(range(n)))


def passed(curves: list[LayerCurve], n_models: int = 1, **test: Any) -> bool | None:
    """What comes of a test on models with these curves, of as many claimed models."""
    whole = {"metric": METRIC, **test}
    members = [Member(f"model{i}", {key_of(whole): curve}) for i, curve in enumerate(curves)]
    models = tuple(f"model{i}" for i in range(n_models))
    return try_claim(whole, {"": {}}, models, Source("protocol", "x", members))[0].passed


def about(half: float, sign: int = 1, n: int = 1, **test: Any) -> list[bool | None]:
    """Of curves `sign` beyond 0 whose corrected intervals just reach 0, and just don't."""
    n_models = test.pop("n_models", 1)
    return [
        passed([interval_of(sign, half * by, n)] * test.get("curves", 1), n_models, kind="layers", above=0, **{
            key: value for key, value in test.items() if key != "curves"
        })
        for by in (1.001, 0.999)
    ]  # fmt: skip


def samples_of(values: np.ndarray, families: tuple[str, ...] = ()) -> LayerCurve:
    return LayerCurve.of_samples(values, families=families)


def won(k: int, families: tuple[str, ...] = ()) -> LayerCurve:
    """20 tasks of which the middle layer wins k; the others it loses by as little, so that it is chosen."""
    gain = np.where(np.arange(20) < k, 1.0, -0.01)
    return samples_of(np.stack([np.full(20, -9.0), gain, np.zeros(20)], axis=1), families)


def share_of(k: int, *, n_models: int = 1, curves: int = 1, over: str = "each") -> bool | None:
    return passed([won(k)] * curves, n_models, kind="share", over=over)


def least_won(comparisons: int) -> int:
    """The fewest of 20 tasks that prove more than half, in so many comparisons."""
    ends = [stats.binomtest(k, 20).proportion_ci(1 - 0.05 / comparisons, "wilson").low for k in range(21)]
    return int(np.argmax(np.array(ends) > 0.5))


def line(n: int, *, rises: bool = True) -> LayerCurve:
    y = np.arange(n) * (1.0 if rises else -1.0)
    return LayerCurve(y, y - 1e-3, y + 1e-3, tuple(range(n)))


def trend_of(n: int, *, rises: bool = True, curves: int = 1, n_models: int = 1, over: str = "each") -> bool | None:
    """Whether a line over n layers is found to rise: of its walks 1 in 2^(n - 2) goes as far."""
    return passed([line(n, rises=rises)] * curves, n_models, kind="trend", rises=True, over=over)


SCORES = RNG.normal((0, 0.7, 0.72, 0.7, 0), size=(12, 5))
FAMILIES = tuple("aabbccddeeff")
CONTROL = 0.1 * np.repeat(np.random.default_rng(7).normal(size=(6, 5)), 2, axis=0)
RELEASED = np.array([[0.1, 0.2], [0.4, 0.3], [0.6, 0.9]])


def naive_gain(n_refuting: int, n_confirming: int, families: tuple[str, ...] = ()) -> list[float]:
    """Value, interval and the interval that decides, with loops over the same resamples of tasks."""
    n, middle, ends = len(SCORES), (1, 2, 3), (0, 4)
    of = families or tuple(map(str, range(n)))
    gains = []
    for task in range(n):
        others = SCORES[[of[i] != of[task] for i in range(n)]].mean(axis=0)
        best, rival = max(middle, key=lambda i: others[i]), max(ends, key=lambda i: others[i])
        gains.append(SCORES[task, best] - SCORES[task, rival])
    drawn = np.random.default_rng(5).multinomial(n, np.full(n, 1 / n), 400)
    effect = design_effect(SCORES, families)
    wider = np.sqrt(effect.factor) * STUDENT(0.975, effect.df) / STUDENT(0.975, n - 1)
    by_draw, t = [], {}
    for counts in drawn:
        tasks = np.repeat(np.arange(n), counts)
        by_draw.append(np.mean(np.array(gains)[tasks]))
        for pair in ((i, j) for i in middle for j in ends):
            sample, every = (SCORES[at, pair[0]] - SCORES[at, pair[1]] for at in (tasks, np.arange(n)))
            t.setdefault(pair, []).append((sample.mean() - every.mean()) / (sample.std() / np.sqrt(n - 1)))
    largest = np.quantile(np.max(list(t.values()), axis=0), 1 - 0.025 / n_confirming)

    def end(i: int, j: int, quantile: float) -> float:
        d = SCORES[:, i] - SCORES[:, j]
        return float(d.mean() - quantile * stats.sem(d) * wider)

    least = max(min(end(i, j, largest) for j in ends) for i in middle)
    level = 0.025 / (len(ends) * n_refuting)
    most = max(min(end(i, j, np.quantile(t[i, j], level)) for j in ends) for i in middle)
    value = float(np.mean(gains))
    low, high = (value + wider * (np.quantile(by_draw, q) - value) for q in (0.025, 0.975))
    return [value, low, high, least, most]


def gain(n_refuting: int, n_confirming: int, families: tuple[str, ...] = ()) -> list[float]:
    found = best_layer_gain(
        SCORES, rivals=[0, 4], rng=np.random.default_rng(5), n_refuting=n_refuting, n_confirming=n_confirming,
        resamples=400, families=families,
    )  # fmt: skip
    return [found.value, found.low, found.high, found.least, found.most]


ONE = RNG.normal(size=8)  # words of one group, all as frequent as the others
REST = RNG.normal(size=16)


def hc2_end() -> float:
    """The upper end of the difference of two means of words of one frequency, each error by HC2 about both means."""
    n, n1, n0 = len(ONE) + len(REST), len(ONE), len(REST)
    variance = sum(side.var() / len(side) / (1 - other / (n * len(side))) for side, other in ((ONE, n0), (REST, n1)))
    return float(ONE.mean() - REST.mean() + STUDENT(0.975, n1 - 1) * np.sqrt(variance))


def ratio_of_partial(comparisons: int) -> float:
    """How much wider the interval of a difference of partial correlations is where so many can refute."""
    words = pd.DataFrame(np.random.default_rng(1).normal(size=(400, 3)), columns=["value", "a", "b"])
    member = Member("model", {}, {METRIC: words.assign(frequency=1.0)})
    one, several = (
        kinds.correlation(member, {"metric": METRIC, "one": "a", "other": "b"}, n) for n in (1, comparisons)
    )
    return (several.high - several.low) / (one.high - one.low)


def gain_below(n_refuting: int, n_confirming: int) -> list[float]:
    """The interval that decides whether a gain is below a bound, whose failure is what a gain is."""
    test = {"below": 0.1, "n_confirming": n_confirming, "rivals": "last"}
    found = kinds._gain(SCORES, (0, 1, 2, 3, 4), (), test, n_refuting)
    return [found.least, found.most]


def gain_above(n_refuting: int, n_confirming: int) -> list[float]:
    found = kinds._gain(SCORES, (0, 1, 2, 3, 4), (), {"n_confirming": n_confirming, "rivals": "last"}, n_refuting)
    return [found.least, found.most]


def redrawn_deviation() -> float:
    """That of curves redrawn within an interval from -1 to 1."""
    return float(interval_of(0.0, 1.0).redrawn(20_000).std())


def walked(n: int, tail: int | None = None, *, sign: int = 1, **more: Any) -> bool | None:
    """Whether a middle layer is best beyond walks: of a plateau whose end falls over `tail` layers, of which a walk is
    as clear once in 2^tail; None: of a line."""
    curve = np.arange(float(n)) if tail is None else np.r_[0, np.ones(n - 1 - tail), np.linspace(1, 0, tail + 1)[1:]]
    noise = 0.01 * np.random.default_rng(3).normal(size=(9, n))
    curves = [samples_of(sign * curve + noise - noise.mean(axis=0))] * more.pop("curves", 1)
    return passed(curves, more.pop("n_models", 1), kind="ends", walks=True, **more)


def family_share() -> list[float]:
    """The interval of a share of tasks whose families go together."""
    curve = won(12, families=tuple("aaaabbbbccccddddeeee"))
    test = {"kind": "share", "metric": METRIC}
    check = kinds.share(Member("model", {key_of(test): curve}), test, 1)
    return [check.low, check.high]


def of_families() -> tuple[float, float]:
    """The same of as many tasks as their families leave."""
    curve = won(12, families=tuple("aaaabbbbccccddddeeee"))
    wider = family_widening(curve.by_sample, curve.families)
    assert wider > 1.5
    return wilson(12 / wider**2, 20 / wider**2)


def beyond_a_control() -> list[float]:
    """The interval of how much more a gain is than that of a control, whose tasks alone go together by families."""
    test = {"kind": "ends", "metric": METRIC, "beyond": {"metric": "control/raw"}}
    control = test | test["beyond"]
    curves = {key_of(test): samples_of(SCORES), key_of(control): samples_of(CONTROL, FAMILIES)}
    found = kinds.ends(Member("model", curves), test, 1)
    return [found.low, found.high]


def beyond_by_hand() -> list[float]:
    """The same from both gains: Student's interval of their difference, as much wider as the control's."""
    gain = kinds._gain(SCORES, tuple(range(5)), (), {}, 1)
    other = kinds._gain(CONTROL, tuple(range(5)), FAMILIES, {}, 1)
    assert other.wider > gain.wider == 1
    more = gain.by_task - other.by_task
    return [float(more.mean() + sign * other.wider * (t_end(more) - more.mean())) for sign in (-1, 1)]


def released_ends() -> list[float]:
    """The upper ends of the self-similarity of three released words in two layers."""
    test = {"metric": "self_similarity/raw"}
    (curve,) = _curves("bert", pd.DataFrame(RELEASED, columns=["layer_0", "layer_1"]), [test]).values()
    return list(curve.high)


def permuted_ends() -> list[float]:
    """The interval of what labels that mean nothing give, of equally frequent words of which one is monosemous."""
    words = pd.DataFrame({"all": np.arange(30.0), "is_one": np.arange(30) == 3, "contexts": 7.0})
    found: Any = SelfSimilarityBySenses(permutations=4000)._permuted(words)["difference_permuted"]
    return np.round([found.low, found.high]).tolist()


def is_told(tell: Callable[[int], object], *sizes: int) -> list[bool]:
    """Whether so many are enough."""
    told = []
    for n in sizes:
        try:
            tell(n)
            told.append(True)
        except ValueError:
            told.append(False)
    return told


def partial_of(n: int) -> object:
    y, one, other = RNG.normal(size=(3, n))
    return partial_ranks(y, one, other, np.ones(n), rng=RNG, resamples=2)


def gain_of(n: int) -> object:
    return best_layer_gain(RNG.normal(size=(n, 4)), rivals=[0, 3], rng=RNG, resamples=2)


def left_within_strata() -> float:
    """What is left of a hundred words' values that differ by tenths of their frequencies and rise within each."""
    rank = np.arange(100.0)
    values = RNG.normal(size=10)[np.arange(100) // 10] + 0.3 * rank
    return float(np.abs(within_strata(values[:, None], rank)).max())


ROWS: dict[str, tuple[Callable[[], Any], Any]] = {
    "of samples Student's t": (lambda: float(samples_of(SAMPLES).high[0]), t_end(SAMPLES[:, 0])),
    "of samples for five comparisons": (lambda: float(samples_of(SAMPLES).ends(5)[1][0]), t_end(SAMPLES[:, 0], 5)),
    "of an interval for five": (lambda: float(interval_of(0.0, 1.0).ends(5)[1][0]), FACTOR[4]),
    "a difference of independent curves adds squares": (
        lambda: float(interval_of(1.0, 3.0).less(interval_of(0.0, 4.0)).high[0]), 6.0,
    ),
    "a mean of units, without those of no value": (
        lambda: mean_of(np.append(SAMPLES[:, 0], np.nan)).high, t_end(SAMPLES[:, 0]),
    ),
    "a mean of units of families": (
        lambda: mean_of(SAMPLES[:, 0], wider=3.0).high, 3 * t_end(SAMPLES[:, 0]) - 2 * float(SAMPLES.mean()),
    ),
    "Wilson's share": (
        lambda: [wilson(k, 9) for k in (0, 7, 9)],
        [stats.binomtest(k, 9).proportion_ci(0.95, "wilson") for k in (0, 7, 9)],
    ),
    "Wilson's for six comparisons": (
        lambda: wilson(7, 9, n_comparisons=6), [*stats.binomtest(7, 9).proportion_ci(1 - 0.05 / 6, "wilson")],
    ),
    "a matched difference's error is HC2's, Student's by the smaller group": (
        lambda: matched_difference(np.r_[ONE, REST], np.arange(24) < 8, np.ones(24)).high, hc2_end(),
    ),
    "partial correlations that ten can refute": (lambda: round(ratio_of_partial(10), 1), round(FACTOR[9], 1)),
    "what must be below a bound is confirmed by what would refute a gain": (lambda: gain_below(3, 5), gain_above(5, 3)),
    "a curve is redrawn with its interval's error": (lambda: round(redrawn_deviation(), 2), 0.51),
    "a best layer is held out, and its search covered": (lambda: gain(1, 1), naive_gain(1, 1)),
    "for three that refute and four that confirm": (lambda: gain(3, 4), naive_gain(3, 4)),
    "and for families of tasks": (lambda: gain(1, 1, FAMILIES), naive_gain(1, 1, FAMILIES)),
    "released means of values of -1 and 1, the worst ones, are bounded as shares": (
        lambda: np.ravel(bounded_mean(np.array([0.4]))) - [-ROUNDING, ROUNDING],
        2 * np.array(stats.binomtest(700, DRAWS).proportion_ci(0.95, "wilson")) - 1,
    ),
    "and for pairs of drawn words": (
        lambda: float(bounded_mean(np.zeros(1), PAIRED)[1][0]) - 0.0005,
        1.959964 * np.sqrt(3 / 1000 / (1 + 3 * 1.959964**2 / 1000)),
    ),
    "one layer of one model": (lambda: about(1.0), [None, True]),
    "one of three models can confirm": (lambda: about(1 / FACTOR[2], curves=3, over="any"), [None, True]),
    "two of three can make most": (lambda: about(1 / FACTOR[1], curves=3, over="most"), [None, True]),
    "two of four layers are enough, three can confirm": (lambda: about(1 / FACTOR[2], n=4, least=0.5), [None, True]),
    "any of four layers can refute": (lambda: about(1 / FACTOR[3], sign=-1, n=4), [None, False]),
    "of two layers in three models six can": (lambda: about(1 / FACTOR[5], sign=-1, n=2, n_models=3), [None, False]),
    "any of three models can be the one: none refutes alone": (
        lambda: about(1.0, sign=-1, curves=3, over="any"), [None, False],
    ),
    "six layers' line is no trend, seven layers' is": (lambda: [trend_of(6), trend_of(7)], [None, True]),
    "of two models seven layers don't confirm": (
        lambda: [trend_of(n, curves=2, over="any") for n in (7, 8)], [None, True],
    ),
    "nor refute": (lambda: [trend_of(n, rises=False, n_models=2) for n in (7, 8)], [None, False]),
    "a share of tasks": (lambda: [share_of(least_won(1) - by) for by in (1, 0)], [None, True]),
    "one of five shares can confirm": (
        lambda: [share_of(least_won(5) - by, curves=5, over="any") for by in (1, 0)], [None, True],
    ),
    "one of five shares can refute": (
        lambda: [share_of(20 - least_won(5) + by, n_models=5) for by in (1, 0)], [None, False],
    ),
    "three of four are most, two aren't": (
        lambda: [
            passed([interval_of(sign, 0.1) for sign in signs], kind="layers", above=0, over="most")
            for signs in ((1, 1, 1, -1), (1, 1, -1, -1))
        ],
        [True, False],
    ),
    "a clear hump is found, of one that 1 in 32 walks has not in either of two models": (
        lambda: [walked(9, 5), walked(9, 5, curves=2, over="any"), walked(10, 6, curves=2, over="any")],
        [True, None, True],
    ),
    "its hollow as seldom as 1 in 40 refutes, 1 in 80 of two models": (
        lambda: [walked(9, 5, sign=-1), walked(10, 6, sign=-1), walked(10, 6, sign=-1, n_models=2)],
        [None, False, None],
    ),
    "a trend as seldom as 1 in 80 too": (lambda: [walked(8), walked(9)], [None, False]),
    "a control's families widen what a gain is beyond it": (beyond_a_control, beyond_by_hand()),
    "released values are means of words, rounded to three places": (
        released_ends, [values.mean() + 1.959964 * stats.sem(values) + 0.0005 for values in RELEASED.T],
    ),
    "labels that mean nothing leave 2.5% out at either end": (
        permuted_ends, np.round((np.array([0, 29]) - 14.5) * 30 / 29).tolist(),
    ),
    "a share of tasks of families": (family_share, of_families()),
    "five units have a mean": (lambda: is_told(lambda n: mean_of(np.arange(float(n))), 4, 5), [False, True]),
    "twenty words a partial correlation": (lambda: is_told(partial_of, 19, 20), [False, True]),
    "eight tasks a best layer": (lambda: is_told(gain_of, 7, 8), [False, True]),
    "frequency is taken out by tenths": (lambda: left_within_strata() < 1e-9, True),
    "what a curve's own value lies beyond is within its interval": (
        lambda: kinds._middle(np.zeros(9), 0.5), [0.0, 0.5],
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_a_correction_gives_the_planted_cases_right_value(row: str) -> None:
    found, right = ROWS[row][0](), ROWS[row][1]
    if isinstance(right, list) and None in right:
        assert found == right
    else:
        np.testing.assert_allclose(np.asarray(found, float), np.asarray(right, float), rtol=1e-5)
