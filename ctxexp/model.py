"""The contract of models: sentences in, one vector per unit and layer out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ctxexp.dataset import Corpus, Sentence
from ctxexp.errors import EncodingError, ModelError, is_text, short
from ctxexp.files.code_version import class_digest

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class EncodedSentence:
    """The vectors of one sentence.

    `units` are the strings that got a vector: the sentence's words, or a tokenizer's pieces if that was asked for.
    `layers[0]` is the model's input layer, `layers[-1]` its last hidden layer.

    Args:
        units: The units, in order.
        layers: Vectors (layers, units, dim), float32, or float16 where the run's dtype is a half type.

    Example:
        >>> EncodedSentence(("a", "bank"), np.zeros((3, 2, 8), np.float32)).layers.shape
        (3, 2, 8)
    """

    units: tuple[str, ...]
    layers: np.ndarray  # (layers given, len(units), dim) float32 (float16 when the run's dtype is a half type)


class TokenStates(NamedTuple):
    """A sentence's tokens as a transformer's layers have them.

    `layers` is (layers, tokens, dim) float32, as transformers' `hidden_states`; `before_norm` (tokens, dim) what enters
    the final norm, `normed` (layers, tokens, dim) the final norm of each layer; None for a model without one. `words`
    are (words, 2), each word's first token and number of tokens.

    Example:
        >>> from ctxexp.command import Experiment, configured
        >>> states = Experiment(configured("gpt2")).encoder.token_states(Sentence.of(["a", "bank"]))
        >>> len(states.words), len(states.layers), states.layers.shape[1] == len(states.ids)
        (2, 5, True)
    """

    ids: np.ndarray
    layers: np.ndarray
    before_norm: np.ndarray | None
    normed: np.ndarray | None
    words: np.ndarray


@dataclass(frozen=True, slots=True)
class EmbeddingTable:
    """One vector per piece or word type, independent of position: a model's input or output matrix, or the output of
    its character network (ELMo's token layer).

    `counts` are the tokens' occurrences in the measured text, None where unknown; `special` the rows that stand for no
    text (markers, padding); `note` says what the table is, or why the model's other matrix isn't listed; `tied`: it is
    the model's input and output matrix at once.
    """

    name: str
    tokens: Sequence[str]
    vectors: np.ndarray  # (len(tokens), d) float32
    counts: np.ndarray | None  # (len(tokens),) int64
    special: tuple[int, ...] = ()
    note: str = ""
    tied: bool = False


@dataclass(frozen=True)
class TextStart:
    """The tokens that stand before each text that a model reads.

    `tokens` are the pieces before the text's own, in order, as the vocabulary spells them; empty where nothing precedes
    the text. `source` says who put them there, or left them out: the `tokenizer`, `model.prefix` (`prefix`), or `both`.
    """

    tokens: tuple[str, ...] = ()
    source: Literal["tokenizer", "prefix", "both"] = "tokenizer"

    def __str__(self) -> str:
        if not self.tokens:
            why = "the tokenizer adds nothing before it" if self.source == "tokenizer" else "model.prefix=none"
            return f"the text's own first piece ({why})"
        pieces = " ".join(self.tokens[:_SHOWN_TOKENS]) + " ..." * (len(self.tokens) > _SHOWN_TOKENS)
        return f"{pieces} ({_SOURCES[self.source]})"


_SHOWN_TOKENS = 6
_SOURCES = {
    "tokenizer": "the tokenizer adds it",
    "prefix": "model.prefix adds it, not the tokenizer; never measured",
    "both": "the tokenizer's own, then model.prefix; never measured",
}


class Encoder(ABC):
    """A model that embeds sentences: `name`, `n_layers`, `dim` and `encode`; the rest has defaults.

    A text is a sequence of words; the tokenizer of a model splits them into pieces; a unit is what gets a vector: a
    word or a piece. A model's tokens are its pieces and the special ones around them.

    Attributes:
        name: Keys the vector cache: it changes whenever the vectors would (checkpoint, revision, pooling, dtype).
        n_layers: Layers of the model, the input layer 0 counted: 13 of BERT-base.
        dim: Columns of a vector.
        dtype: What it computes in.
        title: What figures call a model that no config named.
        details: Logged as run parameters (checkpoint, revision, file hash ...).
        sequential: It carries state from sentence to sentence: `encode` is called once with all sentences in corpus
            order, and does its own batching.
        allows_prefetch: `lengths` and `count_unknown` may be called in another thread while `encode` runs.
        positional: False promises that layer 0 gives a word one vector wherever it stands (True: its position counts
            too; neither may depend on other words; None: not known).
        causal: True promises that a unit's vector depends on nothing to its right: where a word stands first it always
            has the same vector, whatever `start` puts before it (None: not known).
        start: What stands before each text (None: not known).
        poolings: Of an encoder of sentence vectors, the names of its units.
        corpus: The only text that it has vectors of; None: any.
        layers: The layers of the model that it gives, ascending; None: all.

    Example:
        >>> class Lengths(Encoder):
        ...     name, n_layers, dim = "lengths", 1, 1
        ...     def encode(self, batch):
        ...         for s in batch:
        ...             yield EncodedSentence(s.words, np.array([[[len(word)] for word in s.words]], np.float32))
        >>> next(Lengths().encode([Sentence.of(["a", "bank"])])).layers.tolist()
        [[[1.0], [4.0]]]
    """

    name: str
    n_layers: int
    dim: int
    dtype: str = "float32"
    title: str = ""
    details: Mapping[str, str | int | float | bool] = MappingProxyType({})
    sequential: bool = False
    allows_prefetch: bool = False
    positional: bool | None = None
    causal: bool | None = None
    start: TextStart | None = None
    poolings: tuple[str, ...] = ()
    corpus: Corpus | None = None
    layers: tuple[int, ...] | None = None

    @property
    def layer_numbers(self) -> tuple[int, ...]:
        """The numbers of the layers that it gives, in the order of their vectors."""
        return tuple(range(self.n_layers)) if self.layers is None else self.layers

    @property
    def class_code(self) -> str:
        """Digest (hex) of the source code of the class, so that its vectors are encoded anew when the code changes;
        empty for ctxexp's own classes."""
        return class_digest(type(self))

    @abstractmethod
    def encode(self, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
        """One `EncodedSentence` per sentence of the batch, in the batch's order, each with memory of its own.

        Args:
            batch: Sentences, whose vectors must not depend on each other unless `sequential` is true.

        Returns:
            The encoded sentences.
        """

    def encode_tensors(self, batch: Sequence[Sentence]) -> Iterable[tuple[tuple[str, ...], Tensor]]:
        """The vectors of `encode` as torch tensors, left on the device where they were computed.

        Args:
            batch: As for `encode`.

        Returns:
            Units and (layers, units, dim) of each sentence.
        """
        import torch

        encodings = list(islice(self.encode(batch), len(batch) + 1))  # `encode` may yield for ever
        for i, one in enumerate(encodings):
            self.check_encoded(i, one)
        check_separate(self, encodings)
        return [(one.units, torch.from_numpy(np.require(one.layers, requirements="W"))) for one in encodings]

    def encode_alone(self, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
        """The sentences' words as they are without context: each word read by itself (`control=alone`).

        Args:
            batch: As for `encode`.

        Returns:
            The encoded sentences, with the units of `encode`. By default each word is a sentence of one word, so that
            its place in the sentence doesn't count; a transformer keeps it.
        """
        words = list(dict.fromkeys(word for sentence in batch for word in sentence.words))
        alone = dict(zip(words, self.encode([Sentence.of([word]) for word in words]), strict=True))
        nothing = np.empty((len(self.layer_numbers), 0, self.dim), np.float32)
        for sentence in batch:
            parts = [alone[word] for word in sentence.words]
            units = tuple(unit for part in parts for unit in part.units)
            yield EncodedSentence(units, np.concatenate([nothing, *(part.layers for part in parts)], axis=1))

    def lengths(self, sentences: Sequence[Sentence]) -> Sequence[int]:
        """The number of the model's own tokens of each sentence, by which batches of similar length are formed.

        Args:
            sentences: Sentences of the corpus.

        Returns:
            A number for each sentence.

        Example:
            >>> from ctxexp import from_arrays
            >>> from_arrays([np.zeros((2, 8))], [["a", "bank"]]).lengths([Sentence.of(["a", "bank"])])
            [2]
        """
        return [len(sentence) for sentence in sentences]

    def count_unknown(self, sentences: Sequence[Sentence]) -> tuple[int, int]:
        """Count the pieces that the model's tokenizer doesn't know; each run states their share.

        Args:
            sentences: Sentences of the corpus.

        Returns:
            The number of unknown pieces, and that of all.
        """
        return 0, 0

    def token_spans(self, sentences: Sequence[Sentence]) -> Iterable[np.ndarray]:
        """The span of each unit among the model's own tokens.

        Args:
            sentences: Sentences of the corpus.

        Returns:
            An array (units, 2) for each sentence: index of the unit's first token, and number of tokens pooled in it.
        """
        return (np.stack([np.arange(len(s)), np.ones(len(s), np.int64)], axis=1) for s in sentences)

    def unit_keys(self, sentences: Sequence[Sentence]) -> Iterable[Sequence[Hashable]]:
        """A hashable key for each unit, equal for units that are the same pieces to the model.

        Args:
            sentences: Sentences of the corpus.

        Returns:
            The keys of each sentence's units. By default their spelling; a tokenizer's pieces tell more, such as a
            blank before the word, or less, such as the case that it drops.
        """
        return (s.words for s in sentences)

    def check_encoded(self, index: int, encoded: EncodedSentence) -> None:
        """Check what `encode` gave of a sentence.

        Args:
            index: The sentence's number, for the message.
            encoded: What was given.

        Raises:
            EncodingError: The vectors break the contract.

        Example:
            >>> from ctxexp import from_arrays
            >>> encoder = from_arrays([np.zeros((2, 8))], [["a", "bank"]])
            >>> encoder.check_encoded(0, next(encoder.encode(encoder.corpus.sentences)))
        """
        who, got = f"encoder {self.name!r}", encoded.layers
        expected = (len(self.layer_numbers), len(encoded.units), self.dim)
        if not isinstance(got, np.ndarray):
            raise EncodingError(f"{who} gave a {type(got).__name__} for sentence {index}; give a NumPy array")
        if got.shape != expected:
            raise EncodingError(
                f"{who} gave an array of shape {got.shape} for sentence {index}; expected (n_layers, units, dim) = "
                f"{expected}, a unit's pieces pooled"
            )
        if got.dtype not in (np.float32, np.float16):
            raise EncodingError(f"{who} gave {got.dtype} vectors for sentence {index}; expected float32 (or float16)")
        if not np.isfinite(got).all():
            raise EncodingError(
                f"{who} gave NaN or infinite values in sentence {index}; with a half dtype try dtype=float32"
            )

    def token_states(self, sentence: Sentence) -> TokenStates:
        """The hidden states of every token of a sentence, special ones included, and what the final norm does to them.

        Args:
            sentence: A sentence no longer than the model's window.

        Returns:
            The states.

        Raises:
            ModelError: The model is no transformer of this package's, or the sentence is too long.
        """
        raise ModelError(f"{self.name}: expected a transformer, whose tokens have hidden states; got {type(self)}")

    def sentence_encoder(self) -> Encoder | None:
        """An encoder of sentence vectors, for metrics over pairs (`ctxexp.vectors.stores`).

        Returns:
            An encoder whose `poolings` name the units that its `encode` gives each sentence, one row each (`mean`,
            `cls` ...; a `pooler` counts in the last layer only), fewer where there is nothing to pool; None: none.
        """
        return None

    def tables(self, sentences: Sequence[Sentence]) -> list[EmbeddingTable]:
        """The tables of context-free vectors behind the layers, for metrics that measure them.

        Args:
            sentences: Sentences in which their tokens are counted.

        Returns:
            The tables.
        """
        return []


def contract_violation(encoder: object) -> str:
    """The reason why an object is no valid encoder, to follow its name in a message; empty for a valid one."""
    if not isinstance(encoder, Encoder):
        return f"is no encoder: {type(encoder).__name__} doesn't derive from ctxexp.Encoder"
    if missing := [key for key in ("name", "n_layers", "dim") if not hasattr(encoder, key)]:
        return f"is no encoder: it lacks {', '.join(missing)}"
    sizes: dict[str, object] = {"n_layers": encoder.n_layers, "dim": encoder.dim}
    for key, value in sizes.items():
        if not isinstance(value, Integral) or value < 1:
            return f"has {key}={short(value)}; expected 1 or more"
    if not isinstance(encoder.name, str) or not encoder.name.strip() or not is_text(encoder.name):
        return f"has name={short(encoder.name)}; expected a text that tells its vectors from all others"
    return ""


def check_separate(encoder: Encoder, results: Iterable[EncodedSentence]) -> None:
    """Raise `EncodingError` if two of these results share memory, for example as views of a reused buffer, which by now
    holds the vectors of the last sentence."""
    inputs = [one.layers[0] for one in results if one.layers.size]  # layer 0 stands for all layers
    inputs.sort(key=lambda x: x.__array_interface__["data"][0])  # overlapping arrays are then neighbours
    if any(np.shares_memory(a, b) for a, b in pairwise(inputs)):
        raise EncodingError(
            f"encoder {encoder.name!r} gave two sentences vectors in the same memory, as views of a buffer that it "
            "uses again: yield a copy, or make a new array for each sentence"
        )
