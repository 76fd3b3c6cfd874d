"""A text dealt into shards: read once to see what it holds, and once more by whoever encodes a shard; never held."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ctxexp.dataset import Corpus, Sentence, Shards
from ctxexp.datasets.contexts import Held
from ctxexp.datasets.sketch import digest, mixed
from ctxexp.engine import Engine
from ctxexp.errors import DataError
from ctxexp.measuring.one_pass.measurer import Dealing, Told, Unstored
from ctxexp.progress import Progress
from ctxexp_one_pass.results import measured

if TYPE_CHECKING:
    from ctxexp.results import Results
    from ctxexp.study import Study, Vectors

log = logging.getLogger("ctxexp")

AT_ONCE = 1 << 22  # digests that are compared at a time


class Share(NamedTuple):
    """Of a part of the text the documents (where they aren't known, the sentences) of every `of`-th number."""

    part: int
    first: int
    of: int


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Dealt(Unstored):
    """A text in shards, of which every sentence counts once, whichever parts it stands in; it holds none.

    `words` are those that may reach enough contexts: a word's vectors are summed if it is one of them.
    """

    text: Shards
    words: tuple[str, ...]  # sorted
    shards: tuple[tuple[Share, ...], ...]
    copies: Mapping[int, np.ndarray]  # by part, sorted: digests of sentences that an earlier part has
    documented: bool  # whether shards hold whole documents
    n_distinct: int  # sentences
    text_sentences: int  # as often as they stand there
    text_words: int
    identity: str  # hex digits of the sentences, in whatever order
    layout: str  # hex digits of them in theirs

    @cached_property
    def fingerprint(self) -> str:
        return self.identity

    @cached_property
    def content(self) -> str:
        return hashlib.blake2b(f"{self.layout} {self.shards} {self.words}".encode(), digest_size=16).hexdigest()

    def measured(self, study: Study, vectors: Vectors, progress: Progress) -> tuple[Results, Told]:
        return measured(study, self, vectors, progress)

    def read(self, shard: int) -> Iterator[Sentence]:
        """The sentences of a shard."""
        for share in self.shards[shard]:
            seen = set(self.copies.get(share.part, np.empty(0, np.uint64)).tolist())
            for one in _numbered(self.text, self.text.parts[share.part]):
                if one.key not in seen and one.number % share.of == share.first:
                    yield self.text.words(one.text)
                seen.add(one.key)


class _Read(NamedTuple):
    """What is known of a part once it was read."""

    part: int
    digests: np.ndarray  # of its sentences, each once, sorted
    contexts: Counter[str]  # by word, sentences that hold it
    n_sentences: int
    n_words: int
    documented: bool
    layout: str


@dataclass(frozen=True)
class _Reader:
    """What reads a part, by its number."""

    text: Shards
    form: Callable[[str], str | None]

    def __call__(self) -> Callable[[int], _Read]:
        return self.read

    def read(self, part: int) -> _Read:
        contexts: Counter[str] = Counter()
        forms = _Forms(self.form)
        keys: set[int] = set()
        n_sentences, n_words, documented, layout = 0, 0, True, hashlib.blake2b(digest_size=16)
        for one in _numbered(self.text, self.text.parts[part]):
            words = self.text.words(one.text).words
            n_sentences, n_words, documented = n_sentences + 1, n_words + len(words), one.documented
            layout.update(f"{one.number} {one.key} ".encode())
            if one.key not in keys:
                keys.add(one.key)
                contexts.update({forms[word] for word in words})
        contexts.pop("", None)
        digests = np.sort(np.fromiter(keys, np.uint64, len(keys)))
        return _Read(part, digests, contexts, n_sentences, n_words, documented, layout.hexdigest())


class _Forms(dict[str, str]):
    """The word that each unit counts for, "" for none, as it comes up."""

    def __init__(self, form: Callable[[str], str | None]) -> None:
        self.form = form

    def __missing__(self, unit: str) -> str:
        self[unit] = form = self.form(unit) or ""
        return form


class _Text(NamedTuple):
    """A text of a part."""

    number: int  # of its document in the part; where documents aren't known, its own
    key: int
    text: str | Sentence
    documented: bool


def _numbered(text: Shards, part: object) -> Iterator[_Text]:
    """The texts of a part."""
    number, last = -1, object()
    for document, one in text.texts(part):
        number += document is None or document != last
        last = document
        yield _Text(number, digest(one if isinstance(one, str) else one.text), one, document is not None)


def deal(text: Corpus | Shards, dealing: Dealing, engine: Engine, progress: Progress) -> Dealt:
    """The text in shards, with the words that may reach enough contexts. Raises DataError for one without a sentence
    or a word."""
    source = Held(text) if isinstance(text, Corpus) else text
    contexts: Counter[str] = Counter()
    read: list[_Read] = []
    with TemporaryDirectory() as own, progress.stage("read text", total=len(source.parts), unit="parts") as stage:
        for found in engine.each(_Reader(source, dealing.form), range(len(source.parts))):
            contexts.update(found.contexts)
            np.save(Path(own) / f"{found.part}.npy", found.digests)
            sums = np.array([len(found.digests), found.digests.sum(), mixed(found.digests).sum()], np.uint64)
            read.append(found._replace(digests=sums, contexts=Counter()))
            stage.advance(1)
        read.sort(key=lambda found: found.part)
        copies = _copies(Path(own), [int(found.digests[0]) for found in read])
    total = np.stack([np.zeros(3, np.uint64), *(found.digests for found in read)]).sum(axis=0)
    for some in copies.values():
        total -= np.array([len(some), some.sum(), mixed(some).sum()], np.uint64)
    if not total.any():
        raise DataError(f"{source.name} has no sentence: expected UTF-8 text, a sentence a line")
    if not contexts:  # no model is loaded for it
        n = sum(found.n_words for found in read)
        raise DataError(
            f"corpus {source.name!r} has no word to measure: all {n:,} are left out (words.punctuation=...)"
        )
    words = _words(contexts, dealing.min_contexts, dealing.sample, dealing.seed)
    documented = all(found.documented for found in read)
    log.info("%s: %s sentences once each, in %d shards", source.name, f"{int(total[0]):,}", dealing.shards)
    return Dealt(
        source.name,
        (),
        choices=dict(source.choices),
        text=source,
        words=words,
        shards=_shares(len(source.parts), dealing.shards),
        copies=copies,
        documented=documented,
        n_distinct=int(total[0]),
        text_sentences=sum(found.n_sentences for found in read),
        text_words=sum(found.n_words for found in read),
        identity=_hex(total.tolist()),
        layout=_hex([found.layout for found in read]),
    )


def _hex(what: Sequence[object]) -> str:
    return hashlib.blake2b(str(what).encode(), digest_size=16).hexdigest()


def _words(contexts: Counter[str], min_contexts: int, sample: int | None, seed: int) -> tuple[str, ...]:
    """The words in enough sentences, copies in several parts counted: none is lost."""
    words = sorted(word for word, n in contexts.items() if n >= min_contexts)
    if not words and contexts:
        word, n = max(contexts.items(), key=lambda of: (of[1], of[0]))
        log.warning(
            f"no word reaches min_contexts={min_contexts} distinct sentences; the most frequent, {word[:40]!r}, has "
            f"{n:,}: measures over words are undefined (NaN) in every layer"
        )
    if sample is not None and sample < len(words):
        words = sorted(sorted(words, key=lambda word: digest(word, seed))[:sample])  # those of a bounded run
    return tuple(words)


def _shares(parts: int, shards: int) -> tuple[tuple[Share, ...], ...]:
    """Shards of about equal size: whole parts, or of fewer parts than shards a share of one each."""
    if parts >= shards:
        return tuple(tuple(Share(part, 0, 1) for part in range(k, parts, shards)) for k in range(shards))
    cut = [len(range(part, shards, parts)) for part in range(parts)]
    return tuple((Share(part, k, of),) for part, of in enumerate(cut) for k in range(of))


def _copies(folder: Path, sizes: Sequence[int]) -> dict[int, np.ndarray]:
    """By part, sorted, the digests that an earlier part has too; the digests of `{part}.npy` are compared in ranges."""
    found: dict[int, list[np.ndarray]] = {}
    ranges = max(1, -(-sum(sizes) // AT_ONCE))
    edges = [2**64 * i // ranges for i in range(ranges)]
    for low, high in pairwise([*edges, 2**64]):
        some = []
        for part in range(len(sizes)):
            held = np.load(folder / f"{part}.npy", mmap_mode="r") if sizes[part] else np.empty(0, np.uint64)
            first = int(np.searchsorted(held, np.uint64(low)))
            last = int(np.searchsorted(held, np.uint64(high - 1), side="right"))
            some.append(np.array(held[first:last]))
        keys, part_of = np.concatenate(some), np.repeat(np.arange(len(some)), [len(each) for each in some])
        order = np.argsort(keys, kind="stable")  # of equal ones the earliest part's first
        again = order[1:][keys[order][1:] == keys[order][:-1]]
        for part in np.unique(part_of[again]).tolist():
            found.setdefault(part, []).append(np.sort(keys[again[part_of[again] == part]]))
    return {part: np.concatenate(each) for part, each in found.items()}
