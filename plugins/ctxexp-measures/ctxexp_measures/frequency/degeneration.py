"""Degeneration: cone of the vectors, and existence of a direction from which all of them point away."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge

from ctxexp import Group, Metric, Output, Reading
from ctxexp.maths import effective_rank, mean_cosine
from ctxexp.report import write_csv
from ctxexp_measures.frequency.hull import chance_of_direction, cone_angles, negative_direction

BLOCK = 1024  # rows at a time
NOISE = 1e-6  # cosines up to this are not above 0: float32's rounding


class Degeneration(Metric):
    """Cone statistics of all hidden states of a layer, or of an embedding table (Gao et al. 2019).

    Over all rows h_i, with s the singular values of the uncentred rows:

    - mean_cosine: over all pairs of rows, in [-1, 1], by the closed form.
    - effective_rank: the exponential of the entropy of s / sum s (Roy and Vetterli 2007, Definition 1), in [1, d].
    - participation_ratio: (sum s^2)^2 / sum s^4, in [1, d].
    - energy_1, energy_2: share of the first and of the first two in sum s^2.
    - n, zeros, undefined: numbers of finite rows, of those of norm zero, and of rows with NaN or infinity.

    Over at most `rows` random rows of norm above zero (tested: their number):

    - positive_pairs: the share of pairs with a positive cosine.
    - cone_nearest, cone_mean, cone_aperture: angles (degrees) of the rows to the direction of their mean: smallest,
      mean and largest. cone_aperture is thus the HALF-angle of the cone about the mean direction that holds them.
    - cone_narrowest: the half-angle of the narrowest circular cone about any axis that holds them.
    - negative_direction: 1 if the linear programme finds v with <v, h_i> < 0 for every row, 0 if the rows' hull holds
      the origin (Theorems 1 and 2: of a last layer's hidden states it means that the loss of a token that never occurs
      has no minimum; of a table or another layer it is geometry only).
    - margin: max over |v|_2 <= 1 of min_i -<v, h_i> / |h_i|, in [0, 1].
    - lp_margin: the same over |v|_inf <= 1, in [0, sqrt d], which the linear programme maximises.
    - chance: the probability of a negative direction for so many random rows with fair signs (1 up to d rows, 1/2 at
      2 d): near 1, negative_direction says nothing.

    rows: rows that the hull's programmes and the pairs look at, at most
    """

    over = "corpus"
    measures_embedding_tables: ClassVar[bool] = True  # the rows of their special pieces included
    title = "Degeneration"
    reading = Reading(unit="cosine", main="mean_cosine")
    definition = "mean cosine over all pairs of rows; cone, spectrum and uniformly negative direction beside it"
    invariances = frozenset({"permutation", "scale"})

    def __init__(self, *, rows: Annotated[int, Ge(1)] = 10_000, seed: int = 0) -> None:
        self.rows, self.seed = rows, seed
        self._statistics: tuple[dict[str, float], np.ndarray] | None = None  # statistics, spectrum

    def update(self, group: Group) -> None:
        self._statistics = statistics(group.x, rows=self.rows, seed=self.seed)

    def compute(self) -> dict[str, float]:
        return (self._statistics or statistics(np.empty((0, 1)), rows=self.rows, seed=self.seed))[0]

    def outputs(self) -> dict[str, Output]:
        return {"spectrum": SpectrumOutput(self._statistics[1])} if self._statistics else {}


@dataclass(frozen=True)
class SpectrumOutput(Output):
    """Singular values (min(n, d),) in descending order."""

    values: np.ndarray

    def write(self, folder: Path) -> None:
        """Write spectrum.csv: singular values, relative to the first."""
        import pandas as pd

        values = self.values
        relative = values / values[0] if len(values) and values[0] > 0 else np.full(len(values), math.nan)
        table = pd.DataFrame({"i": range(1, len(values) + 1), "sigma": values, "relative": relative})
        write_csv(table, folder / "spectrum.csv")


def statistics(x: np.ndarray, *, rows: int, seed: int) -> tuple[dict[str, float], np.ndarray]:
    """The statistics of rows `x` (n, d), and the singular values (min(n, d),) in descending order; see `Degeneration`.

    Rows with NaN or infinity are left out and counted as `undefined`. Rows of norm zero are counted as `zeros`: they
    make `mean_cosine` NaN, and are left out of the spectrum and of the tested rows.
    """
    finite = np.isfinite(x.sum(axis=1, dtype=np.float64))
    undefined = int(np.count_nonzero(~finite))
    x = x[finite] if undefined else x
    zeros = int(np.count_nonzero(~x.any(axis=1)))
    nonzero = x[x.any(axis=1)] if zeros else x
    n, d = nonzero.shape
    spectrum = _spectrum(nonzero)
    energy = spectrum**2
    share = energy / energy.sum() if energy.sum() > 0 else np.full(len(energy), math.nan)
    stats = {
        "mean_cosine": float(mean_cosine(x)) if len(x) > 1 else math.nan,
        "effective_rank": effective_rank(spectrum),
        "participation_ratio": float(1 / (share @ share)) if n else math.nan,
        "energy_1": float(share[0]) if n else math.nan,
        "energy_2": float(share[:2].sum()) if n else math.nan,
    }
    if n > rows:
        nonzero = nonzero[np.sort(np.random.default_rng(seed).choice(n, rows, replace=False))]
    programme, widest = negative_direction(nonzero, norm="inf"), negative_direction(nonzero)
    cone = cone_angles(nonzero, direction=widest)
    return {
        **stats,
        "positive_pairs": positive_pairs(nonzero),
        "cone_nearest": cone.nearest,
        "cone_mean": cone.mean,
        "cone_aperture": cone.widest,
        "cone_narrowest": cone.narrowest,
        "negative_direction": math.nan if math.isnan(programme.margin) else float(programme.v is not None),
        "lp_margin": programme.margin,
        "margin": widest.margin,
        "chance": chance_of_direction(len(nonzero), d),
        "tested": float(len(nonzero)),
        "n": float(len(x)),
        "zeros": float(zeros),
        "undefined": float(undefined),
    }, spectrum


def _spectrum(x: np.ndarray) -> np.ndarray:
    """Singular values (min(n, d),) of rows x (n, d), descending, through the smaller of the two Gram matrices."""
    n, d = x.shape
    if n <= d:
        exact = x.astype(np.float64)
        gram = exact @ exact.T
    else:
        gram = np.zeros((d, d))
        for i in range(0, n, BLOCK):
            exact = x[i : i + BLOCK].astype(np.float64)
            gram += exact.T @ exact
    return np.sqrt(np.clip(np.linalg.eigvalsh(gram)[::-1], 0, None))


def positive_pairs(x: np.ndarray) -> float:
    """Share of pairs of distinct rows of x (n, d) with a cosine above 0, in [0, 1].

    Cosines within 1e-6 of 0 are rounding, not above it. NaN without a pair, or with a zero row.
    """
    n = len(x)
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.sqrt(np.vecdot(x, x).astype(np.float64))
    if n < 2 or not (length > 0).all():
        return math.nan
    u, positive = (x / length[:, None]).astype(np.float32), 0
    for i in range(0, n, BLOCK):  # a block with itself, then with what follows
        block = u[i : i + BLOCK]
        positive += int(np.count_nonzero((block @ block.T)[np.triu_indices(len(block), 1)] > NOISE))
        positive += int(np.count_nonzero(block @ u[i + BLOCK :].T > NOISE))
    return positive / (n * (n - 1) / 2)
