"""Corpora of senses and usages: small ones in the publishers' formats, the published ones where they are at hand."""

from __future__ import annotations

import os
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from ctxexp_measures.senses.corpora.dwug import dwug
from ctxexp_measures.senses.corpora.public import PublicArchive, digest_of, evenly_spaced
from ctxexp_measures.senses.corpora.semcor import semcor
from ctxexp_measures.senses.corpora.usages import PERIOD, USAGE, WORD
from ctxexp_measures.senses.corpora.wic import wic
from ctxexp_measures.senses.usages.change import divergence

from ctxexp.command import Experiment, configured
from ctxexp.errors import DataError

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


def test_what_is_no_semcor_is_said(xml: Path) -> None:
    with pytest.raises(DataError, match=r"no such folder: .*none \(dataset.path\); expected the unpacked files"):
        semcor(path=str(xml / "none"))
    with pytest.raises(DataError, match=r"no XML file in .*masc: dataset.path is the folder that holds masc"):
        semcor(path=str(xml), part="masc")
    (xml / "semcor" / "a.xml").write_text("<word", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.xml: not readable as XML"):
        semcor(path=str(xml))


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


def test_what_is_no_wic_is_said(pairs: Path) -> None:
    gold, data = pairs / "dev" / "dev.gold.txt", pairs / "dev" / "dev.data.txt"
    gold.write_text("F\nX\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"dev\.gold\.txt:2: expected T or F, got 'X'"):
        wic(path=str(pairs))
    gold.write_text("F\n", encoding="utf-8")
    with pytest.raises(DataError, match="dev: 2 pairs and 1 answers; expected one each"):
        wic(path=str(pairs))
    for line in ("bank\tN\t1-3\tthe bank closed\ton the bank", "bank\tN\tthe bank closed"):
        data.write_text(line, encoding="utf-8")
        with pytest.raises(DataError, match=r"dev\.data\.txt:1: expected word, part of speech, i-j and two sentences"):
            wic(path=str(pairs))
    data.unlink()
    with pytest.raises(DataError, match=r"no such file: .*dev\.data\.txt; dataset.path is the folder that holds train"):
        wic(path=str(pairs))


HEAD = "lemma\tpos\tdate\tgrouping\tidentifier\tcontext\tindexes_target_token\tindexes_target_sentence\n"
USES = (
    'egg\tNN\t1930\told\to1\tDa kom hun. Et "egg-hvite brast.\t16:19\t12:32\n'
    "egg\tNN\t1990\tnew\tn1\tKnivens egg er hvass.\t8:11\t0:21\n"
    "egg\tNN\t1991\tnew\tn2\tKnivens egg er hvass.\t8:11\t0:21\n"
    "egg\tNN\t1992\tnew\tn3\tTo egg.\t3:6\t0:7\n"
)


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    for name, text in (
        ("data/egg/uses.tsv", HEAD + USES),
        ("clusters/opt/egg.tsv", "identifier\tcluster\no1\t0\nn1\t1\nn2\t1\nn3\t-1\n"),
        ("stats/opt/stats_groupings.tsv", "lemma\tgrouping\tchange_graded\negg\told_new\t0.75\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_graphs_have_usages_periods_clusters_and_change(graphs: Path) -> None:
    corpus = dwug(path=str(graphs))
    assert [s.text for s in corpus.sentences] == ['Et "egg-hvite brast.', "Knivens egg er hvass.", "To egg."]
    assert corpus.sentences[0].words == ("Et", '"', "egg", "-", "hvite", "brast", ".")  # the usage is a word by itself
    assert corpus.tags[USAGE][0] == ("", "", "o1", "", "", "", "")
    assert [[label for label in labels if label] for labels in corpus.tags[PERIOD]] == [["old"], ["new"], ["new"]]
    assert [(s.sentence, s.position, s.label) for s in corpus.senses] == [(0, 2, "egg.0"), (1, 1, "egg.1")]
    assert corpus.change == {"egg": 0.75}
    assert dwug(path=str(graphs), context="whole").sentences[0].text.startswith("Da kom hun.")
    (graphs / "stats" / "opt" / "stats_groupings.tsv").unlink()
    assert dwug(path=str(graphs)).change == {}


def test_graphs_are_found_under_either_spelling(graphs: Path) -> None:
    """DWUG names its files .csv, NorDiaChange .tsv; the change was lost of one."""
    expected = dwug(path=str(graphs))
    for file in graphs.rglob("*.tsv"):
        file.rename(file.with_suffix(".csv"))
    assert dwug(path=str(graphs)) == expected
    assert expected.change == {"egg": 0.75}


def test_what_is_no_graph_is_said(graphs: Path) -> None:
    uses = graphs / "data" / "egg" / "uses.tsv"

    def refused(message: str) -> None:
        with pytest.raises(DataError, match=message):
            dwug(path=str(graphs))

    uses.write_text(HEAD + USES.replace("3:6", "3-6"), encoding="utf-8")
    refused(r"uses\.tsv, line 5: expected characters of the context, as in 12:17, got '3-6'")
    uses.write_text(HEAD + USES.replace("new", "old"), encoding="utf-8")
    refused("usages of the periods old; expected two")
    uses.write_text(HEAD + "egg\tNN\n", encoding="utf-8")
    refused(r"uses\.tsv, line 2: 2 cells, the header has 8")
    uses.write_text(HEAD.replace("grouping\t", "") + USES, encoding="utf-8")
    refused(r"uses\.tsv: no column 'grouping'; it has 'lemma'")
    uses.write_text(HEAD + USES.replace("To egg", "İo egg"), encoding="utf-8")
    with pytest.raises(DataError, match=r"lower-casing changes the text's length; use words.lower=false"):
        dwug(path=str(graphs), lower=True)
    (graphs / "clusters" / "opt" / "egg.tsv").unlink()
    refused(r"no such file: .*egg\.csv or \.tsv; expected a folder in the DWUG format")
    uses.unlink()
    refused(r"no data/<word>/uses.csv or .tsv in")


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_download_is_whole_or_not_there(kind: str, tmp_path: Path) -> None:
    """From an archive of the publisher's shape, on disk in place of the network."""
    (tmp_path / "a.xml").write_text("a", encoding="utf-8")
    archive, inside = tmp_path / f"all.{kind}", {"top/x/a.xml", "top/LICENSE"}
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as made:
            for name in inside:
                made.write(tmp_path / "a.xml", name)
    else:
        with tarfile.open(archive, "w:gz") as packed_:
            for name in inside:
                packed_.add(tmp_path / "a.xml", name)
    digest = digest_of({"x/a.xml": b"a"})
    source = PublicArchive("made", archive.as_uri(), r"^[^/]+/(x/.*\.xml)$", digest)
    folder = source.fetch(tmp_path / "cache")
    assert [p.relative_to(folder).as_posix() for p in folder.rglob("*.xml")] == ["x/a.xml"]
    archive.unlink()
    assert source.fetch(tmp_path / "cache") == folder  # once
    with pytest.raises(DataError, match=r"dataset made is not in .* and could not be downloaded from file:"):
        source.fetch(tmp_path / "other")
    archive.write_bytes(b"no archive")
    with pytest.raises(DataError, match="did not give a readable archive"):
        source.fetch(tmp_path / "other")
    with zipfile.ZipFile(tmp_path / "new.zip", "w") as made:
        made.writestr("top/x/a.xml", "b")
    changed = PublicArchive("made", (tmp_path / "new.zip").as_uri(), source.pattern, digest)
    with pytest.raises(DataError, match=r"they have changed; give the original ones with dataset.path=<folder>"):
        changed.fetch(tmp_path / "other")
    assert not (tmp_path / "other").exists()
    with zipfile.ZipFile(tmp_path / "out.zip", "w") as made:
        made.writestr("top/x/../../../evil.xml", "a")
    outside = PublicArchive("made", (tmp_path / "out.zip").as_uri(), source.pattern, digest)
    with pytest.raises(DataError, match="they have changed"):
        outside.fetch(tmp_path / "other")
    assert not list(tmp_path.rglob("evil.xml"))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published sets, unpacked: all but most of SemCor."""
    root = Path(os.environ.get("CTXEXP_SHARED") or Path(__file__).resolve().parents[4] / "shared")
    packed, folder = root / "data" / "senses", tmp_path_factory.mktemp("senses")
    if not packed.is_dir():
        pytest.skip(f"no {packed}")
    for name in ("wic", "nor_dia_change"):
        with tarfile.open(packed / f"{name}.tar.xz") as archive:
            # The filter came with 3.11.4; Debian 12 has 3.11.2.
            archive.extraction_filter = getattr(tarfile, "data_filter", None) or (lambda member, _: member)
            archive.extractall(folder)
    return folder


def test_tokens_of_wic_are_parted_at_single_blanks(pairs: Path) -> None:
    """A no-break space is inside a token; what is between two blanks is counted, and is no word."""
    (pairs / "dev" / "dev.data.txt").write_text("bank\tN\t2-3\t10\u00a0000 a bank\toff  the bank ", encoding="utf-8")
    (pairs / "dev" / "dev.gold.txt").write_text("F\n", encoding="utf-8")
    corpus = wic(path=str(pairs))
    assert [s.words for s in corpus.sentences[3:]] == [("10\u00a0000", "a", "bank"), ("off", "the", "bank")]
    assert [labels.index("bank") for labels in corpus.tags[WORD][3:]] == [2, 2]


def test_the_published_wic_is_whole(published: Path) -> None:
    corpus = wic(path=str(published))
    found = Counter((pair.subset, pair.gold) for pair in corpus.compared)
    half = {"train": 2714, "dev": 319, "test": 700}
    assert found == {(part, gold): n for part, n in half.items() for gold in (0.0, 1.0)}


@pytest.mark.parametrize("subset", ["subset1", "subset2"])
def test_graded_change_is_what_the_clusters_say(published: Path, subset: str) -> None:
    """The published scores are the Jensen-Shannon distance of the clusters' shares in the two periods; duplicates of a
    usage, which count once here, were in some of them."""
    corpus = dwug(path=str(published), subset=subset)
    assert len(corpus.change) == 40
    counts: dict[str, dict[str, Counter[str]]] = {}
    for sense in corpus.senses:
        word, period = (corpus.tags[kind][sense.sentence][sense.position] for kind in (WORD, PERIOD))
        counts.setdefault(word, {}).setdefault(period, Counter())[sense.label] += 1
    same = 0
    for word, periods in counts.items():
        labels = sorted(set().union(*periods.values()))
        shares = [np.array([of[label] for label in labels]) / of.total() for of in periods.values()]
        same += abs(float(np.sqrt(divergence(*shares))) - corpus.change[word]) < 1e-9
    assert same >= 36
