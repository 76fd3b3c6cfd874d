"""Models and vectors that are in memory already: a transformers model and its tokenizer, or arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ctxexp.dataset import Corpus, Sentence
from ctxexp.errors import EncodingError
from ctxexp.model import Encoded, Encoder
from ctxexp.models.choices import Dtype, Long, Pooling, Reading
from ctxexp.models.transformer.checkpoints import Checkpoint


def from_transformers(
    model: Any,
    tokenizer: Any,
    *,
    name: str | None = None,
    pooling: Pooling = "mean",
    final_norm: bool = True,
    long: Long = "window",
    stride: int | None = None,
) -> Encoder:
    """All layers of a transformers model in memory, on the device and in the type that it has, set to `eval()`.

    Its vectors are those of `model=huggingface` on the same checkpoint, to the last bit. `name` is what figures call
    it (None: what it was loaded from, else its class); the vectors' cache is keyed by a hash of weights, tokenizer and
    config. A model that is trained on is another model: take it anew, or its old name is refused. A pooler counts as
    the model's own, even one that was newly drawn on loading. `pooling`, `final_norm`, `long` and `stride` as there.
    """
    import torch

    from ctxexp.models.transformer.checks import check_finite, check_vocabulary
    from ctxexp.models.transformer.encoder import TransformerEncoder
    from ctxexp.models.transformer.loading import ready, state_hash

    title = name or Path(str(getattr(model.config, "_name_or_path", "") or type(model).__name__)).name
    types: dict[object, Dtype] = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}
    dtype = types.get(model.dtype)
    if dtype is None:
        raise EncodingError(f"model {title!r} has weights of type {model.dtype}; expected float32, bfloat16 or float16")
    check_finite(model, title)
    check_vocabulary(tokenizer, model, title)
    loaded = ready(model, tokenizer)._replace(lent=True)
    weights = state_hash(loaded.model)
    backend = getattr(tokenizer, "backend_tokenizer", None)  # without one the encoder refuses it
    parts = (
        weights,
        backend.to_str() if backend is not None else "",
        sorted(tokenizer.special_tokens_map.items()),
        tokenizer.model_max_length,
        loaded.model.config.to_json_string(),
        getattr(loaded.model.config, "_attn_implementation", ""),
    )
    content = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
    options = Reading(pooling=pooling, final_norm=final_norm, long=long, stride=stride, dtype=dtype)
    return TransformerEncoder(Checkpoint(title, "", Path(), weights, content), options, loaded, title=title)


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


def from_arrays(vectors: Iterable[Any], words: Iterable[Sequence[str]], *, name: str = "arrays") -> ArrayEncoder:
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
