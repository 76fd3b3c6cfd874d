"""Word in Context (Pilehvar and Camacho-Collados, NAACL 2019): does a word have one sense in two sentences?"""

from __future__ import annotations

from pathlib import Path

from ctxexp import Sentence
from ctxexp.datasets import text_lines
from ctxexp.errors import DataError
from ctxexp_measures.senses.corpora.public import PublicArchive
from ctxexp_measures.senses.corpora.usages import USAGE, WORD, Compared, TaggedText, Usages

SOURCE = PublicArchive(
    "wic", "https://pilehvar.github.io/wic/package/WiC_dataset.zip", r"((?:train|dev|test)/.*\.(?:data|gold)\.txt)$",
    "dc2e78028814a0b4ea1132dabe819b9fe0d57b5f6b782d7234b815a0835b15a4",
)  # fmt: skip
PARTS = ("train", "dev", "test")
GOLD = {"T": 1.0, "F": 0.0}


def wic(*, path: str | None = None) -> Usages:
    """Word in Context: 5,428, 638 and 1,400 pairs of sentences that share a word, in one sense (gold 1) or two.

    Sentences are those of the files, tokens parted at single blanks. `path`: the folder that holds train, dev and test;
    null: downloaded once. Licence: CC BY-NC 4.0.

    path: the folder that holds train, dev and test; null: downloaded once
    """
    folder = SOURCE.folder(path)
    read = TaggedText()
    pairs: list[Compared] = []
    for part in PARTS:
        data, gold = (_lines(folder / part / f"{part}.{kind}.txt") for kind in ("data", "gold"))
        if len(data) != len(gold):
            raise DataError(f"{folder / part}: {len(data)} pairs and {len(gold)} answers; expected one each")
        for (place, line), (answer_place, answer) in zip(data, gold, strict=True):
            if answer not in GOLD:
                raise DataError(f"{answer_place}: expected T or F, got {answer[:20]!r}")
            word, tag, *ends = _pair(place, line)
            names = []
            for tokens, at in ends:
                where, usages = read.place(Sentence.of(tokens), at), read.marks[USAGE]
                names.append(usages.setdefault(where, str(len(usages))))
                read.marks[WORD][where], read.marks["pos"][where] = word, tag
            pairs.append(Compared(names[0], names[1], GOLD[answer], part))
    return Usages("wic", read.sentences, choices={"tokens": "blanks"}, tags=read.tags, compared=tuple(pairs))


def _lines(path: Path) -> list[tuple[str, str]]:
    """Each line that isn't empty, after its place."""
    return [(f"{path}:{n}", line) for n, line in text_lines(path) if line.strip()]


def _pair(place: str, line: str) -> tuple[str, str, tuple[list[str], int], tuple[list[str], int]]:
    """Word, part of speech, and either sentence with the number of the word in it."""
    try:
        word, pos, at, *texts = line.split("\t")
        first, second = (text.split(" ") for text in texts)  # a token may hold other white space
        i, j = map(int, at.split("-"))
        if not (0 <= i < len(first) and 0 <= j < len(second) and first[i].strip() and second[j].strip()):
            raise ValueError(f"no word {at}")
    except ValueError as error:
        raise DataError(
            f"{place}: expected word, part of speech, i-j and two sentences, tab-separated ({error}); got {line[:60]!r}"
        ) from None
    return word, pos, _without_empty(first, i), _without_empty(second, j)


def _without_empty(tokens: list[str], at: int) -> tuple[list[str], int]:
    """The tokens, those between two blanks left out, and the number that token `at` has among them."""
    return [token for token in tokens if token.strip()], sum(bool(token.strip()) for token in tokens[:at])
