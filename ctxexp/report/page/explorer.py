"""The page's section on words, with its data: measures of all words as packed numbers, and a compressed block a word
with its occurrences, which the page unpacks when the word is opened.

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

from ctxexp.report.page.word_map import TABLE, extremes
from ctxexp.report.wording import LabelledResults
from ctxexp.results import Results

if TYPE_CHECKING:
    import pandas as pd

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
    """Every word's measures by layer, and of the words that a run projected their occurrences with a point a run and
    layer. None where no run projected any."""
    labelled_runs = [(label, r) for label, r in runs if len(r.tables.get(TABLE, ()))]
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
    """Every word's measures (words, layers), their index the words: contextuality, raw, adjusted, half (of a listed
    word's interval) and variance."""
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
    for table in _tables(results, "contextuality"):
        by_layer = table.pivot(index="word", columns="layer", values="contextuality")
        frames["contextuality"] = by_layer.reindex(columns=list(layers))
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
