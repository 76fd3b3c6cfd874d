"""Floors of models and of vectors: what the command says and writes."""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from ctxexp_compare import Floor, floor
from ctxexp_compare.floors import command
from ctxexp_compare.floors.command import answer, recall
from ctxexp_compare.floors.make import registers

import ctxexp
from ctxexp.command import Experiment, configured
from ctxexp.errors import ConfigError, CtxexpError, DataError
from tests.composed import run_command_line


def test_a_model_without_vectors_of_sentences_has_a_floor_of_words() -> None:
    words = [[f"w{10 * i + j}" for j in range(5)] for i in range(60)]
    made = floor(ctxexp.from_arrays(list(np.random.default_rng(0).normal(size=(60, 2, 5, 16))), words))
    assert (made.kinds, made.layers) == (("words",), (0, 1))


def test_an_answer_is_one_statement() -> None:
    """Where the share may lie on either side of 5% it says so; beyond what is known it names one bound."""
    own = Floor.of_vectors(np.random.default_rng(0).normal(size=(200, 20)))
    error, five = own.held_out_error(), own.threshold(0.05)
    for cosine, verdict in (
        (five, "not surely; 5.0% of"),
        (own.threshold(0.5), "no; 50.0% of"),
        (0.99, "yes, very|yes"),
    ):
        (line,) = [one for one in answer(own, cosine) if one.startswith("- ")]
        assert re.match(rf"- between sentences: ({verdict})", line)
    assert line.endswith(f"at most {max(error + 0.0005, 0.0005):.2%} of unrelated pairs reach it")


def test_vectors_from_elsewhere_make_a_floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=(300, 30)).astype(np.float32) + 0.1
    for name, rows in {"mine": x, "other": x + 0.1, "zeros": 0 * x}.items():
        np.save(f"{name}.npy", rows)
    command.floor("mine.npy")
    one, own = Floor.load("mine.floor.json"), Floor.of_vectors(x)
    assert one.probability(0.5) == pytest.approx(own.probability(0.5), abs=1e-5)
    cosine = one.threshold(0.02)
    carried = one.carry(Floor.of_vectors(x + 0.1), cosine)
    for model in ("mine.floor.json", "mine.npy"):
        made = command.floor(model, "other.npy", cosine=cosine)
        assert f"- {carried.cosine:.3f} [{carried.low:.3f}, {carried.high:.3f}]; 2.00% of" in "\n".join(made.sentences)
        assert made.tables["carried"].numbers["cosine"].tolist() == pytest.approx([carried.cosine], abs=1e-5)
    refused = " ".join(command.floor("mine.npy", "other.npy", cosine=0.99999).sentences)
    assert "it can't be carried: fewer than 0.05% of unrelated pairs reach it" in refused
    pairs = Path("pairs.csv")
    for call, said in (
        (partial(command.floor, "mine.npy", "other.npy"), "floor of two models takes cosine=, text=, pairs= and"),
        (partial(command.floor, "mine.npy", pairs=pairs, replace=True), "pairs= goes with two models"),
        (partial(command.floor, "mine.npy", "other.npy", cosine=cosine, pairs=pairs), "needs two models, which can"),
        (partial(command.floor, "zeros.npy"), "of 40 sentences or more that aren't 0"),
        (partial(command.floor, "missing.npy"), "No such file or directory: "),
    ):
        with pytest.raises(CtxexpError, match=said):
            call()


def test_recall_is_the_share_of_related_pairs_that_reach_each_cosine(tmp_path: Path) -> None:
    texts = [one.text for one in registers("english")["sport"][:30]]
    rows = [f'"{a}","{b}",{score}\n' for a, b, score in zip(texts, texts[1:], [5, 4.2, 1] * 10, strict=False)]
    (tmp_path / "related.csv").write_text("sentence1,sentence2,score\n" + "".join(rows))
    encoders = tuple(Experiment(configured(name)).encoder for name in ("bert", "gpt2"))
    found = recall(encoders, (0.8, 0.7), tmp_path / "related.csv")  # type: ignore[arg-type]
    for encoder, cosine, share in zip(encoders, (0.8, 0.7), found["found"], strict=True):
        view = encoder.sentence_encoder()
        read = Experiment(configured("bert", texts)).corpus.sentences
        x = [one.layers[-1, 0].astype(float) for one in view.encode(read)]
        reached = [
            a @ b / np.linalg.norm(a) / np.linalg.norm(b) >= cosine for i, (a, b) in enumerate(pairwise(x)) if i % 3 < 2
        ]
        assert share == pytest.approx(np.mean(reached))
    low, high = found["difference"]
    assert low <= found["found"][1] - found["found"][0] <= high


def test_the_command_writes_a_floor_and_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ctxexp_compare.floors.make.PAIRS", 4000)
    for name, sentences in list(registers("english").items())[:2]:
        Path(f"{name}.txt").write_text("".join(f"{one.text}\n" for one in sentences[:45]), encoding="utf-8")
    texts = ",".join(f"{path.name}" for path in sorted(Path().glob("*.txt")))
    assert command.floor("gpt2", text=texts).files == [Path("gpt2.floor.json")]
    own = Floor.load("gpt2.floor.json")
    assert (own.kinds[:2], len(own.domains), own.layers) == (("words", "mean"), 2, (0, 1, 2, 3, 4))
    kept = Path("gpt2.floor.json").read_bytes()
    with monkeypatch.context() as without:  # a second one is refused before any work
        without.delattr("ctxexp_compare.floors.command.domain_sentences")
        for choices in ({}, {"cosine": 0.5, "out": Path("gpt2.floor.json")}):
            with pytest.raises(ConfigError, match=" is there already, and is kept"):
                command.floor("gpt2", **choices)  # type: ignore[arg-type]
        assert run_command_line(["pin", "gpt2", "out=gpt2.floor.json"]) == 2
    command.floor("gpt2", text=texts.partition(",")[0], cosine=0.5)
    assert Path("gpt2.floor.json").read_bytes() == kept  # a question writes nothing
    first, *lines, _ = command.floor("gpt2.floor.json", cosine=0.83).sentences
    assert first == "Is a cosine of 0.83 high in gpt2, layer 4, the last?"
    assert [line.partition(":")[0] for line in lines] == ["- between sentences", "- between words"]
    carried = command.floor("gpt2.floor.json", "gpt2", cosine=0.9, text=texts).sentences
    assert [line.partition(":")[0] for line in carried if line.startswith(("- in", "- across"))] == [
        "- in one kind of text", "- across kinds of text",
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="cosine=7: expected -1 to 1"):
        command.floor("gpt2.floor.json", cosine=7)
    Path("few.txt").write_text("One line.\n")
    with pytest.raises(DataError, match="has 1 distinct sentences: expected 40 or more"):
        command.floor("gpt2", text="few.txt", replace=True)
