"""Models of `transformers`: `model=huggingface model.checkpoint=<id, folder or GGUF file>`, any encoder or decoder; the
papers' two, `model=bert` and `model=gpt2`, as mini, published or untrained; and a model that is in memory already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ctxexp.errors import ConfigError
from ctxexp.model import Encoder
from ctxexp.models import minis
from ctxexp.models.lazy_encoder import lazy_encoder
from ctxexp.models.listing import ModelFiles
from ctxexp.models.options import (
    AS_TOKENIZER,
    LongTexts,
    Pooling,
    TransformerOptions,
    Unused,
    Weights,
    check_choices,
    with_transformer_options,
)
from ctxexp.models.transformer.checkpoint import (
    PUBLISHED_CHECKPOINTS,
    Checkpoint,
    cached_folder,
    folder_checkpoint,
    from_hub,
)
from ctxexp.models.transformer.pipeline import Pipeline
from ctxexp.models.transformer.unused import report_unused, unused_files

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedTokenizerBase


@with_transformer_options
def huggingface(
    *, options: TransformerOptions, checkpoint: str, revision: str | None = None, trust_remote_code: bool = False
) -> Encoder:
    """All layers of any transformers encoder or decoder (BERT, RoBERTa, GPT-2, Llama, Qwen, T5's encoder ...).

    checkpoint: a folder, an id of the hub (its cache is looked in first), both safetensors only, or a GGUF file.
    revision: a branch, tag or commit of the hub.
    trust_remote_code: run the model code that a checkpoint brings along.
    """
    return checkpoint_encoder(Checkpoint.of(checkpoint, revision), options, trust_remote_code=trust_remote_code)


def checkpoint_encoder(
    checkpoint: Checkpoint, options: TransformerOptions, *, used: str = "", **choices: Any
) -> Encoder:
    """The encoder of the checkpoint's files, loaded when it must encode; `choices` as `loading.load` takes them, `used`
    a setting of sentence-transformers that the caller sees to, so that it isn't called unused.

    A plugin with a checkpoint of its own calls this in a factory that is decorated with
    `ctxexp.models.with_transformer_options`.

    Example:
        >>> from ctxexp.models.minis import folder
        >>> encoder = checkpoint_encoder(Checkpoint.of(str(folder("bert"))), TransformerOptions(layers=[0, -1]))
        >>> encoder.n_layers
        5
    """

    pipeline = Pipeline.of_folder(checkpoint)

    def load() -> Encoder:
        from ctxexp.models.transformer import loading  # with torch
        from ctxexp.models.transformer.encoder import TransformerEncoder

        return TransformerEncoder(loading.load(checkpoint, pipeline, options, **choices), options)

    if not checkpoint.is_gguf and choices.get("untrained") is None:
        report_unused([unused_files(checkpoint, pipeline, used=used)], options.unused, checkpoint.source)
    if choices.get("trust_remote_code") or options.kwargs:  # code from elsewhere decides
        return load()
    return lazy_encoder((checkpoint, options, choices, pipeline), load, device=options.device)


def paper_model_factory(kind: str, summary: str, published_bytes: float) -> Callable[..., Encoder]:
    """The factory of `model=bert` or `model=gpt2`, whose docstring begins with `summary`; the size is of the published
    files."""
    paper = PUBLISHED_CHECKPOINTS[kind]

    def build(
        *,
        options: TransformerOptions,
        weights: Weights = "mini",
        checkpoint: str | None = None,
        revision: str | None = None,
        seed: int = 0,
    ) -> Encoder:
        check_choices(weights=weights, checkpoint=checkpoint, revision=revision)
        if checkpoint is not None:
            files = Checkpoint.of(checkpoint, revision)
        elif weights == "published":
            files = from_hub(paper.ids, revision or paper.revision)
        else:
            files = folder_checkpoint(minis.folder(kind), source=f"ctxexp mini {kind}")
        return checkpoint_encoder(files, options, untrained=seed if weights == "untrained" else None, expect=kind)

    build.__name__, build.__qualname__, build.__module__ = kind, kind, f"ctxexp.models.{kind}"  # to be pickled by name
    build.__doc__ = f"""{summary}

    weights: mini, published (pinned; from the hub's cache or the hub) or untrained (the mini's shape, drawn anew).
    checkpoint: a folder, hub id or GGUF file of the same type, instead of the one that weights stands for.
    revision: a branch, tag or commit of the hub, instead of the pinned one.
    seed: of weights=untrained.
    """
    found, source = partial(cached_folder, paper.ids, paper.revision), f"{paper.ids[0]} of the hub"
    published = ModelFiles(
        f"{kind} weights=published", published_bytes, source, "downloaded when it is first used", found
    )
    return minis.files(kind)(published(with_transformer_options(build)))


bert = paper_model_factory(
    "bert", "All layers of BERT: weights=mini ships with ctxexp, weights=published is bert-base-cased.", 436e6
)
gpt2 = paper_model_factory(
    "gpt2", "All layers of GPT-2: weights=mini ships with ctxexp, weights=published is gpt2.", 548e6
)


def from_transformers(
    model: object,
    tokenizer: PreTrainedTokenizerBase | None = None,
    *,
    name: str | None = None,
    pooling: Pooling = "mean",
    final_norm: bool = True,
    long: LongTexts = "window",
    layers: Sequence[int] | None = None,
    prefix: str = AS_TOKENIZER,
    lower: bool | None = None,
    unused: Unused = "warn",
) -> Encoder:
    """All layers of a transformers model in memory, on the device and in the type that it has, read as by `eval()`.

    Its vectors are those of `model=huggingface` on the same checkpoint, to the last bit; their cache is keyed by a hash
    of weights, buffers, tokenizer, config and the hidden states of a few fixed pieces; with hooks or code of your own
    they are kept for no other run. After a change call this again: the old encoder refuses.
    Model and tokenizer stay as they are: training mode, `use_cache`, truncation and padding are the caller's.
    Weights count as the model's own, even those that were newly drawn on loading. A tokenizer that is still as it was
    loaded reads as its tokenizer.json says; one that was made or changed reads as it does.

    Args:
        model: A model of transformers, alone or tuned by peft, in a pipeline or a SentenceTransformer; of an
            encoder-decoder the encoder is taken.
        tokenizer: Its fast tokenizer; None: the one beside it there, else that of the files it was loaded from.
        name: Its label in figures (None: the name that it was loaded by, else its class).
        pooling, final_norm, long, layers, prefix, lower, unused: As in the options of `model=huggingface`.

    Returns:
        An encoder that `ctxexp.measure` takes as its model.

    Raises:
        ConfigError: It is no such model, or has no tokenizer.
        ModelError: The weights are of a type other than float32, bfloat16 and float16, or hold NaN or infinity; the
            tokenizer isn't the model's own; the model as you call it computes something else than the network inside
            it; or, under `unused="refuse"` (as `ctxexp.measure` takes it), its config or its tokenizer's files say what
            nothing reads.

    Example:
        >>> from transformers import AutoModel, AutoTokenizer
        >>> from ctxexp.models import minis
        >>> folder = minis.folder("gpt2")
        >>> encoder = from_transformers(AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder))
        >>> encoder.n_layers, encoder.dim
        (5, 192)
    """
    network, tokenizer = _parts(model, tokenizer)
    options = TransformerOptions(
        pooling=pooling, final_norm=final_norm, long=long, layers=layers, prefix=prefix, lower=lower, unused=unused
    )
    from ctxexp.models.transformer.in_memory import from_memory

    return from_memory(network, tokenizer, options, name)


def _parts(model: Any, tokenizer: Any) -> tuple[nn.Module, PreTrainedTokenizerBase]:
    """The module that holds the network, and its tokenizer, as `from_transformers` takes them. Raises ConfigError, with
    what to write."""
    module: Any = model if hasattr(model, "named_modules") else getattr(model, "model", None)  # a pipeline's
    tokenizer = tokenizer or getattr(model, "tokenizer", None)
    if hasattr(module, "named_modules"):
        from ctxexp.models.transformer.in_memory import find_network

        source = find_network(module).config.name_or_path
        if tokenizer is None and source:
            from transformers import AutoTokenizer

            with suppress(OSError, ValueError):  # no such files
                tokenizer = AutoTokenizer.from_pretrained(source)
        if tokenizer is not None:
            return module, tokenizer
    raise ConfigError(
        "model: expected a name, a folder, a model of transformers or a ctxexp.Encoder, got "
        f"{type(model).__name__}; a transformers model that wasn't loaded from files comes with its tokenizer: "
        "ctxexp.measure(model, text, tokenizer=tokenizer), or wrapped once for several measurements: "
        "ctxexp.from_transformers(model, tokenizer)"
    )
