"""The text of a pin, and which of its occurrences are kept: spellings that tokenizers treat differently, plain
sentences, and one text that is longer than most windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ctxexp import Encoder, Sentence
from ctxexp.command import registry
from ctxexp.datasets import tokenizer
from ctxexp_compare.alignment import splitmix64
from ctxexp_compare.light.pin import PinRows

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
MORE = 130  # of them beside, for neighbours
LONG = 600  # pieces of the long text, at most; a window of fewer is exceeded by a quarter
LONG_SHARE = 0.16  # for words of the longest text
SEVERAL_SHARE = 0.3  # for words of several pieces


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


def check_sentences(encoder: Encoder) -> list[Sentence]:
    """The text of a check without any other: the pin's, and more plain sentences, so that neighbours can be told."""
    own = own_text(encoder, "english", lower=False)
    plain = registry().find("dataset", "polysemy").factory(tokenizer="english").sentences
    more = [plain[i] for i in np.linspace(0, len(plain) - 1, MORE).astype(int)]
    return list(dict.fromkeys([*own, *more]))


def choose_rows(pieces: Sequence[np.ndarray], n: int) -> PinRows:
    """About n rows, the same for the same text: words of the text with most units, evenly spaced to its last; words of
    several pieces; others by a hash.

    Args:
        pieces: For each sentence the number of pieces of each unit (units,).
        n: The number of rows.
    """
    sentence = np.repeat(np.arange(len(pieces)), [len(own) for own in pieces])
    unit = np.concatenate([np.arange(len(own)) for own in pieces])
    count = np.concatenate([np.asarray(own, np.int64) for own in pieces])
    (inside,) = np.nonzero(sentence == int(np.argmax([len(own) for own in pieces])))
    long = inside[np.unique(np.linspace(0, len(inside) - 1, min(len(inside), round(n * LONG_SHARE))).astype(int))]
    order = np.argsort(splitmix64((sentence << 32 | unit).astype(np.uint64)), kind="stable")
    order = order[~np.isin(order, long)]
    several = order[count[order] > 1][: round(n * SEVERAL_SHARE)]
    single = order[~np.isin(order, several)]
    rows = np.sort(np.concatenate([long, several, single])[:n])
    return PinRows(sentence[rows], unit[rows], count[rows])
