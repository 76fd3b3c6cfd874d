"""The leading eigenpairs of many positive semi-definite operators at once, with a bound on their error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

TOLERANCE = 4e-7  # of the eigenvalue: a bound, mostly a loose one


@dataclass
class Leading:
    """Largest eigenvalue and its eigenvector, per operator, and whether the iteration converged."""

    value: np.ndarray  # (w,) float64
    vector: np.ndarray  # (w, size) float64, unit norm
    converged: np.ndarray  # (w,) bool


def lanczos(
    apply: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    *,
    checks: tuple[int, ...],
    vectors: bool = False,
    tolerance: float = TOLERANCE,
) -> Leading:
    """Leading eigenpairs of w operators by Lanczos iteration with full reorthogonalisation.

    `apply` maps (w, size) to (w, size), one positive semi-definite operator per row; `start` is (w, size) float32, with
    a share of every direction. A Ritz value with residual r and gap g to the next one is within min(r, r^2 / g) of an
    eigenvalue, its vector within r / g (Parlett, The Symmetric Eigenvalue Problem, theorem 11.7.1). A pair is taken at
    the first of its `checks` (numbers of steps) where that is below the tolerance (with `vectors`, where the vector's
    is too: it settles later than its value), so that a group's result doesn't depend on the others of its block; pairs
    that have not converged at the last check are for LAPACK.
    """
    w, size = start.shape
    most = min(size, checks[-1])
    basis = np.zeros((w, most, size), start.dtype)
    t = np.zeros((w, most, most))
    out = Leading(np.full(w, np.nan), np.zeros((w, size)), np.zeros(w, bool))
    rounding = 8 * float(np.finfo(start.dtype).eps)
    largest = np.zeros(w)
    v = start / np.sqrt(np.vecdot(start, start))[:, None]
    for j in range(most):
        basis[:, j] = v
        z = apply(v)
        krylov = basis[:, : j + 1]
        for _ in range(2):  # in float32 one sweep leaves the basis askew, and spectra of low rank wrong
            h = np.matmul(krylov, z[..., None])
            z = z - np.matmul(h.transpose(0, 2, 1), krylov)[:, 0]
            t[:, j, : j + 1] += h[..., 0]
        t[:, :j, j] = t[:, j, :j]
        beta = np.sqrt(np.vecdot(z, z)).astype(np.float64)
        steps = j + 1
        if steps in checks or steps == most:
            theta, y = np.linalg.eigh(t[:, :steps, :steps])
            top = theta[:, -1]
            residual = beta * np.abs(y[:, -1, -1])
            gap = np.maximum(top - (theta[:, -2] if steps > 1 else 0.0), 1e-300)
            bound = residual / gap * top if vectors else np.minimum(residual, residual * residual / gap)
            is_done = ~out.converged & (bound <= tolerance * top)
            if is_done.any():
                out.value[is_done] = top[is_done]
                out.vector[is_done] = np.matmul(y[is_done, None, :, -1], basis[is_done, :steps])[:, 0]
                out.converged |= is_done
                if out.converged.all():
                    break
        # A remainder at rounding level means that the Krylov space is complete: go on with zeros, which change nothing.
        largest = np.maximum(largest, t[:, j, j])
        with np.errstate(divide="ignore"):
            scale = np.where(beta > rounding * largest, 1 / beta, 0.0)
        v = z * scale.astype(z.dtype)[:, None]
    return out
