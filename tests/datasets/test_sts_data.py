"""Data sets of gold pairs: the seven of sentence similarity at once, QNLI; BERT-flow's published figures."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from ctxexp.dataset import Corpus
from ctxexp.datasets.qnli import qnli
from ctxexp.datasets.sts import sts
from ctxexp.errors import ConfigError, DataError, UnknownName
from ctxexp.papers.li_2020 import published as li_2020


def test_the_seven_sets_are_tasks_with_the_published_pair_counts(shared: Path) -> None:
    folder = str(shared / "data" / "sts")
    corpus = sts(path=folder, tokenizer="whitespace")
    counts = Counter(p.subset.split("/")[0] for p in corpus.pairs)
    years = {"STS12": 3108, "STS13": 1500, "STS14": 3750, "STS15": 3000, "STS16": 1186}
    assert counts == {**years, "STS-B": 1379, "SICK-R": 4927}
    assert {p.subset for p in corpus.pairs if p.subset.startswith("STS13")} == {
        f"STS13/{s}" for s in ("FNWN", "OnWN", "headlines")
    }
    assert len(sts(path=folder, tasks=["SICK-R"], sick_split="all", tokenizer="whitespace").pairs) == 9927
    assert len(sts(path=folder, tasks=["STS-B"], stsb_split="dev").pairs) == 1500
    assert len(sts(path=folder, tasks=["STS14/images", "STS12/MSRpar"]).pairs) == 1500
    train = sts(path=folder, split="train", sick_split="all", tokenizer="whitespace")
    counts = Counter(p.subset.split("/")[0] for p in train.pairs)
    assert counts == {"STS12-train": 2234, "STS-B": 5749, "SICK-R": 4500}
    assert {p.subset for p in sts(path=folder, split="train", tasks=["STS12/MSRvid"]).pairs} == {"STS12-train/MSRvid"}


def test_unknown_tasks_and_sub_sets_are_refused_with_their_neighbours(shared: Path) -> None:
    folder = str(shared / "data" / "sts")
    with pytest.raises(UnknownName, match=r"no STS task 'STSB'; did you mean 'STS-B'.*\?"):
        sts(path=folder, tasks=["STSB"])
    with pytest.raises(UnknownName, match=r"no STS sub-set 'STS14/image'; did you mean 'STS14/images'"):
        sts(path=folder, tasks=["STS14/image", "STS-B"])
    with pytest.raises(ConfigError, match=r"dataset\.tasks=\[\]: expected some of STS12, .*leave it null for all"):
        sts(path=folder, tasks=[])
    with pytest.raises(ConfigError, match="only STS12, STS-B and SICK-R have training pairs"):
        sts(path=folder, tasks=["STS13"], split="train")
    with pytest.raises(ConfigError, match=r"dataset\.split='trial': expected one of test, train, all"):
        sts(path=folder, split="trial")  # type: ignore[arg-type]


GLUE = (
    "index\tquestion\tsentence\tlabel\n"
    '0\tWho wrote "Emma?\tJane Austen wrote it in 1815.\tentailment\n'
    "1\tWhere is it?\tNobody knows.\tnot_entailment\r\n"
    "2\tWhere is it?\tIn Bath .\tentailment\n"
)


def test_qnli_reads_glues_file(tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text(GLUE, encoding="utf-8", newline="")
    corpus = qnli(path=str(tmp_path))
    assert [p.gold for p in corpus.pairs] == [1, 0, 1]
    assert {p.subset for p in corpus.pairs} == {"QNLI"}
    assert [s.text for s in corpus.sentences[:2]] == ['Who wrote "Emma?', "Jane Austen wrote it in 1815."]
    assert len(qnli(path=str(tmp_path / "dev.tsv"), limit=2).pairs) == 2
    (tmp_path / "packed.tsv.gz").write_bytes(gzip.compress(GLUE.encode()))
    assert qnli(path=str(tmp_path / "packed.tsv.gz")).fingerprint == corpus.fingerprint
    assert isinstance(corpus, Corpus)


def test_qnli_errors_say_file_and_line(tmp_path: Path) -> None:
    def file(text: str | bytes) -> str:
        path = tmp_path / "x.tsv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    with pytest.raises(ConfigError, match=r"add dataset\.path=<folder or file of QNLI's dev\.tsv>"):
        qnli()
    with pytest.raises(ConfigError, match=r"dataset\.limit=0: expected a positive number of pairs"):
        qnli(path=file(GLUE), limit=0)
    with pytest.raises(DataError, match=r"no such file or folder: .*nowhere"):
        qnli(path=str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"no dev\.tsv or dev\.tsv\.gz in"):
        qnli(path=str(tmp_path))
    with pytest.raises(
        DataError, match=r"x\.tsv, line 1: columns 'index, question, sentence'.*test\.tsv has no labels"
    ):
        qnli(path=file("index\tquestion\tsentence\n0\tA\tB\n"))
    with pytest.raises(DataError, match=r"x\.tsv, line 1: columns 'a, b'; expected 'index, question, sentence, label'"):
        qnli(path=file("a\tb\n"))
    with pytest.raises(DataError, match=r"x\.tsv, line 3: 2 tab-separated fields; expected 4"):
        qnli(path=file(GLUE.splitlines()[0] + "\n0\tA\tB\tentailment\n1\tA\n"))
    with pytest.raises(DataError, match=r"x\.tsv, line 2: label '-'; expected entailment or not_entailment"):
        qnli(path=file("index\tquestion\tsentence\tlabel\n0\tA\tB\t-\n"))
    with pytest.raises(DataError, match=r"x\.tsv, line 2: not UTF-8"):
        qnli(path=file(b"index\tquestion\tsentence\tlabel\n\xff\n"))
    with pytest.raises(DataError, match=r"x\.tsv has no pair"):
        qnli(path=file("index\tquestion\tsentence\tlabel\n"))
    (tmp_path / "y.gz").write_text("no gzip")
    with pytest.raises(DataError, match=r"y\.gz can't be read to its end: Not a gzipped file"):
        qnli(path=str(tmp_path / "y.gz"))


# Published figures.


def test_bert_flows_table_has_its_rows_and_its_gains() -> None:
    rows = li_2020.table()
    assert [row.aggregation for row in rows] == ["all"] * 3 + ["wmean"] * 8
    assert all(tuple(row.scores) == li_2020.TASKS for row in rows)
    for model, gain in (("base", 5.88), ("large", 8.16)):  # over last2avg, averaged over the seven tasks
        flow, last2 = (li_2020.find(f"BERT-{model}{kind}") for kind in ("-flow (target)", "-last2avg"))
        assert flow.mean - last2.mean == pytest.approx(gain, abs=0.01)
    odd = li_2020.find("Avg. BERT embeddings")
    assert odd.scores["STS13"] == odd.scores["STS14"] == 57.98
    assert "doubtful" in odd.note
    with pytest.raises(UnknownName, match=r"no row of BERT-flow's Table 2 'BERT-bas'; did you mean 'BERT-base'"):
        li_2020.find("BERT-bas")
