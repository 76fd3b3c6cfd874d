"""Data sets as `datasets` streams them, of small files in each format."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ctxexp.command import Experiment, configured

pytest.importorskip("datasets.load", reason="datasets isn't installed: pip install datasets")

from ctxexp_hub.huggingface import huggingface

from ctxexp.errors import ConfigError, DataError

pytestmark = pytest.mark.filterwarnings("ignore")  # the library's own
ROWS = [
    {"text": f"The bank {i} lent. It closed!\nA new line {i % 7}", "id": i // 3, "words": ["a", str(i)]}
    for i in range(40)
]


def parquet(folder: Path, rows: list[dict[str, object]], name: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")


def jsonl(folder: Path, rows: list[dict[str, object]], name: str) -> None:
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def zipped(folder: Path, rows: list[dict[str, object]], name: str) -> None:
    (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in rows).encode()))


def arrow(folder: Path, rows: list[dict[str, object]], name: str) -> None:
    from datasets import Dataset

    Dataset.from_list(rows).save_to_disk(folder / name)


@pytest.mark.parametrize("write", [parquet, jsonl, zipped, arrow])
def test_files_of_each_format_are_read(tmp_path: Path, write: Callable[..., None]) -> None:
    write(tmp_path, ROWS[:25], "a")
    write(tmp_path, ROWS[25:], "b")
    corpus = huggingface(path=str(tmp_path), sentences="marks")
    assert [s.text for s in corpus.sentences[:3]] == ["The bank 0 lent.", "It closed!", "A new line 0"]
    assert corpus.documents == tuple(i for i in range(40) for _ in range(3))
    stream = huggingface(path=str(tmp_path), sentences="marks", stream=True)
    assert len(stream.parts) == 2
    assert stream.corpus().sentences == corpus.sentences


def test_sentences_documents_and_limits(tmp_path: Path) -> None:
    jsonl(tmp_path, ROWS, "a")
    read = partial(huggingface, path=str(tmp_path / "a.jsonl"))
    assert len(read().sentences) == 40
    assert len(read(sentences="line").sentences) == 80
    assert read(documents="id").documents == tuple(i // 3 for i in range(40))
    assert read(documents="none").documents is None
    assert read(column="words").sentences[3].words == ("a", "3")
    assert len(read(limit=7).sentences) == 7


def test_a_bound_is_the_same_however_rows_lie(tmp_path: Path) -> None:
    words = ["dataset=huggingface", "dataset.sentences=marks", "dataset.stream=true"]
    words += ["words.max_contexts=6", "words.max_sentences=10"]
    found = []
    for i, cuts in enumerate(([40], [10, 25, 40])):
        folder = tmp_path / str(i)
        folder.mkdir()
        for a, b in zip([0, *cuts], cuts, strict=False):
            parquet(folder, ROWS[a:b], str(a))
        options = [*words, f"dataset.path={folder}"]
        found.append(Experiment(configured("bert", options=options, min_contexts=2)).corpus)
    assert found[0].content != ""
    assert (found[0].sentences, found[0].documents) == (found[1].sentences, found[1].documents)
    assert found[0].content == found[1].content


def test_what_isn_t_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jsonl(tmp_path, ROWS, "a")
    with pytest.raises(DataError, match="no column 'body'; it has 'text', 'id', 'words'"):
        huggingface(path=str(tmp_path), column="body")
    with pytest.raises(DataError, match="holds 0; expected a text, or a list of words"):
        huggingface(path=str(tmp_path), column="id")
    parquet(tmp_path, ROWS, "b")
    with pytest.raises(DataError, match=r"files of several kinds \(\.jsonl, \.parquet\) in .*: give one"):
        huggingface(path=str(tmp_path))
    with pytest.raises(ConfigError, match=r"needs dataset\.path="):
        huggingface()
    for module in ("huggingface_hub.constants", "datasets.config"):  # which read the variable when they are imported
        monkeypatch.setattr(f"{module}.HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match=r"no data set 'nobody/nothing' .* is here or on the hub"):
        huggingface(path="nobody/nothing")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "a.jsonl").write_text('{"text": " "}\n')
    with pytest.raises(DataError, match="has no sentence: expected"):
        huggingface(path=str(tmp_path / "empty"))


@pytest.mark.parametrize("split", ["train[:5]", "train[:10%]", "train+test", "test"])
def test_a_split_that_cannot_be_honoured_is_refused(tmp_path: Path, split: str) -> None:
    """All 40 rows were measured, whatever part of them was asked for."""
    jsonl(tmp_path, ROWS, "a")
    with pytest.raises(ConfigError, match=r"dataset\.split='t.*(dataset\.limit=5 takes|have no splits, all of them)"):
        huggingface(path=str(tmp_path / "a.jsonl"), split=split)
