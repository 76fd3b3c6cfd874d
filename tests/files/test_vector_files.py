"""Files of word vectors: every format there and back, the wanted words only, an error for each thing that is off."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ctxexp import Corpus, Sentence, measure
from ctxexp.command import Experiment
from ctxexp.errors import ModelError
from ctxexp.models import WordVectorEncoder, WordVectors
from ctxexp.report import shared_facts
from ctxexp.testing import check
from tests.composed import composed, forget_plugin_files, of, with_part
from tests.sample_results import run_notes
from tests.shipped import word_vectors

WORDS = ["the", "über", "naïve", "bank", "北京", "x\u00a0y"]


def vectors(n: int = len(WORDS), dim: int = 5) -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(n, dim)).astype(np.float32)
    x[0, 0], x[0, 1], x[-1, 0] = np.float32(1e-42), np.finfo(np.float32).max, np.nextafter(np.float32(1), np.float32(2))
    return x


def test_what_is_written_is_read_to_the_last_bit(tmp_path: Path) -> None:
    words = [w for w in WORDS if w.split() == [w]]
    got = WordVectors.read(WordVectors(words, vectors(len(words))).save(tmp_path))
    assert (got.words, got.n_file, got.dim) == (words, len(words), 5)
    assert got.vectors.dtype == np.float32
    assert got.vectors.tobytes() == vectors(len(words)).tobytes()
    bits = np.random.default_rng(1).integers(0, 2**32, 10_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.where(np.isfinite(bits), bits, 0).astype(np.float32).reshape(100, 100)
    path = WordVectors([f"w{i}" for i in range(100)], x).save(tmp_path)
    assert WordVectors.read(path).vectors.tobytes() == x.tobytes()
    (one,) = word_vectors(path=str(path)).encode(Corpus.of("c", [["w7", "w3"]]).sentences)
    assert np.array_equal(one.layers[0], x[[7, 3]])


def test_only_wanted_words_are_kept(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(5000, 4)).astype(np.float32)
    path = WordVectors([f"w{i}" for i in range(5000)], x).save(tmp_path)
    got = WordVectors.read(path, wanted={"w3", "w4999", "absent"}.__contains__)
    assert (got.words, got.n_file) == (["w3", "w4999"], 5000)
    assert got.vectors.tolist() == x[[3, 4999]].tolist()


def test_the_first_of_equal_words_counts_with_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "v").write_text("a 1\nb 2\na 3\na 4\nb 5\n")
    with caplog.at_level(logging.WARNING, "ctxexp"):
        got = WordVectors.read(tmp_path / "v")
    assert got.vectors.tolist() == [[1], [2]]
    assert got.duplicates == 3
    assert len(caplog.records) == 1
    assert "3 words stand there more than once; the first" in caplog.text


HEAD = b"2 2\n"
ONE = b"a " + np.array([1, 2], "<f4").tobytes()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "line 1: expected"),
        (b"word\n", "line 1: expected .*, got 'word'"),
        (b"2 0\n", "line 1: the header says '2 0'"),
        (b"a 1 2\nb 1\n", "line 2: expected a word and 2 numbers, got 1: 'b 1'"),
        (b"2 2\na 1 2\nb\xe9 1 2\n", "line 3: .* is not UTF-8"),
        (b"a 1 2\nb 1 x\n", "line 2, 'b': expected numbers"),
        (b"a 1 2\nb 1 nan\n", "line 2, 'b': NaN or"),
        (b"a 1 2\n\nb 1 2\n", "line 2: empty"),
        (b"3 2\na 1 2\nb 1 2\n", "says 3 words, the file has 2"),
        (b"0 2\n", "no word vectors"),
        (b"\xba\x16\x4f\x2f\x0c", "it holds v: .*fasttext.load_model"),
        (HEAD + ONE + b"\n" + ONE, "line 2: expected a word and 2 numbers; .*load_word2vec_format.*v', binary=True"),
        (HEAD + ONE + ONE, "line 2: .* binary"),
        (b"2 2\na 1 x\nb 1 2\n", "line 2: expected a word and 2 numbers"),
        (b"2 2\na 1 2\nb 1 x\n", "line 3, 'b': expected numbers"),
    ],
)  # fmt: skip
def test_a_malformed_file_is_refused_with_the_place(tmp_path: Path, raw: bytes, message: str) -> None:
    (tmp_path / "v").write_bytes(raw)
    with pytest.raises(ModelError, match=f"v: .*{message}"):
        WordVectors.read(tmp_path / "v")


# The encoder.


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    path = tmp_path / "glove.txt"
    path.write_text("the 1 0\nbank 0 1\nriver 1 1\n")
    return path


def test_a_file_is_a_model_of_one_layer(glove: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    corpus = Corpus.of("c", [["the", "bank"], ["quux", "the", "river", "bank"], ["quux"]])
    encoder = word_vectors(path=str(glove))
    assert (encoder.n_layers, encoder.dim, encoder.positional) == (1, 2, False)
    with caplog.at_level(logging.WARNING, "ctxexp"):
        measure(encoder, corpus, metrics="word_norm", min_contexts=2, options=[f"cache.folder={tmp_path}"])
    assert caplog.text.count("glove.txt has no vector for 1 of 4 words (2 of 7 occurrences; such as 'quux')") == 1
    rows = [dict(zip(one.units, one.layers[0].tolist(), strict=True)) for one in encoder.encode(corpus.sentences)]
    assert rows == [{"the": [1, 0], "bank": [0, 1]}, {"the": [1, 0], "river": [1, 1], "bank": [0, 1]}, {}]


def test_lower_case_is_asked_for(glove: Path) -> None:
    corpus = Corpus.of("c", [["The", "BANK"]])
    (one,) = word_vectors(path=str(glove)).encode(corpus.sentences)
    assert one.units == ()
    assert one.layers.shape == (1, 0, 2)
    encoder = word_vectors(path=str(glove), lower=True)
    (one,) = encoder.encode(corpus.sentences)
    assert one.units == ("The", "BANK")
    assert one.layers.tolist() == [[[1, 0], [0, 1]]]
    assert encoder.name != word_vectors(path=str(glove)).name


def test_the_name_follows_the_content(glove: Path) -> None:
    before = word_vectors(path=str(glove))
    assert word_vectors(path=str(glove)).name == before.name
    glove.write_text("the 1 0\nbank 0 1\nriver 1 2\n")
    assert word_vectors(path=str(glove)).name != before.name
    assert dict(before.details) | {"content_hash": ""} == {
        "architecture": "word vectors", "file": "glove.txt", "content_hash": "", "lower": False,
    }  # fmt: skip


def test_the_corpus_words_are_a_table(glove: Path) -> None:
    corpus = Corpus.of("c", [["The", "bank", "quux"], ["the", "river", "bank"], ["the", "quux"]])
    (table,) = word_vectors(path=str(glove), lower=True).tables(corpus.sentences)
    assert (table.name, table.special) == ("input", ())
    assert list(table.tokens) == ["bank", "river", "the"]
    assert table.vectors.tolist() == [[0, 1], [1, 1], [1, 0]]
    assert table.vectors.dtype == np.float32
    assert table.counts.tolist() == [2, 1, 3]
    (cased,) = word_vectors(path=str(glove)).tables(corpus.sentences)
    assert cased.counts.tolist() == [2, 1, 2]
    (none,) = word_vectors(path=str(glove)).tables([])
    assert none.vectors.shape == (0, 2)


def test_the_words_without_a_vector_are_in_the_results(glove: Path, tmp_path: Path) -> None:
    overrides = ["model=word_vectors", f"model.path={glove}", "metric=[degeneration,word_norm]", "baseline=b100"]
    forget_plugin_files()
    config = composed(*overrides, f"cache.folder={tmp_path}/cache")
    corpus = Corpus.of("c", [["the", "bank"], ["quux", "the", "river", "bank"], ["quux"]])
    results = Experiment(of(config, corpus)).run(tmp_path)
    assert (results.info.corpus.skipped, results.info.corpus.skipped_share) == (2, pytest.approx(2 / 7))
    assert "  without a vector, not measured: 2 words (28.6% of the text)" in run_notes(results).splitlines()
    assert results.by_name["degeneration.input/n"] == 3
    again = Experiment(of(config, corpus)).run(tmp_path)  # from the cache
    assert (again.info.encoded, again.info.corpus.skipped) == (0, 2)
    whole = Corpus.of("c", [["the", "bank"], ["the", "river"]])
    full = Experiment(of(config, whole)).run(tmp_path)
    assert (full.info.corpus.skipped_share, full.info.corpus.unknown_share) == (0, None)  # an encoder without pieces
    assert not re.search("without a vector|unknown to", run_notes(full))


def test_pieces_unknown_to_the_model_are_in_the_results(tmp_path: Path) -> None:
    class Spelling(WordVectorEncoder):
        def count_unknown(self, sentences: Sequence[Sentence]) -> tuple[int, int]:
            return len(sentences), 16

    corpus = Corpus.of("c", [["the", "bank"], ["the", "river"]])
    spelling = Spelling("spelling", "x", 2, lambda wanted: (["the", "bank", "river"], np.ones((3, 2), np.float32)))
    config = composed("metric=word_norm", "baseline=b100", f"cache.folder={tmp_path}/cache")
    for encoded in (2, 0):  # anew, then from the cache
        told = Experiment(with_part(of(config, corpus), "model", "spelling", lambda: spelling)).run(tmp_path)
        assert told.info.encoded == encoded
        assert (told.info.corpus.unknown, told.info.corpus.pieces, told.info.corpus.unknown_share) == (2, 16, 0.125)
        assert "  unknown to the model's tokenizer: 2 of 16 pieces (12.5%)" in run_notes(told).splitlines()
    assert shared_facts([("a", told)])[-1] == "12.5% of the pieces unknown to the model"


def test_it_keeps_the_contract(tmp_path: Path) -> None:
    path = WordVectors(["bank", "the"], vectors(2, 8)).save(tmp_path)
    report = check("model", lambda: word_vectors(path=str(path)))
    assert not report.failures
