"""ELMo: the original implementations' vectors, a naive reference for what they don't cover, files and encoder laws."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from ctxexp import Sentence
from ctxexp.errors import ModelError
from ctxexp.files import file_sha256
from ctxexp.models import ElmoNetwork
from ctxexp.models.elmo import encoder as reading
from ctxexp.models.elmo.encoder import character_ids
from ctxexp.models.elmo.files import (
    layout,
    read_options,
    read_weights,
    write_options,
    write_weights,
)
from tests.shipped import elmo
from tests.tiny_models import elmo_options as small

SENTENCES = {"allennlp": "sentences.json", "bilm_tf": "lm_embeddings_sentences.json"}
BOUND = 5e-6


def network(options: Any, *, scale: float = 1.0, seed: int = 0) -> ElmoNetwork:
    """Random weights; a scale above 1 makes the clips act."""
    generator = torch.Generator().manual_seed(seed)
    net = ElmoNetwork(options, generator=generator)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(scale).add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return net.eval()


def encoder(options: Any | None = None, **choices: Any) -> reading.ElmoEncoder:
    options = options or small()
    return reading.ElmoEncoder(
        options, network(options, scale=2).state_dict(), source="test", identity="x:y", **choices
    )


def vectors(one: reading.ElmoEncoder, *sentences: str) -> list[np.ndarray]:
    return [encoded.layers for encoded in one.encode([Sentence.of(s.split()) for s in sentences])]


# ---------------------------------------------------------------- the original implementations' vectors


def fixture_error(folder: Path, one: reading.ElmoEncoder) -> float:
    """Largest error of the top layer over the thirty sentences, which the original read as three streams at once."""
    worst = 0.0
    for k, texts in enumerate(json.loads((folder / SENTENCES[folder.name]).read_text())):
        with h5py.File(folder / f"lm_embeddings_{k}.hdf5") as file:
            for i, found in enumerate(one.encode([Sentence.of(text.split()) for text in texts])):
                expected = np.concatenate(list(file[str(i)][...]), axis=-1)
                one.check_encoded(i, found)
                worst = max(worst, float(np.abs(found.layers[-1] - expected).max()))
    return worst


def fixture_encoder(folder: Path, **choices: Any) -> reading.ElmoEncoder:
    files = {"options_file": str(folder / "options.json"), "weight_file": str(folder / "lm_weights.hdf5")}
    return elmo(**files, state="carry", **choices)


@pytest.mark.parametrize("name", sorted(SENTENCES))
def test_the_originals_top_layer_is_met(shared: Path, name: str) -> None:
    assert fixture_error(shared / "elmo_fixture" / name, fixture_encoder(shared / "elmo_fixture" / name)) < BOUND


def test_the_originals_token_layer_is_met(shared: Path) -> None:
    folder = shared / "elmo_fixture" / "allennlp"
    words = (folder / "vocab_test.txt").read_text("utf-8").split("\n")
    with h5py.File(folder / "elmo_token_embeddings.hdf5") as file:
        expected = file["embedding"][...]
    options = read_options(folder / "options.json")
    net = ElmoNetwork(options)
    net.load_state_dict(read_weights(folder / "lm_weights.hdf5", options))
    found = net.tokens(torch.from_numpy(character_ids(words))).detach().numpy()
    assert np.abs(found - expected).max() < BOUND


# ---------------------------------------------------------------- a naive reference, word by word, in float64


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def naive_token(arrays: dict[str, np.ndarray], options: Any, word: str) -> np.ndarray:
    inner = {"<S>": [256], "</S>": [257]}.get(word, list(word.encode()[: options.word_width - 2]))
    ids = [258, *inner, 259]
    ids += [260] * (options.word_width - len(ids))
    rows = arrays["char_embed"][ids]
    peaks = []
    for i, (width, number) in enumerate(options.filters):
        w = arrays[f"CNN/W_cnn_{i}"][0]
        at = [sum(rows[p + q] @ w[q] for q in range(width)) for p in range(options.word_width - width + 1)]
        peaks.append(np.max(at, axis=0) + arrays[f"CNN/b_cnn_{i}"])
        assert peaks[-1].shape == (number,)
    x = np.concatenate(peaks)
    x = np.tanh(x) if options.activation == "tanh" else np.maximum(x, 0)
    for j in range(options.n_highway):
        gate = _sigmoid(x @ arrays[f"CNN_high_{j}/W_carry"] + arrays[f"CNN_high_{j}/b_carry"])
        new = np.maximum(x @ arrays[f"CNN_high_{j}/W_transform"] + arrays[f"CNN_high_{j}/b_transform"], 0)
        x = gate * new + (1 - gate) * x
    if "CNN_proj/W_proj" in arrays:
        x = x @ arrays["CNN_proj/W_proj"] + arrays["CNN_proj/b_proj"]
    return x


def naive_layers(path: Path, options: Any, words: list[str]) -> np.ndarray:
    with h5py.File(path) as file:
        arrays = {name: file[name][...].astype(np.float64) for name in layout(options)}
    tokens = [naive_token(arrays, options, w) for w in ["<S>", *words, "</S>"]]
    outputs = [[np.concatenate([t, t]) for t in tokens]]
    halves = []
    for d in range(2):
        x = tokens if d == 0 else tokens[::-1]
        halves.append([])
        for layer in range(options.n_layers):
            cell = f"RNN_{d}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            c, m, out = np.zeros(options.cells), np.zeros(options.projection), []
            for v in x:
                gates = np.concatenate([v, m]) @ arrays[f"{cell}/W_0"] + arrays[f"{cell}/B"]
                i, j, f, o = np.split(gates, 4)
                c = _sigmoid(f + 1) * c + _sigmoid(i) * np.tanh(j)
                c = np.clip(c, -options.cell_clip, options.cell_clip)
                m = (_sigmoid(o) * np.tanh(c)) @ arrays[f"{cell}/W_P_0"]
                m = np.clip(m, -options.projection_clip, options.projection_clip)
                out.append(m + v if layer and options.skip else m)
            x = out
            halves[d].append(out if d == 0 else out[::-1])
    for layer in range(options.n_layers):
        outputs.append([np.concatenate(pair) for pair in zip(halves[0][layer], halves[1][layer], strict=True)])
    return np.array(outputs)[:, 1:-1]


@pytest.mark.parametrize(
    "options",
    [
        small(),
        small(activation="tanh", n_highway=2),
        small(projection=13, n_highway=0),  # as many filters as projection: none is applied
        small(skip=False, cell_clip=0.3, projection_clip=0.2, n_layers=3),
        small(cell_clip=float("inf"), projection_clip=float("inf"), word_width=12, n_layers=1),
    ],
    ids=["plain", "tanh", "no projection", "tight clips", "no clips, short words"],
)
def test_every_layer_equals_the_naive_reference(tmp_path: Path, options: Any) -> None:
    net = network(options, scale=2)
    write_weights(tmp_path / "w.hdf5", net.state_dict(), options)
    one = reading.ElmoEncoder(options, net.state_dict(), source="t", identity="x:y")
    words = ["The", "naïve", "", "🙂🙂", "x" * 60, "é" * 30, "<S>", "end"]
    (found,) = one.encode([Sentence.of(words)])
    assert found.units == tuple(words)
    np.testing.assert_allclose(found.layers, naive_layers(tmp_path / "w.hdf5", options, words), atol=BOUND)


# ---------------------------------------------------------------- laws of the encoder


def test_reset_neither_order_nor_company_matters() -> None:
    one = encoder()
    texts = ["a b c", "the same", "d e f", "x", "g h i j k", "the same", "l m n"]
    together = vectors(one, *texts)
    np.testing.assert_array_equal(together[1], together[5])
    for text, expected in zip(reversed(texts), reversed(together), strict=True):
        np.testing.assert_allclose(vectors(one, text)[0], expected, atol=1e-6)
    assert not one.sequential


def test_carry_goes_on_from_the_sentence_before_whatever_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    one, texts = encoder(state="carry"), ["a b c d", "e", "f", "g h i", "j k"]
    assert one.sequential
    found = vectors(one, *texts)
    assert np.abs(found[2] - vectors(one, "f")[0]).max() > 1e-3
    monkeypatch.setattr(reading, "BLOCK", 2)
    for a, b in zip(found, vectors(one, *texts), strict=True):  # each call starts at zero
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_the_table_of_token_vectors_is_bounded_and_never_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["a b c", "d e f", "a e x", "q r s t u v"]
    expected = [vectors(encoder(), text)[0] for text in texts]
    monkeypatch.setattr(reading, "MOST_WORDS", 6)
    monkeypatch.setattr(reading, "AT_ONCE", 4)
    monkeypatch.setattr(reading, "BLOCK", 2)
    one = encoder()
    for found, wanted in zip(vectors(one, *texts, *texts), expected * 2, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert len(one._row_of) <= 11


def test_words_met_before_move_a_vector_by_rounding_alone() -> None:
    """What a worker process differs by, which meets other blocks than a single process: its words have other company
    when they are embedded. The docs say 1e-6 of a vector's length."""
    rng = np.random.default_rng(0)
    blocks = [[" ".join(f"w{j}" for j in rng.integers(0, 300, 9)) for _ in range(40)] for _ in range(3)]
    single, worker = encoder(), encoder()
    for block in blocks[:2]:
        vectors(single, *block)
    for ours, theirs in zip(vectors(single, *blocks[2]), vectors(worker, *blocks[2]), strict=True):
        assert np.abs(ours - theirs).max() <= 1e-6 * np.linalg.norm(ours, axis=-1).min()


def test_the_name_changes_with_whatever_changes_the_vectors(tmp_path: Path) -> None:
    files = []
    for seed, options in ((0, small()), (1, small()), (0, small(skip=False))):
        folder = tmp_path / f"{len(files)}"
        folder.mkdir()
        write_options(folder / "o.json", options)
        write_weights(folder / "w.hdf5", network(options, seed=seed).state_dict(), options)
        files.append({"options_file": str(folder / "o.json"), "weight_file": str(folder / "w.hdf5")})
    half, carry = {"dtype": "bfloat16"}, {"state": "carry"}
    made = [elmo(**f) for f in files] + [elmo(**files[0], **k) for k in (half, carry)]
    made += [elmo(weights="untrained", options_file=files[0]["options_file"], seed=s) for s in (0, 1)]
    assert len({one.name for one in made}) == len(made) == 7
    assert [next(iter(made[i].encode([Sentence.of("ab")]))).layers.dtype for i in (0, 3)] == [np.float32, np.float16]
    again = elmo(weights="untrained", options_file=files[0]["options_file"], seed=1)
    assert again.name == made[-1].name
    assert file_sha256(Path(files[0]["weight_file"]))[:16] in made[0].name


# ---------------------------------------------------------------- messages


def _broken_files(tmp_path: Path, damage: str) -> None:
    options = small()
    write_options(tmp_path / "o.json", options)
    state = network(options).state_dict()
    if damage == "nan":
        state["tokens.characters"][0, 0] = float("nan")
    write_weights(tmp_path / "w.hdf5", state, options)
    with h5py.File(tmp_path / "w.hdf5", "a") as file:
        if damage == "missing":
            del file["RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_P_0"]
        elif damage == "more":
            file["RNN_0/RNN/MultiRNNCell/Cell2/LSTMCell/B"] = np.zeros(48, np.float32)
        elif damage == "shape":
            del file["char_embed"]
            file["char_embed"] = np.zeros((262, 4), np.float32)
    if damage == "text":
        (tmp_path / "w.hdf5").write_text("not HDF5")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("missing", r"dataset 'RNN_1/.*/Cell1/LSTMCell/W_P_0' isn't there, .*do the two files match"),
        ("shape", r"dataset 'char_embed' has shape \(262, 4\) \(float32\), its options ask for \(261, 4\) of floats"),
        ("more", r"dataset 'RNN_0/.*/Cell2/LSTMCell/B' has shape \(48,\) \(float32\), its options ask for none;"),
        ("nan", r"dataset 'char_embed' holds NaN or infinite values; the file is damaged"),
        ("text", r"w\.hdf5 can't be read as HDF5"),
    ],
)
def test_damaged_weights_are_named(tmp_path: Path, damage: str, message: str) -> None:
    _broken_files(tmp_path, damage)
    with pytest.raises(ModelError, match=message):
        elmo(options_file=str(tmp_path / "o.json"), weight_file=str(tmp_path / "w.hdf5"))
