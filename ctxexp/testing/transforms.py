"""Laws of transforms: each row is mapped by itself, whatever the chunks and the order of rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ctxexp.errors import TransformError
from ctxexp.testing.report import Breach, Report, subject_label
from ctxexp.transform import Calibration, Transform

ROWS = (200, 1000)  # of 8 columns; the second for a transform that refuses the first as too few to learn from


def check_transform(make: Callable[[], Transform], *, name: str = "") -> Report:
    """The laws of `ctxexp.Transform`; raises ConformanceError naming each that is broken. `make` builds one per
    layer."""
    report = Report(name or subject_label("transform", make))
    rng = np.random.default_rng(0)
    x = _rows(make, ROWS[0])
    with report.law("shape and type"):
        _shape(make, x)
    if report.failures:
        return report.conclude()
    whole = make().fit(x).apply(x)
    with report.law("each row by itself"):
        fitted, order = make().fit(x), rng.permutation(len(x))
        parts = np.concatenate([fitted.apply(x[a : a + 7]) for a in range(0, len(x), 7)])
        if not _close(parts, whole) or not _close(fitted.apply(x[order]), whole[order]):
            raise Breach("rows in pieces, or in another order, come out differently: statistics belong in fit()")
    with report.law("fit forgets the order of the rows"):
        if not _close(make().fit(x[::-1].copy()).apply(x), whole):
            raise Breach("fitted on the same rows in another order it maps them elsewhere")
    with report.law("fit starts anew"):
        if not _close(make().fit(x * 3 + 1).fit(x).apply(x), whole):
            raise Breach("fitted a second time it still knows the first rows")
    with report.law("lent memory"):
        copy = x.copy()
        make().fit(copy).apply(copy)
        if not np.array_equal(copy, x):
            raise Breach("it changes the rows that it is given; work on a copy")
    with report.law("statistics in float64"):
        near, far = x + np.float32(2), x + np.float32(4096)  # both exact: x is a multiple of 1/512
        if _close(make().fit(near).apply(near), whole) and not _close(make().fit(far).apply(far), whole):
            raise Breach("far from the origin it loses digits: take means and variances in float64")
    with report.law("degenerate layers"):
        for what, few in (
            ("one row", x[:1]),
            ("identical rows", np.repeat(x[:1], 5, axis=0)),
            ("a constant column", np.where(np.arange(8) == 3, np.float32(0.1), x)),
            ("zeros", np.zeros((5, 8), np.float32)),
        ):
            try:
                y = make().fit(few).apply(few)
            except TransformError as refusal:
                report.notes.append(f"it refuses a layer with {what}: {refusal}")
                continue
            if not np.isfinite(y).all():
                raise Breach(f"a layer with {what} gives NaN or infinite values; where there is no spread give 0")
    return report.conclude()


def _rows(make: Callable[[], Transform], n: int) -> np.ndarray:
    """n rows of 8 columns, multiples of 1/512; more of them where the transform refuses so few."""
    x = np.random.default_rng(0).normal(size=(n, 8)) + 1
    x = (np.round(x * np.linspace(0.1, 5, 8) * 512) / 512).astype(np.float32)
    try:
        make().fit(x)
    except TransformError:
        return x if n == ROWS[1] else _rows(make, ROWS[1])
    except Exception:  # the first law says what is wrong
        return x
    return x


def _shape(make: Callable[[], Transform], x: np.ndarray) -> None:
    width = Calibration(make).width(x.shape[1])  # refuses what is no transform
    fitted: object = make().fit(x)
    if not isinstance(fitted, Transform):
        raise Breach(f"fit() gave {type(fitted).__name__}; end it with `return self`")
    y: object = fitted.apply(x[:5])
    if not isinstance(y, np.ndarray) or y.shape != (5, width) or y.dtype != np.float32:
        got = f"{y.dtype} {y.shape}" if isinstance(y, np.ndarray) else type(y).__name__
        raise Breach(f"apply() of a float32 (5, {x.shape[1]}) gave {got}; expected float32 (5, {width})")


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-4, atol=1e-4 * float(np.abs(b).max() + 1e-12)))
