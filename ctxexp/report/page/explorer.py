"""The page's section with its data: measures of all words as packed numbers, and a compressed block a word with its
occurrences as points on a plane, layer by layer (`WordMap`), which the page unpacks when the word is opened.

Everything stays in one file: it works from a disk, in MLflow's viewer (which shows a page without its folder) and as an
attachment of a mail.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ctxexp.dataset import Corpus
from ctxexp.groups import WordReader
from ctxexp.occurrences import Groups, Occurrences, RowIndex
from ctxexp.report.wording import LabelledResults, unique_labels
from ctxexp.results import Results

if TYPE_CHECKING:
    import pandas as pd

TABLE = "word_map"  # among a run's results
OCCURRENCES = 48  # of a word
LISTED = 10  # words at each end of the page's lists
Z = 1.96  # standard errors in half of a 95% interval
RANK = 6  # directions of each layer that the common plane is fitted on
LEVELS = 40  # unlabelled words from the most to the least frequent, denser where frequent
NOISE = 16  # rounding errors of the rows, in their epsilon, that are no spread


class WordMap:
    """The principal planes of words' occurrences, taken one layer at a time.

    Rows are scaled to length one and centred on their mean in the layer, so that their spread is what self-similarity
    sees: its mean square is 1 - |mean|^2. A word has a plane of each layer's own, and one that all layers have in
    common, fitted on each layer's first `RANK` directions. Words with labelled senses come first, those with most
    senses before, then words over the whole range of frequency; at most `most` rows of them, `each` of one word.
    """

    def __init__(
        self,
        store: RowIndex,
        occurrences: Occurrences,
        corpus: Corpus,
        *,
        dim: int,
        most: int,
        words: Sequence[str] | None = None,
        each: int = OCCURRENCES,
    ) -> None:
        self.store, self.occurrences, self.corpus, self.most = store, occurrences, corpus, most
        self.sense = {
            row: label
            for labels, rows in zip(occurrences.by_sense.labels, _split(occurrences.by_sense), strict=True)
            for row, label in zip(rows.tolist(), labels, strict=True)
        }
        words = _by_senses_and_frequency(occurrences) if words is None else words
        self.groups = _groups(occurrences, self.sense, words, most, each=each)
        self.dim, self.layers = dim, list[int]()
        self.own: list[np.ndarray] = []  # a layer each: (rows, 2)
        self.loads: list[np.ndarray] = []  # (rows, RANK) coordinates along the layer's directions, each of length 1
        self.directions: list[np.ndarray] = []  # (words, RANK, d) the directions, as long as the spread along them

    def take(self, reader: WordReader) -> None:
        """The rows at the next layer."""
        own, loads, directions = [], [], []
        for block in reader.blocks_of(self.groups):
            length = np.linalg.norm(block.x, axis=2, keepdims=True)
            unit = np.divide(block.x, length, out=np.zeros_like(block.x), where=length > 0)
            c = unit - unit.mean(axis=1, keepdims=True)  # (w, n, d)
            value, vector = np.linalg.eigh(np.matmul(c, c.transpose(0, 2, 1)))
            value = np.where(value > (NOISE * reader.eps) ** 2 * c.shape[1], value, 0)
            load = _turned(vector[:, :, : -RANK - 1 : -1]) * (value > 0)[:, None, : -RANK - 1 : -1]
            load = np.pad(load, ((0, 0), (0, 0), (0, RANK - load.shape[2])))  # 3 rows have 3 directions
            direction = np.matmul(load.transpose(0, 2, 1), c)  # (w, RANK, d)
            own.append((load * np.linalg.norm(direction, axis=2)[:, None])[:, :, :2].reshape(-1, 2))
            loads.append(load.reshape(-1, RANK))
            directions.append(direction)
        assert reader.place.layer is not None
        self.layers.append(reader.place.layer)
        self.own.append(np.concatenate([np.zeros((0, 2), np.float32), *own]))
        self.loads.append(np.concatenate([np.zeros((0, RANK), np.float32), *loads]))
        self.directions.append(np.concatenate([np.zeros((0, RANK, self.dim), np.float32), *directions]))

    def follow_up(self, tables: Mapping[str, pd.DataFrame]) -> WordMap | None:
        """The map of the most and least self-similar words of each layer that this one leaves out, with at most as many
        rows and `OCCURRENCES` of a word, or fewer of each, so that all have some; None if there are none."""
        projected = set(self.groups.keys)
        every = dict.fromkeys(word for words in extremes(tables, self.layers).values() for word in words)
        listed = [word for word in every if word not in projected]
        if not listed:
            return None
        each = min(OCCURRENCES, max(2, self.most // len(listed)))
        return WordMap(self.store, self.occurrences, self.corpus, dim=self.dim, most=self.most, words=listed, each=each)

    def table(self) -> pd.DataFrame:
        """One row per occurrence: word, part of speech and sense ("": not known), the sentence's number and text, where
        the word stands in it (characters), then per layer x and y on its own plane and on the common one."""
        import pandas as pd

        sentences, positions = self._places()
        contexts = [self.corpus.sentences[i] for i in sentences]
        spans = [s.spans[p] if p >= 0 else (0, 0) for s, p in zip(contexts, positions, strict=True)]
        pos = self.corpus.tags.get("pos")
        columns: dict[str, object] = {
            "word": [word for word, n in zip(self.groups.keys, self.groups.counts, strict=True) for _ in range(n)],
            "pos": [pos[i][p] if pos and p >= 0 else "" for i, p in zip(sentences, positions, strict=True)],
            "sense": [self.sense.get(row, "") for row in self.groups.rows.tolist()],
            "sentence": sentences,
            "text": [sentence.text for sentence in contexts],
            "start": [start for start, _ in spans],
            "end": [end for _, end in spans],
        }
        for name, points in (("own", self.own), ("common", self._common())):
            for layer, xy in zip(self.layers, points, strict=True):
                columns |= {f"{name}_{axis}_{layer}": xy[:, i].round(4) for i, axis in enumerate("xy")}
        return pd.DataFrame(columns)

    def _common(self) -> list[np.ndarray]:
        """(rows, 2) for each layer: the points on the plane that each word's layers have in common."""
        n, starts = len(self.own), self.groups.starts
        stacked = np.stack(self.directions, axis=1)  # (words, layers, RANK, d)
        words, _, rank, dim = stacked.shape
        flat = stacked.reshape(words, n * rank, dim)
        value, vector = np.linalg.eigh(np.matmul(flat, flat.transpose(0, 2, 1)))
        length = np.sqrt(np.maximum(value[:, :-3:-1], np.finfo(np.float32).tiny))
        along = vector[:, :, :-3:-1] * length[:, None]  # (words, layers * RANK, 2): each direction's place on the plane
        along = _turned(along).reshape(words, n, rank, 2)
        of = np.repeat(np.arange(words), np.diff(starts))  # each row's word
        return [np.matmul(self.loads[layer][:, None], along[of, layer])[:, 0] for layer in range(n)]

    def _places(self) -> tuple[list[int], list[int]]:
        """Of each row the sentence's first number in the corpus, and the word's place in it; -1 without a word."""
        rows, offsets = self.groups.rows, np.asarray(self.store.offsets, np.int64)
        stored = np.searchsorted(offsets, rows, side="right") - 1
        first = dict(zip(*(part.tolist() for part in np.unique(self.store.stored_of, return_index=True)), strict=True))
        positions = getattr(self.store, "positions", None)
        at = (rows - offsets[stored]) if positions is None else np.asarray(positions)[rows]
        return [first[i] for i in stored.tolist()], at.tolist()


def extremes(tables: Mapping[str, pd.DataFrame], layers: Sequence[int]) -> dict[int, list[str]]:
    """The words of the page's lists by layer, the last layer first: its `LISTED` most contextual words and its `LISTED`
    least contextual ones, by ascending self-similarity (above chance, where that is known), or fewer where there are
    few. Words that are constant by construction are in no list, nor are those whose 95% interval is half the room above
    chance or wider. Empty without a measure that has standard errors."""
    label = next((label for label in tables if f"{label}_errors" in tables), None)
    if label is None:
        return {}
    table = tables[label]
    varying = (table[~table["constant"].astype(bool)] if "constant" in table else table).set_index("word")
    errors = tables[f"{label}_errors"].set_index("word")
    name = "adjusted" if any(column.startswith("adjusted_") for column in table) else "raw"
    words: dict[int, list[str]] = {}
    for layer in reversed(layers):
        values = varying[f"{name}_{layer}"].dropna()
        room = 1 - (varying[f"raw_{layer}"] - values).mean() if name == "adjusted" else 1.0
        is_sure = 2 * Z * errors[f"error_{layer}"].reindex(values.index) < room / 2
        ranking = values[is_sure].sort_values(kind="stable").index
        n = min(LISTED, len(ranking) // 2)
        words[layer] = [*ranking[:n], *ranking[len(ranking) - n :]]
    return words


def _by_senses_and_frequency(occurrences: Occurrences) -> list[str]:
    """Words with senses, those with most before, then others of all frequencies."""
    senses = {
        word: len(set(labels))
        for word, labels in zip(occurrences.by_sense.keys, occurrences.by_sense.labels, strict=True)
    }
    words = occurrences.words
    order = sorted(range(len(words)), key=lambda i: (-senses.get(words[i], 0), -int(occurrences.counts[i]), words[i]))
    labelled = [words[i] for i in order if words[i] in senses]
    others = [words[i] for i in order[len(labelled) :]]
    levels = np.unique(np.geomspace(1, max(len(others), 1), LEVELS).astype(int)) - 1
    return [*labelled, *(others[level] for level in levels.tolist() if others)]


def _groups(occurrences: Occurrences, sense: dict[int, str], words: Sequence[str], most: int, *, each: int) -> Groups:
    """At most `most` rows of these words, the first first, and `each` of one word, labelled ones before; each row once.

    They are returned by ascending number of rows.
    """
    groups, number = occurrences.by_word, {word: i for i, word in enumerate(occurrences.words)}
    rows_of: dict[str, np.ndarray] = {}
    for word in words:
        i = number[word]
        rows = np.unique(groups.rows[groups.starts[i] : groups.starts[i + 1]])
        if len(rows) > each:
            labelled = np.array([row for row in rows.tolist() if row in sense], np.int64)[:each]
            rest = np.setdiff1d(rows, labelled)
            rest = rest[np.linspace(0, len(rest) - 1, each - len(labelled)).round().astype(int)]
            rows = np.union1d(labelled, rest)
        if len(rows) > 1 and sum(map(len, rows_of.values())) + len(rows) <= most:
            rows_of[word] = rows
    order = sorted(rows_of, key=lambda word: (len(rows_of[word]), word))
    starts = np.cumsum([0, *(len(rows_of[word]) for word in order)])
    return Groups(order, starts, np.concatenate([groups.rows[:0], *(rows_of[word] for word in order)]))


def _split(groups: Groups) -> list[np.ndarray]:
    return [groups.rows[a:b] for a, b in zip(groups.starts[:-1], groups.starts[1:], strict=True)]


def _turned(vectors: np.ndarray) -> np.ndarray:
    """Columns (..., n, k) with the sign that makes their largest entry positive; of nearly equal ones the first."""
    size = np.abs(vectors)
    first = (size > 0.999 * size.max(axis=-2, keepdims=True)).argmax(axis=-2)[..., None, :]
    signs: np.ndarray = np.sign(np.take_along_axis(vectors, first, axis=-2))
    return vectors * np.where(signs == 0, 1, signs)


MOST = 2000  # words in the scatter
FEWEST = 2  # occurrences of a word, however many models there are
LAYERS = 96  # of all models together; of more, evenly spaced ones
BLOCK_BYTES, SCORE_BYTES = 1_800_000, 900_000  # of the page, which is to be sent by mail
AROUND = 150  # characters of a long text that are shown on either side of the word
UNIT, FINE = 16000, 10000  # steps of one: of points, which are less than 2 from their mean, and of scores
_MISSING = -(2**15)  # NaN

Numbers = dict[str, Any]
"""What JSON takes."""


class Explorer(NamedTuple):
    """The explorer's data: `overview` in JSON's types, with every word's measures by layer and run, and of each
    projected word a block with its occurrences (see `pack`), by its element's id."""

    overview: Numbers
    blocks: dict[str, str]

    @property
    def html(self) -> str:
        return Path(__file__).with_name("explorer.html").read_text(encoding="utf-8")

    @property
    def script(self) -> str:
        return Path(__file__).with_name("explorer.js").read_text(encoding="utf-8")


def explorer_data(runs: Sequence[LabelledResults]) -> Explorer | None:
    """Every word's self-similarity and explained variance by layer, and of the words that a run projected their
    occurrences with a point a run and layer. None where no run projected any."""
    labelled_runs = [(label, r) for label, r in unique_labels(runs) if len(r.tables.get(TABLE, ()))]
    if not labelled_runs:
        return None
    maps = [results.tables[TABLE] for _, results in labelled_runs]
    layers_of = spread_layers([_layers(table) for table in maps])
    scores = [_scores(results, layers) for (_, results), layers in zip(labelled_runs, layers_of, strict=True)]
    bytes_a_word = 8 / 3 * sum(frame.shape[1] for score in scores for frame in score.values())
    listed = [extremes(results.tables, layers) for (_, results), layers in zip(labelled_runs, layers_of, strict=True)]
    words = _explorer_words(maps, scores, listed, min(MOST, int(SCORE_BYTES / max(bytes_a_word, 1))))
    number = {word: i for i, word in enumerate(words)}
    word_blocks = fitting_blocks(maps, layers_of)
    models = [
        {
            "label": label,
            "layers": layers,
            "last": results.n_layers - 1,
            "constant": _constant(results, words),
            "listed": [[number[word] for word in by_layer.get(layer, ())] for layer in layers],
            **{name: _base64(_integers(x.reindex(words).to_numpy(np.float64), FINE)) for name, x in score.items()},
        }
        for (label, results), layers, score, by_layer in zip(labelled_runs, layers_of, scores, listed, strict=True)
    ]
    counts: dict[str, int] = {}
    for _, results in labelled_runs:
        for table in _tables(results, "self_similarity"):
            counts = dict(zip(table["word"], table["count"].tolist(), strict=True)) | counts
    tags, senses = _by_word(maps, "pos"), _by_word(maps, "sense")
    overview = {
        "words": words,
        "counts": [counts.get(word, 0) for word in words],
        "pos": ["/".join(sorted(tags.get(word, ()))) for word in words],
        "senses": [len(senses.get(word, ())) for word in words],
        "projected": [word in word_blocks for word in words],
        "models": models,
        "steps": [UNIT, FINE],
    }
    return Explorer(overview, {f"word-{number[word]}": block for word, block in word_blocks.items()})


def fitting_blocks(tables: Sequence[pd.DataFrame], layers_of: Sequence[Sequence[int]]) -> dict[str, str]:
    """The block of each projected word, with its first occurrences of each run: of all words as many as fit on the
    page."""
    maps = [_MapRows.of(table, layers) for table, layers in zip(tables, layers_of, strict=True)]
    words = dict.fromkeys(word for each in maps for word in each.of_word)
    most = max((len(rows) for each in maps for rows in each.of_word.values()), default=0)
    while True:
        blocks = {word: pack(_block(maps, word, most)) for word in words}
        room = BLOCK_BYTES / max(sum(map(len, blocks.values())), 1)
        if room > 1 or most <= FEWEST:
            return blocks
        most = max(FEWEST, int(most * min(room, 0.95)))


class _MapRows(NamedTuple):
    """A run's table of points: its rows by word, what is said of each, and their points as integers."""

    of_word: dict[str, np.ndarray]
    columns: list[tuple[Any, ...]]  # text, start, end, sense, sentence
    points: dict[str, np.ndarray]  # (rows, layers, 2) by plane

    @classmethod
    def of(cls, table: pd.DataFrame, layers: Sequence[int]) -> _MapRows:
        columns = (table[name].tolist() for name in ("text", "start", "end", "sense", "sentence"))
        points = {name: _integers(_points(table, name, layers), UNIT) for name in ("own", "common")}
        by_word = table.groupby("word", sort=False).indices
        return cls({str(word): rows for word, rows in by_word.items()}, list(zip(*columns, strict=True)), points)


def pack(block: Numbers) -> str:
    """The block as text, as the page reads it: base64 of its compressed JSON, the same bytes whenever it is the same.

    Its `occurrences` have each a text, where the word starts and ends in it, its sense and the sentence's number; of
    each model `at` are the occurrences that it has, `common` and `own` their points on the common plane and on each
    layer's own, (occurrences, layers, 2) as base64 of integers.
    """
    text = json.dumps(block, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _block(maps: Sequence[_MapRows], word: str, most: int) -> Numbers:
    """The first `most` occurrences of a word in each run as one block; those that runs share stand there once."""
    occurrences: dict[tuple[str, int, int], list[Any]] = {}
    models = []
    for each in maps:
        rows, at = each.of_word.get(word, np.zeros(0, int))[:most], []
        for text, start, end, sense, sentence in (each.columns[row] for row in rows.tolist()):
            entry = [len(occurrences), *excerpt(text, start, end), sense, sentence]
            at.append(occurrences.setdefault((text, start, end), entry)[0])
        models.append({"at": at, **{name: _base64(points[rows]) for name, points in each.points.items()}})
    return {"occurrences": [entry[1:] for entry in occurrences.values()], "models": models}


def _by_word(tables: Sequence[pd.DataFrame], column: str) -> dict[str, set[str]]:
    """The values of a column of texts by word, empty ones left out."""
    values: dict[str, set[str]] = {}
    for table in tables:
        pairs = table.reindex(columns=["word", column]).fillna("").drop_duplicates()
        for word, value in pairs.itertuples(index=False):
            values.setdefault(word, set()).update({value} - {""})
    return values


def spread_layers(layers_of: Sequence[Sequence[int]]) -> list[list[int]]:
    """The layers of each model that the page can hold: all, or of many deep models evenly spaced ones."""
    if sum(map(len, layers_of)) <= LAYERS:
        return [list(layers) for layers in layers_of]
    most = max(3, LAYERS // len(layers_of))
    at = [
        np.unique(np.linspace(0, len(layers) - 1, min(most, len(layers))).round().astype(int)) for layers in layers_of
    ]
    return [[layers[i] for i in some.tolist()] for layers, some in zip(layers_of, at, strict=True)]


def excerpt(text: str, start: int, end: int) -> tuple[str, int, int]:
    """The text about the word from `start` to `end`, and where the word stands in it; a short text is whole."""
    if len(text) <= 3 * AROUND:
        return text, start, end
    first, last = max(0, start - AROUND), min(len(text), end + AROUND)
    before, after = "… " if first else "", " …" if last < len(text) else ""
    shift = len(before) - first
    return f"{before}{text[first:last]}{after}", start + shift, end + shift


def _layers(table: pd.DataFrame) -> list[int]:
    return [int(name.rpartition("_")[2]) for name in table if name.startswith("own_x_")]


def _tables(results: Results, measure: str) -> list[pd.DataFrame]:
    """The word table of a measure, whatever its label; none where it wasn't measured."""
    return [table for label, table in results.tables.items() if results.info.definition_name(label) == measure][:1]


def _scores(results: Results, layers: Sequence[int]) -> dict[str, pd.DataFrame]:
    """Every word's measures (words, layers), their index the words: raw, adjusted, half (of a listed word's
    interval) and variance."""
    frames: dict[str, pd.DataFrame] = {}
    for name, measure, column in (
        ("raw", "self_similarity", "raw"),
        ("adjusted", "self_similarity", "adjusted"),
        ("variance", "max_explainable_variance", "raw"),
    ):
        for table in _tables(results, measure):
            frames[name] = _by_layer(table, column, layers)
            if not frames[name].shape[1]:  # no chance level
                frames[name] = frames["raw"]
    for label in results.tables:
        if results.info.definition_name(label) == "self_similarity" and f"{label}_errors" in results.tables:
            errors = results.tables[f"{label}_errors"]
            factor = errors.set_index("word")["listed_factor"]
            frames["half"] = _by_layer(errors, "error", layers).mul(factor, axis=0)
    return frames


def _constant(results: Results, words: Sequence[str]) -> list[int]:
    """The numbers of the words that a causal model only ever sees with nothing to their left."""
    tables = _tables(results, "self_similarity")
    constant_words = {word for t in tables if "constant" in t for word in t["word"][t["constant"].astype(bool)]}
    return [i for i, word in enumerate(words) if word in constant_words]


def _by_layer(table: pd.DataFrame, name: str, layers: Sequence[int]) -> pd.DataFrame:
    """The columns of the layers, name_0, name_1 ..., by word; those that there are."""
    return table.set_index("word")[[column for layer in layers if (column := f"{name}_{layer}") in table]]


def _explorer_words(
    maps: Sequence[pd.DataFrame],
    scores: Sequence[dict[str, pd.DataFrame]],
    listed: Sequence[Mapping[int, Sequence[str]]],
    most: int,
) -> list[str]:
    """The words of the explorer: the projected ones, the listed extremes, and others evenly, at most `most` in all."""
    ends = (word for by_layer in listed for some in by_layer.values() for word in some)
    words = dict.fromkeys([*(word for table in maps for word in table["word"]), *ends])
    every = [score["adjusted"] for score in scores if "adjusted" in score]
    rest = list(dict.fromkeys(word for frame in every for word in frame.index if word not in words))
    room = min(len(rest), max(0, most - len(words)))
    return [*words, *(rest[i] for i in np.linspace(0, len(rest) - 1, room).round().astype(int).tolist())]


def _points(table: pd.DataFrame, name: str, layers: Sequence[int]) -> np.ndarray:
    """(rows, layers, 2) on each layer's own plane, or on the common one."""
    columns = [f"{name}_{axis}_{layer}" for layer in layers for axis in "xy"]
    return table[columns].to_numpy(np.float64).reshape(len(table), len(layers), 2)


def _integers(x: np.ndarray, steps: int) -> np.ndarray:
    """The numbers as little-endian int16, `steps` of which are one; NaN as the smallest."""
    rounded = np.clip(np.round(np.nan_to_num(x) * steps), -(2**15) + 1, 2**15 - 1)
    return np.where(np.isnan(x), _MISSING, rounded).astype("<i2")


def _base64(integers: np.ndarray) -> str:
    return base64.b64encode(integers.tobytes()).decode()
