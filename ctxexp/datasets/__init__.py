"""The built-in data sets, where they are; each file builds one kind of `Corpus`. The embedded one is here: sentences
written for ctxexp around ambiguous words, with sense labels.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from ctxexp.dataset import Corpus, Sense, TextStream
from ctxexp.datasets import words
from ctxexp.datasets.downloads import archive_members, fetch
from ctxexp.datasets.reading import text_lines
from ctxexp.datasets.tables import read_table
from ctxexp.datasets.text import TextUnits
from ctxexp.datasets.words import tokenizer
from ctxexp.errors import DataError
from ctxexp.files import user_path

__all__ = [
    "TextStream",
    "TextUnits",
    "archive_members",
    "fetch",
    "read_table",
    "text_lines",
    "tokenizer",
    "user_path",
]

DATA = files("ctxexp.datasets") / "polysemy"


@cache  # read-only; to read it takes a fortieth of the time to measure it
def polysemy(*, tokenizer: str = "english", lower: bool = False) -> Corpus:
    """Sentences written for ctxexp: ambiguous words in labelled senses, in ten registers.

    Each sentence holds its target word once; `senses` gives its position and label (`bank.river`), the tags `pos` its
    part of speech (noun, verb, adj). See the data card, `ctxexp/datasets/polysemy/CARD.md`.
    """
    tokenize = words.tokenizer(tokenizer, lower=lower)
    sentences, senses, parts = [], [], []
    lines = (DATA / "senses.tsv").read_text(encoding="utf-8").splitlines()  # label, part of speech, gloss
    pos_by_label = dict(line.split("\t")[:2] for line in lines)
    for number, line in enumerate((DATA / "sentences.tsv").read_text(encoding="utf-8").splitlines()):
        word, label, _register, text = line.split("\t")
        sentence = tokenize(text)
        try:
            position = sentence.words.index(word)
        except ValueError:
            raise DataError(
                f"polysemy line {number + 1}: the tokenizer {tokenizer!r} doesn't keep {word!r} as a word of "
                f"{text!r}; use tokenizer english or unicode"
            ) from None
        sentences.append(sentence)
        senses.append(Sense(number, position, label))
        parts.append(tuple(pos_by_label[label] if i == position else "" for i in range(len(sentence.words))))
    choices = {"tokenizer": tokenizer, "lower": str(lower).lower()}
    return Corpus("polysemy", tuple(sentences), senses=tuple(senses), choices=choices, tags={"pos": tuple(parts)})
