"""Transformers models as encoders: their own hidden states, pooled to words, whatever the batch."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from ctxexp import Sentence
from ctxexp.errors import ModelError
from ctxexp.models.transformer.pieces import best_window, windows
from tests import tiny_models
from tests.shipped import gpt2
from tests.tiny_models import Folder, edit, encoder

TEXTS = ["the naïve 👍🏽 fox , jumps", "unbelievable", "money in the bank", "the dog , running", "happiest 1234 x"]
SENTENCES = [Sentence.of(text.split()) for text in TEXTS]


def by_hand(folder: Path, sentence: Sentence, pooling: str = "mean") -> tuple[list[str], np.ndarray]:
    """transformers' own hidden states of one sentence, pooled word by word with plain loops."""
    read, hidden, _ = tiny_models.hidden_states(folder, sentence.text)
    units, vectors = [], []
    for word, (start, end) in zip(sentence.words, sentence.spans, strict=True):
        rows = [
            i for i, (a, b) in enumerate(read["offset_mapping"][0].tolist())
            if max(a, start) < min(b, end) and not read["special_tokens_mask"][0][i]
            and read.tokens()[i] != "▁"  # a space, whatever its span
        ]  # fmt: skip
        if rows:
            rows = {"mean": rows, "first": rows[:1], "last": rows[-1:]}[pooling]
            units.append(word)
            vectors.append(hidden[:, rows].mean(1))
    return units, np.stack(vectors, 1)


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_vectors_are_transformers_hidden_states_pooled_by_hand(tiny_model: Folder, kind: str) -> None:
    made = encoder(tiny_model(kind), unused="refuse")
    if kind != "qwen2":  # whose class cuts digits, which this tokenizer.json doesn't: that is said
        assert "warnings" not in made.details  # nothing is left over of what transformers saved
    assert (made.n_layers, made.dim) == (3, 16)
    for i, (sentence, encoded) in enumerate(zip(SENTENCES, made.encode(SENTENCES), strict=True)):
        made.check_encoded(i, encoded)
        units, vectors = by_hand(tiny_model(kind), sentence)
        assert list(encoded.units) == units
        scale = np.abs(vectors).max()  # rounding of float32 grows with the values that are summed, whatever kernel sums
        np.testing.assert_allclose(encoded.layers, vectors, atol=1e-6 * scale, rtol=0)


@pytest.mark.parametrize("pooling", ["first", "last"])
def test_first_and_last_piece(tiny_model: Folder, pooling: str) -> None:
    (encoded,) = encoder(tiny_model("gpt2"), pooling=pooling).encode(SENTENCES[:1])
    expected = by_hand(tiny_model("gpt2"), SENTENCES[0], pooling)[1]
    np.testing.assert_allclose(encoded.layers, expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "t5"])
def test_pieces_are_called_by_their_text(tiny_model: Folder, kind: str) -> None:
    """Whatever a vocabulary's spelling."""
    made = encoder(tiny_model(kind), pooling="pieces")
    sentence = Sentence.of(["The", "dog", ",", "unbelievable", "."])
    (encoded,) = made.encode([sentence])
    units = [unit for unit in encoded.units if unit != "▁"]
    assert "".join(unit.removeprefix("##") for unit in units) == "".join(sentence)
    assert sum(not unit.startswith("##") for unit in units) == len(sentence)
    assert "pooling=pieces units=text" in made.name  # a cache that holds the vocabulary's spelling is not met
    assert "units=" not in encoder(tiny_model(kind)).name


@pytest.mark.parametrize("kind", ["gpt2", "t5"])
def test_final_norm_is_an_explicit_switch(tiny_model: Folder, kind: str) -> None:
    with_norm, without = (encoder(tiny_model(kind), final_norm=norm, pooling="pieces") for norm in (True, False))
    (a,), (b,) = with_norm.encode(SENTENCES[:1]), without.encode(SENTENCES[:1])
    np.testing.assert_allclose(a.layers[:-1], b.layers[:-1], rtol=0, atol=2e-6)
    assert np.abs(a.layers[-1] - b.layers[-1]).max() > 1e-2
    norm = with_norm.model.get_submodule(with_norm.details["final_norm_module"])
    with torch.no_grad():
        np.testing.assert_allclose(norm(torch.from_numpy(b.layers[-1])).numpy(), a.layers[-1], atol=1e-5)
    assert "final_norm=False" in without.name


@pytest.mark.parametrize(("kind", "prefix"), [("bert", "as_tokenizer"), ("gpt2", "as_tokenizer"), ("llama", "the dog")])
def test_long_sentences_are_read_in_windows(tiny_model: Folder, kind: str, prefix: str) -> None:
    """Against windows cut by hand: each piece's vector is that of the window which shows it the most context, and each
    window begins with what stands before the text."""
    made = encoder(tiny_model(kind), pooling="pieces", prefix=prefix)
    assert made.window == 40
    long = Sentence.of(["the quick brown fox jumps over the lazy dog"] * 7)
    (piece,) = made.reader([long])
    assert len(piece.ids) > 60
    before, after = piece.n_before, piece.n_after
    text = piece.ids[before : len(piece.ids) - after]
    size = 40 - before - after
    starts = windows(len(text), size, size // 2)
    chosen = best_window(len(text), starts, size, causal=kind in ("gpt2", "llama"))
    outputs = []
    for start in starts:
        ids = [*piece.ids[:before], *text[start : start + size], *piece.ids[len(piece.ids) - after :]]
        with torch.no_grad():
            out = made.model(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states
        outputs.append(torch.stack(out)[:, 0].numpy())
    expected = np.stack([outputs[w][:, before + i - starts[w]] for i, w in enumerate(chosen)], axis=1)
    encoded = list(made.encode([SENTENCES[0], long, SENTENCES[0]]))
    np.testing.assert_allclose(encoded[1].layers, expected, atol=1e-5)
    np.testing.assert_allclose(encoded[0].layers, encoded[2].layers, rtol=0, atol=2e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_types_are_stored_as_float16(tiny_model: Folder, dtype: str) -> None:
    (full,), (half,) = (encoder(tiny_model("gpt2"), dtype=d).encode(SENTENCES[:1]) for d in ("float32", dtype))
    assert half.layers.dtype == np.float16
    scale = np.abs(full.layers).max()
    assert 0 < np.abs(half.layers - full.layers).max() < 0.03 * scale


def test_identity_follows_content_not_place(tiny_model: Folder, tmp_path: Path) -> None:
    copy = shutil.copytree(tiny_model("gpt2"), tmp_path / "moved")
    first, moved = encoder(tiny_model("gpt2")), encoder(copy)
    assert moved.name == first.name
    assert {encoder(copy, pooling="last").name, encoder(copy, dtype="bfloat16").name}.isdisjoint({first.name})
    assert encoder(edit(copy, layer_norm_epsilon=1e-3)).name != first.name


def test_threads_and_random_state_are_left_alone(tiny_model: Folder, two_threads: int) -> None:
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    first, same, other = (
        gpt2(weights="untrained", checkpoint=str(tiny_model("gpt2")), device="cpu", seed=seed) for seed in (1, 1, 2)
    )
    a, b, c = (next(iter(e.encode(SENTENCES[:1]))).layers for e in (first, same, other))
    np.testing.assert_allclose(a, b, rtol=0, atol=2e-6)
    assert np.abs(a - c).max() > 1e-3
    assert first.name == same.name != other.name
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == two_threads


def json_change(name: str, **changes: object) -> Callable[[Path], object]:
    """Gives one of a folder's JSON files other values."""
    return lambda folder: edit(folder, name, **changes)


def weight_change(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Path], object]:
    """Changes a weight of a folder."""

    def write(folder: Path) -> None:
        weights = load_file(file := folder / "model.safetensors")
        save_file(weights | {name: change(weights[name])}, file, {"format": "pt"})

    return write


def remove_tokenizer(folder: Path) -> None:
    """transformers makes a tokenizer of special pieces alone, and every word would be unknown."""
    for file in folder.glob("tokenizer*"):
        file.unlink()


def truncation(name: str) -> Callable[[Path], object]:
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size - 9)


config = partial(json_change, "config.json")
REFUSED = [
    *((kind, remove_tokenizer, r"knows [01] pieces besides its special ones, but .* \d+ rows")
      for kind in ("gpt2", "t5")),
    # transformers would read them as floats, without the scale that made them
    ("gpt2", weight_change("h.0.mlp.c_fc.weight", lambda x: (x * 9).to(torch.int8)), "is of type I8 in its file"),
    *(("gpt2", truncation(name), f"^cannot load .*odd: {name} can't be read .*copy or download it again")
      for name in ("config.json", "tokenizer.json", "model.safetensors")),
    ("bert", config(intermediate_size=64), r"has shape \(.*32.*\) in its file, its config.json asks for .*64"),
    # its sizes missing, the type's own are taken: 7 billion weights would be drawn before any is found missing
    ("t5", config(model_type="qwen2"), r"describes [\d,]{12,} weights, its files hold [\d,]+"),
    ("bert", config(num_hidden_layers=1), r"\(encoder.layer.1.attention\S+, .* no place"),
    ("t5", config(num_layers=1), r"\(encoder.block.1.layer\S+, .* no place"),
    ("bert", config(num_hidden_layers=3), r"lacks \d+ weights of BertModel \(encoder.layer.2.* would be random"),
    ("bert", config(model_type="nonesuch"), r"cannot load .*odd.*nonesuch"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "change", "message"), REFUSED)
def test_files_that_don_t_fit_together_are_refused(
    tiny_model: Folder, tmp_path: Path, kind: str, change: Callable[[Path], object], message: str
) -> None:
    change(odd := shutil.copytree(tiny_model(kind), tmp_path / "odd"))
    with pytest.raises(ModelError, match=message):
        encoder(odd, unused="refuse")


def test_a_tokenizer_of_another_model_is_refused(tiny_model: Folder, tmp_path: Path) -> None:
    other = shutil.copytree(tiny_model("bert"), tmp_path / "other")
    shutil.copy(tiny_model("gpt2") / "tokenizer.json", other)  # more pieces than the table has rows
    made = encoder(other)
    with pytest.raises(ModelError, match=r"gives the piece .* the number \d+, but the model's .* has 180 rows"):
        made.lengths(SENTENCES)


def test_weights_that_overflow_a_half_type_are_refused(tiny_model: Folder, tmp_path: Path) -> None:
    odd = shutil.copytree(tiny_model("gpt2"), tmp_path / "odd")
    weight_change("h.1.ln_2.bias", lambda x: x.fill_(1e6))(odd)
    with pytest.raises(ModelError, match=r"h.1.ln_2.bias holds .* or it overflows in torch.float16: try dtype="):
        encoder(odd, dtype="float16")


@pytest.mark.parametrize("said", ["many", 0])
def test_a_length_that_is_none_leaves_it_to_the_positions(tiny_model: Folder, tmp_path: Path, said: object) -> None:
    odd = shutil.copytree(tiny_model("bert"), tmp_path / "odd")
    json_change("tokenizer_config.json", model_max_length=said)(odd)
    assert encoder(odd).window == 40


def test_pieces_that_cover_nothing_are_refused() -> None:
    """As Llama 3's once did: every piece's span was empty, so no word would have met its own."""
    from tokenizers import Regex, normalizers

    from ctxexp.models.transformer.pieces import PieceReader

    backend, special = tiny_models.wordpiece()
    backend.normalizer = normalizers.Replace(Regex("^"), "the ")
    reader = PieceReader(tiny_models.fast(backend, special), pooling="mean", source="x/y")
    with pytest.raises(ModelError, match=r"x/y: its tokenizer says that the piece 'the' covers no character \(0, 0\)"):
        reader(SENTENCES)


def test_unknown_pieces_are_counted(tiny_model: Folder) -> None:
    made = encoder(tiny_model("bert"))
    sentences = [Sentence.of(["the", "漢字", "dog"]), Sentence.of(["€"])]
    pieces = [piece for s in sentences for piece in made.reader.backend.encode(s.text).tokens]
    n_text = len([piece for piece in pieces if piece not in ("[CLS]", "[SEP]")])
    assert made.count_unknown(sentences) == (pieces.count("[UNK]"), n_text)
    assert pieces.count("[UNK]") == 3
    assert made.count_unknown([]) == (0, 0)
    assert made.sentence_encoder().count_unknown(sentences) == made.count_unknown(sentences)
    assert encoder(tiny_model("gpt2")).count_unknown(sentences)[0] == 0  # bytes are never unknown
    assert encoder(tiny_model("t5")).count_unknown(sentences)[0] > 0  # whose model doesn't say which piece that is


def test_gelu_in_one_pass_is_of_float32_and_without_hooks(tiny_model: Folder) -> None:
    """Half types would be rounded once instead of eight times; a hook on the layer would be passed by."""
    half = encoder(tiny_model("gpt2"), dtype="bfloat16")
    assert half.forward.activations == []  # type: ignore[attr-defined]
    model = encoder(tiny_model("gpt2"))
    (plain,) = model.encode(SENTENCES[:1])
    model.model.h[0].mlp.act.register_forward_hook(lambda *args: 0 * args[-1])  # type: ignore[attr-defined]
    (silenced,) = model.encode(SENTENCES[:1])
    assert np.abs(plain.layers[1] - silenced.layers[1]).max() > 1e-3
