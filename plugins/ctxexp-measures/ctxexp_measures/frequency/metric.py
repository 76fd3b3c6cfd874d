"""Frequency geometry: norms and neighbourhoods of word vectors by the words' frequency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, MinLen

from ctxexp import Block, Corpus, Encoder, Estimate, Group, Metric, Output, Reading, Text
from ctxexp.datasets import user_path
from ctxexp.errors import DataError
from ctxexp_measures.frequency.geometry import Among, Bins, check_bins, geometry
from ctxexp_measures.frequency.projection import Projection, draw, project
from ctxexp_measures.frequency.ranks import ranks, read_list, vocabulary_list, vocabulary_ranks


class FrequencyGeometry(Metric):
    """Norms and k-nearest-neighbour distances, products and cosines by frequency rank (Li et al. 2020, Table 1).

    Hidden layers: a word's vector is the mean of its rows, its frequency their number (so words with fewer contexts
    than `min_contexts` are not there). Embedding tables: a row each piece or word. The paper has ranks 0-100, 100-500,
    500-5K and 5K-10K, which need 10,000 words; it does not say among which words the neighbours are. Its header's
    "[5K, 1K)" and "(0, 100)" are misprints. Cosines are not in the paper: unlike distances and products they don't
    grow with the norms.

    `frequency`: corpus (counts in the measured text), vocabulary (the order of the tokenizer's pieces; in layers, of
    words that are one piece), or a file of words and counts. `bins`: auto (the paper's where each holds 30 rows or
    more, otherwise four of equal size), a number of bins of equal size, or the edges. `contexts`: so many of each
    word's rows are averaged, evenly spaced over the text, and words with fewer are left out (null: all rows). The mean
    of many rows is shorter than that of few wherever contexts differ, which alone makes norms rise with the rank: equal
    numbers take that out. `k`: how many nearest neighbours, among `neighbours` (all words, or those of the same bin).
    `replicates`: resamples of words behind intervals, by `seed`, which the drawn projection has too. `projection`:
    layers and tables to draw (null: the last layer and all tables).

    frequency: corpus: counts in the measured text; vocabulary: the order of the tokenizer's pieces (layers: words
        of one piece); or a file of words and counts
    bins: auto: [0, 100, 500, 5000, 10000] (the paper's) where each bin holds 30 words, otherwise four of equal
        size; a number of bins of equal size; or edges [0, 100, ...]
    k: numbers of nearest neighbours
    neighbours: all: among all words; bin: among those of the same bin
    contexts: rows per word that are averaged (words with fewer are left out); null: all, so that rare words have
        longer means
    replicates: bootstrap resamples behind the intervals of the correlations
    projection: layers and tables to draw, as in [0, 4, input]; null: the last layer and all tables; []: none
    """

    over = "word"
    measures_embedding_tables: ClassVar[bool] = True
    title = "Frequency geometry"
    reading = Reading(unit="Spearman correlation")
    invariances = frozenset({"rotation", "permutation"})

    def __init__(
        self,
        *,
        frequency: str = "corpus",
        bins: Bins = "auto",
        k: Annotated[Sequence[Annotated[int, Ge(1)]], MinLen(1)] = (3, 5, 7),
        neighbours: Among = "all",
        contexts: Annotated[int, Ge(1)] | None = None,
        replicates: int = 200,
        projection: Sequence[int | str] | None = None,
        seed: int = 0,
    ) -> None:
        check_bins(bins)
        if contexts is not None:
            self.invariances = self.invariances - {"permutation"}  # which rows are averaged depends on their order
        self.frequency, self.k, self.neighbours = frequency, tuple(k), neighbours
        self.bins: Bins = bins if isinstance(bins, str | int) else tuple(bins)
        self.contexts, self.replicates, self.projection, self.seed = contexts, replicates, projection, seed
        self._listed = {} if frequency in ("corpus", "vocabulary") else read_list(user_path(frequency))
        source = frequency if frequency in ("corpus", "vocabulary") else f"list {Path(frequency).name}"
        among = "all words" if neighbours == "all" else "words of the same bin"
        self.definition = (
            f"Spearman's correlation of frequency rank (0 = most frequent; from: {source}) with the norm of word "
            f"vectors, means of {'all' if contexts is None else contexts} rows; "
            f"k={','.join(map(str, self.k))} nearest among {among}"
        )
        self._means: dict[str, tuple[np.ndarray, int]] = {}  # word -> mean vector, rows
        self._table: tuple[list[str], np.ndarray, np.ndarray] | None = None

    def require(self, corpus: Corpus) -> None:
        if corpus.bound is not None and self.frequency == "corpus":
            raise DataError(
                "frequency_geometry counts a word's occurrences as its frequency, of which words.max_contexts="
                f"{corpus.bound.max_contexts} leaves so many at most; give it a frequency list, or measure all contexts"
            )

    def bind_text(self, text: Text) -> None:
        if self.frequency == "vocabulary":
            by_word = text.derived.get("frequency_geometry vocabulary")
            if by_word is None:
                by_word = text.derived["frequency_geometry vocabulary"] = _vocabulary(text.encoder)
            assert isinstance(by_word, dict)
            self._listed = by_word

    def update(self, group: Group) -> None:
        self.update_block(Block.of(group))

    def update_block(self, block: Block) -> None:
        if block.table is not None:
            self._table = self._tokens(block)
            return
        keys, x, n = block.keys, block.x, block.x.shape[1]
        if self.contexts is not None:
            if n < self.contexts:
                return
            x = x[:, np.linspace(0, n - 1, self.contexts).round().astype(int)]
        means = x.mean(axis=1, dtype=np.float64).astype(x.dtype)
        for key, mean in zip(keys, means, strict=True):
            self._means[str(key)] = mean, n

    def compute(self) -> dict[str, float | Estimate]:
        """Correlations with intervals, then the bins' means and sizes: see `geometry`."""
        _, x, rank = self._ranked()
        return geometry(
            x,
            rank,
            bins=self.bins,
            k=self.k,
            neighbours=self.neighbours,
            replicates=self.replicates,
            seed=self.seed,
        )

    def _tokens(self, block: Block) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Tokens of an embedding table, its special pieces left out, with their vectors and ranks."""
        table = block.table
        assert table is not None
        ordinary = np.setdiff1d(np.arange(len(table.tokens)), table.special)
        tokens = [table.tokens[i] for i in ordinary.tolist()]
        counts = None if table.counts is None else table.counts[ordinary]
        x = table.vectors[ordinary] if len(ordinary) < len(table.tokens) else table.vectors
        return tokens, x, ranks(tokens, counts, self.frequency, self._listed)

    def outputs(self) -> dict[str, ProjectionPage]:
        words, x, rank = self._ranked()
        points = project(x, words, rank, seed=self.seed)
        return {} if points is None else {"projection": ProjectionPage(points, self.frequency, self.projection)}

    def _ranked(self) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Words, vectors (n, d) and ranks (n,) of the updated layer or table."""
        if self._table is not None:
            return self._table
        words = sorted(self._means)
        if not words:
            return [], np.empty((0, 0)), np.empty(0, np.int64)
        x = np.stack([self._means[word][0] for word in words])
        counts = np.array([self._means[word][1] for word in words], np.int64)
        if self.frequency == "vocabulary":
            return words, x, vocabulary_ranks(words, self._listed)
        return words, x, ranks(words, counts, self.frequency, self._listed)


def _vocabulary(encoder: Encoder) -> dict[str, int]:
    """Ranks of a text's units by the order of the model's own tokens, {} where that is not known.

    With pooling=pieces no unit has a rank, since "the" may be a word or the inside of one.
    """
    tables = encoder.tables([])
    if not tables or encoder.details.get("pooling") == "pieces":
        return {}
    special = set(tables[0].special)
    tokens = [token for i, token in enumerate(tables[0].tokens) if i not in special]
    return vocabulary_list(tokens)


@dataclass(frozen=True)
class ProjectionPage(Output):
    """A place's projection, and the layers and tables that are drawn (None: the last layer and all tables)."""

    points: Projection
    frequency: str
    places: Sequence[int | str] | None

    def write_together(
        self, by_place: Mapping[str, ProjectionPage], folder: Path, *, n_layers: int, title: str
    ) -> None:
        """Draw the projections of the chosen layers and tables on one page."""
        panels: list[tuple[str, Projection]] = []
        for place in sorted(by_place):
            kind, _, name = place.partition("_")
            which: int | str = int(name) if kind == "layer" else name
            default = kind == "table" or which == n_layers - 1
            if default if self.places is None else which in self.places:
                panels.append((f"layer {which}" if kind == "layer" else f"{which} table", by_place[place].points))
        if panels:
            draw(panels, folder / "projection.html", f"Vectors by word frequency ({self.frequency}): {title}")
