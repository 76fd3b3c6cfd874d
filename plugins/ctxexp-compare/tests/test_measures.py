"""Each measure of two spaces against a naive reference, the libraries' values, its laws, and noise."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from ctxexp_compare import (
    Cka,
    InformationImbalance,
    Linearity,
    MutualNeighbours,
    NeighbourhoodOverlap,
    Sample,
    ShapeDistance,
    Similarities,
    Space,
    TwoSpaces,
    matrices,
    similarities,
    within,
)  # fmt: skip

EVERY: list[TwoSpaces] = [
    Cka(), MutualNeighbours(k=3), NeighbourhoodOverlap(k=3), InformationImbalance(), ShapeDistance(), Linearity(),
]  # fmt: skip
IDS = [one.name for one in EVERY]


def normal(n: int, d: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def alike(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Two views of one cloud, each with noise and a width of its own."""
    z = normal(n, 6, 1)
    return z + 0.4 * normal(n, 6, 2), np.hstack([z[:, :4] * [1, 2, 3, 1], normal(n, 3, 3)])


def sample(n: int) -> Sample:
    return Sample(np.arange(n))


def value(measure: TwoSpaces, x: np.ndarray, y: np.ndarray) -> float:
    given = sample(len(x))
    return measure.score(measure.prepare_side(x, given), measure.prepare_side(y, given)).value


def influence(measure: TwoSpaces, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    given = sample(len(x))
    found = measure.score(measure.prepare_side(x, given), measure.prepare_side(y, given)).influence
    return found


def hsic_as_printed(k: np.ndarray, m: np.ndarray) -> float:
    """Song et al. 2012, equation 5, term by term."""
    n = len(k)
    k, m = k - np.diag(np.diag(k)), m - np.diag(np.diag(m))
    one = np.ones(n)
    first = np.trace(k @ m) + (one @ k @ one) * (one @ m @ one) / ((n - 1) * (n - 2))
    return float((first - 2 / (n - 2) * (one @ k @ m @ one)) / (n * (n - 3)))


def cka_as_printed(x: np.ndarray, y: np.ndarray) -> float:
    k, m = x @ x.T, y @ y.T
    return hsic_as_printed(k, m) / float(np.sqrt(hsic_as_printed(k, k) * hsic_as_printed(m, m)))


def near_by_loops(x: np.ndarray, k: int, *, cosine: bool = False) -> list[list[int]]:
    x = x / np.linalg.norm(x, axis=1, keepdims=True) if cosine else x
    return [
        sorted((j for j in range(len(x)) if j != i), key=lambda j, i=i: float(np.linalg.norm(x[i] - x[j])))[:k]
        for i in range(len(x))
    ]


def test_cka_is_the_ratio_of_the_printed_unbiased_estimates() -> None:
    x, y = alike()
    assert value(Cka(), x + 3, y - 5) == pytest.approx(cka_as_printed(x, y), abs=2e-6)
    assert value(Cka(), normal(12, 50, 4), normal(12, 3, 5)) == pytest.approx(
        cka_as_printed(normal(12, 50, 4), normal(12, 3, 5)), abs=2e-6
    )


def test_neighbours_in_common_are_those_of_loops() -> None:
    x, y = alike()
    for measure, cosine in ((MutualNeighbours(k=3), True), (NeighbourhoodOverlap(k=3), False)):
        a, b = near_by_loops(x, 3, cosine=cosine), near_by_loops(y, 3, cosine=cosine)
        expected = np.mean([len({*one} & {*other}) / 3 for one, other in zip(a, b, strict=True)])
        assert value(measure, x, y) == pytest.approx(expected)


def test_information_imbalance_is_the_mean_rank_of_loops() -> None:
    x, y = alike()
    n = len(x)
    a, b = near_by_loops(x, 1), near_by_loops(y, n - 1)
    expected = 2 / n * np.mean([b[i].index(a[i][0]) + 1 for i in range(n)])
    assert value(InformationImbalance(), x, y) == pytest.approx(expected)
    assert value(InformationImbalance(), x, x) == pytest.approx(2 / n)


def oracle() -> tuple[np.ndarray, np.ndarray]:
    """The arrays that the libraries' values below are of."""
    rng = np.random.default_rng(7)
    z = rng.normal(size=(60, 6))
    return z + 0.5 * rng.normal(size=(60, 6)), np.hstack([z[:, :4] * [1, 2, 3, 1], rng.normal(size=(60, 3))])


def test_values_are_those_of_dadapy_and_netrep() -> None:
    """DADApy 0.3.4: return_inf_imb_two_selected_coords, return_data_overlap;
    netrep's LinearMetric(alpha=1, center_columns=True, score_method="angular").fit_score, its source of commit 3059f54
    (it isn't on the package index that was at hand)."""
    x, y = oracle()
    assert value(InformationImbalance(), x, y) == pytest.approx(0.395)
    assert value(InformationImbalance(), y, x) == pytest.approx(0.4455555555555556)
    assert value(NeighbourhoodOverlap(k=5), x, y) == pytest.approx(0.27)
    assert value(NeighbourhoodOverlap(), x, y) == pytest.approx(0.69)
    assert value(ShapeDistance(), x, y) == pytest.approx(0.8358766718845559, rel=1e-12)


def test_shape_distance_is_the_best_rotations_angle_and_a_metric() -> None:
    from scipy.linalg import orthogonal_procrustes

    x, y = (a - a.mean(0) for a in alike())
    wide = np.pad(x, ((0, 0), (0, 1)))
    turned = wide @ orthogonal_procrustes(wide, y)[0]
    expected = np.arccos(np.vdot(turned, y) / np.linalg.norm(x) / np.linalg.norm(y))
    assert value(ShapeDistance(), x, y) == pytest.approx(expected)
    z = normal(40, 5, 8)
    assert value(ShapeDistance(), x, y) <= value(ShapeDistance(), x, z) + value(ShapeDistance(), z, y)


def test_linearity_is_ridge_regressions_error_on_held_out_rows() -> None:
    """With the penalty of each fold that foretells the other three best, two by two: scikit-learn's GridSearchCV."""
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV, PredefinedSplit

    x, y = alike(60)
    given = Sample(np.repeat(np.arange(20), 3))
    measure = Linearity()
    side = measure.prepare_side(x, given)
    fold = np.zeros(60, int)
    for i, cell in enumerate(side.outer):
        fold[cell.tests[0]] = i
    unit = ((x - x.mean(0)) ** 2).sum() / x.shape[1]
    grid = {"alpha": np.append(1e12, np.logspace(4, -6, 21)) * unit}
    wrong = whole = 0.0
    for i in range(4):
        test, train = fold == i, fold != i
        assert not {*given.blocks[test]} & {*given.blocks[train]}  # whole units
        search = GridSearchCV(Ridge(), grid, scoring="neg_mean_squared_error", cv=PredefinedSplit(fold[train]))
        wrong += ((search.fit(x[train], y[train]).predict(x[test]) - y[test]) ** 2).sum()
        whole += ((y[test] - y[train].mean(0)) ** 2).sum()
    assert measure.score(side, measure.prepare_side(y, given)).value == pytest.approx(1 - wrong / whole)


@pytest.mark.parametrize("measure", EVERY, ids=IDS)
def test_a_space_and_itself_turned_stretched_and_moved(measure: TwoSpaces) -> None:
    """Itself gives what the measure names; a rotation, one factor, and but for cosines a shift, change nothing."""
    x, y = alike(60)
    rotation = np.linalg.qr(normal(6, 6, 11))[0]
    itself = 2 / 60 if isinstance(measure, InformationImbalance) else measure.self_score
    slack = 2e-3 if isinstance(measure, Linearity) else 1e-6
    assert value(measure, x, x) == pytest.approx(itself, abs=slack)
    other = 3 * x @ rotation + (0 if isinstance(measure, MutualNeighbours) and measure.geometry == "cosine" else 5)
    assert value(measure, x, other) == pytest.approx(itself, abs=slack)
    assert value(measure, other, y) == pytest.approx(value(measure, x, y), abs=2e-6)
    if measure.symmetric:
        assert value(measure, y, x) == pytest.approx(value(measure, x, y), abs=1e-9)
    order = np.random.default_rng(12).permutation(60)
    if not isinstance(measure, Linearity):  # whose folds are of numbered units
        assert value(measure, x[order], y[order]) == pytest.approx(value(measure, x, y), abs=1e-6)


def test_the_influence_on_the_shape_distance_is_its_derivative() -> None:
    x, y = alike(40)
    found, step = influence(ShapeDistance(), x, y), 1e-5
    for i in range(0, 40, 7):
        weights = np.ones(40)
        weights[i] += step

        def weighted(a: np.ndarray, w: np.ndarray = weights) -> np.ndarray:
            return (a - np.average(a, axis=0, weights=w)) * np.sqrt(w)[:, None]

        a, b = weighted(x), weighted(y)
        s = np.linalg.svd(a.T @ b, compute_uv=False).sum() / np.linalg.norm(a) / np.linalg.norm(b)
        assert (np.arccos(s) - value(ShapeDistance(), x, y)) / step == pytest.approx(found[i], abs=1e-4)


def test_moments_over_permutations_are_those_of_every_permutation() -> None:
    n = 6
    a, b = (normal(n, n, seed) for seed in (13, 14))
    np.fill_diagonal(a, 0)
    np.fill_diagonal(b, 0)
    every = [float((a * b[np.ix_(order, order)]).sum()) for order in map(list, permutations(range(n)))]
    found = within.free_chance(within.PermutationSums.of(a), within.PermutationSums.of(b), n)
    assert found.mean == pytest.approx(np.mean(every))
    assert found.sd == pytest.approx(np.std(every))


@pytest.mark.parametrize("measure", EVERY[:4], ids=IDS[:4])
def test_the_closed_chance_level_is_that_of_drawn_permutations(measure: TwoSpaces) -> None:
    x, y = alike(30)
    given = sample(30)
    a, b = measure.prepare_side(x, given), measure.prepare_side(y, given)
    rng = np.random.default_rng(15)
    drawn = [value(measure, x, y[rng.permutation(30)]) for _ in range(400)]
    closed = measure.chance(a, b, given, 0)
    assert closed.mean == pytest.approx(np.mean(drawn), abs=4 * closed.sd / np.sqrt(400))
    assert closed.sd == pytest.approx(np.std(drawn), rel=0.1)


def lattice(n: int, d: int, seed: int) -> np.ndarray:
    """Rows with ties of every kind: whole numbers, a few equal vectors, and distances tied between unequal ones."""
    x = np.random.default_rng(seed).integers(-1, 2, (n, d)).astype(np.float64)
    x[:5] = x[5]
    return x


def by_random_orders(measure: TwoSpaces, x: np.ndarray, y: np.ndarray, draws: int) -> np.ndarray:
    """(draws,) the measure with the tied of both spaces put in orders of their own: too small a noise to move others.

    A rank is found by loops that know of no expectation."""
    rng, n, found = np.random.default_rng(3), len(x), []
    if isinstance(measure, MutualNeighbours) and measure.geometry == "cosine":
        x, y = (a / np.linalg.norm(a, axis=1, keepdims=True) for a in (x, y))
    distances = [np.round(((a[:, None] - a) ** 2).sum(axis=-1), 9) for a in (x, y)]
    for _ in range(draws):
        order = [np.argsort(d + 1e9 * np.eye(n) + 1e-10 * rng.random((n, n)), axis=1) for d in distances]
        if isinstance(measure, MutualNeighbours):
            k = measure.k
            found.append(np.mean([len({*a[:k]} & {*b[:k]}) / k for a, b in zip(*order, strict=True)]))
        else:
            found.append(2 / n * np.mean([b.tolist().index(a[0]) + 1 for a, b in zip(*order, strict=True)]))
    return np.array(found)


@pytest.mark.parametrize("measure", EVERY[1:4], ids=IDS[1:4])
def test_ties_count_by_their_expectation_over_random_orders(measure: TwoSpaces) -> None:
    x, y = lattice(40, 3, 1) + 2, lattice(40, 4, 2) + 2
    drawn = by_random_orders(measure, x, y, 300)
    assert drawn.std() > 0.001
    assert value(measure, x, y) == pytest.approx(drawn.mean(), abs=4 * drawn.std() / np.sqrt(300))


@pytest.mark.parametrize("measure", EVERY[1:4], ids=IDS[1:4])
def test_what_leaving_out_one_of_the_tied_changes_is_exact(measure: TwoSpaces) -> None:
    for x, y in ((lattice(40, 3, 1) + 2, lattice(40, 4, 2) + 2), (lattice(40, 3, 1) + 2, normal(40, 4, 3))):
        for a, b in ((x, y), (y, x)):
            rest = np.array([value(measure, np.delete(a, i, 0), np.delete(b, i, 0)) for i in range(40)])
            expected = 39 / 40 * (value(measure, a, b) - rest)
            assert influence(measure, a, b) == pytest.approx(expected - expected.mean(), abs=1e-12)


@pytest.mark.parametrize("measure", EVERY[1:4], ids=IDS[1:4])
def test_ties_are_ties_after_a_rotation_whose_rounding_parts_them(measure: TwoSpaces) -> None:
    x, y = lattice(60, 3, 4) + 2, lattice(60, 3, 5) + 2
    turned = x @ np.linalg.qr(normal(3, 3, 6))[0]
    assert value(measure, turned, y) == pytest.approx(value(measure, x, y), abs=1e-12)


def test_sides_that_memory_cannot_hold_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces = [Space.of_arrays(name, np.stack([normal(30, 4, i), normal(30, 4, i + 1)])) for i, name in enumerate("abc")]
    measures = [Cka(), InformationImbalance()]
    whole = similarities(spaces, measures, bootstrap=50)
    monkeypatch.setattr(matrices, "MEMORY", 2 * 30 * 30 * 4)
    parts = similarities(spaces, measures, bootstrap=50)
    for name in whole.matrices:
        for key in ("value", "low", "high", "chance", "sd"):
            assert np.array_equal(
                getattr(whole.matrices[name], key), getattr(parts.matrices[name], key), equal_nan=True
            )


def test_constant_spaces_are_undefined_not_wrong() -> None:
    x, flat = normal(30, 4, 19), np.ones((30, 4))
    for one in (Cka(), ShapeDistance()):
        assert np.isnan(value(one, x, flat))
    assert np.isnan(value(Linearity(), x, flat))
    assert value(Linearity(), flat, x) == pytest.approx(0, abs=0.1)
    assert isinstance(similarities([Space.of_arrays("a", np.stack([x, flat]))], EVERY, bootstrap=20), Similarities)
