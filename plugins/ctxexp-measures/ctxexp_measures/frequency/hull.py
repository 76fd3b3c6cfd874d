"""Convex hulls and cones of rows: whether the hull holds the origin, a direction away from all rows, the cone's width.

Gao et al. 2019, "Representation Degeneration Problem in Training Natural Language Generation Models", Theorems 1 and 2:
a uniformly negative direction v (<v, h_i> < 0 for all i) of the hidden states h_i exists if and only if their convex
hull misses the origin; then the loss of a token that never occurs has no minimum: it decreases along v without end. The
theorems are of hidden states, not of embedding tables. Rows are scaled to norm 1 throughout, which changes neither the
sign of a product nor whether the hull holds the origin.

Both programmes run over a working set of rows that grows by the rows that its solution violates (a cutting-plane
method): a direction is checked against all rows, and a few rows whose hull holds the origin prove that the whole hull
does.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from ctxexp.errors import MetricError

Norm = Literal["l2", "inf"]

TOLERANCE = 1e-7  # of margins: cosines below it can't be told from zero
WORKING = 64  # violated rows that join the working set in each round, at least
MAX_ROUNDS = 500


class Direction(NamedTuple):
    """A direction that all rows point away from, or None.

    `margin` is min_i -<v, h_i> / |h_i|, verified over all rows and above `TOLERANCE`; 0 where the hull holds the
    origin; NaN where it can't be decided (the best margin lies within rounding of zero, or there are no rows).
    """

    v: np.ndarray | None  # (d,) float64, of norm 1 in the norm that was asked for
    margin: float
    rounds: int  # linear or quadratic programmes that were solved


def negative_direction(x: np.ndarray, *, norm: Norm = "l2") -> Direction:
    """The direction that maximises min_i -<v, h_i> / |h_i| over rows h_i of `x` (n, d).

    norm="inf": |v|_inf <= 1, a linear programme (SciPy's HiGHS). norm="l2": |v|_2 <= 1, the point of the unit rows'
    hull that is nearest to the origin (non-negative least squares): its distance is the margin, in [0, 1], and the
    cosine of the angle of the narrowest circular cone about -v that holds all rows. A row of norm zero is the origin
    itself: there is no direction, and without one the hull holds the origin (Theorem 2). Raises MetricError for NaN or
    infinity.
    """
    u, zeros = _unit(x)
    if not len(u) or zeros:
        return Direction(None, 0.0 if zeros else math.nan, 0)
    solve = _programme if norm == "inf" else _nearest_point
    mean = u.mean(axis=0)
    working = np.argsort(u @ mean, kind="stable")[: max(WORKING, u.shape[1] + 1)]  # those least like the mean
    for done in range(1, MAX_ROUNDS + 1):
        v, best, support = solve(u[working])
        if best <= TOLERANCE:  # these rows alone have no such direction
            return Direction(None, 0.0, done)
        away = -(u @ v)
        margin = float(away.min())
        if margin >= best - max(TOLERANCE, 1e-6 * best):
            return Direction(v, margin, done) if margin > TOLERANCE else Direction(None, math.nan, done)
        away[working] = np.inf
        violated = np.argsort(away, kind="stable")[: max(WORKING, u.shape[1] // 2)]
        working = np.concatenate([working[support], violated[away[violated] < best]])
    return Direction(None, math.nan, MAX_ROUNDS)


class Cone(NamedTuple):
    """Angles of rows in degrees, NaN where undefined; a cone's are half-angles, from its axis to its side."""

    nearest: float  # smallest angle of a row to the mean direction
    mean: float  # mean angle to it
    widest: float  # largest angle to it: the half-angle of the cone about the mean direction that holds all rows
    narrowest: float  # half-angle of the narrowest circular cone that holds all rows; NaN: none of less than 90


def cone_angles(x: np.ndarray, *, direction: Direction | None = None) -> Cone:
    """Angles of the rows of `x` (n, d) to the direction of the mean of the unit rows, and of the narrowest cone.

    `direction` is `negative_direction(x)` where that is known already. The narrowest cone's axis is -v, its half-angle
    arccos(margin); where no direction has all rows on its side the rows fit no cone below 90 degrees, and it is NaN.
    The mean direction weighs all rows equally; the narrowest cone depends on the outermost rows only.
    """
    u, zeros = _unit(x)
    mean = u.sum(axis=0)
    length = float(np.linalg.norm(mean))
    if zeros or not len(u) or length <= 1e-9 * len(u):
        return Cone(math.nan, math.nan, math.nan, math.nan)
    angles = _angles(u, mean / length)
    best = direction or negative_direction(x)
    narrowest = math.nan if best.v is None else float(_angles(u, -best.v).max())
    return Cone(float(angles.min()), float(angles.mean()), float(angles.max()), narrowest)


def chance_of_direction(n: int, d: int) -> float:
    """The probability that n random rows in d dimensions, in general position and with fair signs, have a uniformly
    negative direction: 2^(1-n) sum_{k<d} C(n-1, k) (Wendel 1962). 1 for n <= d, 1/2 for n = 2 d: a direction that few
    rows have says nothing about the space."""
    if n < 1 or d < 1:
        return math.nan
    if n <= d:
        return 1.0
    logs = [math.lgamma(n) - math.lgamma(k + 1) - math.lgamma(n - k) for k in range(d)]
    top = max(logs)
    return min(1.0, math.exp(top - (n - 1) * math.log(2) + math.log(math.fsum(math.exp(v - top) for v in logs))))


def _unit(x: np.ndarray) -> tuple[np.ndarray, int]:
    """The rows divided by their norms, in float64, and the number of zero rows, which are left out."""
    x = np.asarray(x, np.float64)
    norm = np.sqrt(np.vecdot(x, x))
    if not np.isfinite(norm).all():
        raise MetricError("the hull of rows with NaN or infinity; leave those rows out")
    some = norm > 0
    return x[some] / norm[some, None], int(np.count_nonzero(~some))


def _angles(u: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Degrees between unit rows and a unit axis; by the chord, exact for small angles too."""
    difference = u - axis
    return np.degrees(2 * np.arcsin(np.clip(np.sqrt(np.vecdot(difference, difference)) / 2, 0, 1)))


def _programme(u: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """Maximise t subject to <v, u_i> + t <= 0 and -1 <= v <= 1; returns v, t and the rows to keep."""
    from scipy.optimize import linprog

    n, d = u.shape
    bounds = [(-1, 1)] * d + [(0, None)]
    cost = np.zeros(d + 1)
    cost[-1] = -1
    done = linprog(cost, A_ub=np.column_stack([u, np.ones(n)]), b_ub=np.zeros(n), bounds=bounds, method="highs")
    if done.x is None:
        raise MetricError(f"the linear programme of {n} rows in {d} dimensions failed: {done.message}")
    return (
        done.x[:d],
        float(done.x[-1]),
        np.arange(n),  # all rows stay: dropping some could cycle where optima tie
    )


def _nearest_point(u: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """v, distance and the supporting rows of the hull's point that is nearest to the origin.

    min |U'w|^2 + (1'w - 1)^2 over w >= 0: at its solution w / 1'w are the nearest point's weights, for with w = s a and
    a in the simplex it is s^2 D^2 + (s - 1)^2 with D the distance of U'a, least where D is.
    """
    from scipy.optimize import nnls

    n, d = u.shape
    try:
        weights, _ = nnls(np.vstack([u.T, np.ones(n)]), np.append(np.zeros(d), 1.0), maxiter=30 * (n + d))
    except RuntimeError as error:
        raise MetricError(f"the hull's nearest point of {n} rows in {d} dimensions was not found: {error}") from error
    point = weights @ u / weights.sum()
    distance = float(np.linalg.norm(point))
    return (-point / distance if distance else point), distance, np.flatnonzero(weights)
