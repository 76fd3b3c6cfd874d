"""Corrections and thresholds of statistics, a row each: a planted case, and its right value by a closed form, another
library, or by hand. Without the correction, or with another factor or threshold, the row fails."""

from __future__ import annotations

import statistics
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from ctxexp import Corpus, Results, Sentence, from_arrays, measure
from ctxexp.matched_baselines import FrequencyMatched, PositionMatched, bands, pool, strata_baseline
from ctxexp.maths import contextuality, resampling
from ctxexp.maths.contextuality import Comparison, LayerContextuality, Uses, strata
from ctxexp.maths.geometry import chance_corrected, histogram
from ctxexp.maths.loudness import LayerScale, scaled_by_dimension
from ctxexp.maths.resampling import Clusters, Curve, Resamples, interval, mean_cosine_influence
from ctxexp.maths.statistics import spearman, summary
from ctxexp.maths.word_mix import WordMix
from ctxexp.measuring.word_measures import _add_share, listed_factor
from ctxexp.metrics.contextuality import Contextuality, Design, _is_near_duplicate
from ctxexp.occurrences import Groups
from ctxexp.report.changes import certain_changes, claimed_steps
from ctxexp.results import Estimates, Key
from ctxexp.results.values import Values
from tests import naive
from tests.sample_results import measure_infos, results_with, run_info
from tests.shipped import SelfSimilarity, shipped

NORMAL, STUDENT = stats.norm.ppf, stats.t.ppf


def run_of(measure: str, **curves: list[float]) -> Results:
    """A run with these statistics of a measure, `raw` with short intervals."""
    raw = np.array(curves["raw"])
    named = {f"{measure}/{name}": np.array(values) for name, values in curves.items()}
    named |= {f"{measure}/raw_ci_low": raw - 1e-4, f"{measure}/raw_ci_high": raw + 1e-4}
    metrics = {"self_similarity": SelfSimilarity(), "contextuality": shipped("metric", "contextuality")()}
    return results_with(named, info=run_info(title="x", measures=measure_infos("exact", **metrics)))


def is_claimed(step: float) -> bool:
    return bool(claimed_steps(run_of("self_similarity", raw=[0.5, 0.5 + step]), Key("self_similarity", "raw")).any())


def is_certain(y: list[float], replicates: np.ndarray | None = None) -> bool:
    """Whether any change of a curve is, whose intervals are of half length 1."""
    values = np.array(y)
    return bool(certain_changes(Estimates(values, values - 1, values + 1), replicates).any())


def around(y: list[float], errors: np.ndarray) -> np.ndarray:
    return np.array(y)[:, None] + errors


def doubts(**curves: float) -> int:
    """How many a run's contextuality raises, with these values in its second layer."""
    return len(with_second_layer(**curves).doubts)


def clauses(**curves: float) -> int:
    """How many artefacts its sentence names."""
    return with_second_layer(**curves).sentence.count(";")


def with_second_layer(**curves: float) -> Results:
    sound = {"loudest": 0.1} | curves
    return run_of("contextuality", raw=[0.0, 0.4], **{name: [0.0, value] for name, value in sound.items()})


def share_ends(level: float, error: float) -> list[float]:
    """The interval of the share of room of a curve .4 above this level, whose error is that of the level too."""
    resamples = Resamples(Clusters("sentence", 2, np.arange(2), np.arange(2)), 50, np.random.default_rng(0))
    moves = error * np.array([[1.0, -1.0]])
    key, values = Key("m", "share_of_room"), Values()
    values.set(Key("m", "n"), np.ones(1))
    curves = Curve(np.array([0.4]), moves), Curve(np.array([level]), moves)
    _add_share(values, key, *curves, resamples)
    return [float(end[0]) for end in values.by_key[key][1:]]


def contextual_influence(noise: float) -> list[float]:
    """The influence of two documents that the interval of contextuality rests on: uses have 2 and 3, each of their one
    and one words of the text 1 more."""
    curves = []
    clusters = Clusters("document", 2, np.arange(2), np.arange(2))
    found = LayerContextuality(0.5, np.array([2.0, 3.0]), 1.0, None, noise)
    same_place = SimpleNamespace(measure=lambda *_, **__: found, uses=SimpleNamespace(document=np.arange(2)))

    def keep(curve: Curve) -> np.ndarray:
        curves.append(curve)
        return np.zeros((1, 3))

    kept = SimpleNamespace(of=keep)
    design = SimpleNamespace(same_place=same_place, clusters=clusters, words_in_block=np.ones(2), resamples=kept)
    metric = Contextuality()
    metric.resampling = np.random.default_rng(0), 3
    metric._estimate(design, np.ones((2, 2)))
    return [round(value, 9) for value in curves[0].influence[0].tolist()]


def pair_noise(most: int, monkeypatch: pytest.MonkeyPatch) -> float:
    """What single pairs of three words' forty uses add to the error, from the pairs of so many of them."""
    form, n = np.repeat(np.arange(3), 40), 120
    u = np.random.default_rng(0).normal(size=(n, 20))
    mix = WordMix(weights="equal").of(np.full(3, 40), n)
    uses = Uses(form=form, place=np.zeros(n, int), document=np.arange(n), neighbours=np.arange(n), mix=mix)
    monkeypatch.setattr(contextuality, "MOST", most)
    unit = u / np.linalg.norm(u, axis=1, keepdims=True)
    return Comparison(uses, np.zeros(n, int)).measure(unit, influence=True).pair_noise


def test_a_sample_of_pairs_stands_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pair_noise(10, monkeypatch) == pytest.approx(pair_noise(64, monkeypatch), rel=0.2)


def near_duplicates(*texts: str) -> int:
    corpus = Corpus("x", tuple(Sentence.of(text.split()) for text in texts))
    text = SimpleNamespace(corpus=corpus)
    return int(_is_near_duplicate(text).sum())


def worded(pairs: list[float]) -> list[str]:
    """The words, named by letters, that get a number of their own."""
    design = SimpleNamespace(_word_of_form=np.array([*"abc"], object))
    return [str(row["word"]) for row in Design.word_rows(design, np.array([[1.0] * 3, [1.0] * 3, pairs]))]


def loudness_left() -> float:
    """What is left of a direction with 40 of 99 parts of the variance, beside one with 1."""
    scale = LayerScale(np.zeros(60), np.array([40.0] + [1.0] * 59), np.eye(60))
    row = scale.normalized(np.eye(60)[:1] + np.eye(60)[1:2])[0]
    return float(row[0] / row[1])


def varying(deviation: float) -> bool:
    """Whether a dimension with this deviation, beside others of 1, is one."""
    x = np.random.default_rng(0).normal(size=(400, 3)) * [1, 1, deviation]
    return bool(scaled_by_dimension(x.astype(np.float32), np.zeros(400, int))[:, 2].any())


def filled(n_words: int, total: int = 30_000, least: int = 0) -> bool:
    """Whether so many words of the lowest band's frequencies fill it."""
    return bool(WordMix().of(np.full(n_words, total // 1500), total, least).filled[0])


COUNTS = np.arange(20, 61)  # of words, in a text of 30,000


def shares_in_band() -> np.ndarray:
    """The probability that words of these counts lie in the lowest band."""
    mixed = WordMix().of(COUNTS, 30_000)
    return mixed.shares(np.ones(len(COUNTS), bool))[0]


def gamma_shares() -> np.ndarray:
    """The same of the posterior that a Poisson count and Zipf's law make, a gamma distribution; less than .01 is 0."""
    low, high = (stats.gamma.cdf(edge * 30_000, COUNTS - 1) for edge in (1 / 3000, 1 / 1000))
    return np.where(high - low > 0.01, high - low, 0.0)


def strata_influence(rows: np.ndarray) -> np.ndarray:
    """The influence of six rows on their level, where all rows of a stratum are equal: twins are as alike as they."""
    clusters = Clusters("sentence", len(rows), np.arange(len(rows)), np.arange(len(rows)))
    group = Groups(["a"], np.array([0, 6]), np.arange(6))
    occurrences = SimpleNamespace(clusters=clusters)
    strata = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    return strata_baseline(rows.__getitem__, occurrences, group, np.arange(len(rows)), strata).influence[:6]


def planted_text(*sentences: str) -> Results:
    """Contextuality and self-similarity of these sentences' words, in vectors by chance."""
    words = [text.split() for text in sentences]
    vectors = [np.random.default_rng(i).normal(size=(1, len(text), 4)) for i, text in enumerate(words)]
    metrics = ["contextuality", "self_similarity"]
    options = {"words.fold_case": True, "figures.explorer": 0}
    return measure(from_arrays(vectors, words), words, metrics=metrics, options=options, bootstrap=20, progress=False)


def uses(*forms: str) -> float:
    """How many uses contextuality compares of a word in these forms, each in a sentence of its own."""
    return float(planted_text(*(f"{form} s{i}" for i, form in enumerate(forms)))["contextuality", "n"].iloc[0])


def is_halved(n: int) -> bool:
    """Whether a text of so many sentences is."""
    return "parts_of_the_text" in planted_text(*(f"the bank s{i}" for i in range(n))).tables


def cosines_above_0(cosine: float) -> float:
    return histogram(np.array([[1.0, 0.0], [cosine, 1.0]], np.float32))[1]


ERRORS = np.random.default_rng(0).normal(size=(3, 40_000))
RANGE = stats.studentized_range.ppf(0.95, 3, np.inf)  # of three independent layers' errors, at the level of 5%
EVEN = np.stack([np.zeros(400), np.linspace(-1, 1, 400) * np.sqrt(3)])  # of deviation 1, and never beyond 1.74
BONFERRONI = NORMAL(1 - 0.05 / 12) / NORMAL(0.975)  # of four layers' pairs, either sign
PAIRED = 0.01 * ERRORS[:1] * np.array([[0.0], [1.0]])
STRATA = np.array([[1.0, 0], [1, 0], [0.6, 0.8], [0.6, 0.8], [0, 1], [0, 1]] * 2)
VALUES = np.array([1.0, 2.0, 4.0, 8.0])

ROWS = {
    "intervals are widened by Student's quantile and by sqrt(n / (n - 1))": (
        lambda: [Resamples.student(n) for n in (6, 12, 100)],
        [STUDENT(0.975, n - 1) / NORMAL(0.975) * np.sqrt(n / (n - 1)) for n in (6, 12, 100)],
    ),
    "an interval leaves 2.5% out at either end": (lambda: [e[0] for e in interval(np.arange(1001.0)[None])], [25, 975]),
    "of clusters 2,048 are drawn one by one": (lambda: len(np.unique(resampling.blocks_of(np.arange(3000)))), 2048),
    "a listed word's interval covers the search among 400 words for 20": (
        lambda: listed_factor(np.array([9]), 400), [STUDENT(1 - 0.025 * 20 / 400, 8)],
    ),
    "all words listed need no correction": (lambda: listed_factor(np.array([9]), 15), [STUDENT(0.975, 8)]),
    "a share of room ends at 1": (lambda: share_ends(0.5, 0.02)[1], 1.0),
    "a share has no interval where a resample has no room": (lambda: share_ends(0.9, 0.02), [np.nan, np.nan]),
    "a step is spoken of whose interval lies beyond .02": (
        lambda: [is_claimed(by) for by in (0.0201, 0.0203)], [False, True],
    ),
    "of four layers' intervals six pairs are compared": (
        lambda: [is_certain([0, 0, 0, 2 * BONFERRONI * by]) for by in (0.999, 1.001)], [False, True],
    ),
    "of layers' resamples the largest difference has the level": (
        lambda: [is_certain([0, 0, RANGE * by], around([0, 0, RANGE * by], ERRORS)) for by in (0.97, 1.03)],
        [False, True],
    ),
    "a difference within 1.96 deviations is never certain": (
        lambda: [is_certain([0, y], around([0, y], EVEN)) for y in (1.9, 2.0)], [False, True],
    ),
    "fewer than 100 resamples are not enough for that": (
        lambda: [is_certain([0, 1], around([0, 1], PAIRED[:, :n])) for n in (99, 100)], [False, True],
    ),
    "a deviation is over n - 1": (lambda: summary(VALUES)["sd"], statistics.stdev(VALUES)),
    "a weighted one too": (lambda: summary(VALUES, np.full(4, 0.25))["sd"], statistics.stdev(VALUES)),
    "two pairs have no rank correlation": (lambda: spearman(VALUES[:2], VALUES[:2]), np.nan),
    "a loud direction keeps 5% of what is left": (loudness_left, np.sqrt(0.05 * 59 / 0.95 / 40)),
    "a dimension of 1e-4 of the median deviation is constant": (
        lambda: [varying(0.5e-4), varying(2e-4)], [False, True],
    ),
    "ten words fill a band": (lambda: [filled(9), filled(10)], [False, True]),
    "a band counts where words of its middle frequency are measured": (
        lambda: [filled(10, 15_000, least) for least in (8, 9)], [True, False],  # 15,000 / 1,732 = 8.7
    ),
    "a word lies in bands by its count's posterior, from .01 on": (
        lambda: np.abs(shares_in_band() - gamma_shares()).max() < 5e-3, True,
    ),
    "a share of room needs 1e-4 of it": (
        lambda: np.isfinite(chance_corrected(np.zeros(2), 1 - np.array([0.9e-4, 1.1e-4]))).tolist(), [False, True],
    ),
    "a cosine up to 1e-6 is not above 0": (lambda: [cosines_above_0(0.5e-6), cosines_above_0(2e-6)], [0.0, 1.0]),
    "places are strata by themselves to 15, then four an octave": (
        lambda: strata(np.arange(300)), [naive.stratum(p) for p in range(300)],
    ),
    "what pairs of uses add to the error twice is taken out": (lambda: contextual_influence(9.0), [2.4, 3.2]),
    "but no more than half of the error": (lambda: contextual_influence(24.0), [1.5, 2.0]),
    "sentences are near-duplicates from half of their runs of three on": (
        lambda: [near_duplicates("a b c d e f", text) for text in ("a b c d x y", "a b c x y z")], [1, 0],
    ),
    "a run in more than 100 sentences tells nothing": (
        lambda: [near_duplicates(*["a b c"] * n) for n in (100, 101)], [99, 0],
    ),
    "a word needs ten pairs of uses": (lambda: worded([9.0, 10.0, 20.0]), ["b", "c"]),
    "a band of frequency spans a factor of two, and no word has a fifth of it": (
        lambda: bands(np.array([9] * 4 + [8, 8, 4, 4, 3, 3, 3, 3, 1, 1, 1]), 0.2).tolist(), [0] * 6 + [1] * 6 + [1] * 3,
    ),
    "however many words a band has": (
        lambda: bands(np.array([9] * 6 + [8] * 2 + [4] * 5 + [3] * 2), 0.2).tolist(), [0] * 8 + [1] * 7,
    ),
    "a level of strata has the influence of the cosines that it equals": (
        lambda: strata_influence(STRATA), mean_cosine_influence(STRATA[:6]),
    ),
    "a form is compared from five sentences on": (
        lambda: [uses(*["bank"] * 5, *["Bank"] * n) for n in (4, 5)], [5, 10],
    ),
    "a text is halved from eight sentences on": (lambda: [is_halved(7), is_halved(8)], [False, True]),
    "a stratum has `least` rows, the rest joins the last": (
        lambda: [*pool(np.array([1, 2, 3, 1, 1]), 3), *pool(np.array([1, 1]), 3)], [0, 0, 1, 1, 1, 0, 0],
    ),
    "a fifth and fifty are what matched baselines take": (
        lambda: [FrequencyMatched().share, FrequencyMatched().least, PositionMatched().least], [0.2, 50, 50],
    ),
    "of half of the variance the sentence speaks": (lambda: [clauses(loudest=0.51), clauses(loudest=0.49)], [1, 0]),
    "a loud direction has more than a fifth": (lambda: [doubts(loudest=0.21), doubts(loudest=0.19)], [1, 0]),
    "a cross-check is apart from .03 on": (lambda: [doubts(all_places=0.431), doubts(all_places=0.429)], [1, 0]),
    "repeated sentences matter from .01 on": (
        lambda: [clauses(no_near_duplicates=0.411), clauses(no_near_duplicates=0.409)], [1, 0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_a_correction_gives_the_planted_cases_right_value(row: str) -> None:
    found, right = ROWS[row][0](), ROWS[row][1]
    if isinstance(right, list) and isinstance(right[0], str):
        assert found == right
    else:
        np.testing.assert_allclose(np.asarray(found, float), np.asarray(right, float), rtol=2e-3)
