"""`ctxexp passport FILE MODEL text=...`: which layers of the checkpoint are the vectors of this file?"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ctxexp import Encoder, Sentence, from_arrays
from ctxexp.command import Experiment, configured
from ctxexp.datasets import tokenizer
from ctxexp.errors import DataError
from ctxexp.report import Document, Table, write_file
from ctxexp_compare.passport.files import read_vectors
from ctxexp_compare.passport.match import Passport, arrange, describe, make_passport


def passport(file: Path, model: str, *, text: str, out: Path | None = None) -> Document:
    """Say which hidden states of a checkpoint the vectors are that another engine wrote.

    Layers that are one too high, missing, normed or not, scaled, or transposed are named, and so are rows that are
    zero, another token's or noisy. The exit status is 0 where every row of every layer is a hidden state's as
    transformers gives it, but for rounding, and no layer is missing, else 1.

    file: .npz, .parquet, .safetensors (or a folder of them, as of vLLM), .json of llama.cpp, .onnx, or .xml of OpenVINO
    model: the same checkpoint, quoted with its words: "./mine dtype=bfloat16"
    text: the text that was encoded, in the same order: a file, a sentence a line, a folder or a data set
    out: a JSON file for the passport
    example: ctxexp passport vectors.npz path/to/model text=sentences.txt
    """
    import pandas as pd

    found, _ = passport_of(file, model, read_sentences(model, text))
    said, files = describe(found), []
    if out is not None:
        files.append(write_file(out, json.dumps({"passport": said, **asdict(found)}, indent=1) + "\n"))
    layers = Table(f"Layers of {file}", pd.DataFrame(map(asdict, found.layers)))
    return Document([said], {"layers": layers}, files=files, status=0 if found.is_whole else 1)


def read_sentences(model: str, text: str) -> list[str]:
    """The sentences of a text, repeated ones too, as a run of the model reads it."""
    kept = ["words.tokenizer=whitespace", "words.deduplicate=false"]
    return [sentence.text for sentence in Experiment(configured(model, text, kept)).corpus.sentences]


def passport_of(file: Path | str, model: str, texts: list[str]) -> tuple[Passport, Encoder | None]:
    """The passport of a file of vectors, and the vectors as a model that `ctxexp.measure` takes.

    Args:
        file: The vectors.
        model: The checkpoint, with its words.
        texts: The sentences, in the file's order.

    Returns:
        The passport, and the model of the layers that are hidden states as they are; None where there are none.

    Raises:
        DataError: The file isn't of these sentences.
    """
    encoder: Encoder = Experiment(configured(model)).encoder
    tokenize = tokenizer("english")
    sentences = [tokenize(line) for line in texts]
    states = [encoder.token_states(sentence) for sentence in sentences]
    vectors, names, _ = read_vectors(Path(file), states)
    if len(vectors) != len(states):
        raise DataError(f"{file} has vectors of {len(vectors)} sentences, the text {len(states)} sentences (text=)")
    found = make_passport(vectors, states, names)
    return found, _as_model(found, vectors, sentences, [s.words for s in states], Path(file).stem)


def _as_model(
    found: Passport, vectors: list[np.ndarray], sentences: list[Sentence], spans: list[np.ndarray], name: str
) -> Encoder | None:
    """The plain layers of word vectors: tokens of a word averaged."""
    plain = {one.layer: i for i, one in enumerate(found.layers) if one.is_plain and one.layer is not None}
    if not plain or found.arrangement.shift or any(len(s) != len(w) for s, w in zip(sentences, spans, strict=True)):
        return None
    arrays: dict[Sentence, np.ndarray] = {}
    for sentence, of, words in zip(sentences, vectors, spans, strict=True):
        x = arrange(of, found.arrangement)[[plain[i] for i in sorted(plain)]]
        if found.arrangement.rows != "words":
            first = int(words[0, 0]) if found.arrangement.rows == "text" else 0
            x = np.stack([x[:, a - first : a - first + n].mean(axis=1) for a, n in words.tolist()], axis=1)
        arrays.setdefault(sentence, x.astype(np.float32))
    encoder = from_arrays(arrays.values(), arrays, name=name)
    encoder.n_layers = found.n_layers
    encoder.layers = tuple(sorted(plain)) if len(plain) < found.n_layers else None
    encoder.details = {"architecture": "vectors of another engine", "passport": describe(found)}
    return encoder
