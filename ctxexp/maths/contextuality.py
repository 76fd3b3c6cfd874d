"""How unlike two uses of one word are: 0 where context changes nothing, 1 where they are as unlike as two different
words of like frequency.

Two uses of a word at different places differ by their places too. So uses are compared at like places; what different
words say of two places is taken off; and the remainder is divided by how unlike different words at these places are.
Sums over groups of rows give all of it, and so does each use's influence: no pair is formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ctxexp.maths.word_mix import MixedWords

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SINGLE, OCTAVE = 16, 4  # places by themselves; then strata an octave
PARTIAL = 128  # rows that are added up in float32
MOST, PAIRS = 64, 1 << 20  # uses of a form in a stratum whose pairs are formed, and numbers held for that
ROUNDING = 1e-9  # of the weight of pairs, below which there is none


def strata(place: np.ndarray) -> np.ndarray:
    """The stratum of each place (n,): 0 to 15 are one each, then there are four an octave.

    Example:
        >>> strata(np.array([0, 15, 16, 18, 20, 31, 32])).tolist()
        [0, 15, 16, 16, 17, 19, 20]
    """
    beyond = np.floor(OCTAVE * np.log2(np.maximum(place, SINGLE) / SINGLE) + 1e-9).astype(np.int64)
    return np.where(place < SINGLE, place, SINGLE + beyond)


@dataclass(frozen=True, kw_only=True)
class Uses:
    """Uses of words, n rows of a text: what each is, and where it stands.

    `form` (n,) its number among those that `mix` weighs; `place` (n,) how many of the model's pieces stand before it in
    the window; `document` (n,) what it is drawn with; `neighbours` (n,) equal for uses between the same two words.
    """

    form: np.ndarray
    place: np.ndarray
    document: np.ndarray
    neighbours: np.ndarray
    mix: MixedWords

    @cached_property
    def counts(self) -> np.ndarray:
        """(forms,) uses of each form."""
        return np.bincount(self.form, minlength=len(self.mix.counts)).astype(np.float64)

    @cached_property
    def is_used(self) -> np.ndarray:
        """(forms,) bool: whether there is a use."""
        return self.counts > 0

    def subset(self, which: np.ndarray) -> Uses:
        """Some of the uses."""
        kept = {name: getattr(self, name)[which] for name in ("form", "place", "document", "neighbours")}
        return Uses(**kept, mix=self.mix)


class LayerContextuality(NamedTuple):
    """The value in a layer, and its sampling error."""

    value: float
    influence: np.ndarray | None = None  # (n,) of each use
    of_total: float = 0.0  # of each word of the text, whether it is used or not
    by_form: np.ndarray | None = None  # (3, forms) its numerator, its denominator and its pairs
    pair_noise: float = 0.0  # the variance that single pairs make, which the influences of both uses count twice


@dataclass(frozen=True, eq=False)
class Family:
    """Groups of rows that have a key in common, in cells of one place or of one row each."""

    rows: np.ndarray  # (m,) sorted by group, then place
    group_starts: np.ndarray  # (g,) among these rows
    cell_starts: np.ndarray  # (c,) likewise
    cells_of_group: np.ndarray  # (g,) how many
    place: np.ndarray  # (c,) of a cell

    @classmethod
    def of(cls, key: np.ndarray, place: np.ndarray, least: int = 2, *, of_rows: bool = False) -> Family:
        """That of rows with these keys (n,) at these places (n,), in groups of so many at least."""
        _, number, sizes = np.unique(key, return_inverse=True, return_counts=True)
        kept = np.flatnonzero(sizes[number] >= least)
        rows = kept[np.lexsort([place[kept], number[kept]])]
        begins_group = np.diff(number[rows], prepend=-1) != 0
        begins_cell = begins_group | (np.diff(place[rows], prepend=-1) != 0) | of_rows
        cells, groups = np.flatnonzero(begins_cell), np.flatnonzero(begins_group)
        of_group = np.bincount(np.cumsum(begins_group)[cells] - 1, minlength=len(groups))
        return cls(rows, groups, cells, of_group, place[rows][cells])

    def alike(self) -> list[np.ndarray]:
        """The cells of groups with equally many of them: (groups, cells) each."""
        first = np.cumsum(self.cells_of_group) - self.cells_of_group
        return [first[self.cells_of_group == k, None] + np.arange(k) for k in np.unique(self.cells_of_group).tolist()]

    @cached_property
    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Where parts of cells of at most `PARTIAL` rows begin, and which part each cell begins with."""
        starts = np.union1d(self.cell_starts, np.arange(0, len(self.rows), PARTIAL))
        return starts, np.searchsorted(starts, self.cell_starts)

    @cached_property
    def cell_of_row(self) -> np.ndarray:
        """(m,) the cell of each row."""
        return np.repeat(np.arange(len(self.cell_starts)), np.diff(self.cell_starts, append=len(self.rows)))

    def cell_sums(self, u: np.ndarray) -> np.ndarray:
        """(c, d): the sum of each cell's rows of u (n, d), float64 where there are several."""
        if len(self.cell_starts) == len(self.rows):
            return u[self.rows]
        starts, first = self.parts
        sums = _added_up(u, self.rows, np.ones(len(self.rows), u.dtype), starts).astype(np.float64)
        return sums if len(first) == len(sums) else _added_up(sums, np.arange(len(sums)), np.ones(len(sums)), first)

    def weights_of(self, finer: Family, weights: np.ndarray) -> csr_array:
        """(bands c, cells of `finer`): by it the sums of finer cells give those of this family's cells, each row times
        its weight (bands, n), which is one for all rows of a finer cell; `finer` has all rows."""
        from scipy.sparse import csr_array

        first = finer.rows[finer.cell_starts]
        cell_of_row = np.full(weights.shape[1], -1)
        cell_of_row[self.rows] = self.cell_of_row
        cell, of_cell = cell_of_row[first], weights[:, first] * (cell_of_row[first] >= 0)
        band, column = np.nonzero(of_cell)
        n = len(self.cell_starts)
        at = (band * n + cell[column], column)
        return csr_array((of_cell[band, column], at), shape=(len(weights) * n, len(first)))

    def group_sums(self, cell_sums: np.ndarray) -> np.ndarray:
        """(g, d): the sum of each group's cells (c, d)."""
        if len(self.cells_of_group) == len(cell_sums):
            return cell_sums
        first = np.cumsum(self.cells_of_group) - self.cells_of_group
        return _added_up(cell_sums, np.arange(len(cell_sums)), np.ones(len(cell_sums)), first)


def _added_up(x: np.ndarray, rows: np.ndarray, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """(len(starts), d): rows of x times their values, added up from each start to the next (reduceat is slower)."""
    from scipy.sparse import csr_array

    return csr_array((values, rows, np.append(starts, len(rows))), shape=(len(starts), len(x))) @ x


class Comparison:
    """Which uses are compared with which, and how much each pair counts: what is the same in all layers.

    Two uses of a form count where they stand in one `stratum` (n,) of places, in different documents, and not between
    the same two words. In each band of frequency a pair counts by its form's weight there over the square of the form's
    uses, so that forms count alike, and each in a stratum as it stands there. What different words say of two places
    counts by the weights of their uses. Pairs of places of one stratum form a grid, in one row.
    """

    def __init__(self, uses: Uses, stratum: np.ndarray) -> None:
        self.uses = uses
        places, first, self.place = np.unique(uses.place, return_index=True, return_inverse=True)
        self.stratum_of_place = np.unique(stratum[first], return_inverse=True)[1]  # ascending, as places are
        self.stratum = self.stratum_of_place[self.place]
        widths = np.bincount(self.stratum_of_place)
        self._first = np.cumsum(widths) - widths  # place of each stratum
        sizes = widths[self.stratum_of_place]
        self._row = np.cumsum(sizes) - sizes  # of each place, where its pairs begin in the grid
        self.p = np.repeat(np.arange(len(places)), sizes)  # (grid,) the first place, and the second
        self.q = np.arange(len(self.p)) - (self._row - self._first[self.stratum_of_place])[self.p]
        self.grid_stratum = self.stratum_of_place[self.p]
        self.diagonal = self.grid(np.arange(len(places)), np.arange(len(places)))
        form, document = _key(self.stratum, uses.form), _key(self.stratum, uses.document)
        near, both = _key(form, uses.neighbours), _key(form, uses.document)
        stratum_, document_, near_ = (Family.of(key, self.place) for key in (self.stratum, document, near))
        near_both = Family.of(_key(near, uses.document), self.place)
        form_, both_ = Family.of(form, self.place, least=1), Family.of(both, self.place)
        self._weighted = [(stratum_, form_)]  # families whose rows are weighed, and whose cells make theirs up
        if 2 * len(document_.cell_starts) < len(document_.rows):
            both_ = Family.of(both, self.place, least=1)
            self._weighted.append((document_, both_))
        else:  # adding up would hardly make fewer
            document_ = Family.of(document, self.place, of_rows=True)
        self._same_form = ((1, form_), (-1, both_), (-1, near_), (1, near_both))
        self._other_form = ((1, stratum_), (-1, form_), (-1, document_), (1, both_))
        self._pairs = {family: self._pairs_of_cells(family) for _, family in (*self._same_form, *self._other_form)}
        self._weigh()

    def grid(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Where the pairs of places p and q of one stratum stand in the grid."""
        return self._row[p] + q - self._first[self.stratum_of_place[p]]

    def _pairs_of_cells(self, family: Family) -> list[tuple[np.ndarray, np.ndarray]]:
        """By groups with equally many cells: these (groups, cells), and where their pairs stand in the grid."""
        places = [(i, family.place[i]) for i in family.alike()]
        return [(i, np.ascontiguousarray(self.grid(at[:, :, None], at[:, None, :]))) for i, at in places]

    def _weigh(self) -> None:
        """The weights of uses and pairs, and what they add up to."""
        uses, n = self.uses, np.maximum(self.uses.counts, 1)
        self.of_pair = (uses.mix.by_band(uses.is_used) / n**2)[:, uses.form]  # (bands, n)
        self.of_use = (uses.mix.shares(uses.is_used) / n)[:, uses.form]  # (bands, n)
        self._weights = {family: family.weights_of(finer, self.of_use) for family, finer in self._weighted}
        self.counts = sums = self._sums(np.ones((len(uses.form), 1)))  # of the uses of each cell
        pairs = sum(sign * self._by_place(f, sums[f], self.of_pair, of_pair=True) for sign, f in self._same_form)
        pairs = np.where(np.abs(pairs) > ROUNDING * np.abs(pairs).max(axis=1, keepdims=True), pairs, 0.0)
        between = self._between(sums)
        at = self._sum_over(self.place, self.of_use, len(self.diagonal))
        self.between_weight = np.where(between > ROUNDING * at[:, self.p] * at[:, self.q], between, 0.0)
        self.pair_weight = self._by_stratum(pairs)
        has = self.pair_weight > 0
        self.share = np.where(has[:, self.grid_stratum], pairs, 0.0)
        self.share /= np.where(has, self.pair_weight, 1.0)[:, self.grid_stratum]  # of a stratum's pairs, (bands, grid)
        uses_there = self._sum_over(self.stratum, self.of_use, has.shape[1])
        self.strata_weight = np.where(has, uses_there, 0.0)  # (bands, strata)

    def _by_stratum(self, values: np.ndarray) -> np.ndarray:
        """(bands, grid) added up over each stratum: (bands, strata)."""
        return self._sum_over(self.grid_stratum, values, len(self._first))

    @staticmethod
    def _sum_over(number: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
        """Values (bands, m) added up by number (m,): (bands, n)."""
        return np.stack([np.bincount(number, each, n) for each in values])

    def _by_place(self, family: Family, sums: np.ndarray, weight: np.ndarray, *, of_pair: bool = False) -> np.ndarray:
        """(bands, grid): the products of distinct rows of one group, added up by their places, each times the weights
        (bands, n) of both rows, or with `of_pair` times the first one's. `sums` of cells: (c, d), of rows that weigh
        alike, or of weighted rows (bands, c, d)."""
        rows, total = family.rows, np.zeros((len(weight), len(self.p)))
        of_cell = weight[:, rows[family.cell_starts]] if sums.ndim == 2 else np.ones((len(weight), sums.shape[1]))
        for i, where in self._pairs[family]:
            for band, w in enumerate(of_cell):
                if band == 0 or sums.ndim == 3:
                    x = sums[i] if sums.ndim == 2 else sums[band][i]
                    gram = np.vecdot(x, x)[..., None] if i.shape[1] == 1 else np.matmul(x, x.transpose(0, 2, 1))
                factor = w[i][:, :, None] * (1.0 if of_pair else w[i][:, None, :])
                total[band] += np.bincount(where.ravel(), np.multiply(gram, factor, order="C").ravel(), len(self.p))
        own = weight[:, rows] if of_pair else weight[:, rows] ** 2
        total[:, self.diagonal] -= self._sum_over(self.place[rows], own, len(self.diagonal))
        return total

    def _sums(self, u: np.ndarray) -> dict[Family, np.ndarray]:
        """The sums of the cells of each family: of forms (c, d), of whatever else stands at places weighted by band
        (bands, c, d)."""
        families = {family for _, family in (*self._same_form, *self._other_form)} - self._weights.keys()
        sums = {family: family.cell_sums(u) for family in families}
        for family, finer in self._weighted:
            sums[family] = (self._weights[family] @ sums[finer]).reshape(len(self.of_use), -1, u.shape[1])
        return sums

    def _between(self, sums: dict[Family, np.ndarray]) -> np.ndarray:
        nothing = np.zeros((len(self.of_use), len(self.p)))
        return sum((sign * self._by_place(f, sums[f], self.of_use) for sign, f in self._other_form), nothing)

    def _within(self, sums: dict[Family, np.ndarray]) -> np.ndarray:
        """(bands, strata): the products of the pairs of uses of a form, times their weights, added up."""
        total = np.zeros(self.pair_weight.shape)
        for sign, family in self._same_form:
            of_group, first = family.group_sums(sums[family]), family.rows[family.group_starts]
            products = np.vecdot(of_group, of_group) - np.diff(family.group_starts, append=len(family.rows))
            total += sign * self._sum_over(self.stratum[first], self.of_pair[:, first] * products, len(self._first))
        return total

    def measure(self, u: np.ndarray, *, influence: bool = False) -> LayerContextuality:
        """The contextuality of rows u (n, d) of norm 1, with `influence` that of forms too; NaN where no form has two
        uses that count."""
        has, weight = self.strata_weight > 0, self.strata_weight
        ok, sums = self.between_weight > 0, self._sums(u)
        between = self._between(sums)
        with np.errstate(invalid="ignore", divide="ignore"):
            within = self._within(sums) / self.pair_weight
            product = between / self.between_weight
            at_one = (between * ok)[:, self.diagonal].sum(1) / self.between_weight[:, self.diagonal].sum(1)
            own = np.where(ok[:, self.diagonal], product[:, self.diagonal], at_one[:, None])  # no two words: the mean
            own_of_both = (own[:, self.p] + own[:, self.q]) / 2
            by_place = self._by_place_or_mean(own_of_both - product, ok)
            numerator = np.where(has, 1 - within - self._by_stratum(self.share * by_place), 0.0)
            denominator = np.where(has, 1 - self._by_stratum(self.share * own_of_both), 0.0)
            of_band = (weight * numerator).sum(1) / (weight * denominator).sum(1)
        value = float(np.mean(of_band))
        if not influence or not np.isfinite(value):
            return LayerContextuality(value)
        rest = numerator - of_band[:, None] * denominator
        kernel = 1 - by_place - of_band[:, None] * (1 - own_of_both) - rest[:, self.grid_stratum]
        products = np.zeros(len(u))
        for sign, family in self._same_form:
            products += sign * self._products(family, u, family.group_sums(sums[family]))
        parts = [
            self._influence(u, sums, products, band, float(of_band[band]), kernel[band], product[band], rest[band])
            for band in range(len(of_band))
        ]
        scale = (weight * denominator).sum(1, keepdims=True)
        of_row, of_weight, of_share = (np.stack(part) / scale for part in zip(*parts, strict=True))
        by_count = self.uses.mix.band_influence(self.uses.is_used, of_weight, of_share)
        of_use = of_row.mean(axis=0) + by_count.of_word.mean(axis=0)[self.uses.form]
        noise = self._pair_noise(u, kernel, weight / scale / len(scale))
        kernels = 1 - by_place.mean(axis=0), 1 - own_of_both.mean(axis=0), np.full(len(self.p), 0.5)
        by_form = [np.bincount(self.uses.form, self._over_pairs(each), len(self.uses.counts)) for each in kernels]
        by_form[0] -= np.bincount(self.uses.form, products, len(self.uses.counts))
        return LayerContextuality(value, of_use, float(by_count.of_total.mean()), np.stack(by_form), noise)

    def _by_place_or_mean(self, difference: np.ndarray, ok: np.ndarray) -> np.ndarray:
        """(bands, grid): how two places differ; where no words tell, as two places of that stratum do on average, or
        of any."""
        apart = self.p != self.q
        known = ok & apart & ok[:, self.diagonal[self.p]] & ok[:, self.diagonal[self.q]]
        weight = np.where(known, self.between_weight, 0.0)
        total, weights = self._by_stratum(weight * np.where(known, difference, 0.0)), self._by_stratum(weight)
        anywhere = total.sum(1, keepdims=True) / np.maximum(weights.sum(1, keepdims=True), 1e-300)
        mean = np.where(weights > 0, total / np.where(weights > 0, weights, 1.0), anywhere)
        return np.where(known, difference, np.where(apart, mean[:, self.grid_stratum], 0.0))

    def _over_pairs(self, kernel: np.ndarray) -> np.ndarray:
        """(n,): the kernel (grid,) at the places of each use and those of its form that it is compared with, added
        up."""
        every = np.ones(len(self.uses.form))
        return sum(
            (sign * self._partners(f, every[:, None], self.counts[f], kernel, every) for sign, f in self._same_form),
            np.zeros(len(every)),
        )

    def _influence(
        self,
        u: np.ndarray,
        sums: dict[Family, np.ndarray],
        products: np.ndarray,
        band: int,
        value: float,
        kernel: np.ndarray,
        product: np.ndarray,
        rest: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The derivatives of the sum over strata of weight times `rest` (what the numerator has beyond the value times
        the denominator, 0 in all): (n,) by each use, (forms,) by each form's weight in the band, and by its share."""
        form, counts = self.uses.form, np.maximum(self.uses.counts, 1)
        of_stratum = self.strata_weight[band] / np.where(self.pair_weight[band] > 0, self.pair_weight[band], 1.0)
        ones = np.ones((len(form), 1))
        pairs = self._over_pairs(kernel) - products
        pairs *= of_stratum[self.stratum] / counts[form] ** 2  # by the form's weight
        share = self.share[band] * self.strata_weight[band][self.grid_stratum]
        of_product = share.copy()
        of_product[self.diagonal] -= (1 - value) * np.bincount(self.p, share, len(self.diagonal))
        of_product *= np.where(self.between_weight[band] > 0, 1.0, 0.0) / np.maximum(self.between_weight[band], 1e-300)
        w, level = self.of_use[band], of_product * np.nan_to_num(product)
        words = np.zeros(len(form))
        for sign, f in self._other_form:
            of_cell = w[f.rows[f.cell_starts], None]
            x, n = (each[f][band] if each[f].ndim == 3 else each[f] * of_cell for each in (sums, self.counts))
            words += 2 * sign * (self._partners(f, u, x, of_product, w) - self._partners(f, ones, n, level, w))
        words = (words + rest[self.stratum]) / counts[form]  # by the form's share
        n = len(counts)
        of_weight, of_share = np.bincount(form, pairs, n), np.bincount(form, words, n)
        # a form's pairs count by the square of its uses, its uses by their number
        of_row = 2 * self.of_pair[band] * counts[form] ** 2 * (pairs - (of_weight / counts)[form])
        return of_row + w * counts[form] * (words - (of_share / counts)[form]), of_weight, of_share

    def _pair_noise(self, u: np.ndarray, kernel: np.ndarray, weight: np.ndarray) -> float:
        """Half the sum over pairs of a form's uses of their squared effects on the value (the squares hold what is no
        noise too); `weight` (bands, strata). Of more than `MOST` uses in a stratum so many stand for all."""
        family = self._same_form[0][1]
        of_stratum = weight / np.where(self.pair_weight > 0, self.pair_weight, 1.0)
        sizes = np.diff(family.group_starts, append=len(family.rows))
        total, budget, kernel = 0.0, max(1, PAIRS // u.shape[1]), kernel.astype(u.dtype)
        for size in np.unique(sizes[sizes > 1]).tolist():
            groups, n = np.flatnonzero(sizes == size), min(size, MOST)
            picks = np.linspace(0, size - 1, n).round().astype(np.int64)
            for some in np.array_split(groups, -(-len(groups) * n // budget)):
                rows = family.rows[family.group_starts[some, None] + picks]  # (groups, n)
                effect = self.of_pair[:, rows[:, 0]] * of_stratum[:, self.stratum[rows[:, 0]]]
                effect = effect.astype(u.dtype)  # (bands, groups)
                where = self.grid(self.place[rows][:, :, None], self.place[rows][:, None, :])
                x = u[rows]
                each = np.matmul(x, x.transpose(0, 2, 1)) * -effect.sum(axis=0)[:, None, None]
                for of_group, of_place in zip(effect, kernel, strict=True):
                    each += of_group[:, None, None] * of_place[where]
                document, near = self.uses.document[rows], self.uses.neighbours[rows]
                counts = (document[:, :, None] != document[:, None]) & (near[:, :, None] != near[:, None])
                squares = np.square(each * counts).sum(dtype=np.float64)
                total += squares * (size * (size - 1)) / (n * (n - 1))
        return float(total)

    def _products(self, family: Family, u: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """(n,): the products of each row with the others of its group, whose sum is given (g, d), added up."""
        total = np.zeros(len(u))
        group = np.repeat(np.arange(len(sums)), np.diff(family.group_starts, append=len(family.rows)))
        total[family.rows] = np.vecdot(u[family.rows], sums.astype(u.dtype)[group]) - 1
        return total

    def _partners(
        self, family: Family, u: np.ndarray, sums: np.ndarray, kernel: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """(n,): the products of each row that has a weight (n,) with the others of its group, times the kernel (grid,)
        at their places and the other's weight, added up; `sums` (c, d) are those of weighted rows."""
        total, mixed = np.zeros(len(weight)), np.empty_like(sums)
        for i, where in self._pairs[family]:
            mixed[i] = kernel[where] * sums[i] if i.shape[1] == 1 else np.matmul(kernel[where], sums[i])
        counts = np.flatnonzero(weight[family.rows])
        rows = family.rows[counts]
        products = np.vecdot(u[rows], mixed.astype(u.dtype)[family.cell_of_row[counts]])
        total[rows] = products - kernel[self.diagonal[self.place[rows]]] * weight[rows]
        return total


def _key(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n,) a number for each pair of a (n,) and b (n,), integers from 0."""
    return np.unique(a * (b.max(initial=0) + 1) + b, return_inverse=True)[1]
