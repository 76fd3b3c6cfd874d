"""Every two places of several spaces compared by every measure, over the occurrences that they have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ctxexp.errors import ConfigError, DataError, MetricError
from ctxexp.measuring.bootstrap import MOST, Curve, Resamples, Units, interval
from ctxexp.measuring.streams import Stream
from ctxexp.progress import Progress, Silent
from ctxexp.report.wording import unique_labels
from ctxexp_compare.matched import matched
from ctxexp_compare.measure import Sample, TwoSpaces
from ctxexp_compare.neighbours import label_overlap
from ctxexp_compare.space import Space

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MEMORY = 2**30  # bytes of sides that are held at a time
NEIGHBOURS = 10  # of the share of them that are the same word


class At(NamedTuple):
    """A layer of one of the spaces."""

    label: str
    layer: int

    def __str__(self) -> str:
        return f"{self.label}, layer {self.layer}"


@dataclass(frozen=True)
class Matrix:
    """One measure between every two places, (p, p) each, rows A, columns B: values with 95% intervals, the mean and sd
    of permuted rows, and `adjusted`: (value - chance) / (value of a space with itself - chance)."""

    measure: TwoSpaces
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    chance: np.ndarray
    sd: np.ndarray

    @property
    def adjusted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """0 at chance, 1 for a space with itself; its interval's ends."""
        with np.errstate(invalid="ignore", divide="ignore"):
            value, one, other = (
                (x - self.chance) / (self.measure.itself - self.chance) for x in (self.value, self.low, self.high)
            )
        return value, np.minimum(one, other), np.maximum(one, other)


@dataclass(frozen=True)
class Similarities:
    """Spaces compared: `places` in the order of every matrix, over `sample`, drawn from `common` occurrences."""

    places: tuple[At, ...]
    matrices: dict[str, Matrix]
    sample: Sample
    common: int
    text: str
    bootstrap: int = 1000
    same_word: np.ndarray | None = None  # (p, 2): share of near neighbours that are the same word, and by chance

    @property
    def frame(self) -> pd.DataFrame:
        """A row a measure and ordered pair of places: value, low, high, chance, chance_sd, adjusted and its ends, n."""
        import pandas as pd

        parts = []
        a, b = np.meshgrid(np.arange(len(self.places)), np.arange(len(self.places)), indexing="ij")
        for name, found in self.matrices.items():
            columns: dict[str, Any] = {"measure": name}
            for end, of in (("a", a), ("b", b)):
                columns[f"run_{end}"] = [self.places[i].label for i in of.ravel()]
                columns[f"layer_{end}"] = [self.places[i].layer for i in of.ravel()]
            names = "value", "low", "high", "chance", "chance_sd", "adjusted", "adjusted_low", "adjusted_high"
            given = found.value, found.low, found.high, found.chance, found.sd, *found.adjusted
            columns |= {key: matrix.ravel() for key, matrix in zip(names, given, strict=True)}
            parts.append(pd.DataFrame({**columns, "n": len(self.sample)}))
        return pd.concat(parts, ignore_index=True)

    def plot(self, measure: str | None = None) -> Figure:
        """The heat map of one measure, of the first if none is named. Raises MetricError naming those there are."""
        from ctxexp_compare.figure import heat_map

        name = measure or next(iter(self.matrices))
        if name not in self.matrices:
            raise MetricError(f"no measure {name!r} here: {', '.join(self.matrices)}")
        return heat_map(self, name)

    def _repr_html_(self) -> str:
        """Adjusted values, a matrix a measure."""
        import pandas as pd

        names = [str(place) for place in self.places]
        tables = [
            f"<p>{name}, adjusted for chance</p>"
            + pd.DataFrame(found.adjusted[0], names, names).to_html(float_format="{:.2f}".format)
            for name, found in self.matrices.items()
        ]
        return "".join(tables)


def similarities(
    spaces: Sequence[Space],
    measures: Sequence[TwoSpaces],
    *,
    sample: int = 2000,
    layers: int | None = None,
    seed: int = 0,
    bootstrap: int = 1000,
    permutations: int = 20,
    progress: Progress | None = None,
) -> Similarities:
    """Every two places of the spaces under every measure, over at most `sample` common occurrences.

    `layers`: at most so many of each space, evenly spaced, the first and the last among them (None: all).
    `permutations` where chance has no closed form. Raises DataError where the spaces have too little in common,
    ConfigError for numbers that can't be.
    """
    for key, number, least in (("sample", sample, 5), ("layers", layers or 2, 2), ("bootstrap", bootstrap, 0)):
        if number < least:
            raise ConfigError(f"{key}={number}: expected at least {least}")
    spaces = [replace(space, label=label) for label, space in unique_labels([(s.label, s) for s in spaces])]
    chosen, rows, common = matched(spaces, sample=sample, seed=seed)
    for one in measures:
        if len(chosen) < one.least:
            raise DataError(
                f"{one.label} needs {one.least} occurrences, but {len(chosen)} are common to "
                f"{', '.join(s.label for s in spaces)}; give them more text"
            )
    places, reads = [], []
    for space, at in zip(spaces, rows, strict=True):
        for number in spread(space.layers.numbers, layers):
            places.append(At(space.label, number))
            reads.append(_reader(space, number, at))
    resamples = Resamples(_units(chosen), bootstrap, np.random.default_rng([seed, Stream.RESAMPLE]))
    found, shown = {}, progress or Silent()
    with shown.stage("compare", total=len(measures) * len(places), unit="places") as stage:
        for one in measures:
            found[one.label] = _matrix(one, reads, chosen, resamples, permutations, stage.advance)
    words = chosen.words
    same = None
    if words is not None and len(chosen) > NEIGHBOURS + 1 and len(np.unique(words)) < len(words):
        same = np.array([label_overlap(read(), words, NEIGHBOURS) for read in reads])
    text = (
        f"{common:,} common occurrences"
        if len(chosen) == common
        else f"{len(chosen):,} of {common:,} common occurrences"
    )
    return Similarities(tuple(places), found, chosen, common, text, bootstrap, same)


def spread(numbers: Sequence[int], most: int | None) -> list[int]:
    """At most so many of the numbers, evenly spaced, first and last among them."""
    if most is None or len(numbers) <= most:
        return list(numbers)
    return [numbers[round(at)] for at in np.linspace(0, len(numbers) - 1, most)]


def _reader(space: Space, layer: int, rows: np.ndarray) -> Callable[[], np.ndarray]:
    return lambda: np.asarray(space.layers.layer(layer)[rows], np.float32)


def _units(sample: Sample) -> Units:
    known, number = np.unique(sample.blocks, return_inverse=True)
    return Units(sample.unit, len(known), number % MOST, number % MOST)


def _matrix(
    measure: TwoSpaces,
    reads: Sequence[Callable[[], np.ndarray]],
    sample: Sample,
    resamples: Resamples,
    permutations: int,
    advance: Callable[[int], None],
) -> Matrix:
    """The measure between every two places; sides are held as far as memory allows, else made again."""
    p, units = len(reads), _units(sample)
    value, low, high, chance, sd = np.full((5, p, p), np.nan)
    for held, j, b in _sides(measure, reads, sample):
        rows = [i for i in held if not measure.symmetric or i <= j]
        scores = [measure.score(held[i], b) for i in rows]
        nothing = np.full(len(sample), np.nan)
        moved = [nothing if s.moved is None or i == j else s.moved for i, s in zip(rows, scores, strict=True)]
        blocks = np.array([np.bincount(units.of_row, one, minlength=units.n_blocks) for one in moved])
        curve = Curve(np.array([s.value for s in scores]), blocks.reshape(len(rows), units.n_blocks))
        ends = interval(resamples.of(curve))
        for at, i in enumerate(rows):
            value[i, j], low[i, j], high[i, j] = curve.value[at], ends[0][at], ends[1][at]
            chance[i, j], sd[i, j] = measure.chance(held[i], b, sample, permutations)
        if j in held:
            advance(1)
    if measure.symmetric:
        for matrix in (value, low, high, chance, sd):
            matrix[np.tril_indices(p, -1)] = matrix.T[np.tril_indices(p, -1)]
    return Matrix(measure, value, low, high, chance, sd)


def _sides(
    measure: TwoSpaces, reads: Sequence[Callable[[], np.ndarray]], sample: Sample
) -> Iterator[tuple[dict[int, Any], int, Any]]:
    """(sides that are held, a place's number, its side) such that every two places meet once."""
    at = 0
    while at < len(reads):
        held = {at: measure.side(reads[at](), sample)}
        most = max(1, MEMORY // max(1, _size(held[at])))
        for i in range(at + 1, min(at + most, len(reads))):
            held[i] = measure.side(reads[i](), sample)
        for j in range(at if measure.symmetric else 0, len(reads)):
            yield held, j, held[j] if j in held else measure.side(reads[j](), sample)
        at += len(held)


def _size(side: Any) -> int:
    """Bytes of a side's arrays."""
    own = getattr(side, "nbytes", None)
    if own is not None:
        return int(own)
    return sum(part.nbytes for part in side if isinstance(part, np.ndarray)) if isinstance(side, tuple) else 0
