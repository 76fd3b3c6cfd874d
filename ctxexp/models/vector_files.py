"""Files of word vectors: GloVe text, word2vec text and binary, fastText .vec, safetensors; plain or compressed.

Read once from front to back, keeping only the wanted words, whatever the file's size; exports are written likewise."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, TypeVar, get_args

import numpy as np

from ctxexp.datasets.reading import UNREADABLE, open_bytes, raw_lines
from ctxexp.errors import ConfigError, ModelError, error_text, near, short
from ctxexp.files import atomic_write

log = logging.getLogger("ctxexp")

Format = Literal["auto", "text", "binary"]
T = TypeVar("T")
Entry = tuple[int, bytes, bytes]  # the line or the place among the words, the word, its numbers as they stand
_HEADER = re.compile(rb"\s*(\d+)[ \t]+(\d+)\s*")
_MARK = b"\xef\xbb\xbf"  # a byte order mark
_DIGITS = 18  # of a header's numbers
_PEEK = 1 << 18  # bytes that are looked at to tell the formats apart
_BLOCK = 1 << 20
_FIRST = 1 << 26  # bytes that are asked for before it is known how many vectors there are
_WIDEST = 10**7  # numbers of a vector: no header is believed that says more
_LONGEST = 10_000  # bytes of a word in a binary file: more means that the numbers don't fall where they should


@dataclass(frozen=True)
class WordVectors:
    """Words in the order of the file with their vectors; `n_file` counts all entries that the file has.

    Example:
        >>> from tempfile import mkdtemp
        >>> vectors = WordVectors(["bank", "river"], np.eye(2, dtype=np.float32))
        >>> path = vectors.save(Path(mkdtemp()), "word2vec_text")
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
    def read(path: Path, *, wanted: Callable[[str], bool] | None = None, layout: Format = "auto") -> WordVectors:
        """The vectors of a file.

        Args:
            path: GloVe's text, word2vec's text or binary, fastText's .vec, or .safetensors; compressed or not.
            wanted: Asked of each word in the order of the file; None: all are.
            layout: `auto`, or `text` or `binary` where the content doesn't tell.

        Raises:
            ModelError: The file, with the line or the word's number, isn't what was expected there.
        """
        return read_vectors(path, wanted=wanted, layout=layout)

    def save(self, folder: Path, layout: str) -> Path:
        """Write vectors.txt (`word2vec_text`), vectors.bin (`word2vec_binary`) or vectors.safetensors (`safetensors`);
        returns the path."""
        file, write = EXPORTS[layout]
        write(folder / file, self.words, self.vectors)
        return folder / file


@dataclass(frozen=True)
class Layout:
    """How a file is to be read: its format, whether it has a header line, what that says."""

    kind: Literal["text", "binary", "safetensors"]
    header: bool
    n: int | None  # words, where the header says it
    dim: int


def read_vectors(path: Path, *, wanted: Callable[[str], bool] | None = None, layout: Format = "auto") -> WordVectors:
    """The vectors of the words for which `wanted`, asked in the order of the file, is true (None: all).

    The format is told from the content: a first line of two whole numbers is a header (word2vec, fastText), binary if
    what follows is no text; without a header it is GloVe's text. `layout` settles it where that fails. A word that
    stands there twice keeps its first vector, with one warning. A word ends at the first tab of its line; without a tab
    at the blank before the last numbers, as many as the header says, or as the first line has. Raises ModelError naming
    the file, the line or the word's number, and what was expected there. Lines of words that are not wanted are only
    counted and split.
    """
    if not path.is_file():
        raise ModelError(f"no file of word vectors at {path}; expected GloVe text, word2vec text or binary, or .vec")
    shape = detect_layout(path, layout)
    if shape.kind == "safetensors":
        return _read_safetensors(path, wanted)
    number: dict[str, int] = {}
    vectors = np.empty((0, shape.dim), np.float32)
    n_file = duplicates = 0
    with _opened(path) as stream:
        is_text = shape.kind == "text"
        entries: Iterator[Entry] = _text(path, stream, shape) if is_text else _binary(path, stream, shape)
        for at, raw, numbers in _readable(path, entries):
            n_file += 1
            try:
                word = raw.decode()
            except UnicodeDecodeError as error:
                where = f"{path}, {'line' if is_text else 'word'} {at:,}"
                raise ModelError(
                    f"{where}: {raw[:40]!r} is not UTF-8 ({error.reason}); convert the file first"
                ) from None
            if wanted is not None and not wanted(word):
                continue
            if word in number:
                duplicates += 1
                continue
            if len(number) == len(vectors):  # grows in place: no second copy of what is there
                first = max(1, min(1024, _FIRST // (4 * shape.dim)))
                vectors.resize((max(first, len(vectors) + 1, len(vectors) * 3 // 2), shape.dim), refcheck=False)
            vectors[len(number)] = _numbers(path, at, word, numbers, shape)
            number[word] = len(number)
    if not n_file:
        raise ModelError(f"{path} has no word vectors: expected a word and its numbers on each line")
    if shape.n is not None and shape.n != n_file:
        raise ModelError(f"{path}: the header says {shape.n:,} words, the file has {n_file:,}; is it cut off?")
    vectors.resize((len(number), shape.dim), refcheck=False)
    _warn(path, duplicates)
    return WordVectors(list(number), vectors, n_file, duplicates)


def detect_layout(path: Path, layout: Format = "auto") -> Layout:
    """The layout of a file, from its first lines. Raises ModelError for lines of no known format."""
    if layout not in get_args(Format):
        raise ConfigError(f"format={short(layout)}: no such choice{near(layout, get_args(Format))}")
    if path.name.endswith(".safetensors"):
        from safetensors import safe_open

        try:
            with safe_open(path, framework="np") as file:
                n, dim = file.get_slice("vectors").get_shape()
        except Exception as error:  # safetensors has an exception of its own for each mishap
            raise ModelError(
                f"{path}: no tensor 'vectors' (words, dim) in this safetensors file: {error_text(error)}"
            ) from None
        return Layout("safetensors", False, n, dim)
    with _opened(path) as stream:
        head = next(_readable(path, (stream.read(_PEEK) for _ in range(1)))).removeprefix(_MARK)
    line, rest = re.match(rb"([^\r\n]*)(?:\r\n|\r|\n)?(.*)", head, re.DOTALL).groups()  # type: ignore[union-attr]
    if not head.strip():
        raise ModelError(f"{path} is empty: expected a word and its numbers on each line")
    if header := _HEADER.fullmatch(line):
        if max(map(len, header.groups())) > _DIGITS or int(header[2]) > _WIDEST:
            says = line[:60].decode().strip()
            raise ModelError(f"{path}, line 1: the header says {says!r}; expected at most {_WIDEST:,} numbers")
        n, dim = int(header[1]), int(header[2])
        if not dim:
            raise ModelError(f"{path}, line 1: the header says vectors of 0 numbers")
        second = re.split(rb"[\r\n]", rest, maxsplit=1)[0]
        binary = layout == "binary" or (layout == "auto" and _is_binary(path, second, rest, dim))
        return Layout("binary" if binary else "text", True, n, dim)
    if layout == "binary":
        raise ModelError(f"{path}: a binary file begins with a line `words dimension`; this one with {line[:40]!r}")
    line = line.strip(b" \t")
    dim = len(line.partition(b"\t")[2].split()) or len(line.split()) - 1
    if not dim:
        start = line[:40].decode("utf-8", "replace")
        raise ModelError(f"{path}, line 1: expected a word and its numbers, got {start!r}")
    return Layout("text", False, None, dim)


def _is_binary(path: Path, second: bytes, rest: bytes, dim: int) -> bool:
    """Whether what follows the header is no text: the name says so, or no line of numbers and bytes no text has."""
    if path.name.removesuffix(".gz").endswith(".bin"):
        return True
    try:
        values = [float(field) for field in second.split()[-dim:]]
        if len(values) == dim and len(second.split()) > dim:
            return False
    except ValueError:
        pass
    sample = rest[:4096]
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(sample) - 4:  # else a character cut in two
            return True
    return any(byte < 9 or 13 < byte < 32 for byte in sample)


def _opened(path: Path) -> IO[bytes]:
    try:
        return open_bytes(path)
    except UNREADABLE as error:
        raise ModelError(f"{path} can't be read: {error}") from None


def _readable(path: Path, entries: Iterator[T]) -> Iterator[T]:
    """Yield the entries; errors of the disk or gzip become a ModelError that names the file."""
    try:
        yield from entries
    except UNREADABLE as error:
        raise ModelError(f"{path} can't be read to its end: {error}") from None


def _text(path: Path, stream: IO[bytes], shape: Layout) -> Iterator[Entry]:
    """The entry of each line. A word may hold blanks, as some of GloVe's do."""
    blank, dim = 0, shape.dim
    for number, raw in raw_lines(stream):
        if shape.header and number == 1:
            continue
        line = raw.removeprefix(_MARK).rstrip(b" \t\r\n") if number == 1 else raw.rstrip(b" \t\r\n")
        if not line:
            blank = blank or number
            continue
        if blank:
            raise ModelError(f"{path}, line {blank}: empty; expected a word and {dim} numbers")
        is_plain = line.count(b" ") == dim
        word, _, numbers = line.partition(b"\t" if b"\t" in line else b" ")
        if b"\t" in line:
            count = len(numbers.split())
        elif is_plain:
            count = dim
        else:  # a word with blanks
            fields = line.rsplit(None, dim)
            word, numbers, count = fields[0], b" ".join(fields[1:]), len(fields) - 1
            if not shape.header and count == dim and _is_number(word.split()[-1]):
                count = len(line.split()) - 1  # nothing says that the last of the word is none of the numbers
        if count != dim:
            start = line[:40].decode("utf-8", "replace")
            raise ModelError(f"{path}, line {number}: expected a word and {dim} numbers, got {count}: {start!r}")
        yield number, word, numbers


def _binary(path: Path, stream: IO[bytes], shape: Layout) -> Iterator[Entry]:
    """Entries of 4 * dim bytes of numbers; a line end after them is optional, as it is in the wild."""
    stream.readline(_PEEK)  # the header
    size, buffer, at = 4 * shape.dim, b"", 0
    for number in range(1, (shape.n or 0) + 1):
        while (end := buffer.find(b" ", at)) < 0 or len(buffer) < end + 1 + size:
            if end < 0 and len(buffer) - at > _LONGEST:
                break
            more = stream.read(_BLOCK)
            if not more:
                raise ModelError(f"{path} ends in word {number:,} of {shape.n:,}; is it cut off?")
            buffer, at = buffer[at:] + more, 0
        if end < 0 or end - at > _LONGEST:
            raise ModelError(f"{path}, word {number:,}: no word of a sensible length; has it {shape.dim} dimensions?")
        yield number, buffer[at:end].lstrip(b"\n"), buffer[end + 1 : end + 1 + size]
        at = end + 1 + size
    if rest := (buffer[at:] + stream.read(64)).strip():
        raise ModelError(f"{path}: bytes after word {shape.n:,}, the header's last ({rest[:20]!r})")


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _numbers(path: Path, at: int, word: str, numbers: bytes, shape: Layout) -> np.ndarray:
    """(dim,) float32 of text, or of bytes."""
    where = f"{path}, {'word' if shape.kind == 'binary' else 'line'} {at}, {word!r}"
    try:
        if shape.kind == "binary":
            values = np.frombuffer(numbers, "<f4")
        else:
            values = np.array([float(field) for field in numbers.split()], np.float64)
        if len(values) != shape.dim:
            raise ValueError(f"{shape.dim} of them, got {len(values)}")
        with np.errstate(over="ignore"):
            values = values.astype(np.float32)
    except ValueError as error:
        raise ModelError(f"{where}: expected numbers, {error}") from None
    if not np.isfinite(values).all():
        raise ModelError(f"{where}: NaN or an infinite number")
    return values


def _read_safetensors(path: Path, wanted: Callable[[str], bool] | None) -> WordVectors:
    from safetensors import safe_open

    try:
        with safe_open(path, framework="np") as file:
            words = json.loads((file.metadata() or {}).get("words", "null"))
            vectors = file.get_tensor("vectors")
    except Exception as error:  # NumPy lacks bfloat16, and JSON may be none
        raise ModelError(f"{path}: its words and vectors can't be read: {error_text(error)}") from None
    if not isinstance(words, list) or len(words) != len(vectors) or not all(isinstance(word, str) for word in words):
        raise ModelError(f"{path}: expected `words` in the metadata, a JSON list of {len(vectors)} words")
    if not vectors.size or not np.issubdtype(vectors.dtype, np.floating):
        raise ModelError(f"{path}: {vectors.dtype} vectors of shape {vectors.shape}; expected floats (words, dim)")
    with np.errstate(over="ignore"):
        vectors = vectors.astype(np.float32)
    if len(broken := np.flatnonzero(~np.isfinite(vectors).all(1))):
        raise ModelError(f"{path}, word {broken[0] + 1}, {words[broken[0]]!r}: NaN or an infinite number")
    row_by_word: dict[str, int] = {}
    duplicates = 0
    for i, word in enumerate(words):
        if wanted is None or wanted(word):
            duplicates += row_by_word.setdefault(word, i) != i
    _warn(path, duplicates)
    return WordVectors(list(row_by_word), vectors[list(row_by_word.values())], len(words), duplicates)


def _warn(path: Path, duplicates: int) -> None:
    if duplicates:
        log.warning("%s: %d words stand there more than once; the first vector of each is taken", path, duplicates)


def write_text(path: Path, words: Sequence[str], vectors: np.ndarray) -> None:
    """word2vec's text: a line `words dimension`, then each word with its numbers, 9 digits: exact in float32."""
    with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"{len(words)} {vectors.shape[1]}\n")
        for word, row in zip(_writable(words), np.asarray(vectors, np.float32).tolist(), strict=True):
            file.write(word + "".join(f" {value:.9g}" for value in row) + "\n")


def write_binary(path: Path, words: Sequence[str], vectors: np.ndarray) -> None:
    """word2vec's binary: the same header, then each word, a blank, little-endian float32 numbers and a line end."""
    with atomic_write(path) as part, part.open("wb") as file:
        file.write(f"{len(words)} {vectors.shape[1]}\n".encode())
        for word, row in zip(_writable(words), np.asarray(vectors, "<f4"), strict=True):
            file.write(word.encode() + b" " + row.tobytes() + b"\n")


def write_safetensors(path: Path, words: Sequence[str], vectors: np.ndarray) -> None:
    """A tensor `vectors` (words, dim) float32; the words are a JSON list under `words` in the metadata."""
    from safetensors.numpy import save

    metadata = {"words": json.dumps(list(words), ensure_ascii=False)}
    # Not save_file: it makes a file that nobody but its owner may read.
    with atomic_write(path) as part:
        part.write_bytes(save({"vectors": np.ascontiguousarray(vectors, np.float32)}, metadata=metadata))


def _writable(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        if not word or word.split() != [word]:
            raise ModelError(f"word2vec's formats can't hold the word {word!r}: it is empty or has white space")
        yield word


EXPORTS: dict[str, tuple[str, Callable[[Path, Sequence[str], np.ndarray], None]]] = {
    "word2vec_text": ("vectors.txt", write_text),
    "word2vec_binary": ("vectors.bin", write_binary),
    "safetensors": ("vectors.safetensors", write_safetensors),
}
"""Format -> its file's name and its writer."""
