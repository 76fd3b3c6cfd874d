"""Corpora of senses and usages: small ones in the publishers' formats, the published ones where they are at hand."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from ctxexp_measures.senses.corpora.public import PublicArchive, digest_of, evenly_spaced
from ctxexp_measures.senses.corpora.semcor import semcor
from ctxexp_measures.senses.corpora.usages import USAGE, WORD
from ctxexp_measures.senses.corpora.wic import wic

from ctxexp.command import Experiment, configured
from ctxexp.errors import DataError
from tests.published import published_data

XML = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE SimpleWsdDoc SYSTEM "simple-wsd-doc.dtd">
<SimpleWsdDoc name="{name}">
  <word text="She" break_level="NO_BREAK"/>
  <word text="&#39;d" break_level="NO_BREAK"/>
  <word text="ice cream" lemma="ice_cream" pos="NOUN" sense="/x/m_1.002" break_level="SPACE_BREAK"/>
  <word text="." break_level="NO_BREAK"/>
  <word text="Banks" lemma="bank" pos="NOUN" sense="/x/m_2.001" break_level="SENTENCE_BREAK"/>
  <word text="close" lemma="close" pos="VERB" break_level="LINE_BREAK"/>
  <word text="" break_level="SPACE_BREAK"/>
  <word text="{name}" break_level="PARAGRAPH_BREAK"/>
</SimpleWsdDoc>
"""


@pytest.fixture
def xml(tmp_path: Path) -> Path:
    for name in ("b", "a", "c"):
        (tmp_path / "semcor").mkdir(exist_ok=True)
        (tmp_path / "semcor" / f"{name}.xml").write_text(XML.format(name=name), encoding="utf-8")
    return tmp_path


def test_semcor_has_sentences_senses_lemmas_and_documents(xml: Path) -> None:
    corpus = semcor(path=str(xml))
    _ = Experiment(configured("bert", corpus)).corpus  # it is checked there
    assert [s.text for s in corpus.sentences] == [
        text for name in "abc" for text in ("She'd ice cream.", "Banks close", name)
    ]
    assert corpus.sentences[0].words == ("She", "'d", "ice cream", ".")
    assert [(s.sentence, s.position, s.label) for s in corpus.senses][:3] == [
        (0, 2, "ice_cream.m_1.002"), (1, 0, "bank.m_2.001"), (3, 2, "ice_cream.m_1.002"),
    ]  # fmt: skip
    assert corpus.tags["lemma"][:2] == (("", "", "ice_cream", ""), ("bank", ""))  # what has no sense has no tags
    assert corpus.tags["pos"][1] == ("NOUN", "")
    assert corpus.documents == (0, 0, 0, 1, 1, 1, 2, 2, 2)
    few = semcor(path=str(xml), documents=2)
    assert [few.sentences[i].text for i in (2, 5)] == ["a", "b"]
    assert few.choices == {"part": "semcor", "documents": "2"}
    assert evenly_spaced(10, 4) == [0, 2, 5, 7]
    assert evenly_spaced(3, 9) == [0, 1, 2]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    lines = ["bank\tN\t1-2\tthe bank closed\ton the bank", "run\tV\t0-0\tRun !\tRun !"]
    for part in ("train", "dev", "test"):
        (tmp_path / part).mkdir()
        (tmp_path / part / f"{part}.data.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (tmp_path / part / f"{part}.gold.txt").write_text("F\nT\n", encoding="utf-8")
    return tmp_path


def test_wic_has_pairs_of_usages(pairs: Path) -> None:
    corpus = wic(path=str(pairs))
    assert [s.text for s in corpus.sentences] == ["the bank closed", "on the bank", "Run !"]
    assert corpus.tags[USAGE] == (("", "0", ""), ("", "", "1"), ("2", ""))
    assert corpus.tags[WORD][2] == ("run", "")
    assert [(c.first, c.second, c.gold, c.subset) for c in corpus.compared[:3]] == [
        ("0", "1", 0.0, "train"), ("2", "2", 1.0, "train"), ("0", "1", 0.0, "dev"),
    ]  # fmt: skip
    assert Experiment(configured("bert", corpus)).corpus.compared == corpus.compared


def archive(file: Path, inside: dict[str, bytes]) -> str:
    """The address of an archive of these files."""
    if file.suffix == ".zip":
        with zipfile.ZipFile(file, "w") as made:
            for name, content in inside.items():
                made.writestr(name, content)
    else:
        with tarfile.open(file, "w:gz") as packed:
            for name, content in inside.items():
                about = tarfile.TarInfo(name)
                about.size = len(content)
                packed.addfile(about, io.BytesIO(content))
    return file.as_uri()


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_download_is_whole_or_not_there(kind: str, tmp_path: Path) -> None:
    """From an archive of the publisher's shape, on disk in place of the network."""
    digest, pattern = digest_of({"x/a.xml": b"a"}), r"^[^/]+/(x/.*\.xml)$"
    address = archive(tmp_path / f"all.{kind}", {"top/x/a.xml": b"a", "top/LICENSE": b"b"})
    source = PublicArchive("made", address, pattern, digest)
    folder = source.fetch(tmp_path / "cache")
    assert [p.relative_to(folder).as_posix() for p in folder.rglob("*.*")] == ["x/a.xml"]
    (tmp_path / f"all.{kind}").unlink()
    assert source.fetch(tmp_path / "cache") == folder  # once
    for name, inside in {"changed": {"top/x/a.xml": b"b"}, "outside": {"top/x/../../../evil.xml": b"a"}}.items():
        other = PublicArchive("made", archive(tmp_path / f"{name}.{kind}", inside), pattern, digest)
        with pytest.raises(DataError, match=r"they have changed; give the original ones with dataset.path=<folder>"):
            other.fetch(tmp_path / "other")
        assert not (tmp_path / "other").exists()
    assert not list(tmp_path.rglob("evil.xml"))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published sets, unpacked: all but most of SemCor."""
    packed, folder = published_data("data", "senses"), tmp_path_factory.mktemp("senses")
    with tarfile.open(packed / "wic.tar.xz") as archive:
        # The filter came with 3.11.4; Debian 12 has 3.11.2.
        archive.extraction_filter = getattr(tarfile, "data_filter", None) or (lambda member, _: member)
        archive.extractall(folder)
    return folder


def test_the_published_wic_is_whole(published: Path) -> None:
    corpus = wic(path=str(published))
    found = Counter((pair.subset, pair.gold) for pair in corpus.compared)
    half = {"train": 2714, "dev": 319, "test": 700}
    assert found == {(part, gold): n for part, n in half.items() for gold in (0.0, 1.0)}
