"""Every two places of several spaces compared by every measure, over the occurrences that they have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from ctxexp.errors import ConfigError, DataError, MetricError
from ctxexp.measuring.bootstrap import MOST, Curve, Resamples, Units, interval
from ctxexp.measuring.streams import Stream
from ctxexp.progress import Progress, Silent
from ctxexp.report.wording import unique_labels
from ctxexp_compare.control import negative_control, unit_norm
from ctxexp_compare.matched import matched
from ctxexp_compare.measure import Chance, Null, RowChoice, Sample, TwoSpaces
from ctxexp_compare.neighbours import label_overlap
from ctxexp_compare.space import Space

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MEMORY = 2**30  # bytes of sides that are held at a time
NEIGHBOURS = 10  # of the share of them that are the same word
ROOM = 1e-4  # between chance and a space with itself: of less, rounding makes the adjusted value


class At(NamedTuple):
    """A layer of one of the spaces."""

    label: str
    layer: int

    def __str__(self) -> str:
        return f"{self.label}, layer {self.layer}"


@dataclass(frozen=True)
class Matrix:
    """One measure between every two places, (p, p) each, rows A, columns B: values with 95% intervals, and the mean of
    permuted rows, within words or free.

    `adjusted`: (value - chance) / (value of a space with itself - chance), 0 at chance, 1 for a space with itself, and
    its interval's ends; NaN where chance leaves a space nothing (equal vectors of a word, within words). `free`: the
    mean where rows are permuted whatever their word. `control`: the measure between two spaces of a random vector a
    word, raw and adjusted; NaN where words are unknown.
    """

    measure: TwoSpaces
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    chance: np.ndarray
    sd: np.ndarray
    free: np.ndarray
    adjusted: tuple[np.ndarray, np.ndarray, np.ndarray]
    control: tuple[float, float] = (float("nan"), float("nan"))


@dataclass(frozen=True)
class Similarities:
    """Spaces compared: `places` in the order of every matrix, over `sample`, drawn from `common` occurrences.

    `row_choice` says whether rows are at norm 1, `null` what chance permutes, `warnings` what a reader has to know."""

    places: tuple[At, ...]
    matrices: dict[str, Matrix]
    sample: Sample
    common: int
    text: str
    bootstrap: int = 1000
    same_word: np.ndarray | None = None  # (p, 2): share of near neighbours that are the same word, and by chance
    null: Null = "words"
    row_choice: RowChoice = "unit_norm"
    warnings: tuple[str, ...] = ()

    @property
    def frame(self) -> pd.DataFrame:
        """A row a measure and ordered pair of places: value, low, high, chance, chance_sd (NaN in closed forms within
        words), free, adjusted and its ends, n."""
        import pandas as pd

        parts = []
        a, b = np.meshgrid(np.arange(len(self.places)), np.arange(len(self.places)), indexing="ij")
        for name, found in self.matrices.items():
            columns: dict[str, Any] = {"measure": name}
            for end, of in (("a", a), ("b", b)):
                columns[f"run_{end}"] = [self.places[i].label for i in of.ravel()]
                columns[f"layer_{end}"] = [self.places[i].layer for i in of.ravel()]
            names = "value", "low", "high", "chance", "chance_sd", "free", "adjusted", "adjusted_low", "adjusted_high"
            given = found.value, found.low, found.high, found.chance, found.sd, found.free, *found.adjusted
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
    null: Null = "words",
    rows: RowChoice = "unit_norm",
    progress: Progress | None = None,
) -> Similarities:
    """Every two places of the spaces under every measure, over at most `sample` common occurrences.

    `layers`: at most so many of each space, evenly spaced, the first and the last among them (None: all).
    `permutations` where chance has no closed form. `null`: chance permutes rows within word types (words that occur
    once are left out), or freely; spaces without words know the free one alone. `rows`: at norm 1, so that a few
    massive ones don't decide, or as they are. Raises DataError where the spaces have too little in common, ConfigError
    for numbers that can't be.
    """
    for key, number, least in (("sample", sample, 5), ("layers", layers or 2, 2), ("bootstrap", bootstrap, 0)):
        if number < least:
            raise ConfigError(f"{key}={number}: expected at least {least}")
    for key, given, known in (("null", null, get_args(Null)), ("rows", rows, get_args(RowChoice))):
        if given not in known:
            raise ConfigError(f"{key}={given}: expected {' or '.join(known)}")
    spaces = [replace(space, label=label) for label, space in unique_labels([(s.label, s) for s in spaces])]
    chosen, rows_of, common = matched(spaces, sample=sample, seed=seed, null=null)
    for one in measures:
        if len(chosen) < one.least:
            raise DataError(
                f"{one.label} needs {one.least} occurrences, but {len(chosen)} are common to "
                f"{', '.join(s.label for s in spaces)}; give them more text"
            )
    places, reads = [], []
    for space, at in zip(spaces, rows_of, strict=True):
        for number in spread(space.layers.numbers, layers):
            places.append(At(space.label, number))
            reads.append(_reader(space, number, at, rows))
    resamples = Resamples(_units(chosen), bootstrap, np.random.default_rng([seed, Stream.RESAMPLE]))
    found, shown = {}, progress or Silent()
    with shown.stage("compare", total=len(measures) * len(places), unit="places") as stage:
        for one in measures:
            found[one.label] = _matrix(one, reads, chosen, resamples, permutations, rows, stage.advance)
    words = chosen.words
    same = None
    if words is not None and len(chosen) > NEIGHBOURS + 1 and len(np.unique(words)) < len(words):
        same = np.array([label_overlap(read(), words, NEIGHBOURS) for read in reads])
    text = (
        f"{common:,} common occurrences"
        if len(chosen) == common
        else f"{len(chosen):,} of {common:,} common occurrences"
    )
    level: Null = "free" if chosen.strata is None else "words"
    warnings = tuple(told for space in spaces if (told := _merged(space)))
    return Similarities(tuple(places), found, chosen, common, text, bootstrap, same, level, rows, warnings)


def spread(numbers: Sequence[int], most: int | None) -> list[int]:
    """At most so many of the numbers, evenly spaced, first and last among them."""
    if most is None or len(numbers) <= most:
        return list(numbers)
    return [numbers[round(at)] for at in np.linspace(0, len(numbers) - 1, most)]


def _reader(space: Space, layer: int, rows: np.ndarray, choice: RowChoice) -> Callable[[], np.ndarray]:
    def read() -> np.ndarray:
        x = np.asarray(space.layers.layer(layer)[rows], np.float32)
        return unit_norm(x) if choice == "unit_norm" else x

    return read


def _merged(space: Space) -> str:
    """The warning of a space some of whose words share a vector with the next word; empty where none do."""
    found = space.merged()
    if not found:
        return ""
    one, other = space.words(np.array(found[0]))
    return (
        f"{space.label}: {len(found):,} of {len(space.rows):,} occurrences have the very vector of the word before "
        f"them, since one piece covers both ({one!r} and {other!r}, say): each other's neighbours whatever they mean"
    )


def _units(sample: Sample) -> Units:
    known, number = np.unique(sample.blocks, return_inverse=True)
    return Units(sample.unit, len(known), number % MOST, number % MOST)


def _matrix(
    measure: TwoSpaces,
    reads: Sequence[Callable[[], np.ndarray]],
    sample: Sample,
    resamples: Resamples,
    permutations: int,
    choice: RowChoice,
    advance: Callable[[int], None],
) -> Matrix:
    """The measure between every two places; sides are held as far as memory allows, else made again."""
    p, units = len(reads), _units(sample)
    value, low, high, chance, sd, free, adjusted, under, over = np.full((9, p, p), np.nan)
    whole = replace(sample, strata=None)
    every = value, low, high, chance, sd, free, adjusted, under, over
    for held, j, b in _sides(measure, reads, sample):
        rows = [i for i in held if not measure.symmetric or i <= j]
        scores = [measure.score(held[i], b) for i in rows]
        nothing = np.full(len(sample), np.nan)
        moved = [nothing if s.moved is None or i == j else s.moved for i, s in zip(rows, scores, strict=True)]
        levels = [measure.chance(held[i], b, sample, permutations) for i in rows]
        pairs = list(zip(scores, levels, moved, strict=True))
        value[rows, j], low[rows, j], high[rows, j] = _estimate([s.value for s in scores], moved, units, resamples)
        changed = [_adjusted(measure.limit(len(sample)), s.value, c, m, units) for s, c, m in pairs]
        adjusted[rows, j], under[rows, j], over[rows, j] = _estimate(
            [one for one, _ in changed], [m for _, m in changed], units, resamples
        )
        chance[rows, j], sd[rows, j] = [c.mean for c in levels], [c.sd for c in levels]
        free[rows, j] = (
            chance[rows, j]
            if sample.strata is None
            else [measure.chance(held[i], b, whole, permutations).mean for i in rows]
        )
        if j in held:
            advance(1)
    if measure.symmetric:
        for matrix in every:
            matrix[np.tril_indices(p, -1)] = matrix.T[np.tril_indices(p, -1)]
    control = negative_control(measure, sample, choice, permutations)
    return Matrix(measure, value, low, high, chance, sd, free, (adjusted, under, over), control)


def _adjusted(itself: float, value: float, chance: Chance, moved: np.ndarray, units: Units) -> tuple[float, np.ndarray]:
    """(value - chance) / (itself - chance), and how much each occurrence moves it through both terms, widened
    by the spread of permuted rows, which is all there is where two spaces share nothing."""
    room = itself - chance.mean
    if not abs(room) > ROOM:
        return float("nan"), np.full(len(moved), np.nan)
    found = moved / room
    if chance.moved is not None:
        found = found + chance.moved * (value - itself) / room**2
        by_unit = np.bincount(units.of_row, found, minlength=units.n_blocks)
        spread = float(np.sqrt((by_unit**2).sum()))
        if np.isfinite(chance.sd) and spread > 0:
            found = found * np.hypot(1, chance.sd / room / spread)
    return (value - chance.mean) / room, found


def _estimate(
    values: Sequence[float], moved: Sequence[np.ndarray], units: Units, resamples: Resamples
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values with the ends of their 95% intervals, (k,) each."""
    blocks = np.array([np.bincount(units.of_row, one, minlength=units.n_blocks) for one in moved])
    curve = Curve(np.array(values), blocks.reshape(len(values), units.n_blocks))
    return curve.value, *interval(resamples.of(curve))


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
