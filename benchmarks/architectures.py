"""Every kind of model that the installed transformers has, made small and read: are its layers the right ones?

    python -m benchmarks.architectures --log FILE [--only TYPE ...] [--write docs/architectures.md]

Each kind is built from its config class with small sizes and random weights, saved beside a tokenizer of whole words,
and read through `model=huggingface`. What is read is held against own code: hooks on the network's blocks, one sentence
at a time; a sentence by itself, among others, of a window and of one piece more. A difference is a fault; a refusal is
kept with its reason. A kind runs in a process of its own, and what is in the log isn't run again.
"""

from __future__ import annotations

import argparse
import csv
import json
import logging
import multiprocessing
import os
import re
import resource
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from ctxexp import CtxexpError, Sentence
from ctxexp.command import registry
from ctxexp.errors import error_text
from docs.numbers.marked import write_marked
from docs.numbers.part import markdown

HUGGINGFACE = registry().find("model", "huggingface").factory  # before processes are forked
ROWS, SECONDS, MEMORY = 96, 60, 12 * 2**30
TOLERANCE = 1e-4  # of a layer's largest value
LIMIT = 40  # pieces, where a config states a number of positions
WORDS = [f"w{i}" for i in range(ROWS - 4)]
SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "bos_token": "[BOS]", "eos_token": "[EOS]"}
SIZES: tuple[Mapping[str, int], ...] = (  # tried in turn until the network reads
    {"width": 32, "heads": 4, "head": 8, "inner": 64, "rank": 8, "rope": 8, "rotary": 4},
    {"divide": 4},  # its own sizes, and as few heads: as narrow as they become
    {},
    {"width": 32, "heads": 4, "head": 8, "inner": 64, "rank": 8, "rope": 8, "rotary": 4, "pad": 0},
)
RULES: tuple[tuple[str, str | int], ...] = (  # what a config's whole numbers become by their names: the first that fits
    (r"additional_vocab_size", 1),
    (r"vocab_size|\w*_vocab_size(_\w+)?|n_vocab|vocab_size_\w+", ROWS),
    (r"(max_\w*)?(position_embeddings|positions)|n_positions|n_ctx|max_seq_len|context_length", LIMIT),
    (r"sliding_window|\w*window_size|attention_window|local_attention_window_len|keep_window_size", 8),
    (r"\w*chunk_size|\w*chunk_length|\w*block_size", 8),
    (r"\w*_per_layer|\w*kv_shared_layers|prompt_(length|types)", 1),
    (r"\w*layers|n_layer|num_blocks|depth|num_hidden_groups", 2),
    (r"rotary_dim", "rotary"),
    (r"\w*rope_head_dim", "rope"),
    (r"\w*(head_dim|d_head|kv_channels|head_size|d_kv|key_dim|value_dim)", "head"),
    (r"\w*heads?", "heads"),
    (r"\w*experts_per_tok(en)?|moe_topk?|top_?k(_experts)?|num_selected_experts|moe_k", 2),
    (r"(num|n)_(?!shared)\w*experts|moe_num_experts|expert_num", 4),
    (r"\w*n_groups?|topk_group|num_expert_group", 1),
    (r"\w*(lora_rank|low_rank_dim|time_step_rank|state_size|d_state|state_dim|laurel_rank)", "rank"),
    (r"\w*(intermediate|ffn|inner|mlp|feed_forward|ff)_?(size|dim|hidden_size)?(_\w+)?|d_inner|d_ff|dim_ff", "inner"),
    (
        r"\w*(hidden_size|d_model|n_embd|embed_dim|emb_dim|embedding_size|hidden_dim|dim|width|d_embed|proj_dim)",
        "width",
    ),
)
_ROPE = {"rope_type": "default", "rope_theta": 1e4}
_SECTIONS = {"rope_parameters": {**_ROPE, "mrope_section": [1, 1, 2], "partial_rotary_factor": 1.0}}
OWN: Mapping[str, Mapping[str, Any]] = {  # what no rule gives, by type
    "xmod": {"default_language": "en_XX"},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "dots1": {"n_shared_experts": 1, "n_group": 1, "topk_group": 1},
    "cohere_compass_text": {"rope_parameters": {"full_attention": _ROPE, "sliding_attention": _ROPE}},
    "gemma3n_text": {"num_kv_shared_layers": 0, "activation_sparsity_pattern": [0.0, 0.0]},
    **dict.fromkeys(("glm4v_text", "glm4v_moe_text", "glm_image_text", "glm_ocr_text"), _SECTIONS),
}
# whole numbers that are None in some configs by default
UNSET = r"vocab_size|num_key_value_heads|n_routed_experts|num_local_experts|num_experts_per_tok|head_dim"


def shrink(config: Any, sizes: Mapping[str, int]) -> Any:
    """The config made anew with small numbers by `RULES`, and lists of an entry a layer cut to the layers left."""
    counts = [getattr(config, key, 0) for key in ("num_hidden_layers", "num_attention_heads", "num_heads")]
    before, *n_heads = [n if isinstance(n, int) else 0 for n in counts]
    heads = max(n_heads)
    factor = max(1, heads // sizes["divide"]) if "divide" in sizes else 1
    changes: dict[str, Any] = {}
    for key, value in vars(config).items():
        if key.startswith("_"):
            continue
        if hasattr(value, "to_dict"):
            changes[key] = shrink(value, sizes).to_dict()
        elif key.endswith("token_id"):
            missing = sizes.get("pad") if key == "pad_token_id" else None
            changes[key] = missing if value is None else 3 if type(value) is int and value >= ROWS else value
        elif (type(value) is int and value > 0) or (value is None and re.fullmatch(UNSET, key)):
            size = next((size for pattern, size in RULES if re.fullmatch(pattern, key)), None)
            if isinstance(size, str):
                divided = max(1, value // factor) if value and size in ("width", "inner", "heads") else value
                size = sizes.get(size, divided)
            if size is not None and (value is None or size < value or size in (ROWS, LIMIT)):
                changes[key] = size
    after = int(changes.get("num_hidden_layers", before))
    for key, value in vars(config).items():
        if isinstance(value, list) and before > after > 0 and len(value) == before and not key.startswith("_"):
            kinds = list(dict.fromkeys(map(str, value)))  # as many kinds of layers as fit
            picked = [next(one for one in value if str(one) == kind) for kind in kinds][-after:]
            changes[key] = [*value[: after - len(picked)], *picked]
    return type(config)(**changes | OWN.get(config.model_type, {}))


def small_network(kind: str, name: str) -> Any:
    """A network of that class with random weights that tell its parts apart; one that reads text, if any size does.
    Raises the first size's error where none can be built."""
    import transformers
    from transformers import CONFIG_MAPPING

    errors, models = list[Exception](), []
    network = getattr(transformers, name)
    for sizes in SIZES:
        try:
            config = shrink(CONFIG_MAPPING[kind](), sizes)
            with torch.device("meta"):
                n = sum(weight.numel() for weight in network._from_config(config).parameters())
            if n > 1e8:
                raise ValueError(f"{n:,} weights")
            models.append(network._from_config(config).float().eval())
            randomize(models[-1])
            Reference(models[-1])
            return models[-1]
        except Exception as error:
            errors.append(error)
            if models and re.search("NoneType|specify|missing|required", str(error)):
                break  # it needs more than text, of whatever size it is
    if models:
        return models[0]
    raise errors[0]


def randomize(model: Any) -> None:
    """Draw weights that tell the model's parts apart."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for key, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            if weight.ndim < 2 or re.search(r"norm|A_log|\.A$|\.D$|dt_|decay|scale", key, re.IGNORECASE):
                weight.add_(0.1 * noise)
            else:
                weight.copy_(noise * 1.5 / weight.shape[-1] ** 0.5)


def text_part(model: Any) -> Any:
    """The model without its heads; of an encoder-decoder, the encoder."""
    while model.base_model is not model:
        model = model.base_model
    return model.get_encoder() if model.config.is_encoder_decoder else model


def save(model: Any, folder: Path) -> None:
    """The model beside a tokenizer whose pieces are words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({w: i for i, w in enumerate([*SPECIAL.values(), *WORDS])}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=words, **SPECIAL).save_pretrained(folder)
    model.save_pretrained(folder)


class Reference:
    """A network's layers by own code: hooks on its blocks where it has a list of them, else its hidden states."""

    def __init__(self, model: Any) -> None:
        self.model, self.blocks, self.end = text_part(model), list[torch.nn.Module](), None
        for config in (self.model.config, self.model.config.get_text_config()):
            config.use_cache = False
        ids = torch.arange(4, 11)[None]
        lists = [list(m) for m in self.model.modules() if isinstance(m, torch.nn.ModuleList)]
        lists = [blocks for blocks in lists if any(True for block in blocks for _ in block.parameters())]
        order = [module for module, _ in self.calls([m for blocks in lists for m in blocks], ids)[0]]
        called = [blocks for blocks in lists if [module for module in order if module in blocks] == blocks]
        for blocks in sorted(called, key=lambda blocks: order.index(blocks[0])):  # a block is called before its parts
            xs = [x for _, x in self.calls(blocks, ids)[0]]
            if {x.shape for x in xs} == {xs[0].shape} and xs[0].shape[:2] == (1, 7) and xs[0].ndim == 3:
                self.blocks = blocks
                break

    def calls(self, blocks: Sequence[torch.nn.Module], ids: torch.Tensor) -> tuple[list[Any], Any]:
        """The blocks that are called, each with the first tensor that enters it, and what comes out of the network."""
        calls: list[Any] = []

        def keep(block: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
            entering = [x for x in (*args, kwargs.get("hidden_states")) if isinstance(x, torch.Tensor)]
            calls.append((block, entering[0] if entering else torch.zeros(0)))

        hooks = [block.register_forward_pre_hook(keep, with_kwargs=True) for block in blocks]
        ends: list[torch.Tensor] = []
        if blocks:
            hooks.append(
                blocks[-1].register_forward_hook(lambda _, __, o: ends.append(o if torch.is_tensor(o) else o[0]))
            )
        try:
            with torch.no_grad():
                out = self.model(input_ids=ids, output_hidden_states=not self.blocks, return_dict=True)
        finally:
            for hook in hooks:
                hook.remove()
        self.end = ends[-1] if ends else None
        return calls, out

    def __call__(self, ids: Sequence[int]) -> np.ndarray:  # (layers, pieces, dim)
        calls, out = self.calls(self.blocks, torch.tensor([list(ids)]))
        states = [x for _, x in calls] if self.blocks else list(out.hidden_states[:-1])
        last = out.last_hidden_state
        if self.end is not None and last.shape != states[0].shape:
            last = self.end  # of the blocks' width, where the network projects what it gives
        return torch.cat([*states, last]).float().numpy()


def relative(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference of a layer, as a share of its largest value; infinite for other shapes and for NaN."""
    if a.shape != b.shape or not np.isfinite(a).all():
        return float("inf")
    return float(max(np.abs(x - y).max() / np.abs(y).max() for x, y in zip(a, b, strict=True)))


def sentence(n: int, seed: int) -> Sentence:
    return Sentence.of(np.random.default_rng(seed).choice(WORDS, n).tolist())


def read(encoder: Any, *sentences: Sentence) -> list[np.ndarray]:
    return [np.array(one.layers) for one in encoder.encode(sentences)]


def differences(encoder: Any, reference: Reference) -> dict[str, float]:
    """What each check found: `layers` of a short sentence, `batch` of others around it, `window` of as many pieces as
    fit, `longer` of one more, `again` of the short one at the end."""

    def ids(one: Sentence) -> list[int]:
        return [int(w[1:]) + 4 for w in one.words]

    short = sentence(12, 0)
    (alone,) = read(encoder, short)
    by_check = {"layers": relative(alone, reference(ids(short)))}
    others = read(encoder, sentence(12, 1), sentence(5, 2), short, sentence(20, 3), sentence(12, 4))
    by_check["batch"] = relative(others[2], alone)
    whole = reference(ids(short))
    is_causal = relative(reference(ids(short)[:6])[-1:], whole[-1:, :6]) < 1e-3
    by_check["causal"] = float("inf") if bool(encoder.causal) != is_causal else 0.0
    size = encoder.window or 3 * LIMIT
    full = sentence(size, 5)
    by_check["window"] = relative(read(encoder, full)[0], reference(ids(full)))
    more = sentence(size + 1, 6)
    (long,) = read(encoder, more)
    if encoder.window is None:
        by_check["longer"] = relative(long, reference(ids(more)))
    else:
        first, second = reference(ids(more)[:-1]), reference(ids(more)[1:])
        scale = np.abs(first).max((1, 2))[:, None]
        near = [np.abs(a - b).max(2) / scale for a, b in ((long[:, :-1], first), (long[:, 1:], second))]
        left, right = (one.max(0) for one in near)  # of each piece but the last, and of each but the first
        inner = left[1:] if is_causal else np.minimum(left[1:], right[:-1])
        by_check["longer"] = float(max(left[0], right[-1], inner.max(initial=0)))
    by_check["again"] = relative(read(encoder, short)[0], alone)
    return by_check


def reads_text(config: Any) -> bool:
    """Whether transformers has networks of its kind, each of which reads pieces."""
    from transformers import MODEL_MAPPING

    found = MODEL_MAPPING.get(type(config), ())
    networks = found if isinstance(found, tuple) else (found,)
    return bool(networks) and all(network.main_input_name == "input_ids" for network in networks)


def examine(kind: str, name: str) -> dict[str, Any]:
    """The row of one kind of model: `read`, `refused`, `not made` or `fault`, with what is to be said of it."""
    import transformers
    from transformers import CONFIG_MAPPING

    row: dict[str, Any] = {"type": kind, "network": name, "result": "refused", "reason": ""}
    folder = Path(tempfile.mkdtemp(prefix="architectures-"))
    try:
        if built := reads_text(CONFIG_MAPPING[kind]()):
            save(small_network(kind, name), folder)
            own = getattr(transformers, name).from_pretrained(folder, dtype=torch.float32).eval()
        else:  # it need not be built
            save(CONFIG_MAPPING[kind](), folder)
            save_file({"weight": torch.zeros(1)}, folder / "model.safetensors", {"format": "pt"})
    except Exception as error:
        return row | {"result": "not made", "reason": error_text(error).replace(sys.prefix, "")}
    try:
        encoder: Any = HUGGINGFACE(checkpoint=str(folder), device="cpu", pooling="pieces")
        assert built, "a network that reads no text was taken"
        row |= {"layers": encoder.n_layers, "causal": bool(encoder.causal), "window": encoder.window or 0}
        reference = Reference(own)
        row["by"] = "blocks" if reference.blocks else "hidden states"
        found = differences(encoder, reference)
        worst = max(found, key=lambda check: found[check])
        row |= {"largest": f"{found[worst]:.1g}", "result": "read" if found[worst] <= TOLERANCE else "fault"}
        return row | {"reason": "" if row["result"] == "read" else ", ".join(f"{k} {v:.2g}" for k, v in found.items())}
    except CtxexpError as error:
        return row | {"result": "refused", "reason": str(error).replace(str(folder), kind)}
    except Exception as error:
        return row | {"result": "fault", "reason": error_text(error)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def kinds() -> list[tuple[str, str]]:
    """Each type that AutoModel knows with its network, then the networks that are an encoder alone."""
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    found = []
    for kind, names in MODEL_MAPPING_NAMES.items():
        found += [(kind, name) for name in (names if isinstance(names, tuple | list) else (names,))]
    known = {name for _, name in found}
    for name in sorted(dir(transformers)):
        if name.endswith(("EncoderModel", "Encoder")) and "Pretrained" not in name and name not in known:
            kind = getattr(getattr(getattr(transformers, name), "config_class", None), "model_type", "")
            found += [(kind, name)] if kind in MODEL_MAPPING_NAMES else []
    return found


def in_own_process(kind: str, name: str) -> dict[str, Any]:
    """`examine` in a process with limits of time and memory."""

    def work(connection: Any) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        connection.send(examine(kind, name))

    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(sender,))
    process.start()
    sender.close()
    try:
        if receiver.poll(SECONDS):
            return receiver.recv()
        reason = f"no answer in {SECONDS} seconds"
    except EOFError:
        reason = "its process ended"
    finally:
        process.kill()
        process.join()
    return {"type": kind, "network": name, "result": "not made", "reason": reason}


def rows(log: Path, only: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The row of each kind, from the log where it is there; others are run and added to it."""
    done = {}
    if log.exists():
        done = {(row["type"], row["network"]): row for row in map(json.loads, log.read_text().splitlines())}
    for kind, name in kinds():
        if only and kind not in only:
            continue
        if (kind, name) not in done:
            row = in_own_process(kind, name)
            with log.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{row['result']:9} {kind} {name} {row.get('largest', '')} {row['reason'][:200]}", flush=True)
            done[kind, name] = row
        yield done[kind, name]


COLUMNS = ("type", "network", "result", "layers", "causal", "window", "by", "largest", "reason")


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: how many networks ended how. The CSV beside the page has each."""
    import transformers

    counts = Counter(row["result"] for row in found)
    rows = [(result, str(counts[result])) for result in ("read", "refused", "not made", "fault")]
    head = f"transformers {transformers.__version__}, {len(found)} networks."
    return f"{head}\n\n{markdown(['result', 'networks'], rows)}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the bench; the exit status is 1 where something was read wrongly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", type=Path, required=True, help="rows, a line of JSON each; what is there isn't run")
    parser.add_argument("--only", nargs="*", default=[], metavar="TYPE")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="its table, and the same name with .csv beside it")
    options = parser.parse_args(argv)
    found = list(rows(options.log, options.only))
    if options.write:
        write_marked(options.write, "architectures", table(found))
        with options.write.with_suffix(".csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, restval="")
            writer.writeheader()
            writer.writerows(sorted(found, key=lambda row: (row["type"], row["network"])))
    print(table(found))
    return int(any(row["result"] == "fault" for row in found))


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    os.environ["CTXEXP_CACHE"] = tempfile.mkdtemp(prefix="architectures-cache-")
    raise SystemExit(main())
