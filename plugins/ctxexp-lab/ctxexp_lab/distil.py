"""Sentence vectors from a table of static vectors: ways of making the table from a model, and what each costs.

`singly` follows model2vec (Tulkens & van Dongen 2024): each piece of the vocabulary is passed through the model by
itself, the vectors are reduced by PCA and weighted by a smooth inverse frequency that Zipf's law stands in for.
`mean` and `first_pc` follow Ethayarajh (2019, section 4.3.2): a word's vectors in a text, of other sentences than
those that are scored. `input` is the model's own embedding table, `random` a normal vector each, the control that knows
which pieces a sentence has and nothing else.
"""

from __future__ import annotations

import copy
import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ctxexp_measures.words.directions import first_directions

from ctxexp import Corpus, Encoder, Sentence
from ctxexp.errors import DataError, ModelError
from ctxexp.maths import interval, resamples, spearman
from ctxexp.report import Document, Table, write_file

WAYS = ("singly", "mean", "first_pc", "input", "random")
SIF = 1e-4  # of the weights a / (a + p), model2vec's default
COMPONENTS = 256  # of singly's PCA, at most the model's width
ROWS = 64


@dataclass(frozen=True)
class StaticTable:
    """A vector (n, d) float32 of each token, and how a sentence is told in tokens."""

    tokens: Mapping[str, int]
    vectors: np.ndarray
    split: Callable[[Sequence[Sentence]], list[list[str]]]

    def sentences(self, sentences: Sequence[Sentence]) -> np.ndarray:
        """(n, d) the mean of each sentence's token vectors; tokens without one are left out, NaN where none has one."""
        result = np.full((len(sentences), self.vectors.shape[1]), np.nan)
        for i, tokens in enumerate(self.split(sentences)):
            rows = [self.tokens[token] for token in tokens if token in self.tokens]
            if rows:
                result[i] = self.vectors[rows].mean(axis=0, dtype=np.float64)
        return result


@dataclass(frozen=True)
class DistilledScore:
    """Cost and quality of a way of making sentence vectors.

    `bytes_kept` float32 of weights or table; `words_per_second` of making sentence vectors, tokenizer included, on one
    machine at one time; `spearman` x 100 with people's scores; `low`, `high` its 95% interval over pairs; `kept` the
    share of the model's own, with `kept_low` and `kept_high` over the same resamples; `covered` pairs with vectors.
    """

    way: str
    bytes_kept: int
    words_per_second: float
    spearman: float
    low: float
    high: float
    kept: float
    kept_low: float
    kept_high: float
    covered: float


def zipf_weights(n: int, *, coefficient: float = SIF) -> np.ndarray:
    """(n,) weights a / (a + p) of tokens by their rank r, p proportional to 1 / (r + 2), as model2vec has them.

    Example:
        >>> zipf_weights(3, coefficient=1.0).round(3).tolist()
        [0.684, 0.765, 0.812]
    """
    inverse = 1 / np.arange(2, n + 2)
    return coefficient / (coefficient + inverse / inverse.sum())


def post_process(x: np.ndarray, components: int) -> np.ndarray:
    """The table that model2vec makes of its tokens' vectors (n, d), in the order of the vocabulary: float32."""
    from sklearn.decomposition import PCA

    reduced = PCA(min(components, *x.shape), svd_solver="full").fit_transform(x.astype(np.float64))
    return (reduced * zipf_weights(len(x))[:, None]).astype(np.float32)


def occurrence_table(encoded: Sequence[tuple[Sequence[str], np.ndarray]], *, first_pc: bool) -> dict[str, np.ndarray]:
    """The mean, or first principal direction, of each word's rows: of sentences' words with their vectors (n, d)."""
    rows: dict[str, list[np.ndarray]] = {}
    for words, vectors in encoded:
        for word, vector in zip(words, vectors, strict=True):
            rows.setdefault(word, []).append(vector)
    if first_pc:
        means = {word: first_directions(np.stack(some)[None])[0] for word, some in rows.items()}
    else:
        means = {word: np.mean(some, axis=0, dtype=np.float64) for word, some in rows.items()}
    return {word: vector for word, vector in means.items() if np.isfinite(vector).all()}


def pair_cosines(vectors: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """(m,) cosines of the sentences that the pairs (m, 2) name; NaN where one has no vector."""
    norm = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    u = np.divide(vectors, norm, out=np.full(vectors.shape, np.nan), where=norm > 0)
    return np.vecdot(u[pairs[:, 0]], u[pairs[:, 1]])


def scores(
    ways: Mapping[str, tuple[np.ndarray, int, float]], gold: np.ndarray, *, replicates: int, seed: int
) -> list[DistilledScore]:
    """A score a way, of its pairs' cosines (m,), bytes and words a second; the first is the model that others are
    held against. Correlations of a way are over the pairs that it covers."""
    counts = np.concatenate(
        [*resamples([len(gold)], replicates, np.random.default_rng(seed)), np.empty((0, len(gold)))]
    )
    result: list[DistilledScore] = []
    own: tuple[float, np.ndarray] | None = None
    for way, (cosines, size, speed) in ways.items():
        is_covered = np.isfinite(cosines)
        value = 100 * spearman(cosines[is_covered], gold[is_covered])
        draws = np.array([_resampled(cosines, gold, row) for row in counts])
        own = own or (value, draws)
        (low, kept_low), (high, kept_high) = interval(np.array([draws, draws / own[1]]))
        result.append(
            DistilledScore(way, size, speed, value, float(low), float(high), value / own[0], float(kept_low),
                           float(kept_high), float(is_covered.mean()))
        )  # fmt: skip
    return result


def _resampled(cosines: np.ndarray, gold: np.ndarray, counts: np.ndarray) -> float:
    times = np.where(np.isfinite(cosines), counts, 0).astype(int)
    return 100 * spearman(np.repeat(cosines, times), np.repeat(gold, times))


def timed(function: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    """The function's value, and the seconds that it took."""
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def model_vectors(view: Encoder, sentences: Sequence[Sentence]) -> np.ndarray:
    """(n, d) float32 the sentences' vectors in the last layer, in the model's own way; NaN for one without."""
    result = np.full((len(sentences), view.dim), np.nan, np.float32)
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i].text))
    for start in range(0, len(order), ROWS):
        some = order[start : start + ROWS]
        for i, one in zip(some, view.encode([sentences[i] for i in some]), strict=True):
            if view.poolings[0] in one.units:
                result[i] = one.layers[-1, one.units.index(view.poolings[0])]
    return result


OF_PIECES = ("singly", "input")
OF_TEXT = ("mean", "first_pc")
PARTS = 5  # of the sentences: each is scored by a table of the others


class Network(NamedTuple):
    """A transformers model with its tokenizer."""

    model: Any
    tokenizer: Any
    longest: int

    @property
    def bytes(self) -> int:
        """Of its weights, float32."""
        return 4 * sum(int(parameter.numel()) for parameter in self.model.parameters())


def distil(
    model: str,
    *,
    text: str = "sts_b",
    data: Path | None = None,
    options: str = "",
    bootstrap: int = 200,
    seed: int = 0,
    out: Path = Path("distil"),
) -> Document:
    """Set ways of making static vectors of a model beside it: bytes, words a second, Spearman with people's scores.

    model: bert, minilm, a folder or a hub name, quoted with its words
    text: gold pairs of sentences: sts_b, sick_r or sts_2012_2016
    data: the folder that holds them; null: downloaded
    options: more words, such as "dtype=bfloat16"
    bootstrap: resamples of the pairs behind each interval
    seed: of the resamples and of random
    out: the folder for distil.csv and, of singly and input, the static model in a folder of model2vec's format
    example: ctxexp distil bert
    """
    encoder, corpus = _opened(model, text, data, options)
    measured = measure(encoder, corpus, replicates=bootstrap, seed=seed, out=out)
    return Document(tables={"distil": table(measured, corpus)}, files=[out / way for way in OF_PIECES])


def _opened(model: str, text: str, data: Path | None, options: str) -> tuple[Encoder, Corpus]:
    from ctxexp.command import Experiment, configured

    quoted = str(data).replace("'", r"\'")
    folder = [] if data is None else [f"dataset.path='{quoted}'"]
    study = Experiment(configured(model, text, [*folder, *shlex.split(options)], metrics="sts")).study
    if not study.corpus.pairs:
        raise DataError(f"text={text}: it has no gold pairs; use sts_b, sick_r or sts_2012_2016")
    return study.encoder, study.corpus


def measure(encoder: Encoder, corpus: Corpus, *, replicates: int, seed: int, out: Path) -> list[DistilledScore]:
    """The model's score, then one a way; models of pieces are written as soon as they are made."""
    network = _network(encoder)
    sentences = corpus.sentences
    n_words = sum(map(len, sentences))
    pairs = np.array([(pair.first, pair.second) for pair in corpus.pairs])
    gold = np.array([pair.gold for pair in corpus.pairs])
    view = encoder.sentence_encoder()
    assert view is not None  # a transformer's
    own, seconds = timed(lambda: model_vectors(view, sentences))
    rows = {"the model": (pair_cosines(own, pairs), network.bytes, n_words / seconds)}
    parts = parts_of_pairs(sentences, pairs, np.random.default_rng(seed))
    for way in WAYS:
        fits = [np.arange(len(sentences))]  # scored sentences by table
        sources: list[Sequence[Sentence]] = [sentences]
        if way in OF_TEXT:
            fits = [np.flatnonzero(parts == k) for k in range(PARTS)]
            sources = [[sentences[i] for i in np.flatnonzero(parts != k)] for k in range(PARTS)]
        vectors, size, seconds = np.empty(0), 0, 0.0
        for scored, source in zip(fits, sources, strict=True):
            table = static_table(way, encoder, network, source, seed=seed)
            some = [sentences[i] for i in scored]
            own_vectors, spent = timed(lambda table=table, some=some: table.sentences(some))  # type: ignore[misc]
            vectors = vectors if len(vectors) else np.full((len(sentences), own_vectors.shape[1]), np.nan)
            vectors[scored] = own_vectors
            size, seconds = max(size, table.vectors.size * 4), seconds + spent
        if way in OF_PIECES:
            save_static(table, network.tokenizer, out / way)
        rows[way] = pair_cosines(vectors, pairs), size, n_words / seconds
    return scores(rows, gold, replicates=replicates, seed=seed)


def parts_of_pairs(sentences: Sequence[Sentence], pairs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(n,) a number below PARTS for each sentence, drawn: equal sentences and those of a pair have the same."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    number: dict[Sentence, int] = {}
    same = np.array([number.setdefault(sentence, i) for i, sentence in enumerate(sentences)])
    ends = np.concatenate([pairs, np.stack([np.arange(len(sentences)), same], axis=1)])
    links = coo_array((np.ones(len(ends)), ends.T), (len(sentences), len(sentences)))
    component = connected_components(links, directed=False)[1]
    return (rng.permutation(component.max() + 1) % PARTS)[component]


def static_table(
    way: str, encoder: Encoder, network: Network, sentences: Sequence[Sentence], *, seed: int
) -> StaticTable:
    """The table of one way: of pieces, or (mean, first_pc) of the sentences' words."""
    if way in OF_TEXT:
        units_and_vectors = [(one.units, one.layers[-1]) for one in encoder.encode(list(dict.fromkeys(sentences)))]
        by_word = occurrence_table(units_and_vectors, first_pc=way == "first_pc")
        rows = {word: i for i, word in enumerate(by_word)}
        return StaticTable(
            rows, np.stack(list(by_word.values())).astype(np.float32), lambda some: [list(one.words) for one in some]
        )
    vocabulary = network.tokenizer.get_vocab()
    special = set(network.tokenizer.all_special_tokens)
    tokens = [token for token in sorted(vocabulary, key=vocabulary.__getitem__) if token not in special]
    weight = network.model.get_input_embeddings().weight.detach().float().numpy()
    if way == "input":
        vectors = weight[[vocabulary[token] for token in tokens]]
    elif way == "random":
        vectors = np.random.default_rng(seed).normal(size=(len(tokens), weight.shape[1])).astype(np.float32)
    else:
        vectors = post_process(_singly(network, [vocabulary[token] for token in tokens]), COMPONENTS)
    return StaticTable({token: i for i, token in enumerate(tokens)}, vectors, lambda some: _pieces(network, some))


def save_static(table: StaticTable, tokenizer: Any, folder: Path) -> None:
    """Write a table of pieces as model2vec and sentence-transformers load it; pieces without a vector get zeros."""
    from safetensors.numpy import save_file

    vocabulary, dim = tokenizer.get_vocab(), table.vectors.shape[1]
    rows = np.zeros((max(vocabulary.values()) + 1, dim), np.float32)
    rows[[vocabulary[token] for token in table.tokens]] = table.vectors[list(table.tokens.values())]
    pieces = copy.deepcopy(tokenizer.backend_tokenizer)
    pieces.no_truncation()
    pieces.no_padding()
    folder.mkdir(parents=True, exist_ok=True)
    save_file({"embeddings": rows}, folder / "model.safetensors")
    pieces.save(str(folder / "tokenizer.json"))
    config = {"model_type": "model2vec", "architectures": ["StaticModel"], "hidden_dim": dim, "normalize": True}
    write_file(folder / "config.json", json.dumps(config, indent=1))
    module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"}
    write_file(folder / "modules.json", json.dumps([module], indent=1))


def _singly(network: Network, ids: Sequence[int]) -> np.ndarray:
    """(n, d) the mean over each piece between the model's special pieces, passed by itself."""
    import torch

    before, after = _around(network)
    parts = []
    for start in range(0, len(ids), 512):
        rows = [[*before, i, *after] for i in ids[start : start + 512]]
        with torch.inference_mode():
            parts.append(network.model(input_ids=torch.tensor(rows)).last_hidden_state.mean(1).float().numpy())
    return np.concatenate(parts)


def _around(network: Network) -> tuple[list[int], list[int]]:
    """The special pieces that the tokenizer puts before and after a text."""
    read = network.tokenizer("a", return_special_tokens_mask=True)
    ids, mask = read["input_ids"], read["special_tokens_mask"]
    inside = [i for i, is_special in enumerate(mask) if not is_special]
    return list(ids[: inside[0]]), list(ids[inside[-1] + 1 :])


def _pieces(network: Network, sentences: Sequence[Sentence]) -> list[list[str]]:
    texts = [sentence.text for sentence in sentences]
    read = network.tokenizer(texts, add_special_tokens=False, truncation=True, max_length=network.longest)
    return [network.tokenizer.convert_ids_to_tokens(ids) for ids in read["input_ids"]]


def _network(encoder: Encoder) -> Network:
    from transformers import AutoTokenizer

    checkpoint, model = getattr(encoder, "checkpoint", None), getattr(encoder, "model", None)
    if checkpoint is None or model is None or checkpoint.is_gguf:
        raise ModelError(
            f"encoder {encoder.name!r}: static vectors are distilled from models that transformers loads from a folder "
            "or the hub, such as bert and minilm"
        )
    tokenizer = AutoTokenizer.from_pretrained(checkpoint.folder, local_files_only=True)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    positions = getattr(model.config, "max_position_embeddings", None) or 512
    return Network(model.float().eval(), tokenizer, min(int(tokenizer.model_max_length), int(positions)))


def table(measured: Sequence[DistilledScore], corpus: Corpus) -> Table:
    """A row a way."""
    import pandas as pd

    lines = [
        [
            one.way,
            f"{one.bytes_kept / 1e6:,.1f}",
            f"{one.words_per_second:,.0f}",
            f"{one.spearman:.1f} [{one.low:.1f}, {one.high:.1f}]",
            f"{one.kept:.0%} [{one.kept_low:.0%}, {one.kept_high:.0%}]",
            f"{one.covered:.1%}",
        ]
        for one in measured
    ]
    columns = ["sentence vectors of", "MB", "words a second", "Spearman × 100 [95%]", "of the model's", "pairs covered"]
    notes = [
        f"{corpus.name}, {len(corpus.pairs):,} pairs; by a table a sentence is its pieces' (words') mean",
        f"mean and first_pc are made of other sentences than those that are scored: {PARTS - 1} parts of {PARTS}",
        "words a second: one run, on this machine as it was; with the tokenizer, which mean and first_pc don't need",
        "intervals: the same resamples of the pairs in all rows",
    ]
    return Table("What static vectors cost and keep", pd.DataFrame(map(vars, measured)), columns, lines, notes)
