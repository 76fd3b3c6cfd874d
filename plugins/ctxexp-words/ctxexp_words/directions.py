"""The first principal direction of many groups of rows at once: the vector, where `spectra` gives its share."""

from __future__ import annotations

import numpy as np

from ctxexp.maths.spectra import FLOAT32, leading


def first_directions(x: np.ndarray, *, centred: bool = False) -> np.ndarray:
    """(w, d) float64 first right singular vector of each group (w, n, d), unit norm; NaN where there is none.

    Uncentred, as Ethayarajh 2019 (section 3.4) prints it, or of the rows less their mean. The sign, which a singular
    vector leaves open, makes its product with the group's mean row positive; where that is zero, its largest entry.
    Computed in float64. No direction: a group with a value that is not finite, of zero rows only, or, centred, whose
    rows differ by no more than rounding.
    """
    n = x.shape[1]
    rows = x.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.square(rows).sum((1, 2))
        mean = rows.mean(axis=1)  # (w, d)
        ok = np.isfinite(total) & (total > 0)
        if centred:
            rows -= mean[:, None]
            noise = (FLOAT32 * np.finfo(x.dtype).eps) ** 2
            ok &= np.square(rows).sum((1, 2)) > noise * total if n > 1 else False
    result = np.full(mean.shape, np.nan)
    if not ok.any():
        return result
    v = _leading(rows if ok.all() else rows[ok])
    along = np.vecdot(v, mean[ok])
    largest = np.take_along_axis(v, np.abs(v).argmax(-1)[:, None], axis=-1)[:, 0]
    # A product at the level of rounding has no sign of its own.
    vanishes = np.abs(along) <= 1e-14 * np.sqrt(total[ok])
    result[ok] = v * np.where(np.where(vanishes, largest, along) < 0, -1.0, 1.0)[:, None]
    return result


def _leading(x: np.ndarray) -> np.ndarray:
    """(w, d) unit first right singular vectors of x (w, n, d) float64, by the smaller of XX' and X'X."""
    _, n, d = x.shape
    across = x.transpose(0, 2, 1)
    v = (
        np.matmul(across, leading(np.matmul(x, across))[1][..., None])[..., 0]
        if n <= d
        else leading(np.matmul(across, x))[1]
    )
    result: np.ndarray = v / np.sqrt(np.vecdot(v, v))[:, None]
    return result
