"""SemCor and MASC with NOAD senses (Yuan et al., COLING 2016), as Google publishes them: XML, one file a document."""

from __future__ import annotations

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
    """
    folder = SOURCE.folder(path) / part
    files = sorted(folder.rglob("*.xml"), key=lambda p: p.relative_to(folder).as_posix())
    if not files:
        raise DataError(
            f"no XML file in {folder}: dataset.path is the folder that holds {part}, with a file a document"
        )
    read = _Read()
    for number, i in enumerate(evenly_spaced(len(files), documents)):
        read.document(number, files[i])
    choices = {"part": part, "documents": str(documents)}
    return Corpus(
        part,
        tuple(read.sentences),
        senses=tuple(read.senses),
        choices=choices,
        documents=tuple(read.documents),
        tags={"lemma": tuple(read.lemmas), "pos": tuple(read.pos)},
    )


class _Read:
    """Reader of XML files, which collects sentences, senses, lemmas and parts of speech."""

    def __init__(self) -> None:
        self.sentences: list[Sentence] = []
        self.senses: list[Sense] = []
        self.documents: list[int] = []
        self.lemmas: list[tuple[str, ...]] = []
        self.pos: list[tuple[str, ...]] = []

    def document(self, number: int, path: Path) -> None:
        """Take the sentences of one file."""
        try:
            if path.exists() and not path.is_file():
                raise OSError("it is no file")
            root = ElementTree.parse(path).getroot()
        except (ElementTree.ParseError, OSError) as error:
            raise DataError(f"{path}: not readable as XML: {error}") from None
        waiting: list[ElementTree.Element] = []
        for word in root.iter("word"):
            if not (word.get("text") or "").strip():
                continue
            if waiting and word.get("break_level") in BREAKS:
                self._sentence(number, waiting)
                waiting = []
            waiting.append(word)
        if waiting:
            self._sentence(number, waiting)

    def _sentence(self, document: int, words: list[ElementTree.Element]) -> None:
        text, spans, words_read = "", [], []
        lemmas, pos = [], []
        for word in words:
            of = word.attrib
            spelled = (of.get("text") or "").strip()
            text += " " if text and of.get("break_level") != "NO_BREAK" else ""
            spans.append((len(text), len(text) + len(spelled)))
            text += spelled
            words_read.append(spelled)
            sense, lemma = of.get("sense"), of.get("lemma")
            tag = of.get("pos") if sense and lemma else None
            lemmas.append(lemma if tag and lemma else "")
            pos.append(tag or "")
            if sense and lemma:
                self.senses.append(
                    Sense(len(self.sentences), len(words_read) - 1, f"{lemma}.{sense.rsplit('/', 1)[-1]}")
                )
        self.sentences.append(Sentence(text, tuple(words_read), tuple(spans)))
        self.documents.append(document)
        self.lemmas.append(tuple(lemmas))
        self.pos.append(tuple(pos))
