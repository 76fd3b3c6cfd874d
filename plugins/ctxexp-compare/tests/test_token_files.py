"""Every planted off-by-one, norm, gap and transpose is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from ctxexp_compare import check
from ctxexp_compare.checks.token_files import read_vectors
from ctxexp_compare.checks.tokens import identify

import ctxexp
from ctxexp.command import Experiment, configured, registry
from ctxexp.datasets import tokenizer
from ctxexp.errors import DataError, ModelError
from ctxexp.models import TokenStates
from tests.seeds import daily_seed
from tests.shipped import polysemy

TEXTS = ["The bank of the river was unbelievably wet.", "A bank lent us money.", "We sat on the bank, quietly."]
LAST = 4
Plant = Callable[[TokenStates], np.ndarray]


def layers(*numbers: int) -> Plant:
    return lambda s: s.layers[list(numbers)]


def with_last(change: Callable[[TokenStates], np.ndarray]) -> Plant:
    return lambda s: np.concatenate([s.layers[:LAST], change(s)[None]])


def normed(s: TokenStates, *numbers: int) -> np.ndarray:
    return np.asarray(s.normed[list(numbers)])


def unit(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


def noise(x: np.ndarray, share: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    z = rng.normal(size=x.shape)
    return np.asarray(x + share * unit(z) * np.linalg.norm(x, axis=-1, keepdims=True))


WHOLE = "layers 0 to 4 here are hidden_states[0] to hidden_states[4]"
PLANTED: dict[str, tuple[Plant, str]] = {  # the vectors, and a part of the sentence that names them
    "as it is": (lambda s: s.layers, "same: "),
    "input layer missing": (
        layers(1, 2, 3, 4),
        "layers 0 to 3 here are hidden_states[1] to hidden_states[4]; layer 0 is missing",
    ),
    "both ends missing": (
        layers(1, 2, 3),
        "layers 0 to 2 here are hidden_states[1] to hidden_states[3]; layers 0, 4 are missing",
    ),
    "gap": (layers(0, 1, 3, 4), "layers 2 to 3 here are hidden_states[3] to hidden_states[4]; layer 2 is missing"),
    "one layer": (layers(2), "layer 4 here is hidden_states[2]"),
    "reversed": (layers(4, 3, 2, 1, 0), "layer 0 here is hidden_states[4]; layer 1 here is hidden_states[3]"),
    "one twice": (layers(0, 1, 1, 3, 4), "layer 2 here is hidden_states[1]; layers 3 to 4"),
    "no final norm": (with_last(lambda s: s.before_norm), "layer 4 here is hidden_states[4] before the final norm"),
    "final norm on every layer": (
        lambda s: normed(s, 0, 1, 2, 3),
        "layers 0 to 3 here are hidden_states[0] to hidden_states[3] after the final norm; layer 4 is missing",
    ),
    "final norm on a middle layer": (
        lambda s: np.concatenate([s.layers[:2], normed(s, 2), s.layers[3:]]),
        "layer 2 here is hidden_states[2] after the final norm",
    ),
    "rows of length 1": (lambda s: unit(s.layers), f"{WHOLE}, but normalising (each vector has length 1"),
    "rows a token late": (lambda s: np.roll(s.layers, 1, axis=1), f"{WHOLE}; row 1 here is token 0"),
    "rows a token early": (lambda s: np.roll(s.layers, -1, axis=1), f"{WHOLE}; row 0 here is token 1"),
    "rounding of one percent": (lambda s: noise(s.layers, 0.01), "rounded, as bfloat16 would"),
    "another model's": (
        lambda s: np.random.default_rng(1).normal(size=s.layers.shape),
        "layer 0 here is no hidden state of this checkpoint (nearest: ",
    ),
}


def some_rows(share: float, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[list[np.ndarray]], None]:
    """Change a share of all sentences' rows, drawn, the same in each layer: `change` gets them (layers, rows, dim)."""

    def plant(vectors: list[np.ndarray]) -> None:
        places = [(i, j) for i, x in enumerate(vectors) for j in range(x.shape[1])]
        rng = np.random.default_rng(daily_seed())
        chosen = [places[k] for k in rng.choice(len(places), round(share * len(places)), replace=False)]
        changed = change(np.stack([vectors[i][:, j] for i, j in chosen], axis=1))
        for k, (i, j) in enumerate(chosen):
            vectors[i][:, j] = changed[:, k]

    return plant


def permute_sentences(vectors: list[np.ndarray]) -> None:
    """The sentences of a third of the text that have as many tokens as another change places with it."""
    by_length = {}
    for i, x in enumerate(vectors):
        by_length.setdefault(x.shape[1], []).append(i)
    pairs = [(own[k], own[k + 1]) for own in by_length.values() for k in range(0, len(own) - 1, 2)]
    for a, b in pairs[: len(vectors) // 6]:
        vectors[a], vectors[b] = vectors[b], vectors[a]


def zero_first(vectors: list[np.ndarray]) -> None:
    for x in vectors:
        x[:, 0] = 0


def scale_all(vectors: list[np.ndarray]) -> None:
    for x in vectors:
        x *= 1.05


IN_ROWS: dict[str, tuple[Callable[[list[np.ndarray]], None], str]] = {  # of an adversary, and a part of their name
    "zero": (some_rows(0.4, np.zeros_like), "rows missing (393 of 983 are zero"),
    "other tokens": (some_rows(0.4, lambda rows: np.roll(rows, 1, axis=1)), "rows swapped"),
    "permuted sentences": (permute_sentences, "rows swapped"),
    "first token": (zero_first, "rows missing (40 of 983 are zero"),
    "noise in all": (some_rows(1, lambda rows: noise(rows, 0.08)), "rounded, as 8bit would"),
    "noise in some": (some_rows(0.1, lambda rows: noise(rows, 0.08)), "rows differ, number "),
    "scale": (scale_all, "normalising (lengths are 1.05 times"),
    "scale of some": (some_rows(0.2, lambda rows: 1.05 * rows), "rows differ, number "),
    "one row": (some_rows(1e-3, lambda rows: 1.02 * rows), "1 of "),
}


def states_of(model: str, *options: str) -> list[TokenStates]:
    """The token states of the texts."""
    encoder = Experiment(configured(model, options=list(options))).encoder
    return [encoder.token_states(tokenizer("english")(text)) for text in TEXTS]


@pytest.fixture(scope="module")
def gpt2() -> list[TokenStates]:
    return states_of("gpt2")


@pytest.fixture(scope="module")
def bert() -> list[TokenStates]:
    return states_of("bert")


@pytest.mark.parametrize("name", PLANTED)
def test_planted_faults_are_named(name: str, gpt2: list[TokenStates]) -> None:
    plant, expected = PLANTED[name]
    found = identify([plant(s) for s in gpt2], gpt2)
    assert expected in found.sentences[0]
    assert found.passes("bfloat16") == (name in ("as it is", "rounding of one percent"))


@pytest.fixture(scope="module")
def long() -> tuple[list[ctxexp.Sentence], list[TokenStates]]:
    """Forty sentences with BERT's token states."""
    sentences = list(polysemy().sentences[:120:3])
    encoder = Experiment(configured("bert")).encoder
    return sentences, [encoder.token_states(sentence) for sentence in sentences]


@pytest.mark.parametrize("name", IN_ROWS)
def test_rows_that_an_adversary_changes_are_named(
    name: str, long: tuple[list[ctxexp.Sentence], list[TokenStates]]
) -> None:
    """In every sentence, not in the first alone."""
    plant, expected = IN_ROWS[name]
    vectors = [s.layers.copy() for s in long[1]]
    plant(vectors)
    found = identify(vectors, long[1])
    assert expected in found.sentences[0], found.sentences
    assert [one["is"] for one in found.layers] == [0, 1, 2, 3, 4]
    assert found.verdict != "same"


def test_nothing_is_named_where_there_is_nothing(gpt2: list[TokenStates]) -> None:
    """Random numbers, shuffled columns, an untrained network of the same shape."""
    rng = np.random.default_rng(0)
    order = rng.permutation(gpt2[0].layers.shape[2])
    untrained = [s.layers for s in states_of("gpt2", "weights=untrained")]
    for vectors in ([rng.normal(size=s.layers.shape) for s in gpt2], [s.layers[:, :, order] for s in gpt2], untrained):
        assert all(one["is"] is None for one in identify(vectors, gpt2).layers)


def test_states_are_those_of_transformers(bert: list[TokenStates]) -> None:
    from transformers import AutoModel, AutoTokenizer

    folder = registry().find("model", "bert").factory.model_files[0].find()
    model, own = AutoModel.from_pretrained(folder, dtype="float32").eval(), AutoTokenizer.from_pretrained(folder)
    out = model(**own(TEXTS[0], return_tensors="pt"), output_hidden_states=True).hidden_states
    assert bert[0].layers == pytest.approx(np.stack([x[0].detach().numpy() for x in out]), abs=1e-5)
    assert bert[0].before_norm is None  # BERT has no final norm
    text_only = [s.layers[:, 1:-1] for s in bert]  # without [CLS] and [SEP]
    found = identify(text_only, bert)
    assert (found.verdict, found.notes) == ("same", ("note: special tokens are left out",))


def save_all(folder: Path, states: list[TokenStates]) -> tuple[Path, Path]:
    """The same vectors by sentence, and as vLLM writes them; other formats are those of files with words."""
    from safetensors.numpy import save_file

    np.savez(folder / "own.npz", **{f"sentence_{i}": s.layers for i, s in enumerate(states)})
    (folder / "vllm").mkdir()
    for i, s in enumerate(states):  # layers 1 to 3 and the last, which vLLM gives before the norm
        x = np.concatenate([s.layers[1:LAST], s.before_norm[None]]).transpose(1, 0, 2)
        tensors = {"hidden_states": np.ascontiguousarray(x), "token_ids": s.ids.astype(np.int64)}
        save_file(tensors, folder / "vllm" / f"{i}.safetensors")
    return folder / "own.npz", folder / "vllm"


def test_formats_are_read_by_their_layouts(tmp_path: Path, gpt2: list[TokenStates]) -> None:
    (tmp_path / "text.txt").write_text("\n".join(TEXTS) + "\n")
    npz, vllm = (check("gpt2", file, text=tmp_path / "text.txt") for file in save_all(tmp_path, gpt2))
    assert (npz.verdict, len(npz.layers)) == ("same", 5)
    assert (vllm.verdict, len(vllm.layers)) == ("different", 4)
    assert "layer 3 here is hidden_states[4] before the final norm; layer 0 is missing" in vllm.sentences[0]
    numbered = identify([s.layers[[1, 2, 4]] for s in gpt2], gpt2, [1, 2, 4]).sentences[0]
    assert "layers 1 to 2 here are hidden_states[1] to hidden_states[2]; layer 4 here is" in numbered


def test_what_cannot_be_read_is_said_in_a_line(tmp_path: Path, gpt2: list[TokenStates]) -> None:
    npz, vllm = save_all(tmp_path, gpt2)
    (tmp_path / "own.txt").write_text("x")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04")
    np.savez(tmp_path / "nan.npz", **{f"s{i}": s.layers * np.nan for i, s in enumerate(gpt2)})
    for name, said in {
        "none.npz": "no such file or folder",
        "own.txt": "own.txt: expected .npz, .parquet",
        "broken.npz": "broken.npz can't be read",
        "nan.npz": "holds NaN or infinite numbers",
    }.items():
        with pytest.raises(DataError, match=said):
            read_vectors(tmp_path / name, gpt2)
    with pytest.raises(DataError, match="its token_ids begin"):
        read_vectors(vllm, [gpt2[1], gpt2[0], gpt2[2]])
    with pytest.raises(DataError, match="vectors of 3 sentences, the text 2 sentences"):
        check("gpt2", npz, text=TEXTS[:2])
    with pytest.raises(DataError, match=r"arrays of shape \(5, \d+, 192\); expected .layers, tokens, columns."):
        check("gpt2", npz, text=["Another text altogether, which is far longer.", *TEXTS[1:]])
    with pytest.raises(ModelError, match="expected a transformer"):
        check("random_words", npz, text=TEXTS)
