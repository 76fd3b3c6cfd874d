"""Pins: planted changes are found and named, reruns aren't, files are whole, the commands say so by their status."""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ctxexp_compare import Pin, check, pin
from ctxexp_compare.pins.check import RESOLUTION, tolerance
from ctxexp_compare.pins.facts import _levels
from ctxexp_compare.pins.make import Rerun
from ctxexp_compare.pins.sketch import (
    Sketch,
    directions,
    root_mean_square,
    row_moves,
    sketch,
)
from ctxexp_compare.pins.text import choose_rows
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, normalizers
from transformers import AutoModel, AutoTokenizer

import ctxexp
from benchmarks.pins import rerun_rows
from ctxexp.errors import ConfigError, DataError
from tests.composed import run_command_line
from tests.seeds import daily_seed
from tests.shipped import mini, polysemy

HOW_TO = Path(__file__).parents[3] / "docs" / "how-to" / "choose-and-check-a-model.md"


def unchanged(_: object) -> None:
    """Leave a model or tokenizer as it is."""


Change = Callable[[Any], object]


class Original:
    """A model of transformers with its tokenizer; `encoder` gives a changed copy's."""

    def __init__(self, folder: str) -> None:
        self.model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
        self.folder = folder

    def encoder(self, change: Change = unchanged, retokenize: Change = unchanged, **options: Any) -> ctxexp.Encoder:
        """The encoder after a change of the model, of the tokenizer, or with other options."""
        model, tokenizer = copy.deepcopy(self.model), AutoTokenizer.from_pretrained(self.folder)
        with torch.no_grad():
            change(model)
        retokenize(tokenizer)
        return ctxexp.from_transformers(model, tokenizer, name="planted", **options)


def swap_blocks(model: Any) -> None:
    blocks = model.encoder.layer
    blocks[2], blocks[3] = blocks[3], blocks[2]


def widen_epsilon(model: Any) -> None:
    model.encoder.layer[0].attention.output.LayerNorm.eps = 0.1


def round_last_block(model: Any) -> None:
    for weight in model.encoder.layer[-1].parameters():
        if weight.ndim == 2:
            most = weight.abs().amax(1, keepdim=True)
            weight.copy_(torch.round(weight / most * 127) * (most / 127))


def strip_accents(tokenizer: Any) -> None:
    tokenizer.backend_tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])


def swap_pieces(tokenizer: Any) -> None:
    settings = json.loads(tokenizer.backend_tokenizer.to_str())
    vocabulary = settings["model"]["vocab"]
    a, b = sorted(vocabulary, key=vocabulary.get)[len(vocabulary) // 2 :][:2]
    vocabulary[a], vocabulary[b] = vocabulary[b], vocabulary[a]
    tokenizer._tokenizer = Tokenizer.from_str(json.dumps(settings))


PLANTED: dict[str, tuple[dict[str, Any], str]] = {  # what is changed, and words of its cause
    "blocks swapped": ({"change": swap_blocks}, "blocks 2 and 3 are swapped"),
    "weights of a norm": ({"change": lambda model: model.encoder.layer[-1].output.LayerNorm.weight.mul_(1.02)}, "norm"),
    "epsilon": ({"change": widen_epsilon}, "all weights are what they were"),
    "int8": ({"change": round_last_block}, "levels"),
    "accents": ({"retokenize": strip_accents}, "tokenizer changed"),
    "pieces": ({"retokenize": swap_pieces}, "tokenizer changed"),
    "window": ({"retokenize": lambda tokenizer: setattr(tokenizer, "model_max_length", 100)}, "window"),
    "pooling": ({"pooling": "last"}, "pooling"),
}


@pytest.fixture(scope="module")
def original() -> Original:
    return Original(str(mini("bert")))


@pytest.fixture(scope="module")
def pinned(original: Original) -> Pin:
    return pin(
        original.encoder(),
        text=[sentence.text for sentence in polysemy().sentences[:12]],
        reruns=(Rerun(1),),
        occurrences=80,
    )


def arrays(layers: np.ndarray) -> ctxexp.Encoder:
    """Vectors (layers, 40, d) of four sentences."""
    words = [[f"w{i}" for i in range(j, j + 10)] for j in range(0, 40, 10)]
    return ctxexp.from_arrays(np.split(layers, 4, axis=1), words)


@pytest.mark.nightly
def test_planted_changes_are_found_and_named(original: Original) -> None:
    reference = pin(original.encoder(), reruns=(Rerun(1),))
    for name, (change, cause) in PLANTED.items():
        outcome = check(reference, original.encoder(**change))
        assert outcome.verdict == "moved", name
        assert cause in outcome.sentence, (name, outcome.sentence)


def planted_pipelines(network: Path) -> dict[str, tuple[Any, str]]:
    """A pipeline under "", which is unchanged, and changed ones, each with a part of what is to be said of it."""
    from tests.pipelines import PROMPT, dense, modules, pipeline

    def made(behind: Any = (), **changes: Any) -> Any:
        behind = behind or (dense(), modules.Normalize())
        return pipeline(network, *behind, **({"max_seq_length": 30} | PROMPT | changes))

    one_weight, redrawn = dense(), made()
    with torch.no_grad():
        one_weight.linear.weight[3, 5] += 0.05
        next(iter(redrawn[0].parameters()))[7:9] *= 1.1
    norm, order = modules.Normalize(), (modules.Normalize(), dense())
    other = {"prompts": {"query": "the river: "}, "default_prompt_name": "query"}
    return {
        "": (made(), "same: no layer moved"),
        "projection": (made([dense(seed=1), norm]), "2_Dense.linear.weight"),
        "one weight": (made([one_weight, norm]), "1 of 41 tensors changed (2_Dense.linear.weight)"),
        "activation": (made([dense(activation_function=torch.nn.Identity()), norm]), "2_Dense activation"),
        "bias": (made([dense(bias=False), norm]), "2_Dense bias True -> -"),
        "prompt": (made(**other), "sentence prompt 'the bank: ' -> 'the river: '"),
        "no prompt": (made(default_prompt_name=None), "sentence prompt 'the bank: ' -> ''"),
        "a prompt more": (made(prompts=PROMPT["prompts"] | {"fact": "x"}), "sentence prompt fact - -> 'x'"),  # type: ignore[operator]
        "cls": (made(mode="cls"), "sentence mode mean -> cls"),
        "max": (made(mode="max"), "sentence mode mean -> max"),
        "last": (made(mode="lasttoken"), "sentence mode mean -> last"),
        "not normalised": (made([dense()]), "Dense, Normalize -> Transformer, Pooling, Dense"),
        "order": (made(order), "Transformer, Pooling, Dense, Normalize -> Transformer, Pooling, Normalize, Dense"),
        "fewer columns": (made(truncate_dim=6), "sentence width 8 -> 6"),
        "narrower": (made([dense(7), norm]), "sentence width 8 -> 7"),
        "shorter": (made(max_seq_length=20), "sentence window 30 -> 20"),
        "prompt not pooled": (made(include_prompt=False), "sentence include_prompt True -> False"),
        "lower-cased": (made(do_lower_case=True), "tokenizer changed: 33 of 45"),
        "network": (redrawn, "embeddings.word_embeddings.weight"),
    }  # fmt: skip


def test_changes_of_a_pipeline_are_named(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="the library sentence-transformers is not installed")
    from tests.pipelines import saved
    from tests.tiny_models import encoder, make

    every, reference = planted_pipelines(make("bert", tmp_path / "bert")), None
    for name, (model, cause) in every.items():
        made = encoder(saved(model, tmp_path / f"model {name}"))
        reference = reference or pin(made, reruns=(Rerun(1),))
        outcome = check(reference, made, batch=7)
        assert outcome.verdict == ("moved" if name else "same"), name
        assert cause in outcome.sentence, (name, outcome.sentence)


@pytest.mark.nightly
@pytest.mark.parametrize("model", ["bert", "gpt2", "elmo"])
def test_reruns_raise_no_alarm(model: str) -> None:
    """With other batch sizes and threads."""
    assert all(" | 2 | 0 | " in row for row in rerun_rows(model, 2, np.random.default_rng(0)))


def test_a_pin_is_small_and_read_back_whole(pinned: Pin, original: Original, tmp_path: Path) -> None:
    file = tmp_path / "bert.pin"
    assert pinned.save(file) < 100_000
    read = Pin.load(str(file))
    assert read.rows.sentence.tolist() == pinned.rows.sentence.tolist()
    assert replace(read, sketch=0, rows=0, noise=0) == replace(pinned, sketch=0, rows=0, noise=0)  # type: ignore[arg-type]
    assert check(read, original.encoder()).sentence.startswith("same: no layer moved by more than ")
    data = file.read_bytes()
    for damaged in (data[:-200], data[:5000] + b"\0" * 100 + data[5100:], b"", b"no archive"):
        file.write_bytes(damaged)
        with pytest.raises(DataError, match=r"bert.pin is no pin, or damaged .* make it anew: ctxexp pin MODEL"):
            Pin.load(file)
    with pytest.raises(DataError, match=r"no pin at .*other.pin; make one: ctxexp pin MODEL"):
        Pin.load(tmp_path / "other.pin")


def test_projections_are_as_long_as_vectors_and_the_same_everywhere() -> None:
    assert np.sign(directions(3, 4, 0)).astype(int).tolist() == [[1, -1, -1, 1], [1, 1, -1, -1], [1, -1, 1, -1]]
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 50, 30)) * rng.uniform(0, 3, size=30)
    lengths = np.mean([np.square(sketch([x], 4, seed).projections).sum(axis=2) for seed in range(400)], axis=0)
    assert lengths == pytest.approx(np.square(x).sum(axis=2), rel=0.2)
    one = sketch([x], 4, 0)
    assert one.lengths[0] == pytest.approx(np.linalg.norm(x[0], axis=1))
    pair = x[0, 49] @ x[0, 0] / np.linalg.norm(x[0, 49]) / np.linalg.norm(x[0, 0])
    assert one.cosines[0, 49] == pytest.approx(pair, abs=1e-6)
    moved = row_moves(one, sketch([1.1 * x], 4, 0))
    assert moved == pytest.approx(np.linalg.norm(0.1 * x[0] @ directions(30, 4, 0), axis=1) / one.lengths, rel=1e-4)
    assert root_mean_square(np.array([[3.0, 4.0]])) == pytest.approx([12.5**0.5])
    zero = Sketch(np.zeros((1, 1, 2)), np.zeros((1, 1)), np.zeros((1, 1)))
    assert row_moves(zero, zero)[0, 0] == 0
    assert row_moves(zero, Sketch(np.array([[[3.0, 4.0]]]), np.array([[5.0]]), np.zeros((1, 1))))[0, 0] == 1


def test_rows_are_of_every_kind() -> None:
    rng = np.random.default_rng(0)
    pieces = [rng.integers(1, 4, size=n) for n in (8, 300, 12, *[9] * 30)]
    rows = choose_rows(pieces, range(len(pieces)), 200)
    assert len(rows) == 200
    assert len({*zip(*map(np.ndarray.tolist, rows[:3]), strict=True)}) == 200
    word = ~rows.is_sentence
    assert word.sum() == 200 - 33
    assert (rows.unit[word & (rows.sentence == 1)].min(), rows.unit[word & (rows.sentence == 1)].max()) == (0, 299)
    assert 1 in rows.sentence[rows.is_sentence]
    assert (rows.n_pieces[word] > 1).sum() >= 40
    assert (rows.n_pieces[word] == 1).sum() >= 20


def test_what_vectors_alone_show() -> None:
    x = np.random.default_rng(0).normal(size=(5, 40, 16)).astype(np.float32)
    reference = pin(arrays(x), occurrences=40)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(16, 16)))[0]
    lengths = np.linalg.norm(x, axis=2, keepdims=True)
    cases = {
        "rotated: lengths and cosines": x @ turn,
        "scaled by 2: cosines": 2 * x,
        "normalised: each vector has the length 1": x / lengths,
        "lengths changed, cosines didn't": x / np.sqrt(lengths),
        "layers are shifted by +1: layer 0 is what layer 1 was": x[[1, 2, 3, 4, 4]],
        "layer 1 is what layer 3 was; layer 3 is what layer 1 was": x[[0, 3, 2, 1, 4]],
        "layer 4 alone, the last": np.concatenate([x[:4], x[4:] + x[:1]]),
        "layer 2 alone: what is given out": np.concatenate([x[:2], x[2:3] + x[:1], x[3:]]),
        "from block 2 on": np.concatenate([x[:2], x[2:] + x[:1]]),
        "from the input layer on": x + x[::-1] * 0.1,
    }
    for cause, changed in cases.items():
        outcome = check(reference, arrays(changed.astype(np.float32)))
        assert outcome.verdict == "moved"
        assert cause in outcome.sentence, (cause, outcome.sentence)
    assert check(reference, arrays(x * np.float32(1 + 1e-6))).verdict == "same"


def test_changes_that_no_vector_shows_are_told(pinned: Pin, original: Original) -> None:
    """An embedding row outside of the pinned text, a position behind its end, and a rerun of the same."""
    text = [sentence.text for sentence in pinned.sentences]
    encoder = original.encoder()
    pieces = {number for one in encoder.tokenizer.encode_batch(text) for number in one.ids}  # type: ignore[attr-defined]
    row = int(np.random.default_rng(daily_seed()).choice(sorted({*range(original.model.config.vocab_size)} - pieces)))
    changes: dict[str, Change] = {
        "embeddings.word_embeddings.weight": lambda m: m.embeddings.word_embeddings.weight[row, 0].add_(1e-3),
        "embeddings.position_embeddings.weight": lambda m: m.embeddings.position_embeddings.weight[-1].zero_(),
    }
    for name, change in changes.items():
        outcome = check(pinned, original.encoder(change))
        assert outcome.verdict == "moved", (name, row)
        assert outcome.sentence.startswith("changed: no layer moved by more than "), outcome.sentence
        assert f"1 of 71 tensors changed ({name}), which no vector of the pinned text shows" in outcome.sentence
    assert check(pinned, encoder, batch=5).verdict == "same"


def test_files_that_no_vector_shows_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A tokenizer's file whose change moves no piece, and a word that the pinned text hasn't, in a file of vectors."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("\n".join(sentence.text for sentence in polysemy().sentences[:6]))
    shutil.copytree(mini("gpt2"), "model")
    words = sorted({word for sentence in polysemy().sentences[:6] for word in sentence.words})
    Path("words.vec").write_text("".join(f"{word} {i} 1\n" for i, word in enumerate([*words, "unseen"])))
    config, content = "model/tokenizer_config.json", "tensors changed (the file's content)"
    plants = [
        ("huggingface model.checkpoint=./model", config, "}", ', "note": 1}', "another tokenizer_config.json"),
        ("word_vectors model.path=words.vec", "words.vec", "unseen ", "unseen 1", content),
    ]
    for model, file, before, after, told in plants:
        words = ["pin", model, "out=a.pin", "text=text.txt", "dtypes=float32", "occurrences=20", "replace=true"]
        assert run_command_line(words) == 0
        assert run_command_line(["check", "a.pin"]) == 0
        start, found, end = Path(file).read_text().rpartition(before)
        Path(file).write_text(start + found.replace(before, after) + end)
        capfd.readouterr()
        assert run_command_line(["check", "a.pin"]) == 1
        said = capfd.readouterr().out
        assert said.startswith("changed: no layer moved by more than ")
        assert told in said


def test_what_counts_is_said(pinned: Pin, original: Original) -> None:
    outcome = check(pinned, original.encoder(pooling="first"))
    frame = outcome.frame
    assert list(frame.columns) == ["layer", "moved_by", "noise", "tolerance", "moved"]
    first = frame[frame.moved].iloc[0]
    assert outcome.sentence.startswith(f"moved at layer {first.layer} by {first.moved_by:.2g}".replace("by 0.", "by ."))
    assert (tolerance(np.array([0, 1e-4]), "float32") == [RESOLUTION["float32"], 4e-4]).all()
    now = replace(pinned.tokenizer, settings="0")
    assert pinned.tokenizer.changes(now) == ["other settings"]
    assert pinned.tokenizer.changes(replace(now, library="0.1")) == []  # as another version writes it


def test_rounded_weights_are_known() -> None:
    x = np.random.default_rng(0).normal(size=(4, 192)).astype(np.float32)
    assert _levels(x) == 0
    scale = np.abs(x).max(axis=1, keepdims=True) / 127
    assert 100 < _levels(np.round(x / scale) * scale) <= 255
    assert _levels(np.round(x / scale / 20) * scale * 20) <= 15


def test_mistakes_are_answered(pinned: Pin, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).normal(size=(2, 40, 16)).astype(np.float32)
    with pytest.raises(ConfigError, match=r"with 5 layers of 192, and this model has 2 of 16: no vector"):
        check(pinned, arrays(x))
    with pytest.raises(ConfigError, match="occurrences=5: expected 20 to 1,000"):
        pin(arrays(x), occurrences=5)
    with pytest.raises(ConfigError, match="dtypes=int8: expected some of float32, bfloat16, float16"):
        pin("bert", dtypes=["int8"])
    with pytest.raises(ConfigError, match="an encoder in memory computes in its own dtype"):
        pin(arrays(x), dtypes=["bfloat16"])
    pinned.save(tmp_path / "bert.pin")
    assert run_command_line(["check", str(tmp_path / "bert.pin")]) == 2
    assert "is of a model in memory: name one" in capfd.readouterr().err


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("The bank of the river was wet.\nA bank lends money to Zoë's uncle, you know.\n" * 2)
    assert run_command_line(["pin", "gpt2", "text=text.txt", "occurrences=20", "dtypes=float32"]) == 0
    said = capfd.readouterr().out
    assert re.match(r"20 vectors in 5 layers, \d+ kB; noise of 3 reruns at most float32 \d.*\ngpt2.pin$", said)
    assert run_command_line(["check", "gpt2.pin"]) == 0
    assert capfd.readouterr().out.startswith("same: no layer moved by more than ")
    assert run_command_line(["check", "gpt2.pin", "options=model.final_norm=false", "out=check.csv"]) == 1
    said = capfd.readouterr().out
    assert said.startswith("moved at layer 4 by ")
    assert "tokenizer unchanged; final_norm True -> False; layer 4 alone, the last" in said
    assert len(Path("check.csv").read_text().splitlines()) == 6
    assert run_command_line(["check", "gpt2.pin", "gpt2 dtype=bfloat16"]) == 2
    assert "pin with dtypes=float32,bfloat16, or check with dtype=float32" in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(not HOW_TO.exists(), reason="needs the pages of the checkout")
def test_the_lines_of_the_action_catch_a_changed_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    block = next(
        text for text in re.findall(r"```yaml\n(.*?)```", HOW_TO.read_text(), re.DOTALL) if "ctxexp check" in text
    )
    lines = re.findall(r"run: (python -m ctxexp check .*)", block)
    assert len(lines) == 1
    shutil.copytree(mini("bert"), tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("\n".join(sentence.text for sentence in polysemy().sentences[:6]))
    typed = ["pin", "huggingface model.checkpoint=./model", "out=model.pin", "text=text.txt", "dtypes=float32"]
    assert run_command_line(typed) == 0
    assert run_command_line(lines[0].split()[3:]) == 0
    weights = load_file(tmp_path / "model" / "model.safetensors")
    name = next(name for name in sorted(weights) if name.endswith("layer.2.output.LayerNorm.weight"))
    weights[name] = weights[name] * np.array(1.01, weights[name].dtype)
    save_file(weights, tmp_path / "model" / "model.safetensors", metadata={"format": "pt"})
    capfd.readouterr()
    assert run_command_line(lines[0].split()[3:]) == 1
    said = capfd.readouterr().out
    assert said.startswith("moved at layer 3 by ")
    assert "weights of a norm changed (encoder.layer.2.output.LayerNorm.weight)" in said
