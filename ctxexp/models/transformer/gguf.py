"""GGUF, llama.cpp's single-file format: what a file holds, and a place where transformers reads it alone; its keys
and tensors, each of which the model must use, since transformers passes over what it doesn't know.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp.errors import ModelError, error_text
from ctxexp.models.transformer.ledger import conversion

if TYPE_CHECKING:
    from gguf import GGUFReader
    from tokenizers import Tokenizer
    from transformers import PretrainedConfig, PreTrainedModel

OUTPUT = "output.weight"  # the format's name of a language model's output matrix; absent where it is tied
# Names, licences and advice on sampling; how weights were quantised; what stands around a chat, and pieces that end or
# fill a text there; what transformers reads; what `apply_keys_to_tokenizer` follows. Of an architecture: what shapes
# and numbers of tensors decide, and what is behind the last layer.
HARMLESS = re.compile(
    r"general\..*|(quantize|imatrix|mradermacher)\..*|split\.(no|tensors\.count)|tokenizer\.chat_template.*"
    r"|tokenizer\.ggml\.(\w+_token_ids?|model|tokens|scores|token_type|merges|add_[be]os_token|pre|precompiled_charsmap"
    r"|add_space_prefix|remove_extra_whitespaces)"
    r"|block_count|embedding_length|(expert_|expert_shared_)?feed_forward_length|vocab_size|context_length|expert_count"
    r"|attention\.head_count_kv|attention\.relative_buckets_count|ssm\.(\w+_size|conv_kernel|group_count|time_step_rank)"
    r"|shortconv\.l_cache|full_attention_interval|nextn_predict_layers|tensor_data_layout|rope\.scaling\.finetuned"
    r"|final_logit_softcapping|logit_scale|pooling_type|decoder_\w+"
)
REPEATED = {  # what the config must say too, under one of these names
    "attention.head_count": ["num_attention_heads"], "attention.sliding_window": ["sliding_window"],
    "attention.layer_norm_rms_epsilon": ["rms_norm_eps", "norm_eps", "layer_norm_epsilon"],
    "attention.layer_norm_epsilon": ["layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"],
    "attn_logit_softcapping": ["attn_logit_softcapping"], "use_parallel_residual": ["use_parallel_residual"],
    "expert_used_count": ["num_experts_per_tok"], "expert_weights_norm": ["norm_topk_prob"],
    "rope.freq_base": ["rope_theta"], "rope.dimension_sections": ["mrope_section"],
}  # fmt: skip
NEUTRAL: dict[str, object] = {  # as if the key weren't there
    "attention.causal": True, "attention.head_count": 0, "attention.sliding_window": 0, "attn_logit_softcapping": 0,
    "expert_used_count": 0, "expert_weights_scale": 1, "rope.scaling.attn_factor": 1, "rope.scaling.yarn_beta_fast": 32,
    "rope.scaling.yarn_beta_slow": 1, "split.count": 1, "ssm.dt_b_c_rms": False, "tokenizer.ggml.add_sep_token": False,
}  # fmt: skip
# Splits of byte-level text by llama.cpp's names: GPT-2's, the same behind single digits, and others' under new names.
GPT2_SPLIT = re.compile(
    r"gpt-2|phi-2|mpt|olmo|jais|trillion|gigachat|roberta-bpe|a\.x-4\.0|mellum|exaone4|jina-[ev][12s].*"
)
DIGITS_SPLIT = re.compile(r"smollm|starcoder|refact|command-r|codeshell|exaone|minerva-7b|mellum2")
OTHER_NAMES = {"chatglm-bpe": "llama-bpe", "glm4": "llama-bpe", "stablelm2": "qwen2", "hunyuan": "qwen2"}
ROTATIONS = "rope_freqs.weight"


def check_gguf(file: Path) -> None:
    """Raise `ModelError` unless the file is there and begins as a GGUF file does; nothing else is read."""
    try:
        with file.open("rb") as raw:
            start = raw.read(4)
    except OSError as error:
        raise ModelError(
            f"{file} can't be read ({error_text(error)}); expected a model's GGUF file or folder"
        ) from None
    if start != b"GGUF":
        raise ModelError(f"{file} is no GGUF file; expected one, or the model's folder: {conversion(file)}")


def language_model_classes(kind: str) -> list[str]:
    """transformers' class for a language model of that type, which the file doesn't name; empty if there is none."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CLASSES

    return [name for name in [CLASSES.get(kind)] if isinstance(name, str)]


def read_matrix(file: Path, name: str) -> np.ndarray | None:
    """One tensor by the format's name for it, dequantised to float32; None if it isn't there."""
    from gguf import dequantize

    for tensor in _open(file)[0].tensors:
        if tensor.name == name:
            return dequantize(tensor.data, tensor.tensor_type)
    return None


@contextmanager
def isolated_file(file: Path) -> Iterator[tuple[Path, GGUFReader, dict[str, Any]]]:
    """A folder that holds the file and nothing else, the file's reader, the only one meanwhile, and its keys with their
    values (the number of strings in an array); no bars.

    Of a tokenizer.json beside the file transformers would take the pieces, whichever model it belongs to; and it parses
    the file three times, which takes seconds each for a vocabulary.
    """
    from unittest.mock import patch  # brings asyncio, which `--help` needn't wait for

    reader, keys = _open(file)
    with TemporaryDirectory(prefix="ctxexp-gguf-") as folder, redirect_stderr(StringIO()):
        (Path(folder) / file.name).symlink_to(file.resolve())
        with patch("gguf.GGUFReader", lambda _: reader):
            yield Path(folder), reader, keys


def _open(file: Path) -> tuple[GGUFReader, dict[str, Any]]:
    check_gguf(file)
    if missing := [name for name in ("gguf", "accelerate") if find_spec(name) is None]:
        raise ModelError(f"reading the GGUF file {file} needs {' and '.join(missing)}: pip install {' '.join(missing)}")
    from gguf import GGUFReader
    from transformers.integrations.gguf import read_gguf_metadata

    try:
        keys, _ = read_gguf_metadata(str(file))  # which ends where the file ends; gguf's goes through 2^60 items
        reader = GGUFReader(file)
    except Exception as error:  # whatever a damaged file makes of its parsing
        raise ModelError(f"{file} can't be read as GGUF ({error_text(error)}); copy or download it again") from error
    if not reader.tensors:
        raise ModelError(f"{file} is a GGUF file without tensors, perhaps of a vocabulary alone; expected a model")
    return reader, keys


class GgufHeader:
    """Keys and tensors of the file that `reader` has open; `losses`: those that the model doesn't use, as sentences;
    `values_by_type`: how many values are stored as `Q4_1`, `F32` ..."""

    def __init__(self, keys: Mapping[str, Any], reader: GGUFReader) -> None:
        self.keys, self.losses = keys, list[str]()
        self.architecture = str(keys["general.architecture"])
        self.tensors = {tensor.name: tensor for tensor in reader.tensors}
        self.values_by_type: Counter[str] = Counter()
        for tensor in reader.tensors:
            self.values_by_type[tensor.tensor_type.name] += int(tensor.n_elements)

    def _get(self, name: str, default: Any = None) -> Any:
        return self.keys.get(f"{self.architecture}.{name}", default)

    def apply_keys_to(self, config: PretrainedConfig) -> None:
        """Give the config what transformers leaves out of it (biases, scaled rotations); a loss is a key that then is
        neither in the config nor harmless."""
        for flag, parts in (("attention_bias", "attn_(q|k|v|output)"), ("mlp_bias", "ffn_(gate|up|down)")):
            if hasattr(config, flag) and any(re.search(rf"\.{parts}\.bias$", name) for name in self.tensors):
                setattr(config, flag, True)
        scaling = ("rope.scaling.type", "rope.scaling.factor", "rope.scaling.original_context_length")
        used = scaling if self._scale_rotations(config) else ()
        for key, value in self.keys.items():
            name = key.removeprefix(f"{self.architecture}.")
            if HARMLESS.fullmatch(name) or name in used or (name in NEUTRAL and value == NEUTRAL[name]):
                continue
            if name == "attention.sliding_window" and value >= self._get("context_length", math.inf):
                continue
            if not any(_equal(value, own) for own in _config_values(config, name)):
                self.losses.append(f"the key {key}={str(value)[:60]}")

    def _scale_rotations(self, config: PretrainedConfig) -> bool:
        """Set the scaling of rotary positions that the keys ask for; False for one that can't be set here."""
        kind, factor = self._get("rope.scaling.type"), self._get("rope.scaling.factor", 1)
        if kind == "none" or (factor in (0, 1) and kind != "longrope"):
            return True
        rope = getattr(config, "rope_parameters", None) or {}
        if kind not in (None, "linear", "yarn") or "rope_theta" not in rope:
            return False
        rope |= {"rope_type": kind or "linear", "factor": factor}
        if kind == "yarn":
            length = self._get("rope.scaling.original_context_length", self._get("context_length"))
            rope["original_max_position_embeddings"] = length
        return True

    def apply_keys_to_tokenizer(self, backend: Tokenizer) -> None:
        """Let the tokenizer split and mark text as the keys say; a loss is one that it can't follow."""
        from tokenizers import Regex, normalizers, pre_tokenizers
        from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS as SPLITS

        keys = {key.removeprefix("tokenizer.ggml."): value for key, value in self.keys.items()}
        split = str(keys.get("pre"))
        level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split not in OTHER_NAMES)
        if keys["model"] != "gpt2" or split in SPLITS or GPT2_SPLIT.fullmatch(split):
            pass  # as transformers builds it
        elif DIGITS_SPLIT.fullmatch(split):
            single = pre_tokenizers.Digits(individual_digits=True)
            backend.pre_tokenizer = pre_tokenizers.Sequence([single, level])
        elif split in OTHER_NAMES:
            pattern = Regex(SPLITS[OTHER_NAMES[split]])
            backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(pattern, "isolated"), level])
        else:
            self.losses.append(f"the key tokenizer.ggml.pre={split}, a way to split text")
        if charsmap := keys.get("precompiled_charsmap"):
            backend.normalizer = normalizers.Precompiled(bytes(charsmap))
        if keys.get("add_space_prefix") is False and isinstance(backend.pre_tokenizer, pre_tokenizers.Metaspace):
            backend.pre_tokenizer.prepend_scheme = "never"
        one, two = (backend.encode(text, add_special_tokens=False).tokens for text in ("a b", "a  b"))
        for name, does in (("remove_extra_whitespaces", one == two), ("add_space_prefix", one[0][0] in "▁Ġ")):
            if keys.get(name, does) != does:
                self.losses.append(f"the key tokenizer.ggml.{name}={keys[name]}")

    def apply_tensors_to(self, model: PreTrainedModel) -> None:
        """Divide the rotations' frequencies by the file's factors (Llama 3.1's); losses are tensors that the model has
        no place for."""
        import torch
        from transformers.integrations.gguf import GGUF_ARCHS
        from transformers.modeling_gguf_pytorch_utils import TENSOR_PROCESSORS, TensorProcessor, get_gguf_hf_weights_map

        used = {OUTPUT}  # the scores of words, behind the last layer
        tables = [table for name, table in model.named_buffers() if name.endswith("inv_freq")]
        if tables and ROTATIONS in self.tensors:
            factors = torch.tensor(self.tensors[ROTATIONS].data)
            if all(table.shape == factors.shape for table in tables):
                used.add(ROTATIONS)
                for table in tables:
                    table /= factors.to(table)
        if self.architecture in GGUF_ARCHS:  # read as other files are, with a report of what is left
            return
        processor = TENSOR_PROCESSORS.get(self.architecture, TensorProcessor)(config=model.config.to_dict())
        unused = sorted(self.tensors.keys() - used - get_gguf_hf_weights_map(model, processor).keys())
        self.losses += [f"the tensor {name}" for name in unused[:3]] + [f"{len(unused)} tensors"] * (len(unused) > 3)


def _config_values(config: PretrainedConfig, name: str) -> Iterable[object]:
    """The config's values of a key, under its own names for it."""
    width = getattr(config, "head_dim", None) or getattr(config, "d_kv", None)
    width = width or config.hidden_size // (getattr(config, "num_attention_heads", 0) or 1)
    rope = getattr(config, "rope_parameters", None) or {}
    parts = [rope, *(part for part in rope.values() if isinstance(part, dict))]
    if name in ("attention.key_length", "attention.value_length"):
        yield width
    if name == "rope.dimension_count":
        yield from (int(width * part.get("partial_rotary_factor", 1)) for part in parts)
    for own in REPEATED.get(name, ()):
        yield from (getattr(config, own, None), *(part.get(own) for part in parts))


def _equal(value: Any, own: Any) -> bool:
    if isinstance(value, float) and isinstance(own, int | float):
        return math.isclose(value, own, rel_tol=1e-6)  # the file keeps 32 bits
    return own is not None and own == ([number for number in value if number] if isinstance(value, list) else value)
