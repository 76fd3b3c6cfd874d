"""A vector a word, wherever it stands: of a file, or drawn at random (what a measure gives of words that know no
context); and vectors in hand, an array a sentence.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ctxexp.dataset import Corpus, Sentence
from ctxexp.errors import EncodingError, ModelError
from ctxexp.files import file_sha256, user_path
from ctxexp.model import EmbeddingTable, EncodedSentence, Encoder
from ctxexp.models.choices import check_vector_file
from ctxexp.models.vector_files import Format, detect_layout, read_vectors

if TYPE_CHECKING:
    pass

log = logging.getLogger("ctxexp")


class WordVectorEncoder(Encoder):
    """An encoder of one layer, a word's vector wherever it stands.

    A word that the source lacks gets no unit: it has no vector, is never measured, and is counted in a warning. It is
    read when words are first needed, once for a whole corpus, and only the vectors of those words are kept.

    Args:
        identity: The source's part of the vectors' cache key, a digest of its content for one.
        label: The source's name in messages.
        dim: Numbers of a vector.
        read: A function that is asked which words are wanted, and gives those that the source has with their vectors.
        details: What the run's record says of the source.
        lower: Whether words are looked up in lower case, for sources that hold nothing else.

    Example:
        >>> import numpy as np
        >>> import ctxexp
        >>> vectors = {"bank": [1.0, 0.0], "river": [0.0, 1.0]}
        >>> def read(wanted):
        ...     words = [word for word in vectors if wanted(word)]
        ...     return words, np.array([vectors[word] for word in words], np.float32)
        >>> encoder = WordVectorEncoder("two-words", "two words", 2, read)
        >>> [encoded] = encoder.encode([ctxexp.Sentence.of(["river", "bank"])])
        >>> encoded.layers.tolist()
        [[[0.0, 1.0], [1.0, 0.0]]]
    """

    n_layers = 1
    positional = False

    def __init__(
        self,
        identity: str,
        label: str,
        dim: int,
        read: Callable[[Callable[[str], bool]], tuple[Sequence[str], np.ndarray]],
        *,
        details: Mapping[str, str] | None = None,
        lower: bool = False,
    ) -> None:
        self.dim = dim
        self.name = f"word_vectors:{identity}{':lower' if lower else ''}"
        self.details = {"architecture": "word vectors", **(details or {}), "lower": lower}
        self._label, self._read, self._lower = label, read, lower
        self._number: dict[str, int] = {}  # a form -> its row, -1 if the source lacks it
        self._vectors = np.empty((0, dim), np.float32)

    def lengths(self, sentences: Sequence[Sentence]) -> list[int]:
        """Words of each sentence. Asked for the whole corpus first, so that the file is read once."""
        self._need(sentences)
        return [len(sentence) for sentence in sentences]

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        self._need(batch)
        for sentence in batch:
            rows = [self._number[self._form(word)] for word in sentence.words]
            units = tuple(word for word, row in zip(sentence.words, rows, strict=True) if row >= 0)
            yield EncodedSentence(units, self._vectors[[row for row in rows if row >= 0]][None])

    def tables(self, sentences: Sequence[Sentence]) -> list[EmbeddingTable]:
        """`input`: the vectors of the sentences' words in the source's spelling, alphabetically, with their counts."""
        self._need(sentences)
        count_by_form = Counter(self._form(word) for sentence in sentences for word in sentence.words)
        words = sorted(word for word in count_by_form if self._number[word] >= 0)
        rows = [self._number[word] for word in words]
        counts = np.array([count_by_form[word] for word in words], np.int64)
        note = f"the corpus's words among the vectors of {self._label}"
        return [EmbeddingTable("input", words, self._vectors[rows], counts, note=note)]

    def _form(self, word: str) -> str:
        return word.lower() if self._lower else word

    def _need(self, sentences: Iterable[Sentence]) -> None:
        """Read the vectors of the words that were not asked for before."""
        forms = [self._form(word) for sentence in sentences for word in sentence.words]
        unseen = set(forms) - self._number.keys()
        if not unseen:
            return
        words, vectors = self._read(unseen.__contains__)
        at = len(self._vectors)
        self._vectors = np.concatenate([self._vectors, vectors])
        self._number |= dict.fromkeys(unseen, -1) | {word: at + i for i, word in enumerate(words)}
        missing = unseen.difference(words)
        if missing:
            log.warning(
                "%s has no vector for %d of %d words (%d of %d occurrences; such as %r): they are left out",
                self._label, len(missing), len(unseen), sum(form in missing for form in forms), len(forms),
                next(form for form in forms if form in missing),
            )  # fmt: skip


def word_vectors(*, path: str, lower: bool = False, format: Format = "auto") -> WordVectorEncoder:
    """Word vectors of a file as a model of one layer (layer 0).

    `path`: GloVe text, word2vec text or binary, fastText .vec, each also .gz, or .safetensors as exported here.
    `lower`: look words up in lower case. `format`: auto, or text or binary where a file can't be told by its content.
    """
    file = user_path(path)
    check_vector_file(file)
    shape = detect_layout(file, format)
    digest = file_sha256(file)[:16]

    def read(wanted: Callable[[str], bool]) -> tuple[Sequence[str], np.ndarray]:
        found = read_vectors(file, wanted=wanted, layout=format)
        return found.words, found.vectors

    identity = f"{digest}{f':{format}' if format != 'auto' else ''}"
    details = {"file": file.name, "content_hash": digest, "format": shape.kind}
    return WordVectorEncoder(identity, file.name, shape.dim, read, details=details, lower=lower)


class RandomWordsEncoder(Encoder):
    """An encoder of one layer: each word form has a direction of its own, of norm 1, drawn evenly from all.

    A word's vector depends on its spelling, the seed and the size alone, never on the text around it or on other words.

    Args:
        dim: Components of a vector, 1 or more.
        seed: Another seed draws every word anew.
    """

    n_layers = 1
    positional = False

    def __init__(self, dim: int, seed: int) -> None:
        if dim < 1:
            raise ModelError(f"model.dim={dim}: expected 1 or more, the components of a random vector")
        self.dim = dim
        self.name = f"random_words:{dim}:{seed}"
        self.details = {"architecture": "a random vector a word", "dim": dim}
        self._seed = seed
        self._drawn: dict[str, np.ndarray] = {}

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        for sentence in batch:
            rows = np.empty((1, len(sentence), self.dim), np.float32)
            for i, word in enumerate(sentence.words):
                rows[0, i] = self._vector(word)
            yield EncodedSentence(tuple(sentence.words), rows)

    def _vector(self, word: str) -> np.ndarray:
        if word not in self._drawn:
            digest = hashlib.sha256(f"{self._seed} {word}".encode()).digest()
            vector = np.random.default_rng(list(digest)).standard_normal(self.dim)
            self._drawn[word] = (vector / np.linalg.norm(vector)).astype(np.float32)
        return self._drawn[word]


def random_words(*, dim: int = 768, seed: int = 0) -> RandomWordsEncoder:
    """A random vector of norm 1 for each word, wherever it stands (layer 0): a control for any sweep of models.

    `dim`: components of a vector. `seed`: another one draws every word anew.
    """
    return RandomWordsEncoder(dim, seed)


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
