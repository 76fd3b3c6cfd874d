"""`model.layers`: a subset is encoded, kept and measured under its true numbers, to the bit as in the full run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel

import ctxexp
from ctxexp import Corpus, Pair, Results, Sentence
from ctxexp.errors import ConfigError
from ctxexp.models.transformer.forward import ForwardPass, model_facts
from ctxexp.vectors.encoding import open_store
from tests.tiny_models import Folder, encoder

WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog", "money", "in", "bank", "river"]
FEW = (0, 2)


@pytest.fixture(scope="module")
def gpt2(tiny_model: Folder) -> Path:
    return tiny_model("gpt2")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    rng = np.random.default_rng(0)
    sentences = tuple(Sentence.of([str(w) for w in rng.choice(WORDS, 6)]) for _ in range(24))
    return Corpus("tiny", sentences, tuple(Pair(i, i + 12, float(i % 5)) for i in range(12)))


def measured(folder: Path, corpus: Corpus, layers: tuple[int, ...] | None, *more: str) -> Results:
    metrics = ["self_similarity", "anisotropy", "word_norm", "intra_sentence_similarity", "sts"]
    options = ["min_contexts=2", "bootstrap=20", *more]
    return ctxexp.measure(encoder(folder, layers=layers), corpus, metrics=metrics, options=options)


def test_values_are_the_full_runs_at_these_layers(gpt2: Path, corpus: Corpus, tmp_path: Path) -> None:
    full, few = measured(gpt2, corpus, None), measured(gpt2, corpus, FEW)
    assert few.info.model.layers == FEW
    assert few.n_layers == 3
    kept = full.frame[full.frame.layer.isin(FEW)].reset_index(drop=True)
    curves = few.frame[few.frame.layer.notna()].reset_index(drop=True)
    assert kept.equals(curves)
    for key, held in few.by_key.items():
        if key.place == "layer":
            np.testing.assert_array_equal(held.value[list(FEW)], full.by_key[key].value[list(FEW)])
            assert np.isnan(held.value[1])
    assert {"raw_0", "raw_2"} <= set(few.tables["self_similarity"].columns)
    assert "raw_1" not in few.tables["self_similarity"].columns
    few.save(tmp_path)
    again = Results.load(tmp_path)
    assert again.frame.equals(few.frame)
    assert few.plot("self_similarity").axes[0].lines[0].get_xdata().tolist() == list(FEW)


def test_only_these_layers_are_stored_under_their_numbers(gpt2: Path, corpus: Corpus, tmp_path: Path) -> None:
    few, full = (encoder(gpt2, layers=layers) for layers in ([2, 0], None))
    assert few.name == full.name.replace(" dtype=", " layers=0,2 dtype=")
    assert encoder(gpt2, layers=(0, 1, 2)).name == full.name
    one = open_store(corpus, few, cache=tmp_path)
    assert sorted(p.name for p in one.path.glob("layer_*")) == ["layer_00.npy", "layer_02.npy"]
    again = open_store(corpus, few, cache=tmp_path)  # its checksums hold
    assert (again.n_encoded, again.layer_numbers, again.n_layers) == (0, FEW, 3)
    with pytest.raises(ctxexp.errors.StoreError, match=r"no layer 1: .* has layers 0, 2$"):
        again.layer(1)
    view, whole = few.sentence_encoder(), full.sentence_encoder()
    for a, b in zip(view.encode(corpus.sentences), whole.encode(corpus.sentences), strict=True):
        np.testing.assert_array_equal(a.layers, b.layers[list(FEW)])


def test_what_needs_other_layers_is_refused(gpt2: Path, corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^model\.layers=\[0, 3\]: no layer 3: .*gpt2 has layers 0 to 2$"):
        encoder(gpt2, layers=[0, 3])
    for layers in ([], [1, 1], [2, -1]):
        with pytest.raises(ConfigError, match=r"^model\.layers=\[.*\]: expected different layers, counted from 0"):
            encoder(gpt2, layers=layers)
    message = r"^last2: layers 1, 2: layer 1 of the model's 0 to 2 isn't encoded; add it to model.layers, or"
    with pytest.raises(ConfigError, match=message):
        measured(gpt2, corpus, FEW, "sentence.mixes=[last2]")
    with pytest.raises(ConfigError, match=r"no_sinks judges .* in every layer, of which only 0, 2 are there; leave"):
        measured(gpt2, corpus, FEW, "control=no_sinks", f"cache.folder={tmp_path}")
    assert not list(tmp_path.rglob("meta.json"))  # nothing was encoded for it


LONG = [Sentence.of(["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"])] * 3


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_only_the_layers_that_are_asked_for_are_kept(kind: str, tiny_model: Folder) -> None:
    full, last = (encoder(tiny_model(kind), layers=layers) for layers in (None, (2,)))
    assert np.array_equal(next(last.encode(LONG)).layers[0], next(full.encode(LONG)).layers[2])
    assert kept(last.forward(torch.arange(3, 9)[None])) == [2]


HEADS = {"vocab_size": 50, "num_attention_heads": 2, "hidden_size": 16}


def test_all_layers_are_kept_where_hooks_can_t_tell_them() -> None:
    """A block that is called several times gives several layers."""
    model = AutoModel.from_config(AutoConfig.for_model("albert", **HEADS, embedding_size=8, num_hidden_layers=3)).eval()
    facts = model_facts(model)
    assert (facts.n_layers, facts.sources, facts.is_hooked) == (4, {}, False)
    assert kept(ForwardPass(model, facts, (2,))(torch.arange(3, 9)[None])) == [0, 1, 2, 3]


def kept(out: Any) -> list[int]:
    return [i for i, one in enumerate(out.hidden_states) if one is not None]
