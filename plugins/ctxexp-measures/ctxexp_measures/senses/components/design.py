"""Design of variance components: partitions of the rows, and expectations of sums of squares, equal in every layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.errors import MetricError
from ctxexp_measures.senses.attributes import RowAttributes

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SMALL = 2048  # levels up to which products of counts are made dense, a chunk at a time
CHUNK = 2**22  # entries of such a chunk
SINGULAR = 1e-9  # of a factor's expected squares per row, below which there is nothing to tell it by


@dataclass(frozen=True)
class Partition:
    """A partition of the rows: words, the forms of each, the senses of each form, or cells: a form in one sense at one
    place."""

    of_row: np.ndarray  # (n,) number
    counts: np.ndarray  # (levels,) float64, rows
    word: np.ndarray  # (levels,) the word that each is part of

    @classmethod
    def of(cls, of_row: np.ndarray, word_of_row: np.ndarray) -> Partition:
        counts = np.bincount(of_row)
        word = np.zeros(len(counts), np.int64)
        word[of_row] = word_of_row
        return cls(of_row, counts.astype(np.float64), word)

    def one_hot(self) -> csr_array:
        """(levels, n): 1 where a row belongs to a level."""
        return one_hot(self.of_row, len(self.counts))


@dataclass(frozen=True)
class CrossedFactor:
    """A factor whose levels cut across cells (sentence, document) or hold some of them (a form's places), and its share
    in the sums of squares."""

    name: str
    of_row: np.ndarray  # (n,)
    counts: np.ndarray  # (levels,)
    in_cells: csr_array  # (cells, levels) rows of each cell at each level
    within: np.ndarray  # (words,) of its variance in a word's mean square within cells
    own: np.ndarray  # (words,) of a word's own variance in this factor's squares
    of_means: dict[str, np.ndarray]  # by level: (words,) of its variance in the squares of the level's means


@dataclass(frozen=True)
class Design:
    """The rows to decompose, and the expectation of every sum of squares in every component."""

    attributes: RowAttributes
    levels: dict[str, Partition]  # word, form, sense, cell
    factors: tuple[CrossedFactor, ...]  # those whose variance these rows can estimate
    free: np.ndarray  # (words,) degrees of freedom within cells
    expected: np.ndarray  # (factors, factors): of the second's variance in the first's squares, own parts taken out
    place: CrossedFactor  # the places of each form: nothing of it is left within cells

    @property
    def n_words(self) -> int:
        return len(self.free)

    @classmethod
    def of(cls, attributes: RowAttributes) -> Design:
        """The design of these rows."""
        word, form = attributes.word.codes, attributes.form.codes
        sense = _pairs(form, attributes.sense.codes + 1)
        codes_by_level = {"word": word, "form": form, "sense": sense, "cell": _pairs(sense, attributes.position)}
        levels = {name: Partition.of(codes, word) for name, codes in codes_by_level.items()}
        cell = levels["cell"]
        n_words = len(levels["word"].counts)
        free = np.bincount(cell.word, cell.counts - 1, minlength=n_words)
        factors = [("sentence", attributes.sentence), ("document", attributes.document)]
        candidates = [_crossed_factor(name, codes, levels, free) for name, codes in factors if codes is not None]
        # coefficients of b's variance in a's squares once each word's own part is taken out
        pairs = [[_trace(a, b, cell.counts) - float(a.own @ b.within) for b in candidates] for a in candidates]
        expected = np.array(pairs).reshape(len(candidates), -1)
        chosen_numbers = _estimable(expected, len(attributes))
        return cls(
            attributes,
            levels,
            tuple(candidates[i] for i in chosen_numbers),
            free,
            expected[np.ix_(chosen_numbers, chosen_numbers)],
            _crossed_factor("position", _pairs(form, attributes.position), levels, free),
        )


def population(attributes: RowAttributes, *, min_contexts: int) -> RowAttributes:
    """The rows to decompose: of words with sense labels the labelled rows, else all; of these the words in at least
    `min_contexts` sentences and at least twice in one form and sense at one place, without which context can't be told
    from place. Raises MetricError if there are none."""
    labelled = np.zeros(len(attributes.word), bool)
    labelled[attributes.word.codes[attributes.sense.codes >= 0]] = True
    attributes = attributes.subset(np.flatnonzero(~labelled[attributes.word.codes] | (attributes.sense.codes >= 0)))
    word = attributes.word.codes
    first = np.unique(_pairs(word, attributes.sentence), return_index=True)[1]
    contexts = np.bincount(word[first], minlength=len(attributes.word))
    sense = _pairs(attributes.form.codes, attributes.sense.codes + 1)
    cell = Partition.of(_pairs(sense, attributes.position), word)
    free = np.bincount(cell.word, cell.counts - 1, minlength=len(attributes.word))
    attributes = attributes.subset(np.flatnonzero(((contexts >= min_contexts) & (free > 0))[word]))
    if not len(attributes):
        raise MetricError(
            f"variance_components: no word stands in min_contexts={min_contexts} sentences, and twice in one form and "
            "sense at one place; use a corpus of more sentences"
        )
    return attributes


def ambiguous(design: Design) -> RowAttributes | None:
    """The rows of words with several labelled senses in one of their forms; None without any."""
    senses, forms = (np.bincount(design.levels[level].word, minlength=design.n_words) for level in ("sense", "form"))
    rows = np.flatnonzero((senses > forms)[design.attributes.word.codes])
    return design.attributes.subset(rows) if len(rows) else None


def one_hot(codes: np.ndarray, n: int) -> csr_array:
    """(n, rows): 1 where a row has a code."""
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))), shape=(n, len(codes)))


def count_pairs(a: np.ndarray, b: np.ndarray, shape: tuple[int, int]) -> csr_array:
    """Matrix of the number of rows with each pair of codes a (n,) and b (n,)."""
    from scipy.sparse import coo_array

    return coo_array((np.ones(len(a)), (a, b)), shape=shape).tocsr()


def _pairs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n,) a number for each pair of a (n,) and b (n,), integers from 0."""
    return np.unique(a * (b.max(initial=0) + 1) + b, return_inverse=True)[1]


def _crossed_factor(name: str, codes: np.ndarray, levels: dict[str, Partition], free: np.ndarray) -> CrossedFactor:
    """The factor, with the coefficients of its variance in the words' sums of squares, and of theirs in its own."""
    of_row = np.unique(codes, return_inverse=True)[1]
    counts = np.bincount(of_row).astype(np.float64)
    n_words, cell = len(free), levels["cell"]
    of_means = {}
    for level, at in levels.items():
        table = count_pairs(at.of_row, of_row, (len(at.counts), len(counts)))
        squares = np.bincount(at.word, (table**2).sum(axis=1) / at.counts, minlength=n_words)
        of_means[level] = squares
    # `table` is that of the cells now
    within = (np.bincount(cell.word, cell.counts, minlength=n_words) - of_means["cell"]) / free
    shares = table @ (1 / counts) - ((table**2) @ (1 / counts)) / cell.counts
    own = np.bincount(cell.word, shares, minlength=n_words)
    return CrossedFactor(name, of_row, counts, table, within, own, of_means)


def _trace(a: CrossedFactor, b: CrossedFactor, cells: np.ndarray) -> float:
    """|D_a^-1/2 Z_a'M Z_b|^2: the squares of a under effects of b of variance 1, each cell's mean taken out."""
    both = count_pairs(a.of_row, b.of_row, (len(a.counts), len(b.counts)))
    shrunk = b.in_cells.multiply(1 / cells[:, None]).tocsr()
    if min(both.shape) <= SMALL:
        return _dense(both, a.in_cells.T.tocsr(), shrunk, a.counts)
    # |X - Y|^2 = |X|^2 - 2 <X, Y> + |Y|^2, the last by cells, of which few stand together
    apart = ((both**2) / a.counts[:, None]).sum()
    scaled = a.in_cells.multiply(1 / a.counts).tocsr()
    cross = (scaled.multiply(shrunk @ both.T)).sum()
    root = 1 / np.sqrt(cells)
    one = (scaled @ a.in_cells.T).multiply(root[:, None]).multiply(root)
    other = (b.in_cells @ b.in_cells.T).multiply(root[:, None]).multiply(root)
    return float(apart - 2 * cross + one.multiply(other).sum())


def _dense(both: csr_array, left: csr_array, right: csr_array, counts: np.ndarray) -> float:
    """sum of (both - left @ right)^2 / counts by row, chunk by chunk of the shorter side."""
    if both.shape[0] > both.shape[1]:
        both, left, right = both.T.tocsr(), right.T.tocsr(), left.T.tocsr()
        weights = 1 / counts[None]
    else:
        weights = 1 / counts[:, None]
    step, total = max(1, CHUNK // both.shape[1]), 0.0
    for at in range(0, both.shape[0], step):
        part = slice(at, at + step)
        rest = both[part].toarray() - (left[part] @ right).toarray()
        total += float((rest**2 * (weights[part] if weights.shape[0] > 1 else weights)).sum())
    return total


def _estimable(expected: np.ndarray, n: int) -> list[int]:
    """Numbers of the factors that can be told from earlier ones and from noise: sentences of one row can't."""
    numbers: list[int] = []
    for i in range(len(expected)):
        some = [*numbers, i]
        scale = np.sqrt(np.diag(expected)[some])
        if expected[i, i] > SINGULAR * n:
            ratio = np.linalg.svd(expected[np.ix_(some, some)] / np.outer(scale, scale), compute_uv=False)
            if ratio[-1] > 1e-6:
                numbers = some
    return numbers
