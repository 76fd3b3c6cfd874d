"""A vector a word, wherever it stands: of a file, or drawn at random (what a measure gives of words that know no
context); and vectors in hand, an array a sentence.

Files are GloVe text, word2vec text, fastText .vec; plain or compressed. They are read once from
front to back, keeping only the wanted words, whatever the file's size; exports are written likewise.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated

import numpy as np
import numpy.typing as npt
from annotated_types import Ge

from ctxexp.dataset import Corpus, Sentence
from ctxexp.datasets.reading import UNREADABLE, open_bytes, raw_lines
from ctxexp.errors import EncodingError, ModelError
from ctxexp.files import atomic_write, file_sha256, user_path
from ctxexp.model import EmbeddingTable, EncodedSentence, Encoder
from ctxexp.models.options import check_choices
from ctxexp.models.transformer.ledger import conversion

log = logging.getLogger("ctxexp")

Entry = tuple[int, str, bytes]  # the line, the word, its numbers
_HEADER = re.compile(rb"\s*(\d+)[ \t]+(\d+)\s*")
_MARK = b"\xef\xbb\xbf"  # a byte order mark
_PEEK = 1 << 18  # bytes that hold the first two lines


@dataclass(frozen=True)
class WordVectors:
    """Words in the order of the file with their vectors; `n_file` counts all entries that the file has.

    Example:
        >>> from tempfile import mkdtemp
        >>> vectors = WordVectors(["bank", "river"], np.eye(2, dtype=np.float32))
        >>> path = vectors.save(Path(mkdtemp()))
        >>> read = WordVectors.read(path, wanted={"river"}.__contains__)
        >>> path.name, read.words, read.vectors.tolist(), read.n_file
        ('vectors.txt', ['river'], [[0.0, 1.0]], 2)
    """

    words: list[str]
    vectors: np.ndarray  # (len(words), dim) float32
    n_file: int = 0
    duplicates: int = 0  # entries left out since the word stood there before

    @property
    def dim(self) -> int:
        return int(self.vectors.shape[1])

    @staticmethod
    def read(path: Path, *, wanted: Callable[[str], bool] | None = None) -> WordVectors:
        """The vectors of a file.

        A first line of two whole numbers is a header (word2vec, fastText); without one it is GloVe's text. A word that
        stands there twice keeps its first vector, with one warning. A word ends at the first tab of its line; without
        a tab at the blank before the last numbers, as many as the header says, or as the first line has.

        Args:
            path: GloVe's text, word2vec's text, or fastText's .vec; compressed or not.
            wanted: Asked of each word in the order of the file; None: all are.

        Raises:
            ModelError: The file, with the line, isn't what was expected there.
        """
        n_header, dim = read_header(path)
        number: dict[str, int] = {}
        rows = bytearray()  # which grows in place
        n_file = duplicates = 0
        with _open(path) as stream:
            for at, word, numbers in _entries(stream, n_header, dim):
                n_file += 1
                if wanted is not None and not wanted(word):
                    continue
                if word in number:
                    duplicates += 1
                    continue
                number[word] = len(number)
                rows += _row(f"line {at}, {word!r}", numbers).tobytes()
            if not n_file:
                raise ValueError("no word vectors: expected a word and its numbers on each line")
            if n_header is not None and n_header != n_file:
                raise ValueError(f"the header says {n_header:,} words, the file has {n_file:,}; is it cut off?")
        if duplicates:
            log.warning("%s: %d words stand there more than once; the first vector of each is taken", path, duplicates)
        vectors = np.frombuffer(rows, np.float32).reshape(len(number), dim)
        return WordVectors(list(number), vectors, n_file, duplicates)

    def save(self, folder: Path) -> Path:
        """Write vectors.txt, word2vec's text with 9 digits, exact in float32; returns its path."""
        path = folder / "vectors.txt"
        with atomic_write(path) as part, part.open("wb") as file:
            file.write(f"{len(self.words)} {self.dim}\n".encode())
            for word, row in zip(self.words, np.asarray(self.vectors, np.float32), strict=True):
                if word.split() != [word]:
                    raise ModelError(f"word2vec's format can't hold the word {word!r}: it is empty or has white space")
                file.write(" ".join([word, *(f"{value:.9g}" for value in row.tolist())]).encode() + b"\n")
        return path


FASTTEXT, PICKLE = b"\xba\x16\x4f\x2f", b"\x80"  # how fastText's own files begin, and gensim's


def read_header(path: Path) -> tuple[int | None, int]:
    """The number of words that a file's header states, None where it has none, and the numbers of each word. Raises
    ModelError for lines of no known format."""
    with _open(path) as stream:
        head = stream.read(_PEEK).removeprefix(_MARK)
        if head.startswith((FASTTEXT, PICKLE)):
            raise ValueError(f"no text of word2vec's; {conversion(path)}")
        line, *rest = re.split(rb"\r\n|\r|\n", head, maxsplit=2)
        if header := _HEADER.fullmatch(line):
            dim = int(header[2])
            if not dim:
                raise ValueError(f"line 1: the header says {line[:60].decode()!r}; expected 1 number or more")
            first = rest[0].split() if rest else []
            if any(rest) and not (len(first) > dim and all(map(_is_number, first[-dim:]))):
                raise ValueError(
                    f"line 2: expected a word and {dim} numbers; if this is word2vec's binary, gensim makes text of "
                    f"it: KeyedVectors.load_word2vec_format({str(path)!r}, binary=True).save_word2vec_format('v.txt')"
                )
            return int(header[1]), dim
        dim = len(line.partition(b"\t")[2].split()) or len(line.split()) - 1
        if dim < 1:
            raise ValueError(f"line 1: expected a word and its numbers, got {line[:40].decode('utf-8', 'replace')!r}")
    return None, dim


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    """The file's bytes. What can't be read, or isn't what was expected (a ValueError), is a ModelError that names the
    file."""
    try:
        with open_bytes(path) as stream:
            yield stream
    except (*UNREADABLE, ValueError) as error:
        raise ModelError(f"{path}: {error}") from None


def _decode(raw: bytes, where: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: {raw[:40]!r} is not UTF-8 ({error.reason}); convert the file first") from None


def _entries(stream: IO[bytes], n_header: int | None, dim: int) -> Iterator[Entry]:
    """The entry of each line. A word may hold blanks, as some of GloVe's do."""
    blank = 0
    for number, raw in raw_lines(stream):
        if n_header is not None and number == 1:
            continue  # the header
        line = raw.removeprefix(_MARK).rstrip(b" \t\r\n") if number == 1 else raw.rstrip(b" \t\r\n")
        if not line:
            blank = blank or number
            continue
        if blank:
            raise ValueError(f"line {blank}: empty; expected a word and {dim} numbers")
        word, _, numbers = line.partition(b"\t" if b"\t" in line else b" ")
        if b"\t" in line:
            count = len(numbers.split())
        elif line.count(b" ") == dim:
            count = dim
        else:  # a word with blanks
            fields = line.rsplit(None, dim)
            word, numbers, count = fields[0], b" ".join(fields[1:]), len(fields) - 1
            if n_header is None and count == dim and _is_number(word.split()[-1]):
                count = len(line.split()) - 1  # nothing says that the last of the word is none of the numbers
        if count != dim:
            start = line[:40].decode("utf-8", "replace")
            raise ValueError(f"line {number}: expected a word and {dim} numbers, got {count}: {start!r}")
        yield number, _decode(word, f"line {number}"), numbers


def _row(where: str, numbers: bytes) -> np.ndarray:
    """(dim,) finite float32 of the numbers of an entry."""
    try:
        x = np.array([float(field) for field in numbers.split()])
    except ValueError as error:
        raise ValueError(f"{where}: expected numbers, {error}") from None
    with np.errstate(over="ignore"):
        x = x.astype(np.float32)
    if not np.isfinite(x).all():
        raise ValueError(f"{where}: NaN or an infinite number")
    return x


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


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
        self._read_missing(sentences)
        return [len(sentence) for sentence in sentences]

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        self._read_missing(batch)
        for sentence in batch:
            rows = [self._number[self._form(word)] for word in sentence.words]
            units = tuple(word for word, row in zip(sentence.words, rows, strict=True) if row >= 0)
            yield EncodedSentence(units, self._vectors[[row for row in rows if row >= 0]][None])

    def tables(self, sentences: Sequence[Sentence]) -> list[EmbeddingTable]:
        """`input`: the vectors of the sentences' words in the source's spelling, alphabetically, with their counts."""
        self._read_missing(sentences)
        count_by_form = Counter(self._form(word) for sentence in sentences for word in sentence.words)
        words = sorted(word for word in count_by_form if self._number[word] >= 0)
        rows = [self._number[word] for word in words]
        counts = np.array([count_by_form[word] for word in words], np.int64)
        note = f"the corpus's words among the vectors of {self._label}"
        return [EmbeddingTable("input", words, self._vectors[rows], counts, note=note)]

    def _form(self, word: str) -> str:
        return word.lower() if self._lower else word

    def _read_missing(self, sentences: Iterable[Sentence]) -> None:
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


def word_vectors(*, path: str, lower: bool = False) -> WordVectorEncoder:
    """Word vectors of a file as a model of one layer (layer 0).

    path: GloVe or word2vec text, fastText .vec, each also .gz
    lower: look words up in lower case, for files that hold nothing else
    """
    check_choices(path=path)
    file = user_path(path)
    _, dim = read_header(file)
    digest = file_sha256(file)[:16]

    def read(wanted: Callable[[str], bool]) -> tuple[Sequence[str], np.ndarray]:
        found = WordVectors.read(file, wanted=wanted)
        return found.words, found.vectors

    details = {"file": file.name, "content_hash": digest}
    return WordVectorEncoder(digest, file.name, dim, read, details=details, lower=lower)


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


def random_words(*, dim: Annotated[int, Ge(1)] = 768, seed: int = 0) -> RandomWordsEncoder:
    """A random vector of norm 1 for each word, wherever it stands (layer 0): a control for any sweep of models.

    dim: components of a vector; norms are 1
    seed: another one draws every word anew
    """
    return RandomWordsEncoder(dim, seed)


class ArrayEncoder(Encoder):
    """Vectors in hand as an encoder of the words that they are of."""

    def __init__(self, vectors: Mapping[Sentence, np.ndarray], name: str) -> None:
        self.corpus, self.title, self._vectors = Corpus(name, tuple(vectors)), name, vectors
        digest = hashlib.blake2b(digest_size=8)
        for one in vectors.values():
            digest.update(repr(one.shape).encode() + np.ascontiguousarray(one).tobytes())
            self.n_layers, _, self.dim = one.shape
        self.name = f"arrays:{digest.hexdigest()}"

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        for sentence in batch:
            if sentence not in self._vectors:
                raise EncodingError(
                    f"{self.title}: no vectors of {sentence.text[:60]!r}; these arrays have their own words"
                )
            yield EncodedSentence(sentence.words, self._vectors[sentence])


def from_arrays(
    vectors: npt.ArrayLike | Iterable[npt.ArrayLike],
    words: Iterable[Sequence[str] | Sentence],
    *,
    name: str = "arrays",
) -> ArrayEncoder:
    """Vectors in memory as an encoder of their own words; `ctxexp.measure` takes it as its model.

    Args:
        vectors: An array (n_layers, n_words, dim) or (n_words, dim) for each sentence. Of equal sentences the first
            one's vectors count. Or one array (n_layers, n_words, dim) of all words, sentence after sentence.
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
    by_sentence: dict[Sentence, np.ndarray] = {}
    words = list(words)
    lengths = [len(own) for own in words]
    shape: tuple[int, ...] = tuple(getattr(vectors, "shape", ()))
    arrays: Sequence[npt.ArrayLike]
    if len(shape) == 3 and shape[1] == sum(lengths) and len(words) > 1:
        arrays = np.split(np.asarray(vectors), np.cumsum(lengths)[:-1], axis=1)
    else:
        arrays = list(vectors)  # type: ignore[arg-type]
    if len(arrays) != len(words):
        raise EncodingError(
            f"{len(arrays)} arrays for {len(words)} sentences; expected an array a sentence, or one of shape "
            f"(n_layers, {sum(lengths)}, dim) of all their words"
        )
    for i, (array, own) in enumerate(zip(arrays, words, strict=True)):
        x = np.asarray(array, np.float32)
        x = x[None] if x.ndim == 2 else x
        shape = (*x.shape[:1], len(own), *x.shape[2:])
        first = next(iter(by_sentence.values()), x).shape
        if x.ndim != 3 or x.shape != shape or (x.shape[0], x.shape[2]) != (first[0], first[2]):
            raise EncodingError(
                f"sentence {i}: vectors of shape {np.shape(array)} for {len(own)} words; expected (n_layers, n_words, "
                f"dim), as many layers and columns in each sentence"
            )
        by_sentence.setdefault(own if isinstance(own, Sentence) else Sentence.of(own), x)
    if not by_sentence:
        raise EncodingError("from_arrays needs at least one sentence, got none")
    return ArrayEncoder(by_sentence, name)
