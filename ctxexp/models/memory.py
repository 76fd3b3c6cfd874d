"""Models and vectors that are in memory already: a transformers model and its tokenizer, or arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ctxexp.dataset import Corpus, Sentence
from ctxexp.errors import EncodingError
from ctxexp.model import Encoded, Encoder
from ctxexp.models.choices import AS_TOKENIZER, Linear, Long, Pooling, Reading

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def from_transformers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    name: str | None = None,
    pooling: Pooling = "mean",
    final_norm: bool = True,
    long: Long = "window",
    stride: int | None = None,
    linear: Linear = "auto",
    layers: Sequence[int] | None = None,
    prefix: str = AS_TOKENIZER,
) -> Encoder:
    """All layers of a transformers model in memory, on the device and in the type that it has, set to `eval()`.

    Its vectors are those of `model=huggingface` on the same checkpoint, to the last bit. `name` is what figures call
    it (None: what it was loaded from, else its class); the vectors' cache is keyed by a hash of weights, tokenizer and
    config. A model that is trained on is another model: take it anew, or its old name is refused. A pooler counts as
    the model's own, even one that was newly drawn on loading. `pooling`, `final_norm`, `long`, `stride`, `linear`,
    `layers` and `prefix` as there.
    """
    from ctxexp.models.transformer.build import from_memory

    reading = Reading(
        pooling=pooling,
        final_norm=final_norm,
        long=long,
        stride=stride,
        linear=linear,
        layers=layers,
        prefix=prefix,
    )
    return from_memory(model, tokenizer, reading, name)


class ArrayEncoder(Encoder):
    """Vectors in hand as an encoder of the words that they are of."""

    def __init__(self, vectors: Sequence[np.ndarray], corpus: Corpus, name: str) -> None:
        self.corpus, self.title = corpus, name
        self._vectors = dict(zip(corpus.sentences, vectors, strict=True))
        digest = hashlib.blake2b(digest_size=8)
        for one in vectors:
            digest.update(repr(one.shape).encode() + np.ascontiguousarray(one).tobytes())
        self.name = f"arrays:{digest.hexdigest()}"
        self.n_layers, _, self.dim = vectors[0].shape

    def encode(self, batch: Sequence[Sentence]) -> Iterator[Encoded]:
        for sentence in batch:
            if sentence not in self._vectors:
                raise EncodingError(
                    f"{self.title}: no vectors of {sentence.text[:60]!r}; these arrays have their own words"
                )
            yield Encoded(sentence.words, self._vectors[sentence])


def from_arrays(
    vectors: Iterable[npt.ArrayLike], words: Iterable[Sequence[str]], *, name: str = "arrays"
) -> ArrayEncoder:
    """Vectors in hand: an array (n_layers, n_words, dim) or (n_words, dim) a sentence, and each sentence's words.

    `ctxexp.measure(ctxexp.from_arrays(vectors, words))` measures them. Of equal sentences the first one's vectors
    count. Raises EncodingError for arrays that don't fit their words or each other.
    """
    arrays: list[np.ndarray] = []
    sentences: list[Sentence] = []
    vectors, words = list(vectors), list(words)
    if len(vectors) != len(words):
        raise EncodingError(f"{len(vectors)} arrays for {len(words)} sentences; expected an array a sentence")
    for i, (array, own) in enumerate(zip(vectors, words, strict=True)):
        x = np.asarray(array, np.float32)
        x = x[None] if x.ndim == 2 else x
        shape = (*x.shape[:1], len(own), *x.shape[2:])
        first = arrays[0].shape if arrays else x.shape
        if x.ndim != 3 or x.shape != shape or (x.shape[0], x.shape[2]) != (first[0], first[2]):
            raise EncodingError(
                f"sentence {i}: vectors of shape {np.shape(array)} for {len(own)} words; expected (n_layers, n_words, "
                f"dim), as many layers and columns in each sentence"
            )
        arrays.append(x)
        sentences.append(Sentence.of(own))
    if not arrays:
        raise EncodingError("from_arrays needs at least one sentence, got none")
    once: dict[Sentence, np.ndarray] = {}
    for sentence, x in zip(sentences, arrays, strict=True):
        once.setdefault(sentence, x)
    return ArrayEncoder(list(once.values()), Corpus(name, tuple(once)), name)
