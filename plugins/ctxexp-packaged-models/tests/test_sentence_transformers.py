"""Against the library's own token embeddings, on a tiny model that the test makes and the library saves."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what the library's imports warn of is the library's business
    st = pytest.importorskip("sentence_transformers", reason="the library sentence-transformers is not installed")

from ctxexp_packaged_models.sentence_transformers import sentence_transformer

from ctxexp import Corpus
from ctxexp.command import registry
from ctxexp.errors import ModelError
from ctxexp.testing import check

TEXT = "unbelievable banks flooded"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with a real wordpiece tokenizer, as transformers saves it."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("bert")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##believ", "##able", "bank", "##s", "flooded"]
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]  # so that every word is spelled, none unknown
    pieces += letters + [f"##{letter}" for letter in letters if letter != "s"]
    (folder / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=512).save_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(3)
        shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
        model = BertModel(BertConfig(vocab_size=len(pieces), max_position_embeddings=512, **shape))
    for weight in model.parameters():
        weight.data *= 5 if weight.ndim > 1 else 1
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def library(plain: Path) -> Any:
    return st.SentenceTransformer(str(plain), device="cpu")


def saved(library: Any, folder: Path, subfolder: str = "", **settings: Any) -> Path:
    """The library's own files; `subfolder`: the layout of older versions; `settings` for sentence_bert_config.json."""
    library.save(str(folder))
    listing = json.loads((folder / "modules.json").read_text())
    if subfolder:
        listing[0]["path"] = subfolder
        (folder / subfolder).mkdir()
        for path in [p for p in folder.iterdir() if p.is_file() and p.name != "modules.json"]:
            path.rename(folder / subfolder / path.name)
        (folder / "modules.json").write_text(json.dumps(listing))
    place = folder / subfolder / "sentence_bert_config.json"
    held = json.loads(place.read_text()) if place.exists() else {}
    place.write_text(json.dumps(held | settings))
    return folder


@pytest.mark.parametrize("subfolder", ["", "0_Transformer"])
def test_the_last_layer_is_the_librarys_token_embeddings(library: Any, tmp_path: Path, subfolder: str) -> None:
    folder = saved(library, tmp_path / "model", subfolder)
    encoder = sentence_transformer(checkpoint=str(folder), pooling="pieces", device="cpu")
    (encoded,) = encoder.encode(Corpus.of("t", [TEXT.split()]).sentences)
    expected = library.encode([TEXT], output_value="token_embeddings")[0].numpy()
    assert encoded.layers.shape == (3, 6, 16)
    np.testing.assert_allclose(encoded.layers[-1], expected[1:-1], atol=1e-5)
    (words,) = sentence_transformer(checkpoint=str(folder), device="cpu").encode(
        Corpus.of("t", [TEXT.split()]).sentences
    )
    np.testing.assert_allclose(words.layers[-1][0], expected[1:4].mean(0), atol=1e-5)


def test_a_plain_transformers_folder_keeps_the_encoders_laws(plain: Path) -> None:
    encoder = sentence_transformer(checkpoint=str(plain), device="cpu")
    assert (encoder.n_layers, encoder.dim) == (3, 16)
    check("model", lambda: encoder)


def test_windows_are_the_models_own(library: Any, tmp_path: Path) -> None:
    whole = sentence_transformer(checkpoint=str(saved(library, tmp_path / "a")), device="cpu")
    short = sentence_transformer(checkpoint=str(saved(library, tmp_path / "b", max_seq_length=6)), device="cpu")
    assert (whole.window, short.window) == (512, 6)  # type: ignore[attr-defined]
    assert short.name.endswith(" window=6")
    corpus = Corpus.of("t", [TEXT.split() * 2]).sentences
    (a,), (b,) = whole.encode(corpus), short.encode(corpus)
    assert a.units == b.units
    assert np.abs(a.layers[-1] - b.layers[-1]).max() > 1e-3


def test_the_hubs_cache_is_enough(library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = "0123456789" * 4
    held = tmp_path / "models--some--model"
    (held / "refs").mkdir(parents=True)
    (held / "refs" / "main").write_text(commit)
    (held / "snapshots").mkdir()
    saved(library, held / "snapshots" / commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    encoder: Any = sentence_transformer(checkpoint="some/model", device="cpu")
    assert encoder.details["revision"] == commit
    assert f"some/model@{commit}" in encoder.name


def test_sentence_vectors_are_the_librarys_own(library: Any, plain: Path, tmp_path: Path) -> None:
    """Its mean pooling is `sentence.pooling=mean` in the last layer; one that it cuts off is cut off here too."""
    for name, settings in (("whole", {}), ("short", {"max_seq_length": 6})):
        folder = saved(library, tmp_path / name, **settings)
        view = sentence_transformer(checkpoint=str(folder), device="cpu").sentence_encoder()  # type: ignore[attr-defined]
        texts = [TEXT, "banks flooded", f"{TEXT} {TEXT}"]
        expected = st.SentenceTransformer(str(folder), device="cpu").encode(texts, batch_size=1)
        made = list(view.encode(Corpus.of("t", [text.split() for text in texts]).sentences))
        got = np.stack([one.layers[-1][one.units.index("mean")] for one in made])
        np.testing.assert_allclose(got, expected, atol=1e-5)


def test_settings_that_only_the_library_reads_are_named(library: Any, tmp_path: Path) -> None:
    folder = saved(library, tmp_path / "model", model_args={"num_hidden_layers": 1}, do_lower_case=True)
    with pytest.raises(ModelError, match=r"model_args\.num_hidden_layers=1 of its settings for sentence-transformers"):
        sentence_transformer(checkpoint=str(folder), device="cpu", unused="refuse", lowered=True)
    with pytest.raises(ModelError, match="do_lower_case=True of its settings"):
        registry().find("model", "huggingface").factory(checkpoint=str(folder), device="cpu", unused="refuse")
