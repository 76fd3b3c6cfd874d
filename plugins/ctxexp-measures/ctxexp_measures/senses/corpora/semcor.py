"""SemCor and MASC with NOAD senses (Yuan et al., COLING 2016), as Google publishes them: XML, one file a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal
from xml.etree import ElementTree

from annotated_types import Ge

from ctxexp import Corpus, Sense, Sentence
from ctxexp.errors import DataError
from ctxexp_measures.senses.corpora.public import PublicArchive, evenly_spaced

Part = Literal["semcor", "masc"]
BREAKS = ("SENTENCE_BREAK", "PARAGRAPH_BREAK")
SOURCE = PublicArchive(
    "google_wsd",
    "https://github.com/google-research-datasets/word_sense_disambigation_corpora/archive/refs/heads/master.tar.gz",
    r"^[^/]+/((?:semcor|masc)/.*\.xml)$",
    "e09fefd6780cf43ad83dfde569f76a34d86710209e4c8f0894af4f111786ade7",
)


def semcor(*, path: str | None = None, part: Part = "semcor", documents: Annotated[int, Ge(1)] | None = None) -> Corpus:
    """SemCor (352 documents, 820,000 words, 117,000 tagged) or MASC with NOAD senses, lemmas and parts of speech.

    Words are those of the files, a multi-word expression one; a tagged word has the tags `lemma` and `pos` and its
    sense. `documents`: so many evenly spaced ones; null: all. `path`: the folder that holds `semcor` and `masc`; null:
    downloaded once.

    path: the folder that holds semcor and masc; null: downloaded once
    part: semcor, masc
    documents: so many evenly spaced ones; null: all
    """
    folder = SOURCE.folder(path) / part
    files = sorted(folder.rglob("*.xml"), key=lambda p: p.relative_to(folder).as_posix())
    if not files:
        raise DataError(
            f"no XML file in {folder}: dataset.path is the folder that holds {part}, with a file a document"
        )
    sentences, senses, numbers = list[Sentence](), list[Sense](), list[int]()
    lemmas, pos = list[tuple[str, ...]](), list[tuple[str, ...]]()
    for number, i in enumerate(evenly_spaced(len(files), documents)):
        for words in _sentences(files[i]):
            tagged = [_tags(word) for word in words]
            senses += [Sense(len(sentences), k, sense) for k, (*_, sense) in enumerate(tagged) if sense]
            lemmas.append(tuple(lemma for lemma, *_ in tagged))
            pos.append(tuple(tag for _, tag, _ in tagged))
            sentences.append(_text(words))
            numbers.append(number)
    choices = {"part": part, "documents": str(documents)}
    return Corpus(
        part,
        tuple(sentences),
        senses=tuple(senses),
        choices=choices,
        documents=tuple(numbers),
        tags={"lemma": tuple(lemmas), "pos": tuple(pos)},
    )


def _sentences(path: Path) -> Iterator[list[ElementTree.Element]]:
    """The words of each sentence of a file. Raises DataError."""
    try:
        root = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, OSError) as error:
        raise DataError(f"{path}: not readable as XML: {error}") from None
    waiting: list[ElementTree.Element] = []
    for word in root.iter("word"):
        if not _spelled(word):
            continue
        if waiting and word.get("break_level") in BREAKS:
            yield waiting
            waiting = []
        waiting.append(word)
    if waiting:
        yield waiting


def _spelled(word: ElementTree.Element) -> str:
    return (word.get("text") or "").strip()


def _text(words: Sequence[ElementTree.Element]) -> Sentence:
    """The sentence that the words make, with blanks where the file has them."""
    text, spans = "", []
    for word in words:
        text += " " if text and word.get("break_level") != "NO_BREAK" else ""
        spans.append((len(text), len(text) + len(_spelled(word))))
        text += _spelled(word)
    return Sentence(text, tuple(map(_spelled, words)), tuple(spans))


def _tags(word: ElementTree.Element) -> tuple[str, str, str]:
    """Lemma, part of speech and sense of a word; "" where it has no sense."""
    sense, lemma, tag = (word.get(key) or "" for key in ("sense", "lemma", "pos"))
    if not sense or not lemma:
        return "", "", ""
    return lemma if tag else "", tag, f"{lemma}.{sense.rsplit('/', 1)[-1]}"
