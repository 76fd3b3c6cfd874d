"""Texts and tables are read as Python's own modules read them, or refused: drawn files, and each kind's own example."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from ctxexp import CtxexpError
from ctxexp.command import Experiment, configured
from ctxexp.errors import ConfigError, DataError
from tests.shipped import text

ODD = [
    *("", " ", ",", '"', "'", '""', ";", "\t", "\n", "\r\n", "\r", "#", "\\", "\ufeff", "\x85", "\u2028", "\x0c"),
    *(
        "NA",
        "None",
        "null",
        "nan",
        "N/A",
        "007",
        "1e5",
        "3.50",
        "-",
        "TRUE",
        "The bank",
        "é",
        "语",
        "🙂",
        "می\u200cخواهم",
    ),
]
PACK = {
    "": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}  # fmt: skip
PYTHONS = {
    ".csv": lambda content: [row.get("text") for row in csv.DictReader(io.StringIO(content, newline=""))],
    ".tsv": lambda content: [
        row.get("text") for row in csv.DictReader(io.StringIO(content, newline=""), delimiter="\t")
    ],
    ".jsonl": lambda content: [json.loads(line).get("text") for line in content.split("\n") if line.strip()],
    ".json": lambda content: [row.get("text") for row in json.loads(content)],
    ".txt": lambda content: [line.strip() for line in io.StringIO(content, newline=None)],
}


def cell(rng: random.Random) -> str:
    return "".join(rng.choice(ODD) for _ in range(rng.randint(0, 4)))


def drawn(rng: random.Random, kind: str) -> str:
    """The content of a file: most as a library writes it, some with a cell as it is."""
    if kind == ".txt":
        return "".join(cell(rng) + rng.choice(["\n", "\r\n", "\r", "\x85", "\u2028"]) for _ in range(rng.randint(1, 8)))
    names = rng.sample(["text", "label", "id", "sentence"], rng.randint(2, 4))
    names += [] if "text" in names else ["text"]
    rows = [[cell(rng) for _ in names] for _ in range(rng.randint(1, 8))]
    if kind in (".json", ".jsonl"):
        ascii_ = rng.random() < 0.5
        values = [dict(zip(names, row, strict=True)) for row in rows]
        if rng.random() < 0.3:
            rng.choice(values)["text"] = rng.choice([None, 3, 2.5, ["a", "b c"], {"a": 1}])
        texts = [json.dumps(row, ensure_ascii=ascii_) for row in values]
        return "[" + ",\n".join(texts) + "]" if kind == ".json" else "\n".join(texts)
    file, delimiter = io.StringIO(newline=""), "\t" if kind == ".tsv" else ","
    ends = rng.choice(["\n", "\r\n", "\r"])
    if rng.random() < 0.25:
        return ends.join(delimiter.join(row) for row in [names, *rows])
    writer = csv.writer(file, delimiter=delimiter, lineterminator=ends, quoting=rng.choice([0, 0, 1]))
    writer.writerows([names, *([*row, ""] if rng.random() < 0.1 else row for row in rows)])
    return file.getvalue()


def read(path: Path, origin: str = "", **choices: Any) -> list[str]:
    corpus = text(path=str(path), tokenizer="whitespace", **choices)
    assert origin in corpus.origin
    return [sentence.text for sentence in corpus.sentences]


@pytest.mark.parametrize("kind", PYTHONS)
def test_drawn_files_are_read_as_python_reads_them_or_refused(kind: str, tmp_path: Path) -> None:
    rng, n_read, refusals = random.Random(kind), 0, []
    for i in range(200 if kind == ".txt" else 50):
        content = drawn(rng, kind)
        coding = rng.choice(["utf-8"] * 6 + ["utf-8-sig"] * 2 + ["utf-16", "utf-16-le", "latin-1"])
        packed = rng.choice(list(PACK))
        file = tmp_path / f"{i}{kind}{packed}"
        file.write_bytes(PACK[packed](content.encode(coding, "replace")))
        try:
            found = read(file, quotes=rng.choice([None, "csv"]) if kind in (".csv", ".tsv") else None)
        except DataError as error:
            refusals.append(str(error))
            continue
        n_read += 1
        expected = PYTHONS[kind](content.encode(coding, "replace").decode("utf-8-sig"))
        assert all(one is None or isinstance(one, str) for one in expected), content
        assert found == [one for one in expected if one and one.strip()], (content, coding)
    assert n_read >= (100 if kind == ".txt" else 15)
    assert all(str(tmp_path) in one or "has no sentence" in one for one in refusals)  # the file is named


@pytest.mark.parametrize("suffix", [".csv", ".ndjson", ".parquet", ".arrow", ".feather"])
def test_each_kind_of_table_gives_the_same_texts(suffix: str, tmp_path: Path) -> None:
    rows = {
        "id": [10, 11, 12, 13, 14],
        "text": ["The bank .", "NA", "", "007", "A dog, a cat"],
        "n": [1.5, None, 2, 3, 4],
    }
    table, file = pd.DataFrame(rows), tmp_path / f"rows{suffix}"
    write = {
        ".csv": lambda: table.to_csv(file, index=False), ".parquet": lambda: table.to_parquet(file),
        ".ndjson": lambda: table.to_json(file, orient="records", lines=True), ".arrow": lambda: None,
        ".feather": lambda: pyarrow.feather.write_feather(table, file, compression="uncompressed"),
    }  # fmt: skip
    with pa.ipc.new_stream(str(tmp_path / "rows.arrow"), pa.Table.from_pandas(table).schema) as stream:
        stream.write(pa.Table.from_pandas(table))
    write[suffix]()
    assert read(file, "column 'text', 5 rows, 1 without text left out") == ["The bank .", "NA", "007", "A dog, a cat"]
    with pytest.raises(DataError, match="no column 'body'; it has 'id', 'text', 'n'"):
        read(file, column="body")
    if suffix != ".csv":
        with pytest.raises(DataError, match="holds 10; expected a text, or a list of words"):
            read(file, column="id")


def test_what_a_table_holds_otherwise_is_refused_with_the_way_out(tmp_path: Path) -> None:
    def refused(name: str, content: str, message: str, **choices: Any) -> None:
        (tmp_path / name).write_text(content, encoding="utf-8")
        with pytest.raises(CtxexpError, match=message):
            read(tmp_path / name, **choices)

    refused("a.csv", "id;text\n1;A dog\n", "no column 'text' or 'sentence'; it has 'id;text'.* not by ';'")
    refused("a.csv", "text,text\na,b\n", "no column 'text' or 'sentence' once; it has 'text', 'text'")
    refused(
        "a.csv",
        "text,label\nA dog, a cat,1\n",
        "line 2: 3 cells, the header has 2; quotation marks enclose a cell that holds ','",
    )
    refused("a.csv", "text,label\nA dog\n", "line 2: 1 cells")
    refused("a.csv", 'text,label\n"A dog,1\n"A cat",2\n', "line 3: .*a quotation mark begins a cell.*quotes=text")
    refused("a.tsv", 'text\tlabel\n"A dog" said\t1\n', r"line 2: a cell begins with a quotation mark.*quotes=csv or")
    assert read(tmp_path / "a.tsv", quotes="text") == ['"A dog" said']
    refused("b.jsonl", '{"text": "a"}\n{"text": \n', r"b\.jsonl, line 2: .*expected an object a line")
    refused("b.jsonl", '{"text": "a"}\n["b"]\n', r"b\.jsonl, line 2: expected an object, got \['b'\]")
    refused("c.jsonl", '{"text": ["A dog .", "A cat ."]}', "a list is the words of one sentence; .* a row of its own")
    refused("a.csv", "text,text,sentence\na,b,c\n", "no column 'text' or 'sentence' once")
    refused("d.txt", "a b\n", "has no columns", column="text")
    refused("e.csv", "text\na b\n", "documents='blank': no such choice", documents="blank")
    refused("f.parquet", "PAR1", r"f\.parquet can't be read")
    kinds = {
        "a.conllu": "dataset=tagged",
        "a.xml": "semcor",
        "a.py": r"plugins=\[",
        "a.en": r"a sentence a line \.txt",
        "a.zip": "unpack",
    }
    kinds |= {"model.safetensors": "model=", "v.vec": "model=word_vectors", "x.npz": "model=vectors"}
    for name, hint in kinds.items():
        refused(name, "a b\n", hint + ".*Expected a text")


def test_lists_are_words_and_columns_may_be_documents(tmp_path: Path) -> None:
    rows = [{"tokens": ["A", "dog"], "d": 1}, {"tokens": [], "d": 1}, {"tokens": ["It", "ran", "."], "d": 2}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    corpus = text(path=str(tmp_path / "a.jsonl"), column="tokens", documents="d")
    assert ([s.words for s in corpus.sentences], corpus.documents) == ([("A", "dog"), ("It", "ran", ".")], (0, 1))
    (tmp_path / "b.csv").write_text('text\n"One. Two!\nThree"\n')
    assert read(tmp_path / "b.csv") == ["One. Two!\nThree"]
    assert read(tmp_path / "b.csv", sentences="line") == ["One. Two!", "Three"]
    assert read(tmp_path / "b.csv", sentences="marks") == ["One.", "Two!", "Three"]


def test_a_folder_is_read_by_kind_and_says_what_it_leaves(tmp_path: Path) -> None:
    for name in ("b.csv", "sub/a.csv.gz", "README.md", "settings.json", ".csv"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        data = f"text\n{name}\n".encode()
        file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    origin = "2 files, 3 are not read: .csv, README.md, settings.json, column 'text', 2 rows"
    assert read(tmp_path, origin) == ["b.csv", "sub/a.csv.gz"]
    (tmp_path / "c.txt").write_text("a")
    with pytest.raises(DataError, match=r"files of several kinds \(\.csv, \.txt\)"):
        read(tmp_path)


def test_a_saved_folder_is_what_its_manifest_says(tmp_path: Path) -> None:
    def save(folder: Path, shards: dict[str, list[str]], named: list[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in shards.items():
            table = pa.table({"text": rows})
            with pa.ipc.new_stream(str(folder / name), table.schema) as stream:
                stream.write(table)
        (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in named]}))

    names = [f"data-0000{i}-of-00002.arrow" for i in range(2)]
    one = "data-00000-of-00001.arrow"
    shards = {names[0]: ["a b"], names[1]: ["c d"], one: ["x y"], "cache-0.arrow": ["no"], ".data.arrow": ["no"]}
    save(tmp_path / "one", shards, [one])
    assert read(tmp_path / "one") == ["x y"]
    save(tmp_path / "one", {}, ["gone.arrow"])
    with pytest.raises(DataError, match=r"no file gone\.arrow, which its state\.json names"):
        read(tmp_path / "one")
    (tmp_path / "one" / "state.json").unlink()
    with pytest.raises(DataError, match=r"several sets \(data-\*-of-00001, data-\*-of-00002\)"):
        read(tmp_path / "one")
    (tmp_path / "one" / one).unlink()
    assert read(tmp_path / "one") == ["a b", "c d"]
    (tmp_path / "one" / names[0]).unlink()
    with pytest.raises(DataError, match=r"1 files of the set data-\*-of-00002"):
        read(tmp_path / "one")
    for split in ("train", "test"):
        save(tmp_path / "two" / split, {one: [f"{split} ."]}, [one])
    (tmp_path / "two" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(DataError, match=f"splits train, test: give one, as in {tmp_path / 'two' / 'train'}"):
        read(tmp_path / "two")
    assert read(tmp_path / "two" / "test") == ["test ."]


def texts_of(table: Any, **choices: Any) -> list[str]:
    corpus = Experiment(configured("bert", table, "words.deduplicate=false", **choices)).corpus
    return [sentence.text for sentence in corpus.sentences]


def test_tables_in_memory_are_read_as_files_are(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    texts = ["The bank .", "NA", "", None, "A dog ."]
    frame = pd.DataFrame({"text": texts, "label": range(5)}, index=list("abcde"))
    series = pd.DataFrame({"text": pd.Series(texts, dtype="string")})

    def found(table: Any, column: str | None = None) -> list[str]:
        return texts_of(table, column=column)

    columns = {"text": texts, "label": [1] * 5}
    rows = [{"id": 0}, *({"sentence": one} for one in texts[:-2]), {"sentence": texts[-1]}]
    arrow = pa.table({"text": texts})
    tables = [frame, series, columns, rows, (row for row in rows), iter(frame.to_dict("records")), arrow]
    for table in [*tables, *arrow.to_batches()]:
        caplog.clear()
        assert found(table) == ["The bank .", "NA", "A dog ."]
        (message,) = caplog.messages
        assert re.fullmatch(r"sentences: column '\w+', 5 rows, 2 without text left out; the first: The bank .", message)
    for column in (frame["text"], series["text"], texts, np.array(texts, object), arrow["text"], pa.array(texts)):
        assert found(column) == ["The bank .", "NA", "A dog ."]
    assert found(frame.rename(columns={"text": "body"}), "body") == ["The bank .", "NA", "A dog ."]
    assert found({"text": [["A", "dog"], ["It"]]}) == ["A dog", "It"]
    assert found(pd.DataFrame({0: ["a"], 1: ["A dog ."]}), "1") == ["A dog ."]
    for table, message in (
        (frame.rename(columns={"text": "body"}), "text: no column 'text' or 'sentence'; it has 'body', 'label'"),
        ({"text": "A dog ."}, "text: column 'text' holds 'A dog .'; expected a list of texts"),
        ({"text": [1, 2]}, "text: row 0 holds 1; expected a text"),
        ([["A dog .", "A cat ."]], "a list is the words of one sentence"),
    ):
        with pytest.raises(DataError, match=message):
            found(table)
    with pytest.raises(ConfigError, match="column='text' is of a table"):
        found(["a b"], "text")
