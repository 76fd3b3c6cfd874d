"""The embedded corpus: sentences written for ctxexp around ambiguous words, with sense labels."""

from __future__ import annotations

from importlib.resources import files

from ctxexp.dataset import Corpus, Sense
from ctxexp.datasets.words import tokenizer as make_tokenizer
from ctxexp.errors import DataError

DATA = files("ctxexp.datasets.polysemy")


def polysemy(*, tokenizer: str = "english", lower: bool = False) -> Corpus:
    """Sentences written for ctxexp: ambiguous words in labelled senses, in ten registers.

    Each sentence holds its target word once; `senses` gives its position and label (`bank.river`). See the data card,
    `ctxexp/datasets/polysemy/CARD.md`.
    """
    tokenize = make_tokenizer(tokenizer, lower=lower)
    sentences, senses = [], []
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
    return Corpus("polysemy", tuple(sentences), senses=tuple(senses), choices=_choices(tokenizer, lower))


def glosses() -> dict[str, str]:
    """What each sense label means: label -> gloss."""
    lines = (DATA / "senses.tsv").read_text(encoding="utf-8").splitlines()
    return {label: gloss for label, _pos, gloss in (line.split("\t") for line in lines)}


def _choices(tokenizer: str, lower: bool) -> dict[str, str]:
    return {"tokenizer": tokenizer, "lower": str(lower).lower()}
