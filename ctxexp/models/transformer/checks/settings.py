"""Whether each key of config.json is used: read by the code of that model, or one of those that change no vector."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxexp.models.transformer.checks.unused import is_own_code
from ctxexp.models.transformer.leftovers import Leftovers

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

HARMLESS = {  # keys that no model need read, by their reason
    "training": r".*(drop|loss|init|aux_|jitter|label|mask_time|smoothing|_coef|epoch|learning|training).*",
    "computing": r".*(cache|output_|return_|checkpointing|torchscript|float|dtype|fusion|fp32|compile|flash|legacy).*",
    "behind the last layer": r".*(pooler|pooling|summary|classif|problem|bias_logits|predict|decoder_bias).*",
    "names": r".*(task|prefix|tokenizer|version|name|date|file|path|architecture|lang|direction|_config).*",
    "shapes, which weights are held against": r".*(token_id|token_index|_size|_dim|layers|vocab).*",
    "limits of texts": r"(n_|seq_?|max_)?(positions|ctx|length|len)|.*max_\w*(length|len|positions?|embeddings)",
    "generation": r"temp\w*|num_beams|top_[kp]|do_sample|early_stop\w*|.*penalty|.*(min|max)_length|(no_rep|bad_wo).*",
    "fixed in the code of BART and its kin": r"(normalize_(before|embedding)|add_final_layer_\w+|(static|extra)_pos\w+)"
    r"@\w*(bart|pegasus|marian)\w*",
}
USUAL = {  # values that say what every network does that has no such key, or repeat the name of a default
    "position_embedding_type": "absolute", "scale_attn_weights": True, "rotary": True, "hidden_act": "gelu",
    "activation_function": "gelu", "norm_type": "layer_norm", "mlp_type": "default", "attention_mode": "longformer",
    "rel_attn_type": "factorized", "untie_r": True, "down_scale_factor": 1, "skip_bias_add": True, "offset_alibi": 100,
    "pretraining_tp": 1, "is_llama_config": True,
}  # fmt: skip
# Keys that change vectors though no config of transformers declares them; causality even where it is switched off.
TELLING = re.compile(r"(is_)?causal|.*bidirectional.*|pruned_heads|transformers_weights|.*(rope|rotary)_.*")


def unused_settings(settings: Mapping[str, Any], config: PretrainedConfig, model: PreTrainedModel) -> Leftovers:
    """Keys of config.json (`settings`) that nothing reads, with a value that asks for something, which null, false and
    nought don't. Those that the config of some model of transformers has are lost; of others nobody can tell."""
    if is_own_code(model):
        return Leftovers([], [])  # it reads what it likes
    parts = [(settings, config)]
    if isinstance(settings.get("text_config"), dict):
        parts.append((settings["text_config"], config.get_text_config()))
    text, lost, unknown = _sources(model, config), list[str](), list[str]()
    for keys, part in parts:
        for key, value in keys.items():
            asks = bool(value) or (value is False and "causal" in key)
            if not asks or key in ("model_type", "text_config", "auto_map") or key.startswith("_"):
                continue
            if value == USUAL.get(key, MISSING) or _is_read(key, part, text) or _repeats(key, value, part):
                continue
            ways = (key, f"{key}@{part.model_type}")
            is_harmless = any(re.fullmatch(rule, way) for rule in HARMLESS.values() for way in ways)
            if TELLING.fullmatch(key) or not is_harmless:
                others = TELLING.fullmatch(key) or key in _known_keys()
                (lost if others else unknown).append(f"{key}={value!r}")
    losses = [
        f"{', '.join(lost)} of its config.json, which {type(model).__name__} doesn't read, though other models do: "
        "call it as this model's config does, or remove it if it is left over"
    ] * bool(lost)
    doubts = [f"{', '.join(unknown)} of its config.json, which nothing of transformers reads"] * bool(unknown)
    return Leftovers(losses, doubts)


def _is_read(key: str, config: PretrainedConfig, text: str) -> bool:
    """Whether code reads a key by any of its names, or the config's class took it away, or it has its default."""
    own = {field.name: field.default for field in fields(config)} if is_dataclass(config) else {}
    names = {key, config.attribute_map.get(key, key)} | {k for k, v in config.attribute_map.items() if v == key}
    if any(getattr(config, n, None) == own[n] for n in names & {*own}):
        return True
    # the class that all configs inherit from takes the names of rotary positions from any of them
    if not names & {*own, *vars(config)} and ("rope_parameters" in own or key not in ("rope_scaling", "rope_theta")):
        return True
    return any(re.search(rf"""conf\w*\.{re.escape(n)}\b|["']{re.escape(n)}["']""", text) for n in names)


def _repeats(key: str, value: object, config: PretrainedConfig) -> bool:
    """Whether a key says again what another one says: the same value, under a name with a word in common."""
    common = {"num", "n", "size", "use", "type", "is", "max", "attention", "hidden"}

    def words(name: str) -> set[str]:
        return {word.removesuffix("s").removesuffix("ivation") for word in name.split("_")} - common

    own = [field.name for field in fields(config)] if is_dataclass(config) else []
    return any(words(key) & words(name) and getattr(config, name, None) == value for name in own if name != key)


def _sources(model: PreTrainedModel, config: PretrainedConfig) -> str:
    """The code that reads the config: the modules of the model's classes, and of the config's."""
    code, own = (
        "\n".join(
            inspect.getsource(module)
            for module in {sys.modules[cls.__module__] for cls in classes}
            if module.__name__.startswith("transformers.models.")
        )
        for classes in ({cls for part in parts for cls in type(part).__mro__} for parts in (model.modules(), [config]))
    )
    shared = "config.tie_word_embeddings" + " config.is_causal" * ("create_causal_mask" in code)  # which that one reads
    return code + own.replace("self.", "config.") + shared


@cache
def _known_keys() -> frozenset[str]:
    """Every key that the config of any model of transformers has."""
    import transformers

    files = Path(transformers.__file__).parent.glob("models/*/configuration_*.py")
    return frozenset(key for file in files for key in re.findall(r"^    (\w+):", file.read_text("utf-8"), re.MULTILINE))
