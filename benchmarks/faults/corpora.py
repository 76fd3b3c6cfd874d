"""Odd texts and odd corpora: each is refused with a message, or its words are found, embedded and counted right."""

from __future__ import annotations

import gzip
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from engine import measure

from ctxexp import Corpus, EncodedSentence, Encoder, Occurrences, Pair, Register, Sense, Sentence, hookimpl
from ctxexp.baselines import OnePerSentence
from ctxexp.command import Built
from ctxexp.datasets.text import text
from ctxexp.metrics.contextuality import IntraSentenceSimilarity, SelfSimilarity
from ctxexp.plugins.registry import build_registry
from ctxexp.vectors.encode import open_store
from tests.composed import composed

from . import Silent

WORDS = ["the", "bank", "river", "money", "of", "a", "dog", "ran", "naïve", ".", ",", "42", "doesn't"]
LINES = ["The bank by the river.", "A dog, the dog!", "Money of the bank doesn't run.", "the of the"]


class Spelling(Encoder):
    """An encoder whose vectors spell their word: rows that are not their words' own show."""

    name, n_layers, dim = "spelling", 2, 4

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        for sentence in batch:
            rows = np.array([code(word) for word in sentence.words], np.float32).reshape(1, -1, 4)
            yield EncodedSentence(sentence.words, np.concatenate([rows, rows + 1]))


def code(word: str) -> list[int]:
    """Four numbers of a word."""
    points = [ord(c) for c in word]
    return [sum(points) % 65521, len(points), points[0] + 1, points[-1] + 1]


def measured(corpus: Corpus, folder: Path) -> None:
    """Encode, index and measure the corpus; `Silent` where a row is another word's, or a count is off."""
    store = open_store(corpus, Spelling(), cache=folder / "cache")
    for i, sentence in enumerate(corpus.sentences):
        rows = slice(*store.offsets[store.stored_of[i] : store.stored_of[i] + 2].tolist())
        expected = np.array([code(word) for word in sentence.words], np.float32).reshape(-1, 4)
        if not np.array_equal(store.layer(0)[rows], expected):
            raise Silent(f"the vectors of sentence {i} are not those of its words")
    occurrences = Occurrences.of(store, corpus, min_contexts=2)
    contexts = Counter(word for sentence in dict.fromkeys(corpus.sentences) for word in set(sentence.words))
    if set(occurrences.words) != {word for word, n in contexts.items() if n >= 2}:
        raise Silent(f"other words than those of two sentences are measured: {occurrences.words[:5]}")
    metrics = {"self_similarity": SelfSimilarity, "intra_sentence_similarity": IntraSentenceSimilarity}
    results = measure(store, occurrences, metrics, OnePerSentence(redraws=2), seed=0, bootstrap=2)
    curve = results.by_name["self_similarity/raw"]
    if occurrences.words and not np.allclose(curve, 1, atol=1e-5):
        raise Silent(f"words of one vector each have a self-similarity of {curve.tolist()}, not 1")


def read(data: bytes, name: str, folder: Path) -> None:
    """Read a file of these bytes and measure it; `Silent` unless its sentences are its lines, word for word."""
    folder.mkdir(parents=True)
    (folder / name).write_bytes(data)
    corpus = text(path=str(folder / name))
    plain = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    lines = [line.strip() for line in re.split(r"\r\n|\r|\n", plain.decode("utf-8-sig"))]
    if [s.text for s in corpus.sentences] != [line for line in lines if line]:
        raise Silent("its sentences are not its lines")
    for sentence in corpus.sentences:
        if any(sentence.text[a:b] != word for word, (a, b) in zip(sentence, sentence.spans, strict=True)):
            raise Silent(f"a word of {sentence.text[:40]!r} isn't where its span says")
        if visible("".join(sentence.words)) != visible(sentence.text):
            raise Silent(f"words of {sentence.text[:40]!r} lack or double a character")
    measured(corpus, folder)


def visible(text: str) -> str:
    """The text without white space and format characters, which belong to no word where they stand outside."""
    return "".join(c for c in text if not c.isspace() and unicodedata.category(c) != "Cf")


def refused(data: bytes, name: str, folder: Path) -> None:
    """Read a file that holds no text as it stands; `Silent` if that isn't said."""
    read(data, name, folder)
    raise Silent(f"{data[:20]!r} was read as text")


def supplied(corpus: Any, folder: Path, *, wrong: bool) -> None:
    """Bring in the corpus as a plugin's data set and measure it; `Silent` if it is `wrong` and that isn't said."""

    class Mine:
        @staticmethod
        @hookimpl
        def register_datasets(register: Register) -> None:
            register("mine", lambda: corpus)

    registry = build_registry([("mine", Mine)], installed=False)
    found = Built(composed("words.deduplicate=false", registry=registry, dataset={"name": "mine"})).corpus
    if wrong:
        raise Silent("a corpus that contradicts itself came in")
    measured(found, folder)


def lines(rng: np.random.Generator, extra: Iterable[str] = ()) -> str:
    """Some lines of plain words, and the extra ones among them."""
    made = [" ".join(rng.choice(WORDS, size=rng.integers(1, 8))) for _ in range(rng.integers(1, 12))] + list(extra)
    return "\n".join(made[i] for i in rng.permutation(len(made))) + "\n" * int(rng.integers(2))


def drawn(rng: np.random.Generator, *ranges: tuple[int, int]) -> str:
    """Up to 12 characters of these ranges of code points, some of them between letters."""
    points = [int(rng.integers(*ranges[rng.integers(len(ranges))])) for _ in range(rng.integers(1, 13))]
    return "".join(chr(p) + ("a" if rng.random() < 0.3 else " " if rng.random() < 0.2 else "") for p in points)


ODD = {  # characters that text may hold
    "control characters": ((1, 10), (14, 32), (127, 160)),
    "other line ends": ((11, 14), (0x85, 0x86), (0x2028, 0x202A)),
    "right to left": ((0x5D0, 0x5EB), (0x627, 0x64B), (0x202A, 0x202F), (0x2066, 0x206A)),
    "zero width": ((0x200B, 0x2010), (0xFEFF, 0xFF00), (0xAD, 0xAE), (0x2060, 0x2065)),
    "combining marks": ((0x300, 0x370), (0x1AB0, 0x1ACF), (0x65, 0x66)),
    "emoji": ((0x1F3FB, 0x1F400), (0x1F466, 0x1F47A), (0x200D, 0x200E), (0xFE0F, 0xFE10), (0x1F1E6, 0x1F200)),
    "ideographs": ((0x4E00, 0x9FFF), (0x3040, 0x30FF), (0xAC00, 0xD7A3), (0x20000, 0x2A6DF)),
    "unassigned and private": ((0x378, 0x37A), (0xE000, 0xF8FF), (0xFFFE, 0x10000), (0x10FFFE, 0x110000)),
    "digits and letters of maths": ((0x1D400, 0x1D7FF), (0x660, 0x66A), (0xBC, 0xBF), (0x2150, 0x2190)),
    "white space": ((0x2000, 0x200B), (0xA0, 0xA1), (0x3000, 0x3001), (9, 10), (0x1680, 0x1681)),
}


def odd_text(rng: np.random.Generator) -> tuple[str, Callable[[Path], None]]:
    name = list(ODD)[rng.integers(len(ODD))]
    data = lines(rng, (drawn(rng, *ODD[name]) for _ in range(4))).encode()
    return name, lambda folder: read(data, "t.txt", folder)


def odd_shape(rng: np.random.Generator) -> tuple[str, Callable[[Path], None]]:
    plain = lines(rng).encode()
    shapes = {
        "empty": b"",
        "white space": b" \t\r\n\n\x0c\n",
        "one word": b"bank",
        "one mark": b".",
        "a byte order mark": b"\xef\xbb\xbf" + plain,
        "a byte order mark alone": b"\xef\xbb\xbf",
        "two byte order marks": b"\xef\xbb\xbf\xef\xbb\xbf" + plain,
        "CRLF": plain.replace(b"\n", b"\r\n"),
        "CR": plain.replace(b"\n", b"\r"),
        "a huge line": b"the bank of a river " * 2000 + b"\n" + plain,
        "a huge word": b"x" * 50_000 + b"\n" + plain,
        "equal sentences": b"The bank.\n" * 5,
        "punctuation": b"... !!!\n, ,\n" + plain,
        "quotes and tabs": b'"the\tbank"\n\'a\' "dog\n' + plain,
    }
    name = list(shapes)[rng.integers(len(shapes))]
    data = gzip.compress(shapes[name]) if rng.integers(2) else shapes[name]
    file = "t.txt.gz" if rng.integers(2) else "t.txt"  # the bytes tell
    return name, lambda folder: read(data, file, folder)


def no_text(rng: np.random.Generator) -> tuple[str, Callable[[Path], None]]:
    plain, packed = lines(rng, ["naïve"]), gzip.compress(lines(rng).encode())
    at = int(rng.integers(1, len(packed) - 1))
    kinds: dict[str, tuple[bytes, str]] = {
        **{coding: (plain.encode(coding), "t.txt") for coding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32")},
        "latin-1": (plain.encode("latin-1"), "t.txt"),
        "a surrogate's bytes": (plain.encode() + b"\xed\xa0\x80\n", "t.txt"),
        "half a character": (plain.encode() + "é".encode()[:1], "t.txt"),
        "NUL": (plain.encode().replace(b" ", b"\0", 1) + b"\0", "t.txt"),
        "random bytes": (rng.bytes(200) + b"\xff", "t.txt"),
        "a cut archive": (packed[:at], "t.txt.gz"),
        "another kind of file": (plain.encode(), "t.conllu"),
    }
    name = list(kinds)[rng.integers(len(kinds))]
    return name, lambda folder: refused(*kinds[name], folder)


def odd_corpus(rng: np.random.Generator) -> tuple[str, Callable[[Path], None]]:
    words = tuple(map(str, rng.choice(WORDS, size=4)))
    right = Sentence.of(words)
    spans = list(right.spans)
    k = int(rng.integers(4))
    shift = int(rng.choice([-1, 1, 3]))
    moved = (*spans[:k], (spans[k][0] + shift, spans[k][1] + shift), *spans[k + 1 :])
    rest = (right, *(Sentence.of(line.split()) for line in LINES))

    def of(*sentences: object, **more: Any) -> Corpus:
        return Corpus("mine", (*sentences, *rest), **more)  # type: ignore[arg-type]

    kinds: dict[str, Any] = {
        "spans shifted": of(Sentence(right.text, words, moved)),
        "spans exchanged": of(Sentence(right.text, words, tuple(reversed(spans)))),
        "a span twice": of(Sentence(right.text, (words[k],) * 2, (spans[k],) * 2)),
        "a span past the end": of(Sentence(words[0], words[:1], ((0, 99),))),
        "a span from the end": of(Sentence("ab", ("a",), ((-2, -1),))),
        "spans of fractions": of(Sentence("ab", ("ab",), ((0.0, 2.0),))),  # type: ignore[arg-type]
        "spans of nothing": of(Sentence("ab", ("ab",), (None,))),  # type: ignore[arg-type]
        "another text": of(Sentence(right.text.upper() + "!", words, right.spans)),
        "a blank word": of(Sentence("a  b", ("a", " "), ((0, 1), (1, 2)))),
        "an empty word": of(Sentence("ab", ("",), ((1, 1),))),
        "a list of words": of(Sentence("ab", ["ab"], ((0, 2),))),  # type: ignore[arg-type]
        "bytes": of(Sentence(b"ab", (b"ab",), ((0, 2),))),  # type: ignore[arg-type]
        "words that are numbers": of(Sentence("12", (12,), ((0, 2),))),  # type: ignore[arg-type]
        "NUL": of(Sentence.of(["a\0b"])),
        "a lone surrogate": of(Sentence.of(["a", "\udc80"])),
        "a text for a sentence": of(right.text),
        "nothing for a sentence": of(None),
        "a pair past the end": of(right, pairs=(Pair(0, 99, 1.0),)),
        "a pair without gold": of(right, pairs=(Pair(0, 1, float("nan")),)),
        "gold that is text": of(right, pairs=(Pair(0, 1, "high"),)),  # type: ignore[arg-type]
        "pairs that are none": of(right, pairs=((0, 1, 2.0),)),
        "a sense past the end": of(right, senses=(Sense(0, 9, "s"),)),
        "senses that are none": of(right, senses=(None,)),
        "a list of sentences": Corpus("mine", list(rest)),  # type: ignore[arg-type]
        "no sentences": Corpus("mine", ()),
        "a generator": Corpus("mine", (s for s in rest)),  # type: ignore[arg-type]
        "no name": Corpus("", rest),
        "a number for a name": Corpus(7, rest),  # type: ignore[arg-type]
        "choices that are no text": of(right, choices={"seed": object()}),
        "no corpus": ["a", "b"],
        "nothing": None,
    }
    name = list(kinds)[rng.integers(len(kinds))]
    return f"corpus: {name}", lambda folder: supplied(kinds[name], folder, wrong=True)


def right_corpus(rng: np.random.Generator) -> tuple[str, Callable[[Path], None]]:
    sentences = [Sentence.of(map(str, rng.choice(WORDS, size=rng.integers(0, 6)))) for _ in range(6)]
    gaps = Sentence("  the ,bank.", ("the", "bank"), ((2, 5), (7, 11)))
    kinds = {
        "empty sentences": Corpus("mine", (Sentence("", (), ()), *sentences, Sentence(" ", (), ()))),
        "characters of no word": Corpus("mine", (gaps, *sentences, gaps)),
        "NumPy's whole numbers": Corpus("mine", (Sentence("a", ("a",), ((np.int64(0), np.int64(1)),)), *sentences)),
        "equal sentences": Corpus("mine", (Sentence.of(WORDS),) * 5),
    }
    name = list(kinds)[rng.integers(len(kinds))]
    return f"corpus: {name}", lambda folder: supplied(kinds[name], folder, wrong=False)


KINDS = (odd_text, odd_text, odd_shape, no_text, odd_corpus, odd_corpus, right_corpus)


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """`count` texts and corpora drawn from `seed`: each ends in a message, or in the right words and rows."""
    for place in range(count):
        rng = np.random.default_rng([seed, place])
        name, attempt = KINDS[rng.integers(len(KINDS))](rng)
        yield name, lambda attempt=attempt, own=folder / f"corpus-{place}": attempt(own)
