"""Nothing of a checkpoint that could change vectors is left out in silence: weights, own code, files, adapters."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from ctxexp import Sentence, from_transformers
from ctxexp.errors import ModelError
from ctxexp.models.transformer.checkpoint import folder_checkpoint
from ctxexp.models.transformer.unused import Leftovers, unused_settings
from tests import tiny_models
from tests.tiny_models import Folder, edit, encoder

Weights = dict[str, torch.Tensor]
SENTENCE = Sentence.of(["money", "in", "the", "bank", "by", "the", "river"])


@pytest.fixture
def copy(tiny_model: Folder, tmp_path: Path) -> Folder:
    return lambda kind: shutil.copytree(tiny_model(kind), tmp_path / kind)


def vectors(folder: Path) -> np.ndarray:
    return next(iter(encoder(folder).encode([SENTENCE]))).layers


def add(folder: Path, **weights: torch.Tensor) -> Path:
    file = folder / "model.safetensors"
    save_file(load_file(file) | {name.replace("__", "."): w for name, w in weights.items()}, file, {"format": "pt"})
    return folder


LOST = [
    ("llama", "layers.0.self_attn.q_proj.bias", (16,)),
    ("llama", "model.layers.1.self_attn.q_norm.weight", (8,)),
    ("bert", "encoder.layer.1.attention.self.distance_embedding.weight", (79, 8)),
    ("bert", "encoder.layer.0.attention.self.query.lora_A.default.weight", (2, 16)),
    ("bert", "prompt_encoder.embedding.weight", (4, 16)),
    ("gpt2", "transformer.h.0.attn.bias", (16,)),  # no mask, though transformers ignores the name
    ("t5", "encoder.block.0.layer.0.SelfAttention.q.bias", (16,)),
]


@pytest.mark.parametrize(("kind", "name", "shape"), LOST)
def test_a_weight_inside_the_network_that_has_no_place_is_named(
    copy: Folder, kind: str, name: str, shape: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    folder = add(copy(kind), **{name: torch.randn(shape)})
    with pytest.raises(ModelError, match=rf"1 \({name}\) of its weights, for which the network .*model.unused=warn"):
        encoder(folder, unused="refuse")
    for _ in range(2 if kind == "t5" else 0):  # a second time it is known by its description
        caplog.clear()
        assert name in encoder(folder, unused="warn").details["warnings"]
        assert name in caplog.text


KEPT = {
    "bert": {
        "cls.predictions.bias": torch.ones(180),
        "cls.seq_relationship.weight": torch.ones(2, 16),
        "classifier.weight": torch.ones(3, 16),
        "embeddings.position_ids": torch.arange(40)[None],
        "bert.embeddings.position_ids": torch.arange(512)[None],
    },
    "gpt2": {
        "h.0.attn.bias": torch.ones(1, 1, 40, 40).tril().bool(),
        "h.1.attn.masked_bias": torch.tensor(-1e4),
        "score.weight": torch.ones(2, 16),
    },
    "t5": {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": torch.ones(32, 2)},
    "roberta": {"qa_outputs.weight": torch.ones(2, 16), "lm_head.dense.weight": torch.ones(16, 16)},
    "llama": {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.tensor([1.0, 0.1, 0.01, 0.001])},
}


@pytest.mark.parametrize("kind", KEPT)
def test_heads_masks_and_buffers_are_not_missed(copy: Folder, kind: str) -> None:
    folder = copy(kind)
    before = vectors(folder)
    made = encoder(add(folder, **KEPT[kind]), unused="refuse")
    assert "warnings" not in made.details
    np.testing.assert_array_equal(next(iter(made.encode([SENTENCE]))).layers, before)


def test_rotary_frequencies_other_than_the_networks_are_named(copy: Folder) -> None:
    folder = add(copy("llama"), model__layers__0__self_attn__rotary_emb__inv_freq=torch.tensor([1.0, 0.3, 0.1, 0.03]))
    with pytest.raises(ModelError, match=r"rotary_emb\.inv_freq"):
        encoder(folder, unused="refuse")


def test_a_weight_that_may_be_a_head_is_measured_with_a_word(copy: Folder) -> None:
    made = encoder(add(copy("bert"), crf__transitions=torch.ones(3, 3)), unused="refuse")
    assert "crf.transitions" in made.details["warnings"]


def test_a_head_that_config_calls_tied_and_is_another_is_named(copy: Folder) -> None:
    folder = edit(copy("llama"), tie_word_embeddings=True)
    table = load_file(folder / "model.safetensors")["embed_tokens.weight"]
    encoder(add(folder, lm_head__weight=table.clone()), unused="refuse")
    with pytest.raises(ModelError, match=r"lm_head.weight, as config.json ties .* tie_word_embeddings=false"):
        encoder(add(folder, lm_head__weight=table + 1), unused="refuse")


def test_other_classes_are_named(copy: Folder) -> None:
    folder = copy("llama")
    for settings, message in (
        ({"architectures": ["LlamaBidirectionalModel"]}, "class LlamaBidirectionalModel that config"),
        ({"architectures": ["Qwen3ForCausalLM"]}, "class Qwen3ForCausalLM that config"),
    ):
        with pytest.raises(ModelError, match=message):
            encoder(edit(folder, **settings), unused="refuse")
    for name in ("LlamaForCausalLM", "LLaMAForCausalLM", "TFLlamaForCausalLM"):
        assert "warnings" not in encoder(edit(folder, architectures=[name]), unused="refuse").details
    contriever = edit(copy("bert"), architectures=["Contriever"])  # an encoder's class of its own is a head as a rule
    assert "Contriever" in encoder(contriever, unused="refuse").details["warnings"]


def test_own_code_that_is_run_is_part_of_the_name(copy: Folder) -> None:
    folder = edit(copy("bert"), auto_map={"AutoModel": "own.Own"}, architectures=["Own"])
    names = []
    for line in ("x = 1", "x = 2"):
        (folder / "own.py").write_text(f"from transformers import BertModel\nclass Own(BertModel):\n    {line}\n")
        made = encoder(folder, trust_remote_code=True, unused="refuse")
        assert made.details["architecture"] == "Own"
        names.append(made.name.split(" code=")[1])
    assert names[0] != names[1]


def test_weights_beside_those_that_are_read_are_named(copy: Folder) -> None:
    folder = copy("bert")
    shard = folder / "model-00002-of-00002.safetensors"
    save_file({"x": torch.ones(1)}, shard)
    with pytest.raises(ModelError, match=r"the weights in model-00002-of-00002.safetensors, beside"):
        encoder(folder, unused="refuse")
    shard.rename(folder / "consolidated.safetensors")
    assert "warnings" not in encoder(folder, unused="refuse").details


def write_adapter(folder: Path, seed: int) -> Weights:
    """A LoRA adapter beside the model; what it adds to each weight."""
    draw, deltas, stored = torch.Generator().manual_seed(seed), {}, {}
    for i in range(2):
        a, b = torch.randn(2, 16, generator=draw), torch.randn(16, 2, generator=draw)
        name = f"encoder.layer.{i}.attention.self.query"
        stored |= {f"base_model.model.{name}.lora_A.weight": a, f"base_model.model.{name}.lora_B.weight": b}
        deltas[f"{name}.weight"] = 2 * b @ a
    save_file(stored, folder / "adapter_model.safetensors", {"format": "pt"})
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["query"], "inference_mode": True}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return deltas


def test_an_adapter_beside_the_model_is_part_of_its_content(copy: Folder) -> None:
    folder = copy("bert")
    hashes = [folder_checkpoint(folder, source="x").content_hash]
    for seed in (1, 2):
        write_adapter(folder, seed)
        hashes.append(folder_checkpoint(folder, source="x").content_hash)
    assert len(set(hashes)) == 3


def test_an_adapter_beside_the_model_is_applied(copy: Folder) -> None:
    pytest.importorskip("peft", reason="adapters are read by peft")
    folder, merged = copy("bert"), copy("gpt2").parent / "merged"
    shutil.copytree(folder, merged)
    deltas = write_adapter(folder, 1)
    weights = load_file(merged / "model.safetensors")
    add(merged, **{name: weights[name] + delta for name, delta in deltas.items()})
    np.testing.assert_allclose(vectors(folder), vectors(merged), atol=1e-5)
    stored = load_file(folder / "adapter_model.safetensors")
    stored["base_model.model.encoder.layer.0.attention.self.query.lora_magnitude_vector"] = torch.ones(16)
    save_file(stored, folder / "adapter_model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match=r"the adapter beside the model .* doesn't fit it, by 1 \(.*magnitude"):
        encoder(folder)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:fan_in_fan_out")  # peft's
@pytest.mark.parametrize("kind", ["bert", "gpt2"])
@pytest.mark.parametrize("method", ["lora", "ia3"])
def test_tuned_models_in_memory_are_read_with_what_was_tuned(tiny_model: Folder, kind: str, method: str) -> None:
    """Against peft's own hidden states; a prompt, which stands in no layer, is refused."""
    peft = pytest.importorskip("peft", reason="tuned models are peft's")
    from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

    checkpoint, causal = tiny_model(kind), kind == "gpt2"
    task, linear = ("CAUSAL_LM", "c_attn") if causal else ("FEATURE_EXTRACTION", "query")
    model = (AutoModelForCausalLM if causal else AutoModel).from_pretrained(checkpoint)
    prompted = peft.get_peft_model(deepcopy(model), peft.PromptTuningConfig(task_type=task, num_virtual_tokens=4))
    with pytest.raises(ModelError, match="a prompt or prefix that peft has learned isn't read"):
        from_transformers(prompted, AutoTokenizer.from_pretrained(checkpoint))
    config = {
        "lora": lambda: peft.LoraConfig(r=2, target_modules=[linear], init_lora_weights=False),
        "ia3": lambda: peft.IA3Config(target_modules=[linear], feedforward_modules=[], init_ia3_weights=False),
    }[method]()
    tuned = peft.get_peft_model(model, config).eval()
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    ids = tokenizer(SENTENCE.text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        states = tuned(input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True).hidden_states
    made = from_transformers(tuned, tokenizer, pooling="pieces")
    begin = 0 if causal else 1  # [CLS]
    expected = torch.stack(states)[:, 0, begin : ids.shape[1] - begin].numpy()
    np.testing.assert_allclose(next(iter(made.encode([SENTENCE]))).layers, expected, atol=1e-5)
    assert made.window == 40


LEFT_OVER = [  # as on the hub: they change nothing
    ("bert", {"position_embedding_type": "absolute", "gradient_checkpointing": False, "pruned_heads": {}}),
    ("bert", {"finetuning_task": "sst2", "output_past": True, "torch_dtype": "float32", "model_max_length": 512}),
    ("roberta", {"max_length": 20, "problem_type": None, "_commit_hash": "0", "adapters": {}, "temp": 0.05}),
    ("gpt2", {"n_ctx": 40, "summary_type": "cls_index", "task_specific_params": {"x": {"do_sample": True}}}),
    ("llama", {"pretraining_tp": 1, "max_sequence_length": 40, "sliding_window": None, "rope_scaling": None}),
    ("llama", {"is_llama_config": True, "rope_interleaved": False, "transformers.js_config": {"dtype": "q4"}}),
    ("qwen2", {"use_mrope": False, "max_window_layers": 2, "use_sliding_window": False, "num_heads": 2}),
    ("deberta-v2", {"position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True, "legacy": True}),
    ("t5", {"n_positions": 512, "output_past": True, "relative_attention_max_distance": 128}),
]


Judge = Callable[[str, dict[str, object]], Leftovers]


@pytest.fixture(scope="module")
def judge(tiny_model: Folder) -> Judge:
    """What is said of a model's config.json with these settings."""
    from transformers import AutoModel

    network = cache(lambda kind: AutoModel.from_pretrained(tiny_model(kind)))

    def leftovers_of(kind: str, changes: dict[str, object]) -> Leftovers:
        settings = json.loads((tiny_model(kind) / "config.json").read_text()) | changes
        return unused_settings(settings, type(network(kind).config).from_dict(dict(settings)), network(kind))

    return leftovers_of


def test_settings_that_change_nothing_are_left_alone(judge: Judge) -> None:
    for kind, settings in LEFT_OVER:
        assert judge(kind, settings) == ([], []), settings


UNREAD = [
    ("bert", {"position_embedding_type": "relative_key"}),
    ("bert", {"layer_norm_epsilon": 1e-3}),
    ("bert", {"rotary_pct": 0.5}),
    ("bert", {"rope_scaling": {"rope_type": "linear", "factor": 2.0}}),
    ("bert", {"pruned_heads": {"0": [1]}}),
    ("gpt2", {"alibi": True}),
    ("llama", {"attn_logit_softcapping": 50.0}),
    ("llama", {"sliding_window": 8}),
    ("llama", {"use_bidirectional_attention": True}),
    ("qwen2", {"attention_bias": True}),
    ("t5", {"scale_embedding": True}),
]


@pytest.mark.filterwarnings("ignore:`rope_scaling` is deprecated")
def test_settings_of_other_models_are_named(copy: Folder, judge: Judge) -> None:
    for kind, settings in UNREAD:
        (key,) = settings
        (loss,) = judge(kind, settings).losses
        assert re.match(rf"{key}=.* of its config.json, which \w+ doesn't read", loss)
    with pytest.raises(ModelError, match=r"attention_bias=True of its config.json, which \w+ doesn't read"):
        encoder(edit(copy("qwen2"), attention_bias=True), unused="refuse")


def test_causality_that_config_switches_off_is_read(copy: Folder) -> None:
    folder = copy("llama")
    assert encoder(folder).causal
    assert not encoder(edit(folder, is_causal=False), unused="refuse").causal


SAVED_WITH_HEADS = {
    "BertForPreTraining": {},
    "MarianMTModel": {"d_model": 16, "decoder_start_token_id": 0},  # saves no positions: they are a table of sines
    "EsmForMaskedLM": {"mask_token_id": 4},  # its config has rope_theta, and no rope_parameters
    "LukeForMaskedLM": {"entity_vocab_size": 10, "entity_emb_size": 8},  # one of its heads is tied, the other isn't
    "OPTForCausalLM": {"ffn_dim": 32, "word_embed_proj_dim": 16},
}


@pytest.mark.parametrize("name", SAVED_WITH_HEADS)
def test_a_model_saved_with_its_head_has_nothing_left_over(tmp_path: Path, name: str) -> None:
    import transformers

    tokenizer, special = tiny_models.wordpiece()
    tiny_models.fast(tokenizer, special).save_pretrained(tmp_path)
    network = getattr(transformers, name)
    settings = tiny_models.SHAPE | {"vocab_size": tokenizer.get_vocab_size(), "max_position_embeddings": 40}
    settings |= {"pad_token_id": tokenizer.token_to_id("[PAD]")} | SAVED_WITH_HEADS[name]
    network(network.config_class(**settings)).save_pretrained(tmp_path)
    made = encoder(tmp_path, unused="refuse", pooling="pieces")
    assert "warnings" not in made.details
    ids = made.read_pieces([SENTENCE])[0].ids  # type: ignore[attr-defined]
    whole = network.from_pretrained(tmp_path).eval()
    whole = whole.get_encoder() if whole.config.is_encoder_decoder else whole
    with torch.no_grad():
        states = whole(input_ids=torch.tensor(ids)[None], output_hidden_states=True).hidden_states
    assert np.abs(next(iter(made.encode([SENTENCE]))).layers[1] - states[1][0, 1:-1].numpy()).max() < 1e-5
