"""The data sets: what their files say, the SemEval files' quirks, and a sentence for each mistake."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.server
import io
import socketserver
import tarfile
import threading
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxexp import datasets
from ctxexp.datasets import downloads, user_path
from ctxexp.errors import ConfigError, DataError
from tests.shipped import polysemy, sick_r, sts, text


def test_polysemy_has_what_its_card_says() -> None:
    corpus = polysemy()
    by_sense = Counter(s.label for s in corpus.senses)
    words = defaultdict(set)
    for label in by_sense:
        words[label.split(".")[0]].add(label)
    assert len(corpus.sentences) >= 1200
    assert len({s.text for s in corpus.sentences}) == len(corpus.sentences)
    assert len(words) >= 80
    assert min(len(senses) for senses in words.values()) >= 2
    assert min(by_sense.values()) >= 6
    file = Path(datasets.__file__).parent / "polysemy" / "senses.tsv"
    senses = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
    assert {label for label, _, _ in senses} == set(by_sense)
    parts = Counter(pos for _, pos, _ in senses)
    assert min(parts["noun"], parts["verb"], parts["adj"]) >= 20


def test_text_reads_files_folders_and_gz(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("Second file.\n", encoding="utf-8")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress("\ufeffOne é.\n\n  Two.\r\n".encode()))
    (tmp_path / "notes.md").write_text("not read")
    corpus = text(path=str(tmp_path))
    assert [s.text for s in corpus.sentences] == ["One é.", "Two.", "Second file."]
    assert len(text(path=str(tmp_path), limit=2).sentences) == 2
    assert corpus.documents is None


@pytest.mark.parametrize(("coding", "packed"), [("utf-16", True), ("utf-16-le", False), ("utf-16-be", False)])
def test_text_in_utf_16_is_refused(tmp_path: Path, coding: str, packed: bool) -> None:
    """Without a mark it is UTF-8 full of NUL, and each letter would be a word."""
    data = "The bank.\nA river.\n".encode(coding)
    file = tmp_path / ("t.txt.gz" if packed else "t.txt")
    file.write_bytes(gzip.compress(data) if packed else data)
    kind = {"utf-16": "UTF-16", "utf-16-be": "UTF-16BE"}.get(coding, "UTF-16LE")
    with pytest.raises(DataError, match=rf"line 1: this looks like UTF-16, .* with iconv -f {kind} -t UTF-8 t\.txt"):
        text(path=str(file))


def test_text_errors_name_file_and_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"fine\n\xff\xfe\n")
    with pytest.raises(DataError, match=r"bad\.txt, line 2: not UTF-8"):
        text(path=str(bad))
    with pytest.raises(ConfigError, match=r"dataset\.path="):
        text()
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no text file in .*\*\.txt"):
        text(path=str(tmp_path / "empty"))
    (tmp_path / "fake.txt.gz").write_text("no gzip")
    assert text(path=str(tmp_path / "fake.txt.gz")).sentences[0].text == "no gzip"  # a browser has unpacked it
    (tmp_path / "blank.txt").write_text("\n\n")
    with pytest.raises(DataError, match="has no sentence"):
        text(path=str(tmp_path / "blank.txt"))


def _sts_folder(root: Path, inputs: str, gold: str, name: str = "STS2013-test") -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    for subset in ("FNWN", "OnWN", "headlines"):
        (folder / f"STS.input.{subset}.txt").write_text(inputs, encoding="utf-8")
        (folder / f"STS.gs.{subset}.txt").write_text(gold, encoding="utf-8")
    return root


def test_quotes_are_text_and_empty_gold_is_left_out(tmp_path: Path) -> None:
    root = _sts_folder(tmp_path, 'He said "no\tShe said "yes" \nA\tB\nC\tD\n', "5.0\n\n0\n")
    corpus = sts(path=str(root), tasks=["STS13"])
    assert [s.text for s in corpus.sentences[:4]] == ['He said "no', 'She said "yes"', "C", "D"]
    assert [p.gold for p in corpus.pairs[:2]] == [5.0, 0.0]


def test_columns_of_sick_are_those_of_its_header(tmp_path: Path) -> None:
    (tmp_path / "SICK").mkdir()
    file = tmp_path / "SICK" / "SICK_test_annotated.txt"
    file.write_text("sentence_A\tpair_ID\tentailment\trelatedness_score\tsentence_B\nA cat.\t1\t2\t3.5\tA dog.\n")
    corpus = sick_r(path=str(tmp_path))
    assert [s.text for s in corpus.sentences] == ["A cat.", "A dog."]
    assert corpus.pairs[0].gold == 3.5
    file.write_text("pair_ID\tsentence_A\tsentence_B\n1\tA cat.\tA dog.\n")
    with pytest.raises(DataError, match="no column 'relatedness_score'; it has 'pair_ID', 'sentence_A', 'sentence_B'"):
        sick_r(path=str(tmp_path))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A publisher on loopback."""
    folder = tmp_path / "www"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, *args: object) -> None:
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_port}", folder
    httpd.shutdown()
    httpd.server_close()


def test_download_checks_every_file_and_leaves_nothing_half_made(
    shared: Path, tmp_path: Path, server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, www = server
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in downloads.manifest("sick_r").values():
            source = shared / "data" / "sts" / name
            data = source.read_bytes() if source.is_file() else gzip.decompress(Path(f"{source}.gz").read_bytes())
            archive.writestr("renamed/" + Path(name).name, data)
    (www / "all.zip").write_bytes(packed.getvalue())
    monkeypatch.setattr(downloads, "COPY", "http://127.0.0.1:9/copy.tar")
    monkeypatch.setitem(downloads.ARCHIVES, "sick_r", [(f"{url}/all.zip",)])
    monkeypatch.setenv("CTXEXP_CACHE", str(tmp_path / "cache"))
    folder = downloads.fetch_semeval("sick_r")
    assert len(sick_r(path=str(folder), split="all").pairs) == 9927
    monkeypatch.setitem(downloads.ARCHIVES, "sick_r", [(f"{url}/short.zip",)])
    assert downloads.fetch_semeval("sick_r") == folder  # there: no request
    monkeypatch.setenv("CTXEXP_CACHE", str(tmp_path / "other"))
    with zipfile.ZipFile(www / "short.zip", "w") as archive:
        archive.writestr("SICK_train.txt", "tampered")
    with pytest.raises(DataError, match="lack 3 of 3 files with the expected SHA-256"):
        downloads.fetch_semeval("sick_r")
    (www / "short.zip").write_bytes(b"no archive")
    with pytest.raises(DataError, match="did not give a readable archive"):
        downloads.fetch_semeval("sick_r")
    assert not (tmp_path / "other").exists()


def test_a_cut_reply_sends_the_download_to_another_mirror(server: tuple[str, Path]) -> None:
    url, www = server
    data = bytes(range(100))
    (www / "whole").write_bytes(data)
    with replying(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + data[:-30]) as cut:
        with pytest.raises(DataError, match="broke off after 70 of 100 bytes"):
            downloads.download(f"{cut}/whole", "made")
        assert downloads.download((f"{cut}/whole", "http://127.0.0.1:9/whole", f"{url}/whole"), "made") == data
    with replying(b"what is this?\r\n\r\n") as odd, pytest.raises(DataError, match="could not be downloaded from"):
        downloads.download(f"{odd}/whole", "made")


@contextlib.contextmanager
def replying(reply: bytes) -> Iterator[str]:
    """A server that answers every request with these bytes and hangs up."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1 << 16)
            with contextlib.suppress(OSError):  # a client that has had enough
                self.request.sendall(reply)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_address[1]}"
        made.shutdown()


def test_a_copy_stands_in_for_a_publisher_that_is_away(
    tmp_path: Path, server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, www = server
    files = {hashlib.sha256(text).hexdigest(): name for name, text in (("a.txt", b"one"), ("b.txt", b"two"))}
    monkeypatch.setattr(downloads, "manifest", lambda _: files)
    monkeypatch.setitem(downloads.ARCHIVES, "sick_r", [("http://127.0.0.1:9/away.zip",)])
    monkeypatch.setattr(downloads, "COPY", f"{url}/copy.tar")
    monkeypatch.setenv("CTXEXP_CACHE", str(tmp_path))
    for held in (("one",), ("other", "one", "two")):
        with tarfile.open(www / "copy.tar", "w") as copy:
            for number, text in enumerate(held):
                (www / text).write_text(text)
                copy.add(www / text, f"STS/{number}.txt")
        if len(held) == 1:
            told = r"from http://127.0.0.1:9/away\.zip .*run once with a network, or give .*dataset\.path="
            with pytest.raises(DataError, match=told):
                downloads.fetch_semeval("sick_r")
    assert {path.name: path.read_text() for path in downloads.fetch_semeval("sick_r").iterdir()} == {
        "a.txt": "one",
        "b.txt": "two",
    }


def test_documents_end_at_empty_lines_or_file_ends(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One.\nTwo.\n\n\nThree.\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("Four.\n\nFive.\n", encoding="utf-8")
    assert text(path=str(tmp_path), documents="blank").documents == (0, 0, 1, 2, 3)
    assert text(path=str(tmp_path), documents="file").documents == (0, 0, 0, 1, 1)
    assert text(path=str(tmp_path)).documents is None
    assert text(path=str(tmp_path), documents="file").choices["documents"] == "file"
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "running.txt").write_text("One day. Two days!\nThree.\n")
    assert text(path=str(tmp_path / "only"), sentences="marks").documents == (0, 0, 1)  # of a line aren't independent
    assert text(path=str(tmp_path / "only")).documents is None


def test_a_home_is_put_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    assert user_path("~/x") == Path("/home/somebody/x")
    assert user_path(Path("a/~/b")) == Path("a/~/b")
    for given, message in (("", "it is empty"), ("~nosuchuser/x", "no user of that name has a home here")):
        with pytest.raises(ConfigError, match=message):
            user_path(given)
