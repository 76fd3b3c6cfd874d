"""Checks of a checkpoint before its vectors are used: sizes, layers, vocabulary, finite numbers; its tokenizer; and
whether each key of config.json is used: read by the code of that model, or one of those that change no vector.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ctxexp.errors import ModelError, error_text
from ctxexp.files import no_device
from ctxexp.models.transformer.leftovers import Leftovers, is_own_code

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

MOST_LAYERS = 1000
WeightSizes = Mapping[str, tuple[str, int]]  # type and number of values of each weight, by its name
FLOATS = ("F64", "F32", "F16", "BF16")
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


def check_size(config: PretrainedConfig, source: str) -> None:
    """Raise `ModelError` for a config of more layers than any model has, before a network of them is built."""
    n = getattr(config.get_text_config(), "num_hidden_layers", 1)
    if isinstance(n, int) and not 0 < n <= MOST_LAYERS:
        raise ModelError(f"{source}: its config says num_hidden_layers={n}; expected 1 to {MOST_LAYERS:,} layers")


def check_room(build: Callable[[], torch.nn.Module], held: WeightSizes, source: str) -> None:
    """Raise `ModelError` if the network that `build` makes is far larger than its files (`held`: type and size of each
    weight), or its floats are integers there; nothing is allocated."""
    with torch.device("meta"):
        weights = dict(build().named_parameters())
    n = sum(weight.numel() for weight in weights.values())
    n_held = sum(size for _, size in held.values())
    if n > 2 * n_held + 10**7:  # a pooler may be missing
        raise ModelError(
            f"{source}: its config.json describes {n:,} weights, its files hold {n_held:,}; do they belong together?"
        )
    for name, (kind, _) in held.items():
        if kind not in FLOATS and any(name == own or name.endswith(f".{own}") for own in weights):
            raise ModelError(
                f"{source}: the weight {name} is of type {kind} in its file, and would be read without its scale; "
                "expected floats: use the checkpoint that isn't quantised"
            )


def weight_sizes(files: Iterable[Path]) -> WeightSizes:
    """Type and number of values of each weight in safetensors files, by its name, from their headers."""
    from safetensors import safe_open

    size_by_name: dict[str, tuple[str, int]] = {}
    for path in files:
        with safe_open(no_device(path), "pt") as file:
            for name in file.keys():  # noqa: SIM118  # the file is no mapping
                if name in size_by_name:
                    raise ModelError(f"{path} holds the weight {name}, as another file beside it does; keep one")
                part = file.get_slice(name)
                size_by_name[name] = str(part.get_dtype()), math.prod(part.get_shape())
    return size_by_name


def damaged_file(folder: Path) -> str:
    """A message about the first file of a checkpoint folder that can't be read as its suffix says; empty if all can."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            if path.suffix == ".json":
                json.loads(no_device(path).read_text(encoding="utf-8"))
            elif path.suffix == ".safetensors":
                weight_sizes([path])
        except Exception as error:  # safetensors has an exception of its own for each mishap
            return f"{path.name} can't be read ({error_text(error)}); copy or download it again"
    return ""


def check_finite(model: torch.nn.Module, source: str) -> None:
    """Raise `ModelError` naming a weight that holds NaN or infinity: attention and clips can hide it from vectors."""
    for name, weight in model.state_dict().items():
        if type(weight) is not torch.Tensor or not weight.is_floating_point() or not weight.numel():
            continue  # of another type are quantised weights, and those that lie elsewhere until they are used
        if not all(map(math.isfinite, torch.stack(torch.aminmax(weight)).tolist())):  # 10 times quicker than isfinite
            hint = "" if weight.dtype == torch.float32 else f", or it overflows in {weight.dtype}: try dtype=float32"
            raise ModelError(f"{source}: the weight {name} holds NaN or infinite values; the file is damaged{hint}")


def table_rows(model: PreTrainedModel) -> int:
    """Rows of the model's input embedding table; 0 for a model without one."""
    try:
        return len(model.get_input_embeddings().weight)
    except (AttributeError, NotImplementedError):
        return 0


def check_vocabulary(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel, source: str) -> None:
    """Raise `ModelError` if the tokenizer's pieces are few for the model's embedding table: its files are missing."""
    n, rows = len(tokenizer) - len(set(tokenizer.all_special_ids)), table_rows(model)
    if n <= 0 or 2 * n < rows:
        raise ModelError(
            f"{source}: its tokenizer ({type(tokenizer).__name__}) knows {n:,} pieces besides its special ones, but "
            f"the model's embedding table has {rows:,} rows; the tokenizer's files (tokenizer.json, vocab.txt ...) are "
            "missing or another model's: save them there with AutoTokenizer.from_pretrained(original).save_pretrained"
        )


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


def fast_tokenizer(tokenizer: PreTrainedTokenizerBase) -> Tokenizer | None:
    """The quick tokenizer that it wraps; None for one that is slow."""
    backend: Tokenizer | None = getattr(tokenizer, "backend_tokenizer", None)
    return backend


def follow_files(tokenizer: PreTrainedTokenizerBase, folder: Path, lower: bool | None) -> Leftovers:
    """Make the tokenizer read text as the folder's tokenizer.json does, whatever class its settings name: transformers
    builds some fifty classes anew from vocabulary and merges, and loses what else the file says. Without the file the
    vocabulary tells whether capitals count, where no setting does. `lower` has the last word on these.

    A loss is a vocabulary whose capitals no text reaches; a doubt, a setting that tokenizer.json contradicts.
    """
    from tokenizers import Tokenizer

    backend, unused = fast_tokenizer(tokenizer), Leftovers([], [])
    if backend is None:
        return unused
    file = folder / "tokenizer_config.json"
    settings = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if not (folder / "tokenizer.json").is_file():
        if lower is None and (reason := _unreachable(backend)):
            unused.losses.append(f"{reason} (model.lower=false: text as it is; model.lower=true: in lower case)")
            lower = settings.get("do_lower_case", not _lowers(backend))
    elif type(tokenizer).__module__.startswith("transformers."):  # any other is code that the user trusts
        backend = tokenizer._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        for role, piece in tokenizer.special_tokens_map.items():
            if isinstance(piece, str) and backend.token_to_id(piece) is None:  # a default of the class
                setattr(tokenizer, role, None)
        unused.doubts.extend(_contradictions(tokenizer, backend, settings, lower))
    if lower is not None:
        tokenizer._tokenizer = _with_case(backend, lower)
    return unused


def _unreachable(backend: Tokenizer) -> str:
    """How the tokenizer hides its vocabulary's capitals by lower-casing, or has none for text that keeps its own; empty
    where it does neither."""
    vocabulary = backend.get_vocab().keys() - {piece.content for piece in backend.get_added_tokens_decoder().values()}
    if "\u0120" in vocabulary:  # bytes are spelled as letters, most of them capitals
        vocabulary = {piece for piece in vocabulary if piece.isascii()}
    capitals = sorted(piece for piece in vocabulary if piece != piece.lower())
    if _lowers(backend) and 100 * len(capitals) > len(vocabulary):  # a few are an uncased one's symbols
        return f"{len(capitals):,} pieces with capitals ({capitals[-1]!r}), since the tokenizer lower-cases text"
    if not _lowers(backend) and not capitals and any(piece != piece.upper() for piece in vocabulary):
        return "capitals of text, which no piece has, and the tokenizer doesn't lower-case"
    return ""


def _lowers(backend: Tokenizer) -> bool:
    return backend.normalizer is not None and backend.normalizer.normalize_str("A").endswith("a")


def _with_case(backend: Tokenizer, lower: bool) -> Tokenizer:
    """The same tokenizer, which lower-cases text or leaves it as it is."""
    from tokenizers import Tokenizer

    state = json.loads(backend.to_str())
    own = state["normalizer"] or {"type": "Sequence", "normalizers": []}
    steps = [step for step in own.get("normalizers", [own]) if step["type"] != "Lowercase"]
    bert = [step for step in steps if step["type"] == "BertNormalizer"]
    for step in bert:
        step["lowercase"] = lower
    if lower and not bert:
        steps.insert(0, {"type": "Lowercase"})
    state["normalizer"] = {"type": "Sequence", "normalizers": steps}
    changed = Tokenizer.from_str(json.dumps(state))
    if _lowers(changed) != lower:
        raise ModelError(f"model.lower={lower}: its tokenizer lower-cases by a table of its own; leave lower out")
    return changed


def _contradictions(
    tokenizer: PreTrainedTokenizerBase, backend: Tokenizer, settings: dict[str, object], lower: bool | None
) -> Iterator[str]:
    """Settings that versions of transformers obey over tokenizer.json, where the two differ."""
    from tokenizers.normalizers import BertNormalizer

    read = backend.encode("a")
    first = [*read.special_tokens_mask, 0].index(0)
    after = [piece for piece, mask in zip(read.tokens, read.special_tokens_mask, strict=True) if mask][first:]
    done = {"add_bos_token": tokenizer.bos_token in read.tokens[:first], "add_eos_token": tokenizer.eos_token in after}
    words = [word for word, _ in backend.pre_tokenizer.pre_tokenize_str("a b")] if backend.pre_tokenizer else []
    if "\u0120b" in words:
        done["add_prefix_space"] = words[0] != "a"
    if isinstance(bert := backend.normalizer, BertNormalizer):
        done |= {"do_lower_case": bert.lowercase, "tokenize_chinese_chars": bert.handle_chinese_chars}
    for name, does in done.items():
        said = settings.get(name)
        if isinstance(said, bool) and said != does and (name != "do_lower_case" or lower is None):
            other = {"add_bos_token": "; model.prefix decides", "do_lower_case": "; model.lower decides"}.get(name, "")
            yield f"{name}={said} of tokenizer_config.json, since tokenizer.json says otherwise{other}"


def other_numbers(tokenizer: PreTrainedTokenizerBase, config: PretrainedConfig) -> Leftovers:
    """Special pieces whose numbers config.json or the tokenizer's own template give otherwise than its vocabulary: it
    may be another model's. Sizes can't tell: GPT-2's 50,257 pieces fit many tables."""
    doubts, ask = [], "are the tokenizer's files this model's own?"
    for role in ("pad", "bos", "eos"):
        number, has = getattr(config, f"{role}_token_id", None), getattr(tokenizer, f"{role}_token_id", None)
        if isinstance(number, int) and number >= 0 and has is not None and has != number:
            doubts.append(f"{role}_token_id={number} of its config.json, as its tokenizer has {has}: {ask}")
    backend = fast_tokenizer(tokenizer)
    around = backend.encode("") if backend else None
    for piece, number in zip(around.tokens, around.ids, strict=True) if around else ():
        if (has := tokenizer.get_vocab().get(piece)) not in (None, number):
            doubts.append(f"the number {number} that it puts for {piece} around text, {has} in its vocabulary: {ask}")
    return Leftovers([], doubts)
