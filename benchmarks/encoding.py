"""The encoding loop against a bare forward pass, matrix products, one sentence at a time and sentence-transformers.

All in turn on slices of the corpus, so that a slow spell hits each: CPU seconds on one thread, seconds on more.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, BertConfig, BertModel, BertTokenizerFast

from ctxexp import Corpus
from ctxexp.models.huggingface import huggingface
from ctxexp.models.transformer.forward import prepacked_product
from ctxexp.vectors.encode import open_store
from ctxexp.vectors.encoding import equal_length_batches

ROUNDS, MOST = 6, 3000  # slices, and the sentences in all of them
SINGLE = 40  # sentences of a slice that are encoded one at a time
LOOPS = {"plain": {"linear": "plain"}, "prepacked": {"linear": "prepacked"}, "bfloat16": {"dtype": "bfloat16"}}


def clocked(f: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> tuple[float, Any]:
    """CPU seconds, or what that clock counts, and the result."""
    began = clock()
    result = f()
    return clock() - began, result


def report(what: str, value: str, target: str = "") -> None:
    print(f"{what:<74} {value:>12}   {target}", flush=True)


def minilm_shaped(corpus: Corpus, folder: Path) -> Path:
    """A checkpoint of all-MiniLM-L6's shape with random weights, and word pieces learnt from the sentences."""
    from tokenizers import BertWordPieceTokenizer

    learner = BertWordPieceTokenizer(lowercase=True)
    learner.train_from_iterator((s.text for s in corpus.sentences), vocab_size=8000, show_progress=False)
    tokenizer = BertTokenizerFast(tokenizer_object=learner._tokenizer, do_lower_case=True, model_max_length=512)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=learner.get_vocab_size(),
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


def forward(model: Any, shapes: Sequence[tuple[int, int]]) -> None:
    """The bare forward pass on batches of these shapes, no mask, hidden states kept by the model as usual."""
    with torch.inference_mode():
        for b, t in shapes:
            model(input_ids=torch.full((b, t), 5), output_hidden_states=True)


def libraries() -> dict[str, Callable[[Any], Callable[[Any], Any]]]:
    """For each library a function of a weight (in, out) that gives a product `x -> x @ weight`, x a tensor (n, in)."""

    def numpy(weight: Any) -> Callable[[Any], Any]:
        held = weight.numpy()
        return lambda x: np.matmul(x.numpy(), held)

    return {
        "MKL (torch.mm)": lambda weight: lambda x: torch.mm(x, weight),
        "oneDNN, prepacked": lambda weight: prepacked_product(weight.T.contiguous(), None),
        "OpenBLAS (NumPy)": numpy,
    }


def products(config: Any, shapes: Sequence[tuple[int, int]], library: Callable[[Any], Callable[[Any], Any]]) -> None:
    """The same forward pass's matrix products and nothing else; those of attention are torch's whatever the library."""
    d, f, h, layers = config.hidden_size, config.intermediate_size, config.num_attention_heads, config.num_hidden_layers
    with torch.inference_mode():
        square, up, down = (library(torch.randn(*shape)) for shape in ((d, d), (d, f), (f, d)))
        for b, t in shapes:
            x, wide = torch.randn(b * t, d), torch.randn(b * t, f)
            q, k = torch.randn(b * h, t, d // h), torch.randn(b * h, d // h, t)
            scores = torch.randn(b * h, t, t)
            for _ in range(layers):
                for _ in range(4):
                    square(x)
                up(x)
                down(wide)
                torch.bmm(q, k)
                torch.bmm(scores, q)


def one_at_a_time(encoder: Any, corpus: Corpus) -> None:
    for sentence in corpus.sentences:
        list(encoder.encode([sentence]))


def sentence_transformers(checkpoint: Path) -> Any:
    """The same checkpoint as sentence-transformers reads it, mean pooling; None where it isn't installed."""
    if find_spec("sentence_transformers") is None:
        return None
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    body = Transformer(str(checkpoint))
    return SentenceTransformer(modules=[body, Pooling(body.get_embedding_dimension())], device="cpu")


def encoding(corpus: Corpus, checkpoint: Path, folder: Path, *, threads: Sequence[int]) -> None:
    """Times the encoding of slices of the corpus in every way, and reports their ratios."""
    rng, unique = np.random.default_rng(0), list(dict.fromkeys(corpus.sentences))
    model: Any = AutoModel.from_pretrained(checkpoint).eval()
    peer = sentence_transformers(checkpoint)
    encoders: Any = {
        name: huggingface(checkpoint=str(checkpoint), device="cpu", **how)  # type: ignore[arg-type]
        for name, how in LOOPS.items()
    }
    lengths = np.asarray(encoders["plain"].lengths(unique))
    order = rng.permutation(len(unique))[:MOST]
    forward(model, [(8, 16)] * 3)
    took: defaultdict[str, float] = defaultdict(float)
    for i, part in enumerate(np.array_split(order, ROUNDS)):
        some = Corpus("slice", tuple(unique[j] for j in part))
        few = Corpus("few", some.sentences[:SINGLE])
        shapes = [(len(b), int(lengths[part][b[0]])) for b in equal_length_batches(lengths[part], 2048)]
        for n in threads:
            clock = time.process_time if n == 1 else time.perf_counter
            torch.set_num_threads(n)
            for name, encoder in encoders.items():
                cache = folder / f"{name}-{n}-{i}"
                took[f"{name} {n}"] += clocked(partial(open_store, some, encoder, cache=cache), clock)[0]
            if peer is not None:
                texts = [s.text for s in some.sentences]
                took[f"peer {n}"] += clocked(partial(peer.encode, texts, show_progress_bar=False), clock)[0]
        torch.set_num_threads(1)
        took["bare"] += clocked(partial(forward, model, shapes))[0]
        for name, library in libraries().items():
            took[name] += clocked(partial(products, model.config, shapes, library))[0]
        single = clocked(partial(one_at_a_time, encoders["plain"], few))[0]
        took["single"] += single * len(some.sentences) / len(few.sentences)
    _say(dict(took), threads, len(corpus.sentences) / len(unique))


def _say(took: dict[str, float], threads: Sequence[int], repeated: float) -> None:
    def ratios(of: str, to: str, times: float = 1.0) -> str:
        return "; ".join(f"{times * took[f'{of} {n}'] / took[f'{to} {n}']:.2f}x" for n in threads)

    each = "by threads: " + ", ".join(map(str, threads))
    fastest = min(libraries(), key=lambda name: took[name])
    others = ", ".join(f"{name} {took[fastest] / took[name]:.0%}" for name in libraries() if name != fastest)
    report("bare equal-length forward pass / encoding loop", f"{took['bare'] / took['plain 1']:.1%}", "at least 95%")
    report(f"same-shape products, {fastest} / forward pass", f"{took[fastest] / took['bare']:.1%}", "at least 95%")
    report("    speed of the other libraries' products against these", others)
    single = took["single"] * repeated  # it encodes repeated sentences again
    report("one sentence at a time / encoding loop", f"{single / took['plain 1']:.1f}x", "at least 4x")
    for name, target in (("prepacked", "at least 1.9x where they win"), ("bfloat16", "")):
        report(f"plain encoding loop / {name}, {each}", ratios("plain", name), target)
    for n in threads[1:]:
        report(f"one thread / {n} threads, plain loop, seconds", f"{took['plain 1'] / took[f'plain {n}']:.2f}x")
    if "peer 1" not in took:
        report("sentence-transformers / encoding loop", "skipped", "it isn't installed")
        return
    for name, target in (("plain", ""), ("prepacked", "at least 2x where they win")):
        report(f"sentence-transformers / {name} encoding loop, distinct, {each}", ratios("peer", name))
        report("    with the repeated ones, which it encodes again", ratios("peer", name, repeated), target)
