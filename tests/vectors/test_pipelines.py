"""Models of sentence-transformers: sentence vectors are those of `SentenceTransformer.encode`, words the network's."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sentence_transformers", reason="the library sentence-transformers is not installed")

from ctxexp import Corpus, Encoder, Pair, Sentence, from_transformers, measure
from ctxexp.errors import ModelError
from ctxexp.maths import spearman
from tests.pipelines import PROMPT, dense, modules, pipeline, saved, st
from tests.tiny_models import Folder, encoder

pytestmark = pytest.mark.filterwarnings("ignore")  # as above
TEXTS = ["The quick brown fox", "unbelievable", "Money in the bank", " ".join(12 * ["the dog , ran"]), "a", "x 1"]
SENTENCES = tuple(Sentence.of(text.split()) for text in TEXTS)


def last_layer(made: Encoder) -> np.ndarray:
    view = made.sentence_encoder()
    return np.stack([one.layers[-1][one.units.index(view.poolings[0])] for one in view.encode(SENTENCES)])


def cut_left(model: Any) -> Any:
    model.tokenizer.truncation_side = model.tokenizer.init_kwargs["truncation_side"] = "left"
    return model


PIPELINES = {
    "mean": lambda f: pipeline(f),
    "cls": lambda f: pipeline(f, mode="cls"),
    "last": lambda f: pipeline(f, mode="lasttoken", max_seq_length=9),
    "normalized": lambda f: pipeline(f, modules.Normalize()),
    "prompt": lambda f: pipeline(f, **PROMPT),
    "prompt left out": lambda f: pipeline(f, include_prompt=False, **PROMPT),
    "prompt left out, cls": lambda f: pipeline(f, mode="cls", include_prompt=False, **PROMPT),
    "cut on the left": lambda f: cut_left(pipeline(f, max_seq_length=9)),
    "cut on the left, dense": lambda f: cut_left(pipeline(f, dense(), max_seq_length=9, **PROMPT)),
    "truncated": lambda f: pipeline(f, modules.Normalize(), truncate_dim=5),
    "max": lambda f: pipeline(f, mode="max"),
    "two poolings": lambda f: pipeline(f, dense(of=32), mode=("mean", "max"), include_prompt=False, **PROMPT),
    "weighted mean": lambda f: pipeline(f, mode="weightedmean"),
    "dense": lambda f: pipeline(f, dense(), modules.Normalize(), truncate_dim=6, **PROMPT),
    "normalized before dense": lambda f: pipeline(f, modules.Normalize(), dense(24, bias=False), max_seq_length=12),
    "normalized, cls": lambda f: pipeline(f, modules.Normalize(), mode="cls"),
    "lower-cased": lambda f: pipeline(f, do_lower_case=True),
    "layer norm": lambda f: pipeline(f, modules.LayerNorm(16)),
}


def of_each_kind() -> Iterator[Any]:
    """Each pipeline around a BERT or another network in turn; around the other of the two by night."""
    for i, name in enumerate(PIPELINES):
        kinds = ["bert", ("gpt2", "t5")[i % 4 // 2]]
        yield kinds[i % 2], name
        yield pytest.param(kinds[1 - i % 2], name, marks=pytest.mark.nightly)


@pytest.mark.parametrize(("kind", "name"), [*of_each_kind()])
def test_sentence_vectors_are_those_of_encode(tiny_model: Folder, tmp_path: Path, name: str, kind: str) -> None:
    network = tiny_model(kind)
    folder = saved(PIPELINES[name](network), tmp_path / "model")
    model = st.SentenceTransformer(str(folder), device="cpu")
    made = encoder(folder)
    expected = model.encode(TEXTS, batch_size=1, show_progress_bar=False)  # unpadded, as ours: float32 tells paddings
    scale = np.abs(expected).max()
    np.testing.assert_allclose(last_layer(made) / scale, expected / scale, atol=1e-6)
    own = PIPELINES[name](network)
    np.testing.assert_allclose(last_layer(from_transformers(own)) / scale, expected / scale, atol=1e-6)
    short = SENTENCES[4:]  # within any window
    for a, b in zip(made.encode(short), encoder(network).encode(short), strict=True):
        np.testing.assert_array_equal(a.layers, b.layers)  # words are the network's


SETTINGS = {  # file, what is said, change
    "arguments": ("modules.json", "kwargs=['task']", lambda one: [one[0], one[1] | {"kwargs": ["task"]}]),
    "a key of nobody": ("config_sentence_transformers.json", "scale.by=3", lambda one: one | {"scale": {"by": 3}}),
    "another input": (
        "2_Normalize/config.json",
        "module_input_name='token_embeddings'",
        lambda one: {"module_input_name": "token_embeddings", "module_output_name": "token_embeddings"},
    ),
    "nought": ("config_sentence_transformers.json", "", lambda one: one | {"scale": 0, "more": {"scale": None}}),
    "side": (
        "sentence_bert_config.json",
        "processing_kwargs.text.truncation_side='left'",
        lambda one: one | {"processing_kwargs": {"text": {"truncation_side": "left"}}},
    ),
    "output": (
        "sentence_bert_config.json",
        "modality_config.text.method='get_text_features'",
        lambda one: (
            one | {"modality_config": {"text": one["modality_config"]["text"] | {"method": "get_text_features"}}}
        ),
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_every_file_are_read_or_named_and_followed(
    tiny_model: Folder, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    file, said, change = SETTINGS[name]
    folder = saved(pipeline(tiny_model("bert"), modules.Normalize(), max_seq_length=9), tmp_path / "model")
    path = folder / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(change(json.loads(path.read_text() if path.is_file() else "{}"))))
    made = encoder(folder)
    assert said in caplog.text
    assert bool(caplog.text) is bool(said)
    try:
        expected = st.SentenceTransformer(str(folder), device="cpu").encode(TEXTS, batch_size=1)
        np.testing.assert_allclose(last_layer(made), expected, atol=1e-6)
    except ValueError:  # no such method
        with pytest.raises(ModelError):
            last_layer(made)


def test_pairs_are_scored_by_the_models_own_vectors(tiny_model: Folder, tmp_path: Path) -> None:
    folder = saved(PIPELINES["dense"](tiny_model("bert")), tmp_path / "model")
    pairs = [Pair(i, j, float(i * j % 5)) for i in range(6) for j in range(i)]
    results = measure(
        encoder(folder), Corpus("t", SENTENCES, pairs=tuple(pairs)), metrics="sts", options=["bootstrap=0"]
    )
    assert results.info.pooling.name == "mean"
    x = st.SentenceTransformer(str(folder), device="cpu").encode(TEXTS, normalize_embeddings=True)
    expected = spearman(np.array([x[p.first] @ x[p.second] for p in pairs]), np.array([p.gold for p in pairs]))
    assert results.frame.query("statistic == 'all'").value.iloc[-1] == pytest.approx(100 * expected, abs=1e-3)


def test_without_the_library_words_are_measured(
    tiny_model: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = saved(PIPELINES["dense"](tiny_model("bert")), tmp_path / "model")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    made = encoder(folder, unused="refuse")
    assert "its default prompt 'the bank: ' and its modules Pooling, Dense, Normalize, for words" in caplog.text
    assert len(list(made.encode(SENTENCES))) == len(TEXTS)
    with pytest.raises(ModelError, match="pip install sentence-transformers"):
        made.sentence_encoder()


def test_modules_that_take_more_than_hidden_states_are_refused(tiny_model: Folder, tmp_path: Path) -> None:
    """A hook between the network and its pooling."""
    model = PIPELINES["mean"](tiny_model("bert"))
    model[0].register_forward_hook(lambda module, args, out: {**out, "token_embeddings": 2 * out["token_embeddings"]})
    with pytest.raises(ModelError, match=r"SentenceTransformer\.encode gives sentence vectors that differ by"):
        from_transformers(model).sentence_encoder()
    folder = saved(PIPELINES["dense"](tiny_model("bert")), tmp_path / "model")
    (folder / "modules.json").write_text("[7]")
    with pytest.raises(ModelError, match=r"modules\.json, .* can't be read"):
        encoder(folder)
