"""`python -m docs.numbers.sts_parts FOLDER [WEIGHTS ...]`: which part of BERT's last layer tells STS-B's pairs.

FOLDER holds the pairs; each of WEIGHTS, bert-mini's by default, is a folder of a BERT. A word's vector is the mean of
its pieces, and a sentence's the mean of its words' without punctuation: as they are, by type means (each word's vector
is that of its spelling, the mean over all sentences, less the mean of all words), by what is left of each vector
without these, and by the vector of [CLS]. Spearman's correlation of the cosine with people's score, times 100.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

from ctxexp import Corpus, Sentence
from ctxexp.datasets.checks import is_punctuation
from ctxexp.datasets.sts import sts
from ctxexp.maths import spearman
from ctxexp.models import minis

BATCH = 64


def scores(folder: Path, corpus: Corpus) -> dict[str, float]:
    """By part, 100 times Spearman's correlation."""
    x, cls, sentence, types = _rows(folder, corpus.sentences)
    grand = x.mean(axis=0)
    of_type = np.stack([np.bincount(types, column) for column in x.T], axis=1) / np.bincount(types)[:, None]

    def told(rows: np.ndarray, of: np.ndarray) -> float:
        n = len(corpus.sentences)
        means = np.stack([np.bincount(of, column, n) for column in rows.T], axis=1)  # a cosine knows no count
        u = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
        cosine = np.array([u[pair.first] @ u[pair.second] for pair in corpus.pairs])
        return 100 * spearman(cosine, np.array([pair.gold for pair in corpus.pairs]))

    return {
        "words": told(x, sentence),
        "type means": told((of_type - grand)[types], sentence),
        "the rest": told(x - of_type[types], sentence),
        "[CLS]": told(cls, np.arange(len(cls))),
    }


def _rows(folder: Path, sentences: Sequence[Sentence]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Vectors of words (n, d) and of [CLS] (n_sentences, d), and each word's sentence and number of its spelling."""
    found = list(_encoded(folder, sentences))
    vectors = [rows for _, rows, _ in found]
    words = [word for _, _, these in found for word in these]
    counts = [len(rows) for rows in vectors]
    first = np.stack([cls for cls, _, _ in found])
    types = np.unique(words, return_inverse=True)[1]
    return np.concatenate(vectors), first, np.repeat(np.arange(len(found)), counts), types


def _encoded(folder: Path, sentences: Sequence[Sentence]) -> Iterator[tuple[np.ndarray, np.ndarray, list[str]]]:
    """Of each sentence the vector of [CLS], those of the words that have pieces, and these words."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    for start in range(0, len(sentences), BATCH):
        batch = sentences[start : start + BATCH]
        texts = [sentence.text for sentence in batch]
        pieces = tokenizer(texts, return_offsets_mapping=True, return_tensors="pt", padding=True, truncation=True)
        offsets = pieces.pop("offset_mapping").numpy()  # (sentences, pieces, 2), 0 and 0 of markers
        with torch.inference_mode():
            hidden = model(**pieces).last_hidden_state.double().numpy()
        for rows, at, sentence in zip(hidden, offsets, batch, strict=True):
            found = [
                (word, rows[(at[:, 1] > low) & (at[:, 0] < high) & (at[:, 1] > at[:, 0])])
                for word, (low, high) in zip(sentence.words, sentence.spans, strict=True)
                if not is_punctuation(word)
            ]
            known = [(word, of) for word, of in found if len(of)]
            yield rows[0], np.stack([of.mean(axis=0) for _, of in known]), [word for word, _ in known]


if __name__ == "__main__":
    data, *folders = sys.argv[1:]
    pairs = sts(path=str(Path(data).absolute()), tasks=["STS-B"])
    for folder in folders or [str(minis.folder("bert"))]:
        print(folder, {name: round(float(value), 1) for name, value in scores(Path(folder), pairs).items()}, flush=True)
