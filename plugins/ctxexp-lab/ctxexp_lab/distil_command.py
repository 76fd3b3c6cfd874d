"""`ctxexp distil MODEL`: what static vectors cost and keep of a model, way by way."""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ctxexp import Corpus, Encoder, Sentence
from ctxexp.errors import ConfigError, DataError, ModelError, UnknownName
from ctxexp.report import Document, Table, write_file
from ctxexp_lab.distil import (
    WAYS,
    DistilledScore,
    StaticTable,
    mean_vectors,
    occurrence_table,
    pair_cosines,
    post_process,
    scores,
    timed,
)

OF_PIECES = ("singly", "input")


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
    ways: list[str] = list(WAYS),  # noqa: B006  # read only
    components: int = 256,
    bootstrap: int = 200,
    seed: int = 0,
    out: Path = Path("distil"),
) -> Document:
    """Set ways of making static vectors of a model beside it: bytes, words a second, Spearman with people's scores.

    model: bert, minilm, a folder or a hub name, quoted with its words
    text: gold pairs of sentences: sts_b, sick_r or sts_2012_2016
    data: the folder that holds them; null: downloaded
    options: more words, such as "dtype=bfloat16"
    ways: singly (each piece alone, PCA, Zipf weights: model2vec's recipe), mean and first_pc (of a word's vectors in
        the measured sentences), input (the model's own embedding table), random (the control)
    components: of singly's PCA, at most the model's width
    bootstrap: resamples of the pairs behind each interval
    seed: of the resamples and of random
    out: the folder for distil.csv and, of singly and input, the static model in a folder of model2vec's format
    example: ctxexp distil bert
    """
    for way in ways:
        if way not in WAYS:
            raise UnknownName("way of distilling", way, WAYS)
    if components < 1:
        raise ConfigError(f"components={components}: expected at least 1")
    encoder, corpus = _opened(model, text, data, options)
    measured = measure(encoder, corpus, ways, components=components, replicates=bootstrap, seed=seed, out=out)
    return Document(tables={"distil": table(measured, corpus)}, files=[out / way for way in ways if way in OF_PIECES])


def _opened(model: str, text: str, data: Path | None, options: str) -> tuple[Encoder, Corpus]:
    from ctxexp.command import Built, configured

    quoted = str(data).replace("'", r"\'")
    folder = [] if data is None else [f"dataset.path='{quoted}'"]
    study = Built(configured(model, text, [*folder, *shlex.split(options)], metrics="sts")).study
    if not study.corpus.pairs:
        raise DataError(f"text={text}: it has no gold pairs; use sts_b, sick_r or sts_2012_2016")
    return study.encoder, study.corpus


def measure(
    encoder: Encoder, corpus: Corpus, ways: Sequence[str], *, components: int, replicates: int, seed: int, out: Path
) -> list[DistilledScore]:
    """The model's score, then one a way; models of pieces are written as soon as they are made."""
    network = _network(encoder)
    sentences = corpus.sentences
    n_words = sum(map(len, sentences))
    pairs = np.array([(pair.first, pair.second) for pair in corpus.pairs])
    gold = np.array([pair.gold for pair in corpus.pairs])
    own, seconds = timed(
        lambda: mean_vectors(network.model, network.tokenizer, [s.text for s in sentences], network.longest)
    )
    rows = {"the model": (pair_cosines(own, pairs), network.bytes, n_words / seconds)}
    for way in ways:
        table = static_table(way, encoder, network, sentences, components=components, seed=seed)
        if way in OF_PIECES:
            save_static(table, network.tokenizer, out / way)
        vectors, seconds = timed(lambda table=table: table.sentences(sentences))  # type: ignore[misc]
        rows[way] = pair_cosines(vectors, pairs), table.vectors.size * 4, n_words / seconds
    return scores(rows, gold, replicates=replicates, seed=seed)


def static_table(
    way: str, encoder: Encoder, network: Network, sentences: Sequence[Sentence], *, components: int, seed: int
) -> StaticTable:
    """The table of one way: of pieces, or (mean, first_pc) of the sentences' words."""
    if way in ("mean", "first_pc"):
        units_and_vectors = [(one.units, one.layers[-1]) for one in encoder.encode(list(dict.fromkeys(sentences)))]
        by_word = occurrence_table(units_and_vectors, first_pc=way == "first_pc")
        rows = {word: i for i, word in enumerate(by_word)}
        return StaticTable(rows, np.stack(list(by_word.values())).astype(np.float32), _words)
    vocabulary = network.tokenizer.get_vocab()
    special = set(network.tokenizer.all_special_tokens)
    tokens = [token for token in sorted(vocabulary, key=vocabulary.__getitem__) if token not in special]
    weight = network.model.get_input_embeddings().weight.detach().float().numpy()
    if way == "input":
        vectors = weight[[vocabulary[token] for token in tokens]]
    elif way == "random":
        vectors = np.random.default_rng(seed).normal(size=(len(tokens), weight.shape[1])).astype(np.float32)
    else:
        vectors = post_process(_singly(network, [vocabulary[token] for token in tokens]), components=components)
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
    result: np.ndarray = np.concatenate(parts)
    return result


def _around(network: Network) -> tuple[list[int], list[int]]:
    """The special pieces that the tokenizer puts before and after a text."""
    read = network.tokenizer("a", return_special_tokens_mask=True)
    ids, mask = read["input_ids"], read["special_tokens_mask"]
    inside = [i for i, is_special in enumerate(mask) if not is_special]
    return list(ids[: inside[0]]), list(ids[inside[-1] + 1 :])


def _words(sentences: Sequence[Sentence]) -> list[list[str]]:
    return [list(sentence.words) for sentence in sentences]


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
        f"{corpus.name}, {len(corpus.pairs):,} pairs: a sentence is the mean of its pieces' (or words') vectors",
        "mean and first_pc are made of the measured sentences themselves (never of their scores)",
        "words a second: one run, on this machine as it was; with the tokenizer, which mean and first_pc don't need",
        "intervals: the same resamples of the pairs in all rows",
    ]
    return Table("What static vectors cost and keep", pd.DataFrame(map(vars, measured)), columns, lines, notes)
