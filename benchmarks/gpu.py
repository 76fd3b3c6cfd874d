"""What a GPU makes of encoding and of the default sweep, in about eight minutes: `python -m benchmarks.gpu`.

For MiniLM's shape, BERT-base's and a 1B one, of random weights: pieces a second beside the device's measured peak of
matrix products, and beside sentence-transformers', memory with all layers and with one, how much of the time the
device works while the processor reads and writes (overlap), one pass over a text, the whole default sweep, and what
LayerCurves adds to a training's time. It runs on a processor too, `--tiny` within a minute.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ctxexp_lab import LayerCurves
from transformers import PreTrainedTokenizerFast

import ctxexp
from benchmarks.bench import batches, made_up, open_store, report, word_pieces
from benchmarks.live_bytes import PeakBytes
from ctxexp import Corpus

MINUTES = 8.0
SHARES = {"forward": 0.07, "one pass": 0.04, "sweep": 0.08}  # of the minutes, for each of three shapes
MOST_BYTES = 8e9  # of vectors on the disk


class Machine:
    """A device with its clock and its memory."""

    def __init__(self, name: str, dtype: str) -> None:
        self.device, self.dtype = torch.device(name), getattr(torch, dtype)
        self.is_gpu = self.device.type == "cuda"

    def wait(self) -> None:
        """Until the device has done what it was given."""
        if self.is_gpu:
            torch.cuda.synchronize(self.device)

    def seconds(self, work: Callable[[], Any]) -> float:
        """Seconds of wall time until the device has done it."""
        self.wait()
        began = time.perf_counter()
        work()
        self.wait()
        return time.perf_counter() - began

    def peak_bytes(self, work: Callable[[], Any]) -> int:
        """The most bytes of tensors at once beyond those that were there before: the GPU's own count, or traced."""
        if not self.is_gpu:
            with PeakBytes() as traced:
                work()
            return traced.peak
        self.wait()
        torch.cuda.reset_peak_memory_stats(self.device)
        before = torch.cuda.memory_allocated(self.device)
        work()
        self.wait()
        return torch.cuda.max_memory_allocated(self.device) - before

    def peak(self, size: int, rounds: int = 10) -> float:
        """Multiply-adds a second of a square product in the device's type, the fastest of some."""
        x = torch.randn(size, size, device=self.device).to(self.dtype)
        with torch.inference_mode():
            took = min(self.seconds(lambda: torch.mm(x, x)) for _ in range(rounds))
        return size**3 / took


@dataclass(frozen=True)
class Shape:
    """A model's shape: `causal` models are Llama's, others BERT's."""

    layers: int
    width: int
    inner: int
    heads: int
    causal: bool = False

    def model(self, vocabulary: int, machine: Machine) -> Any:
        """The model with random weights, drawn on the device."""
        from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel

        common = {
            "vocab_size": vocabulary,
            "hidden_size": self.width,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": self.inner,
        }
        torch.manual_seed(0)
        with torch.device(machine.device):
            made = LlamaModel(LlamaConfig(**common)) if self.causal else BertModel(BertConfig(**common), False)
        return made.to(machine.dtype).eval()

    def products(self, length: int) -> float:
        """Multiply-adds of the blocks' matrix products a piece, attention over a text of this length included."""
        matrices = 4 * self.width**2 + (3 if self.causal else 2) * self.width * self.inner
        return self.layers * (matrices + 2 * length * self.width)


SHAPES = {
    "6 x 384": Shape(6, 384, 1536, 12),
    "12 x 768": Shape(12, 768, 3072, 12),
    "1B": Shape(16, 2048, 8192, 32, causal=True),
}
TINY = {"2 x 32": Shape(2, 32, 64, 2), "3 x 64, causal": Shape(3, 64, 128, 4, causal=True)}


def first(corpus: Corpus, n: int) -> Corpus:
    """The corpus's first n sentences."""
    return Corpus(f"{corpus.name} {n}", corpus.sentences[: max(1, n)])


def forward(model: Any, batches: Sequence[torch.Tensor]) -> None:
    """The bare forward pass, no hidden state but the last kept."""
    with torch.inference_mode():
        for ids in batches:
            model(input_ids=ids)


def batches_of(encoder: Any, corpus: Corpus, tokens: int, device: torch.device) -> list[torch.Tensor]:
    """The batches that encoding the corpus makes, of random pieces: (sentences, length) each."""
    lengths = np.asarray(encoder.lengths(list(dict.fromkeys(corpus.sentences))))
    rng = np.random.default_rng(0)
    return [
        torch.from_numpy(
            rng.integers(5, len(encoder.model.get_input_embeddings().weight), (len(one), int(lengths[one[0]])))
        ).to(device)
        for one in batches(lengths, tokens)
    ]


def fitting(seconds: float, trial: Callable[[int], float], n: int, most: int) -> int:
    """How many sentences take so many seconds, from a trial of n; as many as that at least, and at most `most`."""
    trial(n)  # the first run loads kernels
    return int(np.clip(n * seconds / max(trial(n), 1e-6), min(n, most), most))


def shape_report(name: str, shape: Shape, machine: Machine, corpus: Corpus, args: argparse.Namespace) -> None:
    """All lines of a shape."""
    began = time.perf_counter()
    learnt = word_pieces(corpus)
    model = shape.model(len(learnt), machine)
    encoder: Any = ctxexp.from_transformers(model, learnt, name=name)
    n_weights = sum(weight.numel() for weight in model.parameters())
    report(f"{name}: weights", f"{n_weights / 1e6:,.1f}M", f"drawn in {time.perf_counter() - began:.0f} s")
    seconds = {what: 60 * args.minutes * share for what, share in SHARES.items()}
    rate = encoding_report(encoder, learnt, shape, machine, corpus, seconds, args)
    memory_report(model, learnt, machine, corpus, args)
    measuring_report(encoder, corpus, seconds, rate, args)
    training_report(model, learnt, machine, corpus, args)


def encoding_report(
    encoder: Any, learnt: PreTrainedTokenizerFast, shape: Shape, machine: Machine, corpus: Corpus,
    seconds: dict[str, float], args: argparse.Namespace,
) -> float:  # fmt: skip
    """Pieces a second of the bare forward pass and of the loop, and their overlap; sentences a second of the loop."""
    peak = machine.peak(args.square)
    report("  peak of matrix products, multiply-adds a second", f"{peak:.2e}", f"{args.dtype}, {args.square} squared")

    def bare(n: int) -> float:
        batches = batches_of(encoder, first(corpus, n), args.batch_tokens, machine.device)
        return machine.seconds(lambda: forward(encoder.model, batches))

    n = fitting(seconds["forward"] / 2, bare, args.trial, len(corpus.sentences))
    batches = batches_of(encoder, first(corpus, n), args.batch_tokens, machine.device)
    pieces = sum(one.numel() for one in batches)
    products = sum(one.numel() * shape.products(one.shape[1]) for one in batches) / pieces
    alone = pieces / machine.seconds(lambda: forward(encoder.model, batches))
    some = first(corpus, min(n, most_stored(encoder, corpus)))
    pieces = sum(one.numel() for one in batches_of(encoder, some, args.batch_tokens, machine.device))
    with tempfile.TemporaryDirectory() as folder:
        took = machine.seconds(lambda: open_store(encoder, some, Path(folder), f"batch_tokens={args.batch_tokens}"))
    read = machine.seconds(lambda: encoder.read_pieces(some.sentences))
    whole = pieces / took
    report("  bare forward pass, pieces a second", f"{alone:,.0f}", f"{alone * products / peak:.1%} of the peak")
    report("  all layers to the disk, pieces a second", f"{whole:,.0f}", f"{whole * products / peak:.1%} of the peak")
    report(
        "  overlap: its speed beside the bare pass's", f"{whole / alone:.0%}", f"reading text: {read / took:.0%} of it"
    )
    if (peer := sentence_transformers(encoder.model, learnt, machine)) is not None:
        texts, size = [one.text for one in some.sentences], max(1, args.batch_tokens * len(some.sentences) // pieces)
        peer.encode(texts[:size], batch_size=size, show_progress_bar=False)  # loads kernels
        theirs = pieces / machine.seconds(lambda: peer.encode(texts, batch_size=size, show_progress_bar=False))
        report("  sentence-transformers, mean of the last layer, pieces a second", f"{theirs:,.0f}",
               f"{theirs / alone:.0%} of the bare pass; all layers: {whole / theirs:.0%} of this")  # fmt: skip
    return len(some.sentences) / took


def sentence_transformers(model: Any, learnt: PreTrainedTokenizerFast, machine: Machine) -> Any:
    """The model as sentence-transformers holds it; None where that isn't installed."""
    if find_spec("sentence_transformers") is None:
        return None
    from sentence_transformers import SentenceTransformer

    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        learnt.save_pretrained(folder)
        return SentenceTransformer(folder, device=str(machine.device), model_kwargs={"dtype": machine.dtype})


def most_stored(encoder: Any, corpus: Corpus) -> int:
    """How many sentences' vectors fit the bytes that may go to the disk."""
    words = np.mean([len(one) for one in corpus.sentences[:1000]])
    size = 4 if encoder.dtype == "float32" else 2
    return int(MOST_BYTES / (words * encoder.n_layers * encoder.dim * size))


def memory_report(
    model: Any, learnt: PreTrainedTokenizerFast, machine: Machine, corpus: Corpus, args: argparse.Namespace
) -> None:
    """The peak of one batch with all layers and with the last alone."""
    sentences = list(first(corpus, args.trial).sentences)
    peaks = {}
    for label, layers in (("all layers", None), ("the last layer alone", [model.config.num_hidden_layers])):
        encoder = ctxexp.from_transformers(model, learnt, name="memory", layers=layers)
        peaks[label] = machine.peak_bytes(lambda own=encoder: list(own.encode(sentences)))
        report(f"  memory of a batch beside the weights, {label}", f"{peaks[label] / 1e6:,.1f} MB")
    ratio = peaks["all layers"] / max(peaks["the last layer alone"], 1)
    report("  all layers / the last alone", f"{ratio:.1f}x", f"{model.config.num_hidden_layers + 1} layers")


def measuring_report(
    encoder: Any, corpus: Corpus, seconds: dict[str, float], rate: float, args: argparse.Namespace
) -> None:
    """One pass over a text, and the default sweep."""
    options = [f"batch_tokens={args.batch_tokens}", "min_contexts=2"]
    for what, more in (
        ("one pass", {"metrics": "one_pass", "options": [*options, "one_pass.shards=4", "bootstrap=0"]}),
        ("sweep", {"options": [*options, f"bootstrap={args.bootstrap}"]}),
    ):
        most = len(corpus.sentences) if what == "one pass" else most_stored(encoder, corpus)
        some = first(corpus, min(max(int(rate * seconds[what]), args.trial), most))
        with tempfile.TemporaryDirectory() as folder:
            choices: dict[str, Any] = {**more, "options": [*more["options"], f"cache.folder={folder}"]}
            took = time.perf_counter()
            ctxexp.measure(encoder, some, progress=False, **choices)
            took = time.perf_counter() - took
        label = "one pass, nothing stored" if what == "one pass" else "the whole default sweep, encoding included"
        report(f"  {label}, sentences a second", f"{len(some.sentences) / took:,.1f}",
               f"{len(some.sentences):,} in {took:.0f} s")  # fmt: skip


def training_report(
    model: Any, learnt: PreTrainedTokenizerFast, machine: Machine, corpus: Corpus, args: argparse.Namespace
) -> None:
    """What LayerCurves adds to the time of a training, at every=500: steps of the model without a head,
    which would only lengthen them."""
    ids = torch.randint(5, len(learnt), (max(1, args.batch_tokens // 128), 128), device=machine.device)
    optimiser = torch.optim.AdamW(model.train().parameters(), lr=1e-6)

    def step() -> None:
        model(input_ids=ids).last_hidden_state.float().square().mean().backward()
        optimiser.step()
        optimiser.zero_grad()

    curves = LayerCurves(corpus, every=1, tokenizer=learnt)
    step()
    curves.step(model, 0)  # loads and composes what later ones have
    took = min(machine.seconds(step) for _ in range(3))
    each = min(machine.seconds(lambda n=n: curves.step(model, n)) for n in (1, 2))
    report("  LayerCurves at every=500, share of the steps' time", f"{each / (500 * took):.2%}",
           f"{each:.2f} s beside steps of {took:.3f} s of {ids.numel():,} pieces; at most 2%")  # fmt: skip


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), default=None)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="for all shapes, about")
    parser.add_argument("--tiny", action="store_true", help="tiny shapes, as on a processor")
    parser.add_argument("--sentences", type=int, default=None, help="at most")
    args = parser.parse_args(words)
    machine_type = args.device.partition(":")[0]
    if machine_type == "cuda" and not torch.cuda.is_available():
        parser.error(
            f"--device {args.device}: torch {torch.__version__} sees no GPU here; leave it out, or --device cpu"
        )
    args.dtype = args.dtype or ("bfloat16" if machine_type == "cuda" else "float32")
    args.batch_tokens, args.square, args.trial = (2048, 256, 50) if args.tiny else (16_384, 8192, 500)
    args.bootstrap = 20 if args.tiny else 1000
    corpus = made_up(args.sentences or (400 if args.tiny else 200_000), np.random.default_rng(0))
    machine = Machine(args.device, args.dtype)
    named = torch.cuda.get_device_name(machine.device) if machine.is_gpu else "the processor"
    report(f"device: {named}", args.dtype, f"torch {torch.__version__}, batches of {args.batch_tokens:,} pieces")
    began = time.perf_counter()
    for name, shape in (TINY if args.tiny else SHAPES).items():
        shape_report(name, shape, machine, corpus, args)
        if machine.is_gpu:
            torch.cuda.empty_cache()
    report("all of it", f"{(time.perf_counter() - began) / 60:.1f} min", f"asked for: {args.minutes:g}")


if __name__ == "__main__":
    sys.exit(main())
