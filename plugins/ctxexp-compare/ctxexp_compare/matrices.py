"""Comparison of every two places of several spaces by every measure, over their common occurrences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from ctxexp.command import Progress
from ctxexp.errors import ConfigError, DataError, MetricError
from ctxexp.maths import Curve, Resamples, Stream, interval
from ctxexp.report import unique_labels
from ctxexp_compare.alignment import align
from ctxexp_compare.contract import Null, NullDistribution, RowNorm, Sample, TwoSpaces, negative_control, unit_norm
from ctxexp_compare.space import Space, evenly_spaced

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MEMORY = 2**30  # bytes of sides in memory at a time
ROOM = 1e-4  # between chance and a space with itself: of less, rounding makes the adjusted value


class SpaceLayer(NamedTuple):
    """One layer of one of the spaces."""

    label: str
    layer: int

    def __str__(self) -> str:
        return f"{self.label}, layer {self.layer}"


@dataclass(frozen=True)
class Matrix:
    """Arrays (p, p) of one measure between every two places, rows A, columns B: values with 95% intervals, and the mean
    of permuted rows, within words or free.

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
    control: tuple[float, float]


@dataclass(frozen=True)
class Similarities:
    """Result of a comparison: `places` in the order of every matrix, over `sample`, drawn from `common` occurrences.

    `row_choice`: whether rows are at norm 1. `null`: the rows among which chance permutes. `warnings`: facts that a
    reader has to know."""

    places: tuple[SpaceLayer, ...]
    matrices: dict[str, Matrix]
    sample: Sample
    common: int
    text: str
    null: Null
    row_choice: RowNorm
    warnings: tuple[str, ...]

    @property
    def frame(self) -> pd.DataFrame:
        """Table with a row for each measure and ordered pair of places: value, low, high, chance, chance_sd (NaN in
        closed forms within words), free, adjusted and its ends, n."""
        import pandas as pd

        parts = []
        a, b = np.meshgrid(np.arange(len(self.places)), np.arange(len(self.places)), indexing="ij")
        for name, matrix in self.matrices.items():
            columns: dict[str, Any] = {"measure": name}
            for end, of in (("a", a), ("b", b)):
                columns[f"run_{end}"] = [self.places[i].label for i in of.ravel()]
                columns[f"layer_{end}"] = [self.places[i].layer for i in of.ravel()]
            names = "value", "low", "high", "chance", "chance_sd", "free", "adjusted", "adjusted_low", "adjusted_high"
            values = matrix.value, matrix.low, matrix.high, matrix.chance, matrix.sd, matrix.free, *matrix.adjusted
            columns |= {key: array.ravel() for key, array in zip(names, values, strict=True)}
            parts.append(pd.DataFrame({**columns, "n": len(self.sample)}))
        return pd.concat(parts, ignore_index=True)

    def plot(self, measure: str | None = None) -> Figure:
        """Heat map of one measure, of the first if none is named. Raises MetricError for another name."""
        from ctxexp_compare.figure import heat_map

        name = measure or next(iter(self.matrices))
        if name not in self.matrices:
            raise MetricError(f"no measure {name!r} here: {', '.join(self.matrices)}")
        return heat_map(self, name)

    def _repr_html_(self) -> str:
        """HTML tables of adjusted values, a matrix for each measure."""
        import pandas as pd

        names = [str(place) for place in self.places]
        tables = [
            f"<p>{name}, adjusted for chance</p>"
            + pd.DataFrame(matrix.adjusted[0], names, names).to_html(float_format="{:.2f}".format)
            for name, matrix in self.matrices.items()
        ]
        return "".join(tables)


@dataclass(frozen=True)
class ComparisonOptions:
    """Choices of a comparison.

    Args:
        sample: How many common occurrences are compared at most.
        layers: How many of each space, evenly spaced, the first and the last among them (None: all).
        seed: Of the sample and of draws.
        bootstrap: Replicates behind each interval.
        permutations: Their number where chance has no closed form.
        null: Chance permutes rows within word types (words that occur once are left out), or freely; freely only where
            a space has no words.
        rows: At norm 1, so that a few massive ones don't decide, or as they are.

    Raises ConfigError for impossible ones.
    """

    sample: int = 2000
    layers: int | None = None
    seed: int = 0
    bootstrap: int = 1000
    permutations: int = 20
    null: Null = "words"
    rows: RowNorm = "unit_norm"

    def __post_init__(self) -> None:
        for key, choice, choices in (("null", self.null, get_args(Null)), ("rows", self.rows, get_args(RowNorm))):
            if choice not in choices:
                raise ConfigError(f"{key}={choice}: expected {' or '.join(choices)}")


def similarities(
    spaces: Sequence[Space], measures: Sequence[TwoSpaces], *, progress: Progress | None = None, **choices: Any
) -> Similarities:
    """Compare every two places of the spaces by every measure, over their common occurrences; `choices` are those of
    `ComparisonOptions`. Raises DataError where the spaces have too few occurrences in common, ConfigError for
    impossible choices.
    """
    options = ComparisonOptions(**choices)
    seed, rows = options.seed, options.rows
    spaces = [replace(space, label=label) for label, space in unique_labels([(s.label, s) for s in spaces])]
    common_sample, rows_of, common = align(spaces, sample=options.sample, seed=seed, null=options.null)
    for one in measures:
        if len(common_sample) < one.min_rows:
            raise DataError(
                f"{one.label} needs {one.min_rows} occurrences, but {len(common_sample)} are common to "
                f"{', '.join(s.label for s in spaces)}; give them more text"
            )
    places, reads = [], []
    for space, at in zip(spaces, rows_of, strict=True):
        for number in evenly_spaced(space.layers.layer_numbers, options.layers):
            places.append(SpaceLayer(space.label, number))
            reads.append(_reader(space, number, at, rows))
    rng = np.random.default_rng([seed, Stream.RESAMPLE])
    resamples = Resamples.of_clusters(common_sample.blocks, options.bootstrap, rng)
    matrices, display = {}, Progress.of(progress)
    with display.stage("compare", total=len(measures) * len(places), unit="places") as stage:
        for one in measures:
            matrices[one.label] = _matrix(one, reads, common_sample, resamples, options, stage.advance)
    text = (
        f"{common:,} common occurrences"
        if len(common_sample) == common
        else f"{len(common_sample):,} of {common:,} common occurrences"
    )
    level: Null = "free" if common_sample.strata is None else "words"
    warnings = tuple(warning for space in spaces if (warning := _shared_vector_warning(space)))
    return Similarities(tuple(places), matrices, common_sample, common, text, level, rows, warnings)


def _reader(space: Space, layer: int, rows: np.ndarray, choice: RowNorm) -> Callable[[], np.ndarray]:
    def read() -> np.ndarray:
        x = np.asarray(space.layers.layer(layer)[rows], np.float32)
        return unit_norm(x) if choice == "unit_norm" else x

    return read


def _shared_vector_warning(space: Space) -> str:
    """Warning that words of the space share a vector with the word before them; empty where none do."""
    pairs = space.shared_vectors()
    if not pairs:
        return ""
    one, other = space.words(np.array(pairs[0]))
    return (
        f"{space.label}: {len(pairs):,} of {len(space.rows):,} occurrences have the very vector of the word before "
        f"them, since one piece covers both ({one!r} and {other!r}, say): each other's neighbours whatever they mean"
    )


def _matrix(
    measure: TwoSpaces,
    reads: Sequence[Callable[[], np.ndarray]],
    sample: Sample,
    resamples: Resamples,
    options: ComparisonOptions,
    advance: Callable[[int], None],
) -> Matrix:
    """The measure between every two places; sides stay in memory as far as it allows, else are computed again."""
    p, permutations = len(reads), options.permutations
    value, low, high, chance, sd, free, adjusted, under, over = np.full((9, p, p), np.nan)
    whole = replace(sample, strata=None)
    every = value, low, high, chance, sd, free, adjusted, under, over
    for sides, j, b in _sides(measure, reads, sample):
        rows = [i for i in sides if not measure.symmetric or i <= j]
        scores = [measure.score(sides[i], b) for i in rows]
        nothing = np.full(len(sample), np.nan)
        moves = [nothing if s.influence is None or i == j else s.influence for i, s in zip(rows, scores, strict=True)]
        levels = [measure.chance(sides[i], b, sample, permutations) for i in rows]
        pairs = list(zip(scores, levels, moves, strict=True))
        value[rows, j], low[rows, j], high[rows, j] = _estimate([s.value for s in scores], moves, resamples)
        changed = [_adjusted(measure.self_score_at(len(sample)), s.value, c, m, resamples) for s, c, m in pairs]
        adjusted[rows, j], under[rows, j], over[rows, j] = _estimate(
            [one for one, _ in changed], [m for _, m in changed], resamples
        )
        chance[rows, j], sd[rows, j] = [c.mean for c in levels], [c.sd for c in levels]
        free[rows, j] = (
            chance[rows, j]
            if sample.strata is None
            else [measure.chance(sides[i], b, whole, permutations).mean for i in rows]
        )
        if j in sides:
            advance(1)
    if measure.symmetric:
        for matrix in every:
            matrix[np.tril_indices(p, -1)] = matrix.T[np.tril_indices(p, -1)]
    control = negative_control(measure, sample, options.rows, permutations)
    return Matrix(measure, value, low, high, chance, sd, free, (adjusted, under, over), control)


def _adjusted(
    self_score: float, value: float, chance: NullDistribution, influence: np.ndarray, resamples: Resamples
) -> tuple[float, np.ndarray]:
    """(value - chance) / (itself - chance), and how much each occurrence moves it through both terms, widened
    by the spread of permuted rows, which is all there is where two spaces share nothing."""
    room = self_score - chance.mean
    if not abs(room) > ROOM:
        return float("nan"), np.full(len(influence), np.nan)
    effect = influence / room
    if chance.influence is not None:
        effect = effect + chance.influence * (value - self_score) / room**2
        size = float(np.sqrt((resamples.by_block(effect) ** 2).sum()))
        if np.isfinite(chance.sd) and size > 0:
            effect = effect * np.hypot(1, chance.sd / room / size)
    return (value - chance.mean) / room, effect


def _estimate(
    values: Sequence[float], influence: Sequence[np.ndarray], resamples: Resamples
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values with the ends of their 95% intervals, (k,) each."""
    blocks = np.array([resamples.by_block(one) for one in influence])
    curve = Curve(np.array(values), blocks.reshape(len(values), -1 if values else 0))
    return curve.value, *interval(resamples.of(curve))


def _sides(
    measure: TwoSpaces, reads: Sequence[Callable[[], np.ndarray]], sample: Sample
) -> Iterator[tuple[dict[int, Any], int, Any]]:
    """Yields (sides in memory, a place's number, its side) such that every two places come together once."""
    at = 0
    while at < len(reads):
        sides = {at: measure.prepare_side(reads[at](), sample)}
        most = max(1, MEMORY // max(1, _size(sides[at])))
        for i in range(at + 1, min(at + most, len(reads))):
            sides[i] = measure.prepare_side(reads[i](), sample)
        for j in range(at if measure.symmetric else 0, len(reads)):
            yield sides, j, sides[j] if j in sides else measure.prepare_side(reads[j](), sample)
        at += len(sides)


def _size(side: Any) -> int:
    """Bytes of a side's arrays."""
    own = getattr(side, "nbytes", None)
    if own is not None:
        return int(own)
    return sum(part.nbytes for part in side if isinstance(part, np.ndarray)) if isinstance(side, tuple) else 0
