"""Changes of a model that are planted for `ctxexp check`: encoders in which one thing isn't what it was."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, normalizers, pre_tokenizers
from transformers import AutoModel, AutoTokenizer

import ctxexp
from ctxexp import EncodedSentence, Encoder, Sentence


@dataclass(frozen=True)
class Change:
    """A planted change: its kind, what was done, how to get the changed encoder, and words of which the check's cause
    should have one."""

    kind: str
    label: str
    encoder: Callable[[], Encoder]
    words: tuple[str, ...]


class Turned(Encoder):
    """An encoder behind a map of some layers' vectors, as of a service that rotates them."""

    def __init__(self, base: Encoder, turns: dict[int, np.ndarray]) -> None:
        self.base, self.turns = base, turns
        for key in ("n_layers", "dim", "dtype", "details", "causal", "start", "layers", "tokenizer", "title"):
            setattr(self, key, getattr(base, key))
        self.name = f"{base.name} turned"

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        for one in self.base.encode(batch):
            layers = np.array(one.layers)
            for layer, turn in self.turns.items():
                layers[layer] = layers[layer] @ turn
            yield EncodedSentence(one.units, layers)

    def lengths(self, sentences: Sequence[Sentence]) -> Sequence[int]:
        return self.base.lengths(sentences)

    def token_spans(self, sentences: Sequence[Sentence]) -> Any:
        return self.base.token_spans(sentences)

    def sentence_encoder(self) -> Encoder | None:
        pooled = self.base.sentence_encoder()
        if pooled is None:
            return None
        turned = Turned.__new__(Turned)
        turned.base, turned.turns, turned.name = pooled, self.turns, f"{pooled.name} turned"
        for key in ("n_layers", "dim", "dtype", "details", "layers", "poolings"):
            setattr(turned, key, getattr(pooled, key))
        return turned


class Original:
    """A model of transformers with its tokenizer; `encoder` gives a changed copy's."""

    def __init__(self, folder: str) -> None:
        self.model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
        self.folder = folder

    @property
    def tokenizer(self) -> Any:
        return AutoTokenizer.from_pretrained(self.folder)

    @property
    def blocks(self) -> int:
        return len(layers_of(self.model))

    def encoder(
        self, change: Callable[[Any], Any] | None = None, retokenize: Callable[[Any], Any] | None = None, **options: Any
    ) -> Encoder:
        """The encoder after a change of the model, of the tokenizer, or with other options."""
        model, tokenizer = copy.deepcopy(self.model), self.tokenizer
        model = change(model) if change else model
        tokenizer = retokenize(tokenizer) if retokenize else tokenizer
        return ctxexp.from_transformers(model, tokenizer, name="planted", **options)


def layers_of(model: Any) -> Any:
    """The model's blocks."""
    return model.encoder.layer if hasattr(model, "encoder") else model.h if hasattr(model, "h") else model.layers


def norms_of(model: Any) -> list[Any]:
    """The model's norms, in order."""
    return [module for module in model.modules() if isinstance(module, torch.nn.LayerNorm)]


def changes(original: Original) -> Iterator[Change]:
    """Every planted change of a model."""
    yield from rotations(original)
    yield from swaps(original)
    yield from other_norms(original)
    yield from other_tokenizers(original)
    yield from quantised(original)
    for pooling in ("first", "last"):
        yield Change("pooling", f"of pieces: {pooling}", partial(original.encoder, pooling=pooling), ("pooling",))
    for window in (24, 48, 64, 100):
        shorten = partial(_shortened, window=window)
        yield Change("truncated context", f"{window} pieces", partial(original.encoder, None, shorten), ("window",))
    yield from small_changes(original)


def rotations(original: Original) -> Iterator[Change]:
    base = original.encoder()
    rng = np.random.default_rng(0)
    d, last = base.dim, base.n_layers - 1
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0].astype(np.float32)
    angle = np.eye(d, dtype=np.float32)
    angle[:2, :2] = [[np.cos(0.2), -np.sin(0.2)], [np.sin(0.2), np.cos(0.2)]]
    flip = np.diag(np.where(np.arange(d) == 3, -1, 1)).astype(np.float32)
    order = np.eye(d, dtype=np.float32)[rng.permutation(d)]
    plans = {
        "all layers": dict.fromkeys(range(last + 1), turn),
        "the last layer": {last: turn},
        "a middle layer": {last // 2: turn},
        "two columns by .2 radians": dict.fromkeys(range(last + 1), angle),
        "one column's sign": dict.fromkeys(range(last + 1), flip),
        "columns in another order": dict.fromkeys(range(last + 1), order),
    }
    for label, turns in plans.items():
        yield Change("rotation", label, partial(Turned, base, turns), ("rotated",))


def swaps(original: Original) -> Iterator[Change]:
    def swap(model: Any, i: int, j: int) -> Any:
        blocks = layers_of(model)
        blocks[i], blocks[j] = blocks[j], blocks[i]
        return model

    n = original.blocks
    pairs = [(i, i + 1) for i in range(n - 1)] + [(0, n - 1), (0, 2), (1, 3)]
    for i, j in dict.fromkeys(pairs):
        change = partial(swap, i=i, j=j)
        yield Change("layer swapped", f"{i} and {j}", partial(original.encoder, change), ("swapped",))


def other_norms(original: Original) -> Iterator[Change]:
    n = len(norms_of(original.model))

    def weight(model: Any, at: int, value: float | None = None, times: float = 1.0) -> Any:
        with torch.no_grad():
            own = norms_of(model)[at].weight
            own.fill_(value) if value is not None else own.mul_(times)
        return model

    def epsilon(model: Any, at: int, value: float) -> Any:
        norms_of(model)[at].eps = value
        return model

    plans: dict[str, Any] = {
        f"weights 1, norm {at}": partial(weight, at=at, value=1.0) for at in sorted({0, 1, n // 2, n - 1})
    }
    plans |= {f"weights 2% larger, norm {at}": partial(weight, at=at, times=1.02) for at in (2, n - 2)}
    for label, change in plans.items():
        yield Change("norm", label, partial(original.encoder, change), ("norm",))
    words = ("all weights are what they were",)
    yield Change("norm", "epsilon .1, norm 1", partial(original.encoder, partial(epsilon, at=1, value=0.1)), words)
    if hasattr(original.model, "ln_f"):
        yield Change("norm", "the final one left out", partial(original.encoder, final_norm=False), ("final_norm",))


def other_tokenizers(original: Original) -> Iterator[Change]:
    def backend(change: Callable[[Tokenizer], None]) -> Callable[[Any], Any]:
        def retokenize(tokenizer: Any) -> Any:
            change(tokenizer.backend_tokenizer)
            return tokenizer

        return retokenize

    def rewritten(change: Callable[[dict[str, Any]], None]) -> Callable[[Any], Any]:
        def retokenize(tokenizer: Any) -> Any:
            settings = json.loads(tokenizer.backend_tokenizer.to_str())
            change(settings)
            tokenizer._tokenizer = Tokenizer.from_str(json.dumps(settings))
            return tokenizer

        return retokenize

    def other_case(tokenizer: Tokenizer) -> None:
        has_one = tokenizer.normalizer is not None
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False) if has_one else normalizers.Lowercase()

    def stripped(tokenizer: Tokenizer) -> None:
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])

    def unspaced(tokenizer: Tokenizer) -> None:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)

    def added(tokenizer: Tokenizer) -> None:
        tokenizer.add_tokens([AddedToken("the", single_word=True)])

    def swapped(settings: dict[str, Any]) -> None:
        vocabulary = settings["model"]["vocab"]
        by_number = sorted(vocabulary, key=vocabulary.get)  # the 300th and 301st piece get each other's number
        a, b = by_number[len(by_number) // 2 : len(by_number) // 2 + 2]
        vocabulary[a], vocabulary[b] = vocabulary[b], vocabulary[a]

    def fewer_merges(settings: dict[str, Any]) -> None:
        settings["model"]["merges"] = settings["model"]["merges"][:-400]

    def bare(settings: dict[str, Any]) -> None:
        settings["post_processor"] = None

    plans: dict[str, Callable[[Any], Any]] = {
        "case kept, or dropped": backend(other_case),
        "accents dropped": backend(stripped),
        "a piece added": backend(added),
        "two pieces' numbers swapped": rewritten(swapped),
    }
    if "merges" in json.loads(original.tokenizer.backend_tokenizer.to_str())["model"]:
        plans["400 merges fewer"] = rewritten(fewer_merges)
        plans["no blank before the first word"] = backend(unspaced)
    if original.tokenizer.num_special_tokens_to_add():
        plans["no special pieces"] = rewritten(bare)
    for label, retokenize in plans.items():
        encoder = partial(original.encoder, None, retokenize)
        yield Change("tokenizer", label, encoder, ("tokenizer changed",))


def quantised(original: Original) -> Iterator[Change]:
    def rounded(model: Any, *, by_row: bool, blocks: Sequence[int]) -> Any:
        with torch.no_grad():
            for block in blocks:
                for weight in layers_of(model)[block].parameters():
                    if weight.ndim == 2:
                        most = weight.abs().amax(1, keepdim=True) if by_row else weight.abs().max()
                        weight.copy_(torch.round(weight / most * 127) * (most / 127))
        return model

    every = tuple(range(original.blocks))
    plans: dict[str, Any] = {
        "all blocks, a scale a row": partial(rounded, by_row=True, blocks=every),
        "all blocks, a scale a matrix": partial(rounded, by_row=False, blocks=every),
        "the last block": partial(rounded, by_row=True, blocks=every[-1:]),
    }
    if any(type(module) is torch.nn.Linear for module in original.model.modules()):
        plans["dynamic, by torch"] = lambda model: torch.ao.quantization.quantize_dynamic(  # type: ignore[no-untyped-call]
            model, {torch.nn.Linear}, torch.qint8
        )
    for label, change in plans.items():
        yield Change("int8", label, partial(original.encoder, change), ("levels", "quantised"))


def small_changes(original: Original) -> Iterator[Change]:
    """Not asked of a check, and shown for its sensitivity."""

    def noisy(model: Any, size: float) -> Any:
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(size * weight.abs().mean() * torch.randn(weight.shape, generator=generator))
        return model

    yield Change(
        "small", "weights in bfloat16", partial(original.encoder, lambda m: m.to(torch.bfloat16).float()), ("bfloat16",)
    )
    for size in (1e-2, 1e-3, 1e-4):
        change = partial(noisy, size=size)
        yield Change("small", f"all weights by {size:g} of their size", partial(original.encoder, change), ("tensors",))


def _shortened(tokenizer: Any, *, window: int) -> Any:
    tokenizer.model_max_length = window
    return tokenizer
