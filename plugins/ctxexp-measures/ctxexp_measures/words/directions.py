"""The first principal direction of many groups of rows at once: the vector, where `spectra` gives its share."""

from __future__ import annotations

import numpy as np

FLOAT32 = 16  # rounding errors of sums of many terms, in their epsilon, that are no spread
BATCHED = 16  # up to so many rows or columns all eigenvectors of all groups are quicker than the first, group by group


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
        np.matmul(across, _eigenvectors(np.matmul(x, across))[..., None])[..., 0]
        if n <= d
        else _eigenvectors(np.matmul(across, x))
    )
    return v / np.sqrt(np.vecdot(v, v))[:, None]


def _eigenvectors(moments: np.ndarray) -> np.ndarray:
    """(w, m) eigenvector of the largest eigenvalue of each symmetric (m, m)."""
    from scipy.linalg import eigh

    m = moments.shape[-1]
    if m <= BATCHED:
        return np.linalg.eigh(moments)[1][..., -1]
    return np.array([eigh(one, subset_by_index=[m - 1, m - 1], check_finite=False)[1][:, 0] for one in moments])
