"""Which rows share what, and what sums of squares are expected to be: counts alone, the same for every layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.errors import MetricError
from ctxexp_senses.known import Known

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SMALL = 2048  # levels up to which products of counts are made dense, a chunk at a time
CHUNK = 2**22  # entries of such a chunk
SINGULAR = 1e-9  # of a factor's expected squares per row, below which there is nothing to tell it by


@dataclass(frozen=True)
class Level:
    """A partition of the rows: words, the forms of each, or the cells (a form in one sense) of each form."""

    of_row: np.ndarray  # (n,) number
    counts: np.ndarray  # (levels,) float64, rows
    word: np.ndarray  # (levels,) the word that each is part of

    @classmethod
    def of(cls, of_row: np.ndarray, word_of_row: np.ndarray) -> Level:
        counts = np.bincount(of_row)
        word = np.zeros(len(counts), np.int64)
        word[of_row] = word_of_row
        return cls(of_row, counts.astype(np.float64), word)

    def one_hot(self) -> csr_array:
        """(levels, n): 1 where a row belongs to a level."""
        return one_hot(self.of_row, len(self.counts))


@dataclass(frozen=True)
class Crossed:
    """A factor whose levels cut across words: positions, sentences, documents; and what its effects add to sums."""

    name: str
    of_row: np.ndarray  # (n,)
    counts: np.ndarray  # (levels,)
    in_cells: csr_array  # (cells, levels) rows of each cell at each level
    within: np.ndarray  # (words,) of its variance in a word's mean square within cells
    own: np.ndarray  # (words,) of a word's own variance in this factor's squares
    of_means: dict[str, np.ndarray]  # by level: (words,) of its variance in the squares of the level's means


@dataclass(frozen=True)
class Design:
    """The rows that are decomposed, and the expectation of every sum of squares in every component."""

    known: Known
    levels: dict[str, Level]  # word, form, cell
    crossed: tuple[Crossed, ...]  # those whose variance these rows tell
    free: np.ndarray  # (words,) degrees of freedom within cells
    expected: np.ndarray  # (crossed, crossed): of the second's variance in the first's squares, own parts taken out

    @property
    def n_words(self) -> int:
        return len(self.free)

    @classmethod
    def of(cls, known: Known) -> Design:
        """The design of these rows."""
        word, form = known.word.codes, known.form.codes
        cell = Level.of(_cells(known), word)
        levels = {"word": Level.of(word, word), "form": Level.of(form, word), "cell": cell}
        n_words = len(levels["word"].counts)
        free = np.bincount(cell.word, cell.counts - 1, minlength=n_words)
        factors = [("position", known.position), ("sentence", known.sentence), ("document", known.document)]
        held = [_crossed(name, codes, levels, free) for name, codes in factors if codes is not None]
        expected = np.array([[_between(a, b, cell) for b in held] for a in held]).reshape(len(held), -1)
        kept = _told_apart(expected, len(known))
        return cls(known, levels, tuple(held[i] for i in kept), free, expected[np.ix_(kept, kept)])


def population(known: Known, *, min_contexts: int) -> Known:
    """The rows that are decomposed: of words with labels the labelled ones; of these the words that stand in at least
    `min_contexts` sentences, and twice in one form and sense at least, or nothing tells them from noise. Raises
    MetricError if there are none."""
    labelled = np.zeros(len(known.word), bool)
    labelled[known.word.codes[known.sense.codes >= 0]] = True
    known = known.taken(np.flatnonzero(~labelled[known.word.codes] | (known.sense.codes >= 0)))
    word = known.word.codes
    pairs = np.unique(word * (known.sentence.max(initial=0) + 1) + known.sentence)
    contexts = np.bincount(pairs // (known.sentence.max(initial=0) + 1), minlength=len(known.word))
    cell = Level.of(_cells(known), word)
    free = np.bincount(cell.word, cell.counts - 1, minlength=len(known.word))
    known = known.taken(np.flatnonzero(((contexts >= min_contexts) & (free > 0))[word]))
    if not len(known):
        raise MetricError(
            f"variance_components: no word stands in min_contexts={min_contexts} sentences, and twice in one form and "
            "sense; use a corpus of more sentences"
        )
    return known


def ambiguous(design: Design) -> Known | None:
    """The rows of words with several labelled senses in one of their forms; None without any."""
    cells, forms = (np.bincount(design.levels[level].word, minlength=design.n_words) for level in ("cell", "form"))
    rows = np.flatnonzero((cells > forms)[design.known.word.codes])
    return design.known.taken(rows) if len(rows) else None


def one_hot(codes: np.ndarray, n: int) -> csr_array:
    """(n, rows): 1 where a row has a code."""
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))), shape=(n, len(codes)))


def counted(a: np.ndarray, b: np.ndarray, shape: tuple[int, int]) -> csr_array:
    """How many rows have each pair of codes."""
    from scipy.sparse import coo_array

    return coo_array((np.ones(len(a)), (a, b)), shape=shape).tocsr()


def _cells(known: Known) -> np.ndarray:
    """(n,) the number of each row's form and sense."""
    code = known.form.codes * (len(known.sense) + 1) + known.sense.codes + 1
    result: np.ndarray = np.unique(code, return_inverse=True)[1]
    return result


def _crossed(name: str, codes: np.ndarray, levels: dict[str, Level], free: np.ndarray) -> Crossed:
    """The factor with what its variance adds to the words' sums of squares, and theirs to its own."""
    of_row = np.unique(codes, return_inverse=True)[1]
    counts = np.bincount(of_row).astype(np.float64)
    n_words, cell = len(free), levels["cell"]
    of_means = {}
    for level, at in levels.items():
        table = counted(at.of_row, of_row, (len(at.counts), len(counts)))
        squares = np.bincount(at.word, (table**2).sum(axis=1) / at.counts, minlength=n_words)
        of_means[level] = squares
    # `table` is that of the cells now
    within = (np.bincount(cell.word, cell.counts, minlength=n_words) - of_means["cell"]) / free
    shares = table @ (1 / counts) - ((table**2) @ (1 / counts)) / cell.counts
    own = np.bincount(cell.word, shares, minlength=n_words)
    return Crossed(name, of_row, counts, table, within, own, of_means)


def _between(a: Crossed, b: Crossed, cell: Level) -> float:
    """How much of b's variance is in a's squares once each word's own part is taken out."""
    return _trace(a, b, cell.counts) - float(a.own @ b.within)


def _trace(a: Crossed, b: Crossed, cells: np.ndarray) -> float:
    """|D_a^-1/2 Z_a'M Z_b|^2: what unit effects of b put into the squares of a, each cell's mean taken out."""
    both = counted(a.of_row, b.of_row, (len(a.counts), len(b.counts)))
    shrunk = b.in_cells.multiply(1 / cells[:, None]).tocsr()
    if min(both.shape) <= SMALL:
        return _dense(both, a.in_cells.T.tocsr(), shrunk, a.counts)
    # |X - Y|^2 = |X|^2 - 2 <X, Y> + |Y|^2, the last by cells, of which few stand together
    apart = ((both**2) / a.counts[:, None]).sum()
    scaled = a.in_cells.multiply(1 / a.counts).tocsr()
    mixed = (scaled.multiply(shrunk @ both.T)).sum()
    root = 1 / np.sqrt(cells)
    one = (scaled @ a.in_cells.T).multiply(root[:, None]).multiply(root)
    other = (b.in_cells @ b.in_cells.T).multiply(root[:, None]).multiply(root)
    return float(apart - 2 * mixed + one.multiply(other).sum())


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


def _told_apart(expected: np.ndarray, n: int) -> list[int]:
    """Which factors can be told from the others and from noise, in order: a sentence of one row can't."""
    kept: list[int] = []
    for i in range(len(expected)):
        some = [*kept, i]
        scale = np.sqrt(np.diag(expected)[some])
        if expected[i, i] > SINGULAR * n:
            ratio = np.linalg.svd(expected[np.ix_(some, some)] / np.outer(scale, scale), compute_uv=False)
            if ratio[-1] > 1e-6:
                kept = some
    return kept
