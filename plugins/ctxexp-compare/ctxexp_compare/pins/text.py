"""The text of a pin, and which of its occurrences are kept: spellings that tokenizers treat differently, plain
sentences, and one text that is longer than most windows."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ctxexp import EncodedSentence, Encoder, Sentence
from ctxexp.command import registry
from ctxexp.datasets import tokenizer
from ctxexp_compare.alignment import splitmix64

SPELLINGS = (
    "The café's naïve owner – Zoë – re-opened it.",
    "Straße, İstanbul, ŁÓDŹ and São Paulo aren't ASCII.",
    "Cafe\u0301 and caf\u00e9 are one word; the ﬁnal ﬂow of ＦＵＬＬ width.",
    "In 1997 3.5% of 1,234,567 people paid $42.00 or €7.",
    "100 1000 10000 100000 1000000 0.1 0.001",
    "e-mail: someone@example.org (or +44 20 7946 0958)",
    "See https://example.org/a?b=1#c & <b>tags</b>; x_y=z.",
    "I don't, can't, won't; you've, she'd, they'll, it's.",
    "NASA's U.S. HQ, Ph.D. vs. i.e. etc.",
    "Antidisestablishmentarianism is supercalifragilistic.",
    "def f(x): return x**2 # a comment",
    "日本語のテキスト and 中文 and 한국어",
    "Привет, мир! Γειά σου Κόσμε. שלום עולם مرحبا",
    "😀 👍🏽 and ☃ ™ ½ ² are symbols.",
    "ALL CAPS, Title Case, camelCase and snake_case",
    "two  blanks,   three blanks and a tab\there",
    "'single' \"double\" “curly” ‘quotes’ … — – -",
    "The the THE tHe teh",
    "aaaaaaaaaaaaaaaa xqzjv wplkt brrrgh",
    "co-operate coöperate cooperate",
    "Yes.",
    "no",
)
PLAIN = 22  # sentences of the embedded corpus, evenly spaced
LONG = 600  # pieces of the long text, at most; a window of fewer is exceeded by a quarter
SENTENCE_SHARE = 0.18  # of the rows, for vectors of whole sentences
LONG_SHARE = 0.16  # for words of the longest text
SEVERAL_SHARE = 0.3  # for words of several pieces


class PinRows(NamedTuple):
    """The vectors that a pin holds: unit `unit[i]` of what the encoder gives for sentence `sentence[i]`."""

    sentence: np.ndarray  # (n,) int64
    unit: np.ndarray  # (n,) int64
    is_sentence: np.ndarray  # (n,) bool: the vector of the whole sentence, not of a word
    n_pieces: np.ndarray  # (n,) int64 that are pooled in it; 0 for a sentence

    def __len__(self) -> int:
        return len(self.sentence)


def own_text(encoder: Encoder, words: str, *, lower: bool) -> list[Sentence]:
    """The text of ctxexp's own: spellings, plain sentences, and a long text that ends in what no window shows.

    `words` names the word tokenizer.
    """
    read = tokenizer(words, lower=lower)
    plain = [one.text for one in registry().find("dataset", "polysemy").factory(tokenizer="english").sentences]
    window = encoder.details.get("window")
    most = LONG if not isinstance(window, int) or window <= 0 else min(LONG, window + window // 4)
    sizes = np.cumsum(encoder.lengths([read(text) for text in plain]))
    long = " ".join(plain[: 1 + int(np.searchsorted(sizes, most))])
    spaced = [plain[i] for i in np.linspace(0, len(plain) - 1, PLAIN).astype(int)]
    return [read(text) for text in (*SPELLINGS, *spaced, long)]


def choose_rows(pieces: Sequence[np.ndarray], pooled: Sequence[int], n: int) -> PinRows:
    """About n rows, the same for the same text.

    Words of the text with most units, evenly spaced to its last; words of several pieces; others by a hash; and the
    vectors of whole sentences, the longest among them.

    Args:
        pieces: For each sentence the number of pieces of each unit (units,).
        pooled: The sentences that have a vector of their own.
        n: The number of rows.
    """
    sentence = np.repeat(np.arange(len(pieces)), [len(own) for own in pieces])
    unit = np.concatenate([np.arange(len(own)) for own in pieces])
    count = np.concatenate([np.asarray(own, np.int64) for own in pieces])
    longest = int(np.argmax([len(own) for own in pieces]))
    by_size = sorted(pooled, key=lambda i: (i != longest, i))  # the longest first
    whole = np.sort(np.array(by_size[: round(n * SENTENCE_SHARE)], np.int64))
    most = n - len(whole)
    (inside,) = np.nonzero(sentence == longest)
    long = inside[np.unique(np.linspace(0, len(inside) - 1, min(len(inside), round(n * LONG_SHARE))).astype(int))]
    order = np.argsort(splitmix64((sentence << 32 | unit).astype(np.uint64)), kind="stable")
    order = order[~np.isin(order, long)]
    several = order[count[order] > 1][: round(n * SEVERAL_SHARE)]
    single = order[~np.isin(order, several)]
    rows = np.sort(np.concatenate([long, several, single])[:most])
    zeros = np.zeros(len(whole), np.int64)
    return PinRows(
        np.concatenate([sentence[rows], whole]),
        np.concatenate([unit[rows], zeros]),
        np.concatenate([np.zeros(len(rows), bool), np.ones(len(whole), bool)]),
        np.concatenate([count[rows], zeros]),
    )


TOKENIZER_FILE = re.compile(r"token|vocab|merges|sentencepiece|spiece|tiktoken|\.(model|spm|bpe|codes)$")
TEXT_NEUTRAL = ("version", "truncation", "padding", "decoder")  # parts of tokenizer.json that decide no piece


@dataclass(frozen=True)
class TokenizerDigest:
    """Digests of each sentence's pieces and units, of the vocabulary (with merges or scores), of the settings, and of
    the tokenizer's files by name; the last three are empty for a model without a tokenizer of its own. `library` is the
    version that wrote the settings."""

    pieces: tuple[str, ...]
    units: tuple[str, ...]
    vocabulary: str = ""
    settings: str = ""
    library: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    def changed_sentences(self, now: TokenizerDigest) -> list[int]:
        """The sentences whose pieces, or units, aren't what they were."""
        same = [(self.pieces[i], self.units[i]) == (now.pieces[i], now.units[i]) for i in range(len(self.pieces))]
        return [i for i, equal in enumerate(same) if not equal]

    def changes(self, now: TokenizerDigest) -> list[str]:
        """The differences, in words; settings as another version of the library writes them are none, nor is a file
        that only one of the two has: the vocabulary and settings are what the library read of all files."""
        differences = []
        if changed := self.changed_sentences(now):
            differences.append(f"{len(changed)} of {len(self.pieces)} sentences have other pieces")
        if self.vocabulary != now.vocabulary:
            differences.append("another vocabulary")
        elif self.settings != now.settings and self.library == now.library:
            differences.append("other settings")
        both = sorted(self.files.keys() & now.files.keys())
        return differences + [f"another {name}" for name in both if self.files[name] != now.files[name]]


def tokenizer_digest(
    encoder: Encoder, sentences: Sequence[Sentence], encoded: Sequence[EncodedSentence]
) -> TokenizerDigest:
    """The digests of an encoder over sentences that it has encoded."""
    units = tuple(_digest(list(one.units)) for one in encoded)
    tokenizer = getattr(encoder, "tokenizer", None)
    if tokenizer is None:
        keys = encoder.unit_keys(sentences)
        return TokenizerDigest(tuple(_digest([str(key) for key in own]) for own in keys), units)
    pieces = tuple(_digest(one.ids) for one in tokenizer.encode_batch([sentence.text for sentence in sentences]))
    settings = json.loads(tokenizer.to_str())
    model = settings.pop("model")
    merges = [one if isinstance(one, str) else " ".join(one) for one in model.pop("merges", None) or ()]
    vocabulary = _digest([model.pop("vocab", None), merges])
    for key in TEXT_NEUTRAL:
        settings.pop(key, None)
    folder = getattr(getattr(encoder, "checkpoint", None), "folder", Path(os.devnull))
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    own = [path for path in found if path.is_file() and TOKENIZER_FILE.search(path.name)]
    files = {path.name: hashlib.blake2b(path.read_bytes(), digest_size=6).hexdigest() for path in own}
    return TokenizerDigest(pieces, units, vocabulary, _digest([settings, model]), version("tokenizers"), files)


def _digest(value: object) -> str:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=6).hexdigest()
