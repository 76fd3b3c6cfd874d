"""The texts of a check without any other: spellings that tokenizers treat differently, plain sentences, and one that is
longer than most windows."""

from __future__ import annotations

import numpy as np

from ctxexp import Encoder
from ctxexp.command import registry
from ctxexp_compare.checks.encoding import UNSPACED, word_sentences

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
    UNSPACED,
)
PLAIN = 22  # sentences of the embedded corpus, evenly spaced
MORE = 150  # so that neighbours can be told
LONG = 600  # pieces of the long text, at most; a window of fewer is exceeded by a quarter


def own_texts(encoder: Encoder, plain: int = PLAIN) -> list[str]:
    """Spellings, so many plain sentences, and a long text that ends in what no window shows."""
    every = [one.text for one in registry().find("dataset", "polysemy").factory(tokenizer="english").sentences]
    window = encoder.details.get("window")
    most = LONG if not isinstance(window, int) or window <= 0 else min(LONG, window + window // 4)
    sizes = np.cumsum(encoder.lengths(word_sentences(encoder, every)))
    long = " ".join(every[: 1 + int(np.searchsorted(sizes, most))])
    spaced = [every[i] for i in np.linspace(0, len(every) - 1, plain).astype(int)]
    return list(dict.fromkeys([*SPELLINGS, *spaced, long]))
