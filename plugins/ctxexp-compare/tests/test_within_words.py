"""Nulls that know words: what two spaces share beyond which word stands where, rows at norm 1, and held-out words."""

from __future__ import annotations

import numpy as np
import pytest
from ctxexp_compare import Cka, Linearity, MutualNeighbours, Sample, Similarities, Space, TwoSpaces, similarities
from ctxexp_compare.alignment import align

from benchmarks.two_spaces import simulate
from ctxexp.errors import DataError

from .test_measures import EVERY, IDS, normal

CLOSED, CLOSED_IDS = EVERY[:4], IDS[:4]


def tables(words: int, times: int, seed: int, *, noise: float = 0.0, shared: float = 0.0, d: int = 24) -> list[Space]:
    """Two spaces of an own random vector a word, with noise of their own and a context that both know; sentences of ten
    occurrences."""
    number = np.random.default_rng(1000 + seed).permutation(np.repeat(np.arange(words), times))
    n = len(number)
    context = normal(n, 6, seed + 3)
    found = []
    for i, name in enumerate("ab"):
        x = normal(words, d, seed + i + 1)[number] + noise * normal(n, d, seed + i + 4)
        x += shared * context @ normal(6, d, seed + i + 6) / np.sqrt(6)
        found.append(Space.of_arrays(name, x[None], blocks=np.arange(n) // 10, words=[f"w{w}" for w in number]))
    return found


def sides(measure: TwoSpaces, spaces: list[Space], words: np.ndarray) -> tuple[Sample, object, object]:
    given = Sample(np.arange(len(words)) // 10, words=words, strata=words)
    a, b = (measure.prepare_side(space.layers.layer(0), given) for space in spaces)
    return given, a, b


def numbers(space: Space) -> np.ndarray:
    return np.unique(space.words(np.arange(len(space.rows))), return_inverse=True)[1]


def compared(spaces: list[Space], measures: list[TwoSpaces] = EVERY, **choices: object) -> Similarities:
    return similarities(spaces, measures, **({"bootstrap": 200, "permutations": 10} | choices))  # type: ignore[arg-type]


@pytest.mark.nightly
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_unrelated_tables_of_words_share_nothing(noise: float) -> None:
    """100 words, ten times each: the free level calls them alike, in most measures by far. With noise of their own the
    nearest neighbours of 1,000 rows leave 0 a little, within the interval."""
    spaces = tables(100, 10, 1, noise=noise)
    found, free = compared(spaces), compared(spaces, null="free")
    for one in EVERY:
        value, low, high = (ends[0, 1] for ends in found.matrices[one.label].adjusted)
        assert abs(value) <= (0.05 if noise else 0.02), one.name
        assert low - 1e-6 <= 0 <= high + 1e-6, one.name
        assert abs(found.matrices[one.label].control[1]) <= 0.02, one.name
        least = 0.03 if one.name == "shape_distance" else 0.09
        assert free.matrices[one.label].adjusted[0][0, 1] > least, one.name


@pytest.mark.nightly
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_unrelated_tables_foretell_each_other_unless_words_are_held_out(noise: float) -> None:
    """The penalty is chosen on held-out words too: by rows left out alone it is so small that raw is -.61."""
    spaces = tables(100, 6, 1, d=192, noise=noise)
    assert compared(spaces, [Linearity()], null="free", permutations=2).matrices["linearity"].value[0, 1] > (
        0.4 if noise else 0.95
    )
    held = compared(spaces, [Linearity()]).matrices["linearity"]
    assert -0.02 < held.value[0, 1] < 0.02
    assert abs(held.adjusted[0][0, 1]) <= 0.02


def test_held_out_rows_share_no_word_or_sentence_with_training() -> None:
    """Nor of those that choose a penalty, which are rows that its outer cell is trained on."""
    spaces = tables(30, 10, 2)
    words = numbers(spaces[0])
    given, side, _ = sides(Linearity(), spaces, words)
    outer, inner = side.outer, side.inner  # type: ignore[attr-defined]
    assert (len(outer), len(inner)) == (16, 36)
    assert sorted(np.concatenate([test for cell in outer for test in cell.tests]).tolist()) == list(range(300))
    for cell in (*outer, *inner):
        for test in cell.tests:
            assert not {*words[test]} & {*words[cell.train]}
            assert not {*given.blocks[test]} & {*given.blocks[cell.train]}
    assert min(len(cell.train) for cell in outer) > 100
    for i, cell in enumerate(outer):
        chosen_by = [
            (one.train, test) for one in inner for test, j in zip(one.tests, one.chooses, strict=True) if i == j
        ]
        assert len(chosen_by) == 9
        assert sorted(np.concatenate([test for _, test in chosen_by]).tolist()) == cell.train.tolist()
        assert all({*train} <= {*cell.train} for train, _ in chosen_by)


@pytest.mark.parametrize("measure", CLOSED, ids=CLOSED_IDS)
def test_chance_within_words_is_the_mean_of_drawn_permutations(measure: TwoSpaces) -> None:
    for noise in (0.0, 0.5):
        spaces = tables(12, 5, 6, noise=noise, shared=noise)
        given, a, b = sides(measure, spaces, numbers(spaces[0]))
        closed = measure.chance(a, b, given, 0)
        rng = np.random.default_rng(7)
        x = spaces[1].layers.layer(0)
        drawn = [measure.score(a, measure.prepare_side(x[given.permutation(rng)], given)).value for _ in range(300)]
        assert closed.mean == pytest.approx(np.mean(drawn), abs=max(4 * np.std(drawn) / np.sqrt(300), 1e-6))
        if isinstance(measure, Cka) and noise:
            assert 0.9 < closed.sd / np.std(drawn) < 1.5


def test_permutations_stay_within_words_and_reach_every_one() -> None:
    strata = np.array([0, 1, 0, 2, 1, 0, 2])
    given, rng = Sample(np.arange(7), strata=strata), np.random.default_rng(8)
    drawn = [given.permutation(rng) for _ in range(400)]
    assert all((strata[order] == strata).all() for order in drawn)
    assert len({tuple(order.tolist()) for order in drawn}) == 6 * 2 * 2


@pytest.mark.parametrize("measure", CLOSED[:3], ids=CLOSED_IDS[:3])
def test_an_occurrences_influence_is_what_leaving_it_out_changes(measure: TwoSpaces) -> None:
    spaces = tables(12, 10, 9, noise=0.6, shared=0.6)
    words, n = numbers(spaces[0]), 120

    def parts(rows: np.ndarray) -> tuple[float, float]:
        given = Sample(rows // 10, words=words[rows], strata=words[rows])
        a, b = (measure.prepare_side(space.layers.layer(0)[rows], given) for space in spaces)
        return measure.score(a, b).value, measure.chance(a, b, given, 0).mean

    given, a, b = sides(measure, spaces, words)
    told = measure.chance(a, b, given, 0).influence
    score = measure.score(a, b)
    value, chance = parts(np.arange(n))
    without = np.array([parts(np.delete(np.arange(n), i)) for i in range(n)])
    for expected, found in (
        (chance - without[:, 1], told),
        (value - chance - np.diff(without[:, ::-1], axis=1).ravel(), score.influence - told),
    ):
        expected = (n - 1) / n * (expected - expected.mean())
        assert np.corrcoef(found, expected)[0, 1] > 0.98
        assert found.std() == pytest.approx(expected.std(), rel=0.15)


def test_words_that_occur_once_are_replaced_by_others() -> None:
    rng = np.random.default_rng(10)
    words = [f"w{int(w)}" for w in rng.zipf(1.5, 3000)]
    spaces = [Space.of_arrays(name, normal(3000, 4, i)[None], words=words) for i, name in enumerate("ab")]
    given, (rows, _), common = align(spaces, sample=500, seed=0)
    assert common == 3000
    assert 499 <= len(given) <= 500
    held = np.array(words)[rows]
    assert np.unique(held, return_counts=True)[1].min() >= 2
    assert all(len({*held[given.strata == s]}) == 1 for s in range(given.strata.max() + 1))
    free = align(spaces, sample=500, seed=0, null="free")
    assert len(free[0]) == 500
    assert free[0].strata is None
    with pytest.raises(DataError, match=r"0 of 40 common occurrences are of words that occur twice.*null=free"):
        align([Space.of_arrays("a", normal(40, 4, 1)[None], words=[f"w{i}" for i in range(40)])], sample=99, seed=0)


def test_spaces_without_words_know_the_free_level_alone() -> None:
    found = compared([Space.of_arrays(name, normal(60, 8, i)[None]) for i, name in enumerate("ab")], [Cka()])
    assert found.null == "free"
    assert found.matrices["cka"].chance[0, 1] == found.matrices["cka"].free[0, 1] == 0
    assert np.isnan(found.matrices["cka"].control[0])


@pytest.mark.nightly
def test_intervals_cover_zero_for_nothing_and_the_truth_otherwise() -> None:
    """30 small worlds; benchmarks/two_spaces.py has more, and larger ones."""
    measures = [Cka(), MutualNeighbours()]
    nothing = simulate(measures, 30, shared=0.0, bootstrap=200, n=200)
    for name, (value, held, _) in nothing.items():
        assert abs(value) < 0.02, name
        assert held >= 26 / 30, name  # of 30 with a 95% interval fewer in 1 of 200 suites
    something = simulate(measures, 15, shared=1.0, bootstrap=200, n=200)
    for name, (value, held, _) in something.items():
        assert value > 0.1, name
        assert held >= 12 / 15, name
