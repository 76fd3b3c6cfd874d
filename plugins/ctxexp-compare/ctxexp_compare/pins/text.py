"""The text of a pin, and which of its occurrences are kept: spellings that tokenizers treat differently, plain
sentences, and one text that is longer than most windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ctxexp import Encoder, Sentence
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
UNSPACED = ("日本語のテキスト and 中文 and 한국어",)  # whose words need a library to be found, and here need none
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
    return [*map(tokenizer("whitespace", lower=lower), UNSPACED), *map(read, (*SPELLINGS, *spaced, long))]


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
