"""How unlike two uses of one word are: 0 where context changes nothing, 1 where they are as unlike as two different
words of like frequency.

Two uses of a word at different places differ by their places too. So uses are compared at like places; what different
words say of two places is taken off; and the remainder is divided by how unlike different words at these places are.
Sums over groups of rows give all of it, and so does each use's influence: no pair is formed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ctxexp.maths.loudness import CACHED
from ctxexp.maths.word_mix import MixedWords

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SINGLE, OCTAVE = 16, 4  # places by themselves; then strata an octave
PARTIAL = 128  # rows that are added up in float32
MOST, PAIRS = 8, 1 << 20  # uses of a form in a stratum whose pairs are formed, and numbers held for that
FEW = 32  # rows up to which BLAS is slower with one array than with two
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
    """Groups of rows that have a key in common; a cell is a group's rows at one place, or one of its rows."""

    rows: np.ndarray  # (m,) sorted by group, then place
    cell_starts: np.ndarray  # (c,) among these rows
    cells_of_group: np.ndarray  # (g,) how many
    place: np.ndarray  # (c,) of a cell
    of_rows: bool  # whether each cell is a row

    @classmethod
    def of(cls, key: np.ndarray, place: np.ndarray, least: int = 2, *, of_rows: bool = False) -> Family:
        """That of rows with these keys (n,), numbers from 0, at these places (n,), in groups of so many at least."""
        kept = np.flatnonzero(np.bincount(key)[key] >= least)
        rows = kept[np.argsort(key[kept] * (place.max(initial=0) + 1) + place[kept], kind="stable")]
        begins_group = np.diff(key[rows], prepend=-1) != 0
        begins_cell = begins_group | (np.diff(place[rows], prepend=-1) != 0) | of_rows
        cells = np.flatnonzero(begins_cell)
        of_group = np.bincount(np.cumsum(begins_group)[cells] - 1, minlength=begins_group.sum())
        return cls(rows, cells, of_group, place[rows][cells], of_rows)

    @cached_property
    def has_rows(self) -> np.ndarray:
        """(c,) how many rows a cell has."""
        return np.diff(self.cell_starts, append=len(self.rows))

    @cached_property
    def first(self) -> np.ndarray:
        """(c,) a row of each cell."""
        return self.rows[self.cell_starts]

    @cached_property
    def cell_of_row(self) -> np.ndarray:
        """(m,) the cell of each row."""
        return np.repeat(np.arange(len(self.cell_starts)), self.has_rows)

    @cached_property
    def alike(self) -> list[np.ndarray]:
        """The cells of groups with equally many of them: (groups, cells) each."""
        first = np.cumsum(self.cells_of_group) - self.cells_of_group
        return [first[self.cells_of_group == k, None] + np.arange(k) for k in np.unique(self.cells_of_group).tolist()]

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """(pairs,) the cells of each pair of cells of one group, a cell with itself too."""
        shapes = [(i, (*i.shape, i.shape[1])) for i in self.alike]
        a = [np.broadcast_to(i[:, :, None], shape).ravel() for i, shape in shapes]
        b = [np.broadcast_to(i[:, None, :], shape).ravel() for i, shape in shapes]
        none = np.empty(0, np.int64)
        return np.concatenate([none, *a]), np.concatenate([none, *b])

    @cached_property
    def is_pair(self) -> np.ndarray:
        """(pairs,) bool: but of a row with itself."""
        a, b = self.pairs
        return (a != b) | (self.has_rows[a] > 1)

    def products(self, sums: np.ndarray) -> np.ndarray:
        """(..., pairs): the products of the sums (..., c, d) of the cells of each pair."""
        squares = np.vecdot(sums, sums)
        grams = [squares[..., i] if i.shape[1] == 1 else _gram(sums[..., i, :]) for i in self.alike]
        shape = (*squares.shape[:-1], -1)
        return np.concatenate([squares[..., :0], *(gram.reshape(shape) for gram in grams)], axis=-1)

    @cached_property
    def _parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows (m,) in parts of cells of at most `PARTIAL`, the first of each cell, then others; where each begins and
        the last ends; and the cells of those others."""
        inside = np.arange(len(self.rows)) - self.cell_starts[self.cell_of_row]
        order = np.argsort(inside >= PARTIAL, kind="stable")
        starts = np.flatnonzero(inside[order] % PARTIAL == 0)
        ends = np.append(starts, len(order)).astype(np.int32)
        return self.rows[order].astype(np.int32), ends, self.cell_of_row[order][starts[len(self.cell_starts) :]]

    def cell_sums(self, u: np.ndarray) -> np.ndarray:
        """(c, d): the sum of each cell's rows of u (n, d), float64 but where each is a row."""
        from scipy.sparse import csr_array

        if self.of_rows:
            return u[self.rows]
        n, (rows, starts, cell) = len(self.first), self._parts
        add = csr_array((np.ones(len(rows), u.dtype), rows, starts), shape=(len(starts) - 1, len(u)))
        sums = (add @ u).astype(np.float64)
        np.add.at(sums, cell, sums[n:])
        return sums[:n]

    def weights_of(self, finer: Family, weights: np.ndarray) -> csr_array:
        """(bands c, cells of `finer`): by it the sums of finer cells give those of this family's cells, each row times
        its weight (bands, n), which is one for all rows of a finer cell; `finer` has all rows."""
        from scipy.sparse import csr_array

        cell_of_row = np.full(weights.shape[1], -1)
        cell_of_row[self.rows] = self.cell_of_row
        cell = cell_of_row[finer.first]
        of_cell = weights[:, finer.first] * (cell >= 0)
        band, column = np.nonzero(of_cell)
        n = len(self.cell_starts)
        at = (band * n + cell[column], column)
        return csr_array((of_cell[band, column], at), shape=(len(weights) * n, len(cell)))

    def row_products(self, u: np.ndarray, of_cell: np.ndarray, which: np.ndarray) -> np.ndarray:
        """The products of some rows of u (n, d), by their numbers among this family's, with what their cells have
        (c, d)."""
        result = np.empty(len(which))
        for at in range(0, len(which), CACHED):
            part = which[at : at + CACHED]
            result[at : at + CACHED] = np.vecdot(u[self.rows[part]], of_cell[self.cell_of_row[part]])
        return result


Families = tuple[tuple[int, Family], ...]
"""Families, each with the sign that its pairs count with."""
Weight = Callable[[Family, int], np.ndarray]
"""Weights in a band."""


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
        form, document = _key(uses.form, self.stratum), _key(self.stratum, uses.document)  # forms as uses stand
        near, form_and_document = _key(form, uses.neighbours), _key(form, uses.document)
        self._forms = Family.of(form, self.place, least=1)
        self._strata = Family.of(self.stratum, self.place, least=1)
        of_document, of_near = Family.of(document, self.place), Family.of(near, self.place)
        of_both = Family.of(form_and_document, self.place)
        of_near_and_document = Family.of(_key(near, uses.document), self.place)
        self._weighted = [(self._strata, self._forms)]  # families whose rows are weighed; whose cells make theirs up
        if 2 * len(of_document.cell_starts) < len(of_document.rows):
            of_both = Family.of(form_and_document, self.place, least=1)
            self._weighted.append((of_document, of_both))
        else:  # adding up would hardly make fewer
            of_document = Family.of(document, self.place, of_rows=True)
        # pairs of a form, less those of one document, less those between the same words, plus those that are both
        self._same_form = ((1, self._forms), (-1, of_both), (-1, of_near), (1, of_near_and_document))
        # pairs of a stratum, less those of a form, less those of one document, plus those that are both
        self._other_form = ((1, self._strata), (-1, self._forms), (-1, of_document), (1, of_both))
        self._families = dict.fromkeys(family for _, family in (*self._same_form, *self._other_form))
        self._grid = {f: self.grid(*(f.place[cell] for cell in f.pairs)) for f in self._families}
        self._weigh()

    def grid(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Where the pairs of places p and q of one stratum stand in the grid."""
        return self._row[p] + q - self._first[self.stratum_of_place[p]]

    def _weigh(self) -> None:
        """The weights of uses and pairs, and what they add up to."""
        uses, n = self.uses, np.maximum(self.uses.counts, 1)
        self.of_pair = (uses.mix.by_band(uses.is_used) / n**2)[:, uses.form]  # (bands, n)
        self.of_use = (uses.mix.shares(uses.is_used) / n)[:, uses.form]  # (bands, n)
        self._weights = {family: family.weights_of(finer, self.of_use) for family, finer in self._weighted}
        several = {f: (f.has_rows > 1)[f.cell_of_row] for f in self._families}
        # a row with itself is no pair, and its rounding would outweigh pairs of next to no weight
        self._same = self._weighted_pairs(
            self._same_form,
            lambda f, band: self.of_pair[band, f.first[f.pairs[0]]] * f.is_pair,
            lambda f, band: self.of_pair[band, f.rows] * several[f],
        )
        self._different = self._weighted_pairs(
            self._other_form, self._weight_of_words, lambda f, band: self.of_use[band, f.rows] ** 2
        )
        self.counts = self._sums(np.ones((len(uses.form), 1)))  # of the uses of each cell
        products = {family: family.products(n) for family, n in self.counts.items()}
        pairs = self._by_place(products, self._same)
        pairs = np.where(np.abs(pairs) > ROUNDING * np.abs(pairs).max(axis=1, keepdims=True, initial=0), pairs, 0.0)
        between = self._by_place(products, self._different)
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

    def _sums(self, u: np.ndarray) -> dict[Family, np.ndarray]:
        """The sums of the cells of each family: of forms (c, d), of whatever else stands at places weighted by band
        (bands, c, d)."""
        sums = {family: family.cell_sums(u) for family in self._families if family not in self._weights}
        for family, finer in self._weighted:
            sums[family] = (self._weights[family] @ sums[finer]).reshape(len(self.of_use), -1, u.shape[1])
        return sums

    def _weight_of_words(self, family: Family, band: int) -> np.ndarray:
        """(pairs,): the weights of both cells' uses, but where they are in the sums."""
        (a, b), w = family.pairs, self.of_use[band, family.first]
        return np.ones(len(a)) if family in self._weights else w[a] * w[b]

    def _weighted_pairs(self, families: Families, of_pair: Weight, of_row: Weight) -> list[WeightedPairs]:
        """By family and band, the pairs of cells that have a weight, and what rows themselves add to their sum."""
        result = []
        for (sign, f), band in product(families, range(len(self.of_use))):
            weight = of_pair(f, band)
            kept = np.flatnonzero(weight)
            own = np.bincount(self.place[f.rows], of_row(f, band), len(self.diagonal))
            result.append(WeightedPairs(f, band, kept, self._grid[f][kept], sign * weight[kept], sign * own))
        return result

    def _by_place(self, products: dict[Family, np.ndarray], pairs: list[WeightedPairs]) -> np.ndarray:
        """(bands, grid): the products of pairs of uses, times their weights, added up by their places."""
        total = np.zeros((len(self.of_use), len(self.p)))
        for f, band, kept, where, weight, own in pairs:
            each = products[f] if products[f].ndim == 1 else products[f][band]
            total[band] += np.bincount(where, each[kept] * weight, len(self.p))
            total[band, self.diagonal] -= own
        return total

    def measure(self, u: np.ndarray, *, influence: bool = False) -> LayerContextuality:
        """The contextuality of rows u (n, d) of norm 1, with `influence` its sampling error too; NaN where no form has
        two uses that count."""
        sums = self._sums(u)
        products = {family: family.products(of_cell) for family, of_cell in sums.items()}
        terms = self._terms(products)
        value = float(np.mean(terms.of_band))
        if not influence or not np.isfinite(value):
            return LayerContextuality(value)
        layer = _Layer(u, {family: of_cell.astype(u.dtype) for family, of_cell in sums.items()}, products)
        return self._with_error(value, terms, layer)

    def _terms(self, products: dict[Family, np.ndarray]) -> _Terms:
        """What the value is made of: in each band a mean over strata of how unlike two uses of a form are, less what
        their places add, over a mean of how unlike two words are at these places."""
        has, weight, ok = self.strata_weight > 0, self.strata_weight, self.between_weight > 0
        between = self._by_place(products, self._different)
        with np.errstate(invalid="ignore", divide="ignore"):
            within = self._by_stratum(self._by_place(products, self._same)) / self.pair_weight
            cosine = between / self.between_weight
            at_one = (between * ok)[:, self.diagonal].sum(1) / self.between_weight[:, self.diagonal].sum(1)
            own = np.where(ok[:, self.diagonal], cosine[:, self.diagonal], at_one[:, None])  # no two words: the mean
            own_of_both = (own[:, self.p] + own[:, self.q]) / 2
            by_place = self._by_place_or_mean(own_of_both - cosine, ok)
            numerator = np.where(has, 1 - within - self._by_stratum(self.share * by_place), 0.0)
            denominator = np.where(has, 1 - self._by_stratum(self.share * own_of_both), 0.0)
            of_band = (weight * numerator).sum(1) / (weight * denominator).sum(1)
        return _Terms(of_band, numerator, denominator, by_place, own_of_both, cosine)

    def _with_error(self, value: float, terms: _Terms, layer: _Layer) -> LayerContextuality:
        """The value with the influence of uses and forms on it, and what single pairs add."""
        of_band, numerator, denominator, by_place, own_of_both, cosine = terms
        rest = numerator - of_band[:, None] * denominator
        kernel = 1 - by_place - of_band[:, None] * (1 - own_of_both) - rest[:, self.grid_stratum]
        every, one = np.ones(len(layer.u)), np.ones(len(self.p))
        with_form = np.zeros(len(layer.u))
        for sign, f in self._same_form:
            with_form += sign * self._partners(f, layer, one, every)
        parts = [
            self._influence(layer, with_form, band, float(of_band[band]), kernel[band], cosine[band], rest[band])
            for band in range(len(of_band))
        ]
        weight = self.strata_weight
        scale = (weight * denominator).sum(1, keepdims=True)
        of_row, of_weight, of_share = (np.stack(part) / scale for part in zip(*parts, strict=True))
        by_count = self.uses.mix.band_influence(self.uses.is_used, of_weight, of_share)
        of_use = of_row.mean(axis=0) + by_count.of_word.mean(axis=0)[self.uses.form]
        noise = self._pair_noise(layer.u, kernel, weight / scale / len(scale))
        kernels = 1 - by_place.mean(axis=0), 1 - own_of_both.mean(axis=0), np.full(len(self.p), 0.5)
        by_form = [np.bincount(self.uses.form, self._over_pairs(each), len(self.uses.counts)) for each in kernels]
        by_form[0] -= np.bincount(self.uses.form, with_form, len(self.uses.counts))
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
        every = np.ones(len(self.place))
        return sum((sign * self._partner_counts(f, kernel, every) for sign, f in self._same_form), np.zeros(len(every)))

    def _influence(
        self,
        layer: _Layer,
        with_form: np.ndarray,
        band: int,
        value: float,
        kernel: np.ndarray,
        cosine: np.ndarray,
        rest: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The derivatives of the sum over strata of weight times `rest` (what the numerator has beyond the value times
        the denominator, 0 in all): (n,) by each use, (forms,) by each form's weight in the band, and by its share.
        `with_form` (n,) are the products of each use with those of its form that it is compared with, added up."""
        form, counts = self.uses.form, np.maximum(self.uses.counts, 1)
        of_stratum = self.strata_weight[band] / np.where(self.pair_weight[band] > 0, self.pair_weight[band], 1.0)
        pairs = self._over_pairs(kernel) - with_form
        pairs *= of_stratum[self.stratum] / counts[form] ** 2  # by the form's weight
        share = self.share[band] * self.strata_weight[band][self.grid_stratum]
        of_product = share.copy()
        of_product[self.diagonal] -= (1 - value) * np.bincount(self.p, share, len(self.diagonal))
        of_product *= np.where(self.between_weight[band] > 0, 1.0, 0.0) / np.maximum(self.between_weight[band], 1e-300)
        w, level = self.of_use[band], of_product * np.nan_to_num(cosine)
        words = self._others(layer, of_product, w, band)
        for sign, f in self._other_form:
            words -= sign * self._partner_counts(f, level, w, band)
        words = (2 * words + rest[self.stratum]) / counts[form]  # by the form's share
        n = len(counts)
        of_weight, of_share = np.bincount(form, pairs, n), np.bincount(form, words, n)
        # a form's pairs count by the square of its uses, its uses by their number
        of_row = 2 * self.of_pair[band] * counts[form] ** 2 * (pairs - (of_weight / counts)[form])
        return of_row + w * counts[form] * (words - (of_share / counts)[form]), of_weight, of_share

    def _others(self, layer: _Layer, kernel: np.ndarray, weight: np.ndarray, band: int) -> np.ndarray:
        """(n,): the products of each row that has a weight (n,) with those of other forms, times the kernel (grid,) at
        their places and the other's weight, added up."""
        (_, strata), (_, form), *further = self._other_form
        at_place = self._mix_cells(strata, layer, kernel, weight, band)
        of_cell = at_place[self.place[form.first]] - self._mix_cells(form, layer, kernel, weight, band)
        total, which = np.zeros(len(weight)), np.flatnonzero(weight[form.rows])
        total[form.rows[which]] = form.row_products(layer.u, of_cell, which)
        for sign, family in further:
            total += sign * self._partners(family, layer, kernel, weight, band)
        return total

    def _partners(
        self, family: Family, layer: _Layer, kernel: np.ndarray, weight: np.ndarray, band: int = 0
    ) -> np.ndarray:
        """(n,): the products of each row that has a weight (n,) with the others of its group, times the kernel (grid,)
        at their places and the other's weight, added up."""
        total, which = np.zeros(len(weight)), np.flatnonzero(weight[family.rows])
        rows = family.rows[which]
        if family.of_rows:
            a, b = family.pairs
            each = kernel[self._grid[family]] * weight[family.first[b]] * layer.products[family]
            total[rows] = np.bincount(a, each, len(family.rows))[which]
        else:
            of_cell = self._mix_cells(family, layer, kernel, weight, band)
            total[rows] = family.row_products(layer.u, of_cell, which)
        total[rows] -= kernel[self.diagonal[self.place[rows]]] * weight[rows]
        return total

    def _partner_counts(self, family: Family, kernel: np.ndarray, weight: np.ndarray, band: int = 0) -> np.ndarray:
        """(n,): the same of the kernel without the products."""
        (a, b), counts, total = family.pairs, self.counts[family][..., 0], np.zeros(len(weight))
        n = counts[band] if counts.ndim > 1 else counts * weight[family.first]
        of_cell = np.bincount(a, kernel[self._grid[family]] * n[b], len(n))
        own = kernel[self.diagonal[self.place[family.rows]]] * weight[family.rows]
        total[family.rows] = of_cell[family.cell_of_row] - own
        return total

    def _mix_cells(
        self, family: Family, layer: _Layer, kernel: np.ndarray, weight: np.ndarray, band: int
    ) -> np.ndarray:
        """(c, d): the sums of the cells of each cell's group, times the kernel (grid,) at both places and the weight
        (n,) of a use there."""
        from scipy.sparse import csr_array

        (a, b), sums = family.pairs, layer.sums[family]
        values = kernel[self._grid[family]].astype(sums.dtype)
        n = len(family.first)
        if sums.ndim == 3:
            return csr_array((values, (a, b)), shape=(n, n)) @ sums[band]
        of_cell = weight[family.first].astype(sums.dtype)
        kept = np.flatnonzero(of_cell[a])
        return csr_array(((values * of_cell[b])[kept], (a[kept], b[kept])), shape=(n, n)) @ sums

    def _pair_noise(self, u: np.ndarray, kernel: np.ndarray, weight: np.ndarray) -> float:
        """Half the sum over pairs of a form's uses of their squared effects on the value (the squares hold what is no
        noise too); `weight` (bands, strata). Of more than `MOST` uses in a stratum so many stand for all."""
        family = self._forms
        of_stratum = weight / np.where(self.pair_weight > 0, self.pair_weight, 1.0)
        begins = family.cell_starts[np.cumsum(family.cells_of_group) - family.cells_of_group]
        sizes = np.diff(begins, append=len(family.rows))
        total, budget, kernel = 0.0, max(1, PAIRS // u.shape[1]), kernel.astype(u.dtype)
        formed = np.minimum(sizes, MOST)
        for n in np.unique(formed[formed > 1]).tolist():
            groups = np.flatnonzero(formed == n)
            for some in np.array_split(groups, -(-len(groups) * n // budget)):
                size = sizes[some]
                picks = (np.arange(n) * ((size - 1) / (n - 1))[:, None]).round().astype(np.int64)
                rows = family.rows[begins[some, None] + picks]  # (groups, n)
                effect = self.of_pair[:, rows[:, 0]] * of_stratum[:, self.stratum[rows[:, 0]]]
                effect = effect.astype(u.dtype)  # (bands, groups)
                where = self.grid(self.place[rows][:, :, None], self.place[rows][:, None, :])
                each = np.take_along_axis(effect.T @ kernel, where.reshape(len(some), -1), 1).reshape(where.shape)
                each -= effect.sum(axis=0)[:, None, None] * _gram(u[rows])
                document, near = self.uses.document[rows], self.uses.neighbours[rows]
                each *= (document[:, :, None] != document[:, None]) & (near[:, :, None] != near[:, None])
                squares = np.square(each).sum(axis=(1, 2), dtype=np.float64)
                total += float(squares @ (size * (size - 1))) / (n * (n - 1))
        return total


class WeightedPairs(NamedTuple):
    """Pairs of cells of a family that have a weight in a band."""

    family: Family
    band: int
    kept: np.ndarray  # (k,) their numbers among the family's
    where: np.ndarray  # (k,) where their places stand in the grid
    weight: np.ndarray  # (k,) with the family's sign
    own: np.ndarray  # (places,) what rows themselves, which are no pairs, add to products times weights


class _Terms(NamedTuple):
    """What a layer's value is made of."""

    of_band: np.ndarray  # (bands,) the value in each
    numerator: np.ndarray  # (bands, strata)
    denominator: np.ndarray  # (bands, strata)
    by_place: np.ndarray  # (bands, grid) how much two places alone differ
    own_of_both: np.ndarray  # (bands, grid) the cosine of two words at one place, mean of both places
    cosine: np.ndarray  # (bands, grid) of two words at the two places


class _Layer(NamedTuple):
    """A layer's rows, the sums of the cells of each family, and the products of its pairs of cells."""

    u: np.ndarray
    sums: dict[Family, np.ndarray]
    products: dict[Family, np.ndarray]


def _gram(x: np.ndarray) -> np.ndarray:
    """(..., n, n): the products of the rows of x (..., n, d) with one another; by a copy, since BLAS's way for one
    array is slower where matrices are small."""
    return np.matmul(x, (x if x.shape[-2] > FEW else x.copy()).swapaxes(-1, -2))


def _key(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n,) a number for each pair of a (n,) and b (n,), integers from 0."""
    return np.unique(a * (b.max(initial=0) + 1) + b, return_inverse=True)[1]
