"""Models and vectors that are in memory already: a transformers model and its tokenizer, or arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ctxexp.dataset import Corpus, Sentence
from ctxexp.errors import ConfigError, EncodingError
from ctxexp.model import EncodedSentence, Encoder
from ctxexp.models.choices import AS_TOKENIZER, LinearKernel, LongTexts, Pooling, TransformerOptions

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def from_transformers(
    model: object,
    tokenizer: PreTrainedTokenizerBase | None = None,
    *,
    name: str | None = None,
    pooling: Pooling = "mean",
    final_norm: bool = True,
    long: LongTexts = "window",
    stride: int | None = None,
    linear: LinearKernel = "plain",
    layers: Sequence[int] | None = None,
    prefix: str = AS_TOKENIZER,
) -> Encoder:
    """All layers of a transformers model in memory, on the device and in the type that it has, read as by `eval()`.

    Its vectors are those of `model=huggingface` on the same checkpoint, to the last bit; their cache is keyed by a hash
    of weights, tokenizer and config. After further training call this again: the old encoder refuses changed weights.
    Model and tokenizer stay as they are: training mode, `use_cache`, truncation and padding are the caller's.
    A pooler counts as the model's own, even one that was newly drawn on loading.

    Args:
        model: A model of transformers, alone or tuned by peft, in a pipeline or a SentenceTransformer; of an
            encoder-decoder the encoder is taken.
        tokenizer: Its fast tokenizer; None: the one beside it there, else that of the files it was loaded from.
        name: Its label in figures (None: the name that it was loaded by, else its class).
        pooling, final_norm, long, stride, linear, layers, prefix: As in the options of `model=huggingface`.

    Returns:
        An encoder that `ctxexp.measure` takes as its model.

    Raises:
        ConfigError: It is no such model, or has no tokenizer.
        EncodingError: The weights are of a type other than float32, bfloat16 and float16.
        ModelError: A weight is NaN or infinite, or the tokenizer isn't the model's own.

    Example:
        >>> from transformers import AutoModel, AutoTokenizer
        >>> from ctxexp.models import minis
        >>> folder = minis.folder("gpt2")
        >>> encoder = from_transformers(AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder))
        >>> encoder.n_layers, encoder.dim
        (5, 192)
    """
    network, tokenizer = _parts(model, tokenizer)
    from ctxexp.models.transformer.build import from_memory

    options = TransformerOptions(
        pooling=pooling, final_norm=final_norm, long=long, stride=stride, linear=linear, layers=layers, prefix=prefix
    )
    return from_memory(network, tokenizer, options, name)


def _parts(model: Any, tokenizer: Any) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The network and its tokenizer, as `from_transformers` takes them. Raises ConfigError, with what to write."""
    network = model
    if not hasattr(model, "base_model"):  # as all of transformers and peft have
        tokenizer = tokenizer or getattr(model, "tokenizer", None)
        parts: Iterable[object] = getattr(model, "children", list)()  # a SentenceTransformer's
        network = getattr(model, "model", None) or next((getattr(part, "auto_model", None) for part in parts), None)
    source = getattr(getattr(network, "config", None), "name_or_path", "")
    if tokenizer is None and source:
        from transformers import AutoTokenizer

        with suppress(OSError, ValueError):  # no such files
            tokenizer = AutoTokenizer.from_pretrained(source)
    if tokenizer is None or not hasattr(network, "config"):
        raise ConfigError(
            "model: expected a name, a folder, a model of transformers or a ctxexp.Encoder, got "
            f"{type(model).__name__}; a transformers model that wasn't loaded from files comes with its tokenizer: "
            "ctxexp.measure(model, text, tokenizer=tokenizer), or wrapped once for several measurements: "
            "ctxexp.from_transformers(model, tokenizer)"
        )
    return network, tokenizer


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

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        for sentence in batch:
            if sentence not in self._vectors:
                raise EncodingError(
                    f"{self.title}: no vectors of {sentence.text[:60]!r}; these arrays have their own words"
                )
            yield EncodedSentence(sentence.words, self._vectors[sentence])


def from_arrays(
    vectors: Iterable[npt.ArrayLike], words: Iterable[Sequence[str] | Sentence], *, name: str = "arrays"
) -> ArrayEncoder:
    """Vectors in memory as an encoder of their own words; `ctxexp.measure` takes it as its model.

    Args:
        vectors: An array (n_layers, n_words, dim) or (n_words, dim) for each sentence. Of equal sentences the first
            one's vectors count.
        words: The words of each sentence, or the sentences themselves, as a text has them.
        name: The label in figures and tables.

    Returns:
        The encoder, with the sentences as its corpus.

    Raises:
        EncodingError: Arrays don't fit their words or each other, or there is no sentence.

    Example:
        >>> import numpy as np
        >>> encoder = from_arrays([np.zeros((3, 2, 4)), np.ones((3, 1, 4))], [["a", "bank"], ["rivers"]])
        >>> encoder.n_layers, encoder.dim, encoder.corpus.n_words
        (3, 4, 3)
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
        sentences.append(own if isinstance(own, Sentence) else Sentence.of(own))
    if not arrays:
        raise EncodingError("from_arrays needs at least one sentence, got none")
    once: dict[Sentence, np.ndarray] = {}
    for sentence, x in zip(sentences, arrays, strict=True):
        once.setdefault(sentence, x)
    return ArrayEncoder(list(once.values()), Corpus(name, tuple(once)), name)
