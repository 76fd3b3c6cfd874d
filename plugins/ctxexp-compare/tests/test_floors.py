"""Floors: probabilities against a naive count, lengths, domains, files, and bert_score's baseline."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ctxexp_compare import Floor, floor
from ctxexp_compare.floors import fit
from ctxexp_compare.floors.bert_score import baseline, greedy_match, unrelated_texts, write_baseline
from ctxexp_compare.floors.command import table
from ctxexp_compare.floors.fit import (
    TAILS,
    calibration_error,
    fit_quantiles,
    fit_rows,
    quantiles,
    tail_probability,
)
from ctxexp_compare.floors.make import registers
from ctxexp_compare.floors.sample import Rows

import ctxexp
from ctxexp.command import Experiment, configured
from ctxexp.errors import ConfigError, DataError, UnknownName
from tests.composed import run_command_line

README = Path(__file__).parents[1] / "README.md"


def sentence_rows(rng: np.random.Generator, n: int, *, dim: int = 30, shift: float = 0.5, domains: int = 1) -> Rows:
    """Means of as many vectors as each has words, around a common mean that is larger in later domains."""
    length = rng.integers(3, 30, size=n)
    domain = np.arange(n) % domains
    x = rng.normal(size=(1, n, dim)) / np.sqrt(length)[None, :, None]
    x[..., 0] += shift + 0.3 * domain
    return Rows(x.astype(np.float32), np.arange(n), domain, length, np.full(n, -1))


def test_without_lengths_a_probability_is_the_share_of_pairs() -> None:
    cosines = np.random.default_rng(0).normal(0.2, 0.1, size=20_000)
    at = quantiles(fit_quantiles(cosines), None)
    for x in (0.0, 0.2, 0.37, 0.45):
        assert tail_probability(np.array(x), at) == pytest.approx((cosines >= x).mean(), abs=0.005)
    assert (tail_probability(np.array([-2.0, 2.0]), at) == [TAILS[0], TAILS[-1]]).all()
    assert (np.diff(at) >= 0).all()


def test_lengths_are_followed_and_held_out_sentences_foretold() -> None:
    """Longer sentences are more alike; the error on other sentences is below .02, at each length near it."""
    rng = np.random.default_rng(0)
    fitted, other = (sentence_rows(rng, 6000) for _ in range(2))
    own = Floor("x", "x", (0,), ("mean",), ("own",), *fit_rows({"mean": fitted}, 1, most=100_000))
    assert own.lengths == (3, 29)
    for a, b in ((5, 5), (5, 25), (25, 25)):  # the planted mean over the planted lengths
        expected = 0.25 / np.sqrt((0.25 + 30 / a) * (0.25 + 30 / b))
        assert own.threshold(0.5, length=(a, b)) == pytest.approx(expected, abs=0.02)
    assert own.probability(0.5, length=(5, 25)) == own.probability(0.5, length=(25, 5))
    pairs = other.pairs(np.random.default_rng(1), 100_000)
    cosines, sizes = other.cosines(0, pairs), other.lengths(pairs)
    every = np.ones(len(cosines), bool)
    assert calibration_error(own.coefficients[0, 0], cosines, sizes, every) < 0.02
    assert own.held_out[0, 0] < 0.02
    for low, high in ((3, 8), (8, 16), (16, 30)):
        inside = ((sizes >= low) & (sizes < high)).all(axis=1)
        assert calibration_error(own.coefficients[0, 0], cosines, sizes, inside) < 0.04
    assert own.probability(0.3, length=1000) == own.probability(0.3, length=29)  # no further than it was measured


def test_domains_are_told_apart() -> None:
    rows = sentence_rows(np.random.default_rng(0), 900, domains=3)
    names = ("low", "middle", "high")
    own = Floor("x", "x", (0,), ("mean",), names, *fit_rows({"mean": rows}, 3, most=40_000))
    low, pooled, high = (own.probability(0.7, length=12, domain=name) for name in ("low", None, "high"))
    assert low < pooled < high
    error = own.held_out[0, 0]
    assert own.domain_range(0.7, length=12) == pytest.approx((max(0, low - error), min(1, high + error)))
    apart = rows.pairs(np.random.default_rng(0), 10**6, across=True)
    assert (rows.domain[apart.first] != rows.domain[apart.second]).all()
    like = (abs(rows.lengths(apart) - 12) < 3).all(axis=1)
    share = (rows.cosines(0, apart)[like] >= 0.7).mean()
    assert own.probability(0.7, length=12, across=True) == pytest.approx(share, abs=0.05)
    assert own.domain_error(pooling="mean") > 0.1
    x = rows.vectors[0, rows.domain == 2]
    adapted = own.adapt(x, rows.length[rows.domain == 2].tolist(), pooling="mean")
    assert adapted.probability(0.7, length=12) == pytest.approx(high, abs=0.06)
    assert (adapted.title, adapted.layers, adapted.kinds) == ("x", (0,), ("mean",))
    with pytest.raises(ConfigError, match="across: pairs of two of the domains own are asked for"):
        adapted.probability(0.7, across=True, length=12)
    pairs = rows.pairs(np.random.default_rng(0), 10**6)
    like = (abs(rows.lengths(pairs) - 12) < 3).all(axis=1) & (pairs.domain == 2)
    for rare, separates in ((0.03, True), (0.2, False)):  # of low's pairs; half of high's?
        reach = (rows.cosines(0, pairs)[like] >= own.threshold(rare, length=12, domain="low")).mean()
        assert own.separates(rare, length=12) is separates is bool(reach < 0.5)


def test_pairs_are_of_two_sentences_of_one_domain_and_two_words() -> None:
    rng = np.random.default_rng(0)
    n = 60
    rows = Rows(rng.normal(size=(1, n, 4)), np.arange(n) // 3, np.arange(n) % 2, np.full(n, 5), np.arange(n) % 7)
    for most in (100, 10_000):
        pairs = rows.pairs(np.random.default_rng(0), most)
        assert (rows.sentence[pairs.first] != rows.sentence[pairs.second]).all()
        assert (rows.word[pairs.first] != rows.word[pairs.second]).all()
        assert (rows.domain[pairs.first] == pairs.domain).all()
        assert (rows.domain[pairs.second] == pairs.domain).all()
        both = np.stack(pairs[:2])
        assert len(np.unique(both, axis=1).T) == both.shape[1] <= most
    a, b = rows.vectors[0, pairs.first[7]], rows.vectors[0, pairs.second[7]]
    assert rows.cosines(0, pairs)[7] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.fixture(scope="module")
def made() -> Floor:
    rng = np.random.default_rng(0)
    words = [[f"w{10 * i + j}" for j in range(5)] for i in range(60)]
    return floor(ctxexp.from_arrays(list(rng.normal(size=(60, 2, 5, 16))), words))


def test_a_file_is_read_back_whole(made: Floor, tmp_path: Path) -> None:
    file = tmp_path / "arrays.floor.json"
    made.save(file)
    read = Floor.load(file)
    assert (read.kinds, read.layers, read.text) == (("words",), (0, 1), made.text)
    assert read.probability(0.3) == pytest.approx(made.probability(0.3), abs=1e-6)
    assert read.probability([0.1, 0.2]).shape == (2,)
    assert re.search(
        r"\| words +\| 1 +\| -?0\.0\d\d +\|.*\| - +\| - ", table(read).markdown()
    )  # one domain tells nothing of others
    assert "sentences of" not in table(read).markdown()
    for damaged in (file.read_text()[:-50], file.read_text().replace("floor 2", "floor 3", 1), "[]"):
        file.write_text(damaged)
        with pytest.raises(DataError, match=r"floor.json is no floor, or damaged .* make it anew: ctxexp floor MODEL"):
            Floor.load(file)


def test_the_readme_s_readers_need_no_library_and_find_the_same(tmp_path: Path) -> None:
    """In thirty lines of Python and of JavaScript; the file is what the schema says."""
    rows = sentence_rows(np.random.default_rng(0), 900, domains=3)
    own = Floor("x", "x", (0,), ("mean",), tuple("abc"), *fit_rows({"mean": rows}, 3, most=40_000))
    file = tmp_path / "x.floor.json"
    own.save(file)
    text = README.read_text(encoding="utf-8")
    script, node = tmp_path / "read_floor.js", shutil.which("node")
    python, javascript = (
        re.search(rf"```{language}\n((?:#|//) read_floor.*?)```", text, re.DOTALL)
        for language in ("python", "javascript")
    )
    assert python is not None
    assert javascript is not None
    script.write_text(javascript[1])
    reader: dict[str, Any] = {"__name__": "reader"}
    exec(python[1], reader)
    told = json.loads(file.read_text())
    for cosine in (-1, 0.31, 0.55, 0.7, 0.92, 1):
        for pair in ((5, 5), (4, 19), (100, 1)):
            expected = own.probability(cosine, length=pair)
            assert reader["probability"](told, cosine, 0, lengths=pair) == pytest.approx(expected, abs=1e-5)
        expected = own.probability(cosine, length=9, domain="c")
        assert reader["probability"](told, cosine, 0, lengths=(9, 9), domain="c") == pytest.approx(expected, abs=1e-5)
        expected = own.probability(cosine, length=9, across=True)
        assert reader["probability"](told, cosine, 0, lengths=(9, 9), pairs="across") == pytest.approx(
            expected, abs=1e-5
        )
    assert len(python[1].splitlines()) <= 32
    schema = json.loads((Path(fit.__file__).parent / "schema.json").read_text())
    pytest.importorskip("jsonschema", reason="needs jsonschema").validate(told, schema)
    if node is None:
        pytest.skip("needs node")
    words = [node, str(script), str(file), "0.55", "0", "mean", "4", "19"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert float(said) == pytest.approx(own.probability(0.55, length=(4, 19)), abs=1e-5)


def test_vectors_and_pairs_from_elsewhere_make_a_floor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = sentence_rows(np.random.default_rng(0), 300)
    np.save("mine.npy", rows.vectors[0])
    Path("mine.txt").write_text("".join("word " * int(n) + ".\n" for n in rows.length))
    assert run_command_line(["floor", "vectors=mine.npy", "text=mine.txt"]) == 0
    kept = Path("mine.floor.json").read_bytes()
    one, other = Floor.load("mine.floor.json"), Floor.of_vectors(rows.vectors[0], rows.length.tolist())
    assert one.probability(0.5, length=(4, 20)) == pytest.approx(other.probability(0.5, length=(4, 20)), abs=1e-5)
    pairs = rows.pairs(np.random.default_rng(0))
    cells = zip(rows.cosines(0, pairs).tolist(), rows.lengths(pairs).tolist(), strict=True)
    lines = "".join(f"{cosine:.6f},{a},{b}\n" for cosine, (a, b) in cells)
    Path("pairs.csv").write_text(f"cosine,length_a,length_b\n{lines}")
    assert run_command_line(["floor", "pairs=pairs.csv", "cosine=.5", "out=pairs.floor.json"]) == 0
    again = Floor.load("pairs.floor.json")
    assert again.probability(0.5, length=(4, 20)) == pytest.approx(one.probability(0.5, length=(4, 20)), abs=0.01)
    assert "Is a cosine of 0.5 high in pairs" in capfd.readouterr().out
    assert run_command_line(["floor", "vectors=mine.npy", "cosine=.5", "length=12"]) == 0
    assert "\n- between those of mine.npy: " in capfd.readouterr().out  # whose lengths aren't known
    assert Path("mine.floor.json").read_bytes() == kept  # a question leaves the file of a text's as it is
    np.save("zeros.npy", 0 * rows.vectors[0])
    Path("few.txt").write_text("One line.\n")
    for words, said in (
        ([], "floor takes a model, vectors=FILE or pairs=FILE: one of them"),
        (["vectors=mine.npy", "text=few.txt"], "mine.npy has 300 vectors, few.txt has 1 sentences"),
        (["vectors=zeros.npy"], "of 40 sentences or more that aren't 0"),
        (["vectors=mine.txt"], "mine.txt: expected vectors (n, dim) in NumPy's .npy"),
        (["pairs=mine.txt"], "mine.txt"),
    ):
        assert run_command_line(["floor", *words, "replace=true"]) == 2
        assert said in capfd.readouterr().err


def test_mistakes_are_answered(made: Floor) -> None:
    with pytest.raises(UnknownName, match=r"no pooling 'cls'"):
        made.probability(0.3, length=5, pooling="cls")
    with pytest.raises(ConfigError, match=r"length=5: the floor of arrays is of words alone; leave length out"):
        made.probability(0.3, length=5)
    with pytest.raises(ConfigError, match=r"layer=7: the floor of .* has layers \[0, 1\]"):
        made.probability(0.3, layer=7)
    own = Floor.of_vectors(np.random.default_rng(0).normal(size=(50, 4)), range(5, 55))
    with pytest.raises(ConfigError, match=r"sentences need their lengths in words, as in length=\(12, 20\)"):
        own.probability(0.3)


def test_the_command_writes_a_floor_and_bert_score_s_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ctxexp_compare.floors.make.PAIRS", 4000)
    monkeypatch.setattr("ctxexp_compare.floors.bert_score.PAIRS", 8)
    for name, sentences in list(registers("english").items())[:2]:
        Path(f"{name}.txt").write_text("".join(f"{one.text}\n" for one in sentences[:45]), encoding="utf-8")
    texts = ",".join(f"{path.name}" for path in sorted(Path().glob("*.txt")))
    assert run_command_line(["floor", "gpt2", f"text={texts}", "bert_score=gpt2.tsv"]) == 0
    said = capfd.readouterr().out
    assert "Cosines of unrelated pairs, gpt2" in said
    assert said.endswith("\ngpt2.floor.json\ngpt2.tsv\n")
    own = Floor.load("gpt2.floor.json")
    assert own.kinds[:2] == ("words", "mean")
    assert len(own.domains) == 2
    assert own.layers == (0, 1, 2, 3, 4)
    kept = Path("gpt2.floor.json").read_bytes()
    with monkeypatch.context() as without:  # a second one is refused before any work
        without.delattr("ctxexp_compare.floors.command.domain_sentences")
        for words in ([], ["out=gpt2.tsv"], ["cosine=.5", "bert_score=gpt2.tsv"]):
            assert run_command_line(["floor", "gpt2", *words]) == 2
            assert " is there already, and is kept" in capfd.readouterr().err
        assert run_command_line(["pin", "gpt2", "out=gpt2.tsv"]) == 2
    assert run_command_line(["floor", "gpt2", f"text={texts.partition(',')[0]}", "cosine=.5"]) == 0
    assert Path("gpt2.floor.json").read_bytes() == kept  # a question writes nothing
    capfd.readouterr()
    lines = Path("gpt2.tsv").read_text().splitlines()
    assert (lines[0], len(lines)) == ("LAYER,P,R,F", 6)
    assert run_command_line(["floor", "gpt2.floor.json", "cosine=.83", "length=12"]) == 0
    said = capfd.readouterr().out
    assert said.startswith("Is a cosine of 0.83 high in gpt2, layer 4, the last?\n- between words: ")
    assert "sentences of 12 words: " in said
    assert f"5% reach {own.threshold(0.05, length=12):.2f}\n" in said
    assert run_command_line(["floor", "gpt2.floor.json", "cosine=7"]) == 2
    Path("few.txt").write_text("One line.\n")
    assert run_command_line(["floor", "gpt2", "text=few.txt", "replace=true"]) == 2
    assert "few.txt has 1 distinct sentences: expected 40 or more" in capfd.readouterr().err


def test_the_greedy_match_is_bert_score_s(tmp_path: Path) -> None:
    """By its definition, one piece at a time; special pieces are matched with, and not counted."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(1, 4, 6)), rng.normal(size=(1, 5, 6))
    own_a, own_b = np.array([0, 1, 1, 0], bool), np.array([0, 1, 1, 1, 0], bool)

    def cosine(x: np.ndarray, y: np.ndarray) -> float:
        return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))

    precision = np.mean([max(cosine(x, y) for y in b[0]) for x in a[0, 1:3]])
    recall = np.mean([max(cosine(x, y) for x in a[0]) for y in b[0, 1:4]])
    scores = greedy_match(a, b, own_a, own_b)[:, 0]
    assert scores.tolist() == pytest.approx([precision, recall, 2 * precision * recall / (precision + recall)])
    pairs = unrelated_texts({"one": registers("english")["sport"]}, 0)
    assert len({text for pair in pairs for text in pair}) == 2 * len(pairs)
    encoder = Experiment(configured("bert")).encoder
    values = baseline(encoder, pairs[:3])
    assert values.shape == (5, 3)
    assert (values[:, 2] <= 1).all()
    write_baseline(tmp_path / "bert.tsv", values)
    read = np.loadtxt(tmp_path / "bert.tsv", delimiter=",", skiprows=1)
    assert read[:, 1:] == pytest.approx(values, abs=1e-7)
    with pytest.raises(ConfigError, match="takes models of transformers"):
        baseline(ctxexp.from_arrays([np.zeros((1, 2, 3))], [["a", "b"]]), pairs)
