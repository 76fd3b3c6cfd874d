"""Hulls with known answers both ways, margins known in closed form, and the two programmes against each other."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from ctxexp_measures.frequency.hull import (
    chance_of_direction,
    cone_angles,
    negative_direction,
)


def simplex(d: int) -> np.ndarray:
    """d + 1 vertices of a regular simplex about the origin, at norm 1."""
    centred = np.eye(d + 1) - 1 / (d + 1)
    flat = centred @ np.linalg.svd(centred)[2][:d].T
    return np.asarray(flat / np.linalg.norm(flat, axis=1, keepdims=True))


def circle(first: float, last: float) -> np.ndarray:
    """Rows of unlike length whose angles run from `first` to `last` degrees."""
    angles = np.radians(np.linspace(first, last, 50))
    return np.column_stack([np.cos(angles), np.sin(angles)]) * np.linspace(0.1, 9, 50)[:, None]


@pytest.mark.parametrize(
    "x",
    [
        simplex(5),
        np.concatenate([np.eye(4), -np.eye(4)]),
        np.array(list(itertools.product([-1.0, 1.0], repeat=3))) + 0.9,
        circle(0, 200),
        np.random.default_rng(0).normal(size=(400, 8)) + 0.1,
    ],
    ids=["simplex", "cross-polytope", "shifted cube", "arc of 200 degrees", "noise"],
)
def test_the_origin_inside(x: np.ndarray) -> None:
    for norm in ("l2", "inf"):
        found = negative_direction(x, norm=norm)  # type: ignore[arg-type]
        assert (found.v, found.margin) == (None, 0.0)


@pytest.mark.parametrize(
    ("x", "l2", "inf"),
    [
        (np.eye(9), 1 / 3, 1.0),
        (circle(10, 110), math.cos(math.radians(50)), None),
        (
            np.array(list(itertools.product([-1.0, 1.0], repeat=3))) + 2 * np.eye(3)[0],
            1 / math.sqrt(3),
            1 / math.sqrt(3),
        ),
        (np.array([[3.0, 4.0]]), 1.0, 1.4),
        (np.array([[2.0, 0.0], [2.0, 0.0]]), 1.0, 1.0),
    ],
    ids=["basis", "arc of 100 degrees", "cube", "one row", "equal rows"],
)
def test_the_origin_outside_by_a_known_margin(x: np.ndarray, l2: float, inf: float | None) -> None:
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    for norm, margin in (("l2", l2), ("inf", inf)):
        found = negative_direction(x, norm=norm)  # type: ignore[arg-type]
        assert (x @ found.v < 0).all()
        assert float((-unit @ found.v).min()) == pytest.approx(found.margin, abs=1e-12)
        assert np.linalg.norm(found.v, 2 if norm == "l2" else np.inf) == pytest.approx(1)
        if margin is not None:
            assert found.margin == pytest.approx(margin, abs=1e-6)


def test_the_working_set_finds_what_the_whole_programme_finds() -> None:
    from scipy.optimize import linprog

    rng = np.random.default_rng(1)
    for shift in (0.0, 0.35, 0.6):
        x = rng.normal(size=(1500, 12)) + shift
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        whole = linprog(
            np.append(np.zeros(12), -1),
            A_ub=np.column_stack([unit, np.ones(1500)]),
            b_ub=np.zeros(1500),
            bounds=[(-1, 1)] * 12 + [(None, None)],
        )
        found = negative_direction(x, norm="inf")
        assert found.margin == pytest.approx(-whole.fun, abs=1e-6)
        assert (negative_direction(x).v is None) == (found.v is None)
        directions = rng.normal(size=(12, 2000))  # none of which has a larger margin
        near = (-unit @ (directions / np.linalg.norm(directions, axis=0))).min(axis=0)
        assert near.max() <= negative_direction(x).margin + 1e-9


def test_a_zero_row_is_the_origin() -> None:
    x = np.eye(3) + 1
    x[1] = 0
    assert negative_direction(x, norm="inf").margin == 0
    assert math.isnan(negative_direction(x[:0]).margin)
    assert all(math.isnan(angle) for angle in (*cone_angles(x), *cone_angles(x[:0])))


def test_a_direction_within_rounding_is_left_undecided() -> None:
    x = np.array([[1.0, 3e-8], [-1.0, 3e-8]])
    assert negative_direction(x).v is None
    assert negative_direction(x * [1, 100]).margin == pytest.approx(3e-6, rel=1e-2)


def test_the_chance_of_a_direction_is_wendels() -> None:
    assert chance_of_direction(5, 5) == pytest.approx(1)
    assert chance_of_direction(20, 10) == pytest.approx(0.5)
    assert chance_of_direction(4, 2) == pytest.approx(4 / 8)  # n / 2^(n - 1) in the plane
    assert chance_of_direction(10_000, 256) < 1e-300
    assert chance_of_direction(600, 768) == pytest.approx(1)
    assert math.isnan(chance_of_direction(0, 3))
    assert chance_of_direction(7, 3) == pytest.approx((1 + 6 + 15) / 2**6)  # of 6 coins 2 heads at the most
