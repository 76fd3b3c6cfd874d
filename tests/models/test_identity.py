"""A model in memory is what it computes: whatever changes that changes its name or keeps its vectors out of the cache;
reading leaves it as it was, and what is read is what its caller would compute.
"""

from __future__ import annotations

import functools
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as tr
from torch.nn.utils.parametrizations import weight_norm

import ctxexp
from ctxexp.errors import ConfigError, EncodingError, ModelError
from ctxexp.models.transformer.in_memory import find_network
from tests import tiny_models

SENTENCES = ["The bank was wet.", "The bank lent us money.", "A wet dog lent us money."]
SHAPE = {"vocab_size": 330, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return tiny_models.fast(*tiny_models.byte_level())


def llama(kind: Any = tr.LlamaForCausalLM) -> Any:
    torch.manual_seed(0)
    sizes = {"intermediate_size": 32, "num_key_value_heads": 2, "bos_token_id": 0, "eos_token_id": 0}
    return kind(tr.LlamaConfig(**SHAPE, **sizes)).eval()


def hooked(model: Any) -> None:
    model.model.layers[0].register_forward_hook(lambda module, args, out: out * 0.2)


def patched(model: Any) -> None:
    forward = model.model.layers[1].mlp.forward
    model.model.layers[1].mlp.forward = functools.wraps(forward)(lambda x: forward(x * 2))


class Halved(torch.nn.Module):
    """A user's parametrization."""

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight / 2


NAMED = {  # changes that no file and no weight tells
    "buffer": lambda model: model.model.rotary_emb.inv_freq.div_(4),
    "activation": lambda model: setattr(model.model.layers[0].mlp, "act_fn", torch.nn.ReLU()),
    "eps": lambda model: setattr(model.model.norm, "variance_epsilon", 1.0),
    "scale": lambda model: setattr(model.model.layers[0].self_attn, "scaling", 0.9),
    "config": lambda model: setattr(model.config, "rms_norm_eps", 0.5),
    "data": lambda model: model.model.embed_tokens.weight.data.mul_(2),
    "norm of weights": lambda model: weight_norm(model.model.layers[0].mlp.down_proj),
    "order": lambda model: model.model.layers.insert(0, model.model.layers.pop(1)),
}
OWN = {  # what may do anything on other text
    "hook": (hooked, "layers.0._forward_hooks"),
    "forward": (patched, "layers.1.mlp.forward"),
    "parametrization": (
        lambda model: torch.nn.utils.parametrize.register_parametrization(
            model.model.layers[0].mlp.down_proj, "weight", Halved()
        ),
        "Halved.(class)",
    ),
    "activation": (lambda model: setattr(model.model.layers[0].mlp, "act_fn", Halved()), "Halved.(class)"),
}


@pytest.mark.parametrize("change", NAMED)
def test_what_computes_something_else_has_another_name(change: str, tokenizer: Any) -> None:
    name = ctxexp.from_transformers(llama(), tokenizer).name
    assert ctxexp.from_transformers(llama(), tokenizer).name == name
    model = llama()
    encoder = ctxexp.from_transformers(model, tokenizer)
    NAMED[change](model)
    again = ctxexp.from_transformers(model, tokenizer)
    assert again.name != name
    assert "not_stored" not in again.details
    with pytest.raises(EncodingError, match="have changed since it was taken"):
        _ = encoder.name


def test_what_changes_nothing_leaves_the_name(tokenizer: Any, tmp_path: Path) -> None:
    model = llama()
    encoder = ctxexp.from_transformers(model, tokenizer)
    name = encoder.name
    model.train()
    model(input_ids=torch.tensor([[3, 4]]), output_hidden_states=True)  # transformers leaves its hooks
    model.save_pretrained(tmp_path)  # which writes to its config
    assert encoder.name == name == ctxexp.from_transformers(model, tokenizer).name
    assert pickle.loads(pickle.dumps(ctxexp.from_transformers(llama(), tokenizer))).name == name


@pytest.mark.parametrize("change", OWN)
def test_vectors_of_own_code_are_stored_for_nobody(
    change: str, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXEXP_CACHE", str(tmp_path))
    model, (alter, words) = llama(), OWN[change]
    alter(model)
    encoder = ctxexp.from_transformers(model, tokenizer)
    assert encoder.details["not_stored"] == words
    chosen = {"metrics": "anisotropy", "min_contexts": 2, "progress": False}
    first, again = (ctxexp.measure(encoder, SENTENCES, **chosen) for _ in range(2))
    assert first.summary().equals(again.summary())
    assert not list(tmp_path.rglob("layer_*"))
    ctxexp.measure(llama(), SENTENCES, tokenizer=tokenizer, **chosen)
    assert list(tmp_path.rglob("layer_*"))


def test_a_class_or_a_method_of_the_user_s_is_own_code(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    own = ctxexp.from_transformers(llama(type("Mine", (tr.LlamaModel,), {"__module__": __name__})), tokenizer)
    assert own.details["not_stored"] == "Mine.(class)"
    kind = type(llama().model.layers[0].mlp)
    forward = kind.forward
    monkeypatch.setattr(kind, "forward", lambda self, x: 2 * forward(self, x))
    assert ctxexp.from_transformers(llama(), tokenizer).details["not_stored"] == "LlamaMLP.forward"


def bert() -> Any:
    return tr.BertModel(tr.BertConfig(**SHAPE, intermediate_size=32)).eval()


def in_place(model: Any) -> Any:
    model.compile()
    return model


KINDS = {
    "encoder": bert,
    "decoder": lambda: llama().train(),
    "encoder-decoder": lambda: tr.T5ForConditionalGeneration(
        tr.T5Config(vocab_size=330, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2)
    ),
    "quantised": lambda: torch.ao.quantization.quantize_dynamic(bert(), {torch.nn.Linear}, dtype=torch.qint8),
    "compiled": lambda: torch.compile(llama()),
    "compiled in place": lambda: in_place(llama()),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:torch.quantize")
@pytest.mark.parametrize("kind", KINDS)
def test_reading_leaves_a_model_as_it_was(kind: str, tokenizer: Any) -> None:
    def state() -> list[Any]:
        dicts = [(k, v) for m in model.modules() for k, v in vars(m).items()]
        return [(k, [*v], [*map(id, v.values())]) if isinstance(v, dict) else (k, id(v)) for k, v in dicts]

    model = KINDS[kind]()
    torch.manual_seed(1)
    drawn, before, saved = torch.get_rng_state(), state(), pickle.dumps(model)
    encoder = ctxexp.from_transformers(model, tokenizer)
    assert len(list(encoder.encode([ctxexp.Sentence.of(["a", "wet", "dog"])]))) == 1
    assert state() == before
    assert len(pickle.dumps(model)) == len(saved)
    assert torch.equal(torch.get_rng_state(), drawn)


class Around(torch.nn.Module):
    """A wrapper that hands on what its network gives, times a factor."""

    def __init__(self, network: Any, factor: float) -> None:
        super().__init__()
        self.network, self.factor = network, factor

    def forward(self, **options: Any) -> Any:
        out = self.network(**options)
        out["hidden_states"] = tuple(self.factor * layer for layer in out.hidden_states)
        return out


def test_a_wrapper_that_changes_hidden_states_is_refused(tokenizer: Any) -> None:
    assert ctxexp.from_transformers(Around(llama(), 1.0), tokenizer).name == (
        ctxexp.from_transformers(llama(), tokenizer).name
    )
    with pytest.raises(ModelError, match="the hidden states of Around aren't those of the network inside it"):
        ctxexp.from_transformers(Around(llama(), 1.1), tokenizer)


def test_of_several_networks_the_one_in_training_is_taken() -> None:
    pair = torch.nn.ModuleDict({"teacher": llama(), "student": llama()})
    with pytest.raises(
        ConfigError, match=r"holds teacher \(LlamaForCausalLM\), student \(LlamaForCausalLM\): expected"
    ):
        find_network(pair)
    pair["student"].train()
    assert find_network(pair) is pair["student"]
    pair.train()
    pair["teacher"].requires_grad_(False)
    assert find_network(pair.eval()) is pair["student"]
