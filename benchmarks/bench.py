"""Speed and memory of encoding and measuring, as ratios of CPU seconds on one thread, all from this run.

`python benchmarks/bench.py` uses a randomly initialised BERT of all-MiniLM-L6's shape (6 layers, 384 wide: the same
work as trained weights) and made-up sentences as long and as repetitive as the scored STS 2012-2016 sentences.
`--checkpoint` takes a model folder, `--sts` a folder of SemEval files, `--sentences` a smaller number. Encoding is held
against a bare forward pass, matrix products, one sentence at a time and sentence-transformers, all in turn on slices of
the corpus, so that a slow spell hits each: CPU seconds on one thread, seconds on more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import naive
import numpy as np

from ctxexp import Corpus, EncodedSentence, Encoder, Occurrences, Sentence, measure
from ctxexp.command import Experiment, configured, registry

PAPER = ["anisotropy", "self_similarity", "intra_sentence_similarity", "max_explainable_variance"]
DIM = 384
ROUNDS, MOST = 6, 3000  # slices, and the sentences in all of them
SINGLE = 40  # sentences of a slice that are encoded one at a time
LOOPS = {"plain": {}, "bfloat16": {"dtype": "bfloat16"}}


def clocked(f: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> tuple[float, Any]:
    """CPU seconds, or what that clock counts, and the result."""
    began = clock()
    result = f()
    return clock() - began, result


def report(what: str, value: str, target: str = "") -> None:
    print(f"{what:<74} {value:>12}   {target}", flush=True)


def factory(kind: Any, name: str) -> Any:
    """The class or function behind the name."""
    return registry().find(kind, name).factory


# -- sentences


def made_up(n: int, rng: np.random.Generator) -> Corpus:
    """Sentences of a Zipf vocabulary, 13.6 words long on average, a fifth of them repeated, as in STS 2012-2016."""
    alphabet = np.array(list("eeeetttaaaooiinnsshhrrdlucmfwygpbvk"))
    words = ["".join(rng.choice(alphabet, k)) for k in np.clip(rng.poisson(5.5, 30_000), 1, 14)]
    unique = max(2, round(n * 0.81))
    lengths = np.clip(np.round(rng.lognormal(2.42, 0.58, unique)), 3, 60).astype(int)
    chance = 1 / (np.arange(len(words)) + 3.7) ** 1.05
    ranks = rng.choice(len(words), lengths.sum(), p=chance / chance.sum())
    sentences = [[words[r] for r in part] for part in np.split(ranks, np.cumsum(lengths)[:-1])]
    again = rng.integers(0, len(sentences), max(0, n - len(sentences)))
    return Corpus.of("made-up", [*sentences, *(sentences[i] for i in again)])


# -- vectors


def batches(lengths: np.ndarray, tokens: int) -> list[np.ndarray]:
    """Sentence numbers in batches of one length each, the longest first, of at most so many tokens."""
    found = []
    for length in np.unique(lengths)[::-1]:
        of_length, n = np.flatnonzero(lengths == length), max(1, tokens // int(length))
        found += [of_length[i : i + n] for i in range(0, len(of_length), n)]
    return found


def open_store(encoder: Encoder, corpus: Corpus, cache: Path, *options: str) -> tuple[Any, Occurrences]:
    """The corpus's vectors, encoded into the folder unless they are there, and its occurrences."""
    experiment = Experiment(configured(encoder, corpus, [f"cache.folder={cache}", "min_contexts=2", *options]))
    layers, occurrences, _ = experiment.study.space(experiment.vectors)
    return layers, occurrences


# -- encoding


def minilm_shaped(corpus: Corpus, folder: Path) -> Path:
    """A checkpoint of all-MiniLM-L6's shape with random weights, and word pieces learnt from the sentences."""
    import torch
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel, BertTokenizerFast

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
    import torch

    with torch.inference_mode():
        for b, t in shapes:
            model(input_ids=torch.full((b, t), 5), output_hidden_states=True)


def libraries() -> dict[str, Callable[[Any], Callable[[Any], Any]]]:
    """For each library a function of a weight (in, out) that gives a product `x -> x @ weight`, x a tensor (n, in)."""
    import torch

    def numpy(weight: Any) -> Callable[[Any], Any]:
        held = weight.numpy()
        return lambda x: np.matmul(x.numpy(), held)

    return {"MKL (torch.mm)": lambda weight: lambda x: torch.mm(x, weight), "OpenBLAS (NumPy)": numpy}


def products(config: Any, shapes: Sequence[tuple[int, int]], library: Callable[[Any], Callable[[Any], Any]]) -> None:
    """The same forward pass's matrix products and nothing else; those of attention are torch's whatever the library."""
    import torch

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
    import torch
    from transformers import AutoModel

    rng, unique = np.random.default_rng(0), list(dict.fromkeys(corpus.sentences))
    model: Any = AutoModel.from_pretrained(checkpoint).eval()
    peer = sentence_transformers(checkpoint)
    encoders: Any = {
        name: factory("model", "huggingface")(checkpoint=str(checkpoint), device="cpu", **how)
        for name, how in LOOPS.items()
    }
    lengths = np.asarray(encoders["plain"].lengths(unique))
    order = rng.permutation(len(unique))[:MOST]
    forward(model, [(8, 16)] * 3)
    took: defaultdict[str, float] = defaultdict(float)
    for i, part in enumerate(np.array_split(order, ROUNDS)):
        some = Corpus("slice", tuple(unique[j] for j in part))
        few = Corpus("few", some.sentences[:SINGLE])
        shapes = [(len(b), int(lengths[part][b[0]])) for b in batches(lengths[part], 2048)]
        for n in threads:
            clock = time.process_time if n == 1 else time.perf_counter
            torch.set_num_threads(n)
            for name, encoder in encoders.items():
                cache = folder / f"{name}-{n}-{i}"
                took[f"{name} {n}"] += clocked(partial(open_store, encoder, some, cache), clock)[0]
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
    report(f"plain encoding loop / bfloat16, {each}", ratios("plain", "bfloat16"))
    for n in threads[1:]:
        report(f"one thread / {n} threads, plain loop, seconds", f"{took['plain 1'] / took[f'plain {n}']:.2f}x")
    if "peer 1" not in took:
        report("sentence-transformers / encoding loop", "skipped", "it isn't installed")
        return
    report(f"sentence-transformers / plain encoding loop, distinct, {each}", ratios("peer", "plain"))
    report("    with the repeated ones, which it encodes again", ratios("peer", "plain", repeated))


# -- measuring


class Drawn(Encoder):
    """Two layers of random vectors: of a word, and noise about it."""

    name, n_layers, dim = "drawn", 2, DIM

    def __init__(self) -> None:
        self.noise = np.random.default_rng(1).standard_normal((60_000, DIM), np.float32)

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        for sentence in batch:
            codes = np.array([zlib.crc32(word.encode()) for word in sentence.words])
            own = self.noise[codes % 50_000] + self.noise[(codes + zlib.crc32(sentence.text.encode())) % 60_000]
            yield EncodedSentence(sentence.words, np.stack([own, own]))


def peak(folder: Path, sentences: int) -> dict[str, float]:
    """What `remember` prints in a process that finds all vectors in the folder."""
    for _ in range(2):
        words = [sys.executable, __file__, "--memory", str(folder), "--sentences", str(sentences)]
        out = subprocess.run(words, check=True, capture_output=True, text=True)
    return json.loads(out.stdout.splitlines()[-1])


def remember(folder: Path, sentences: int) -> None:
    """Measure a made-up corpus and print this process's peak memory and the size of one layer, in GB."""

    def now() -> float:
        status = Path("/proc/self/status")
        if status.exists():  # ru_maxrss would count what the parent held when it started this process
            return (
                int(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1]) / 1e6
            )
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / (1e9 if sys.platform == "darwin" else 1e6)

    corpus = made_up(sentences, np.random.default_rng(1))
    measure_words(Drawn(), corpus, folder, metrics())
    layer = sum(len(sentence) for sentence in set(corpus.sentences)) * DIM * 4 / 1e9
    print(json.dumps({"peak": now(), "layer": layer}))


def metrics(*, released: bool = True) -> dict[str, Callable[[], Any]]:
    """Those of a default run, and explainable variance as the paper's code has it."""
    variance = factory("metric", "max_explainable_variance")
    found: dict[str, Callable[[], Any]] = {name: factory("metric", name) for name in [*PAPER, "word_norm"]}
    found["max_explainable_variance_centred"] = partial(variance, definition="centred")
    return found | ({"max_explainable_variance_released": partial(variance, definition="released")} if released else {})


def measure_words(encoder: Encoder, corpus: Corpus, cache: Path, metrics: Any) -> None:
    """A run of these metrics, the bootstrap included."""
    options = [f"cache.folder={cache}", "figures.explorer=0", "cache.limit_gb=null"]
    measure(encoder, corpus, metrics=metrics, options=options, progress=False)


def measuring_against_naive(corpus: Corpus, encoder: Any, cache: Path) -> None:
    """Encode the whole corpus, measure it, and time the naive ways on a sample of its words."""
    encoding, _ = clocked(lambda: open_store(encoder, corpus, cache))
    indexing, (store, occurrences) = clocked(lambda: open_store(encoder, corpus, cache))
    chosen = (metrics(released=False), PAPER, metrics())
    measuring, core, everything = (clocked(partial(measure_words, encoder, corpus, cache, some))[0] for some in chosen)
    n, layer = store.n_layers, np.asarray(store.layer(store.n_layers // 2))
    drawn = naive.seconds(naive.self_similarity, layer, occurrences, "word", order=2, most=1500, budget=8) * n
    every = naive.seconds(naive.double_loop, layer, occurrences, "word", order=2, most=300, budget=8) * n
    shares = naive.seconds(naive.explained_variance, layer, occurrences, "word", order=1, most=3000, budget=8) * n
    intra = naive.seconds(naive.intra_sentence_similarity, layer, occurrences, "sentence", order=1, most=1000, budget=3)
    intra *= n
    print(
        f"CPU seconds: encoding {encoding:.1f}; config and index {indexing:.2f}; measuring, these and the bootstrap "
        f"included: {measuring:.2f} (default metrics), {core:.2f} (without centred MEV and norms), {everything:.2f} "
        "(with the released MEV too)"
    )
    print(
        f"naive, extrapolated: self-similarity {every:,.0f} (every pair) or {drawn:,.0f} (pair list, 1,000 drawn), "
        f"MEV {shares:,.0f}, intra-sentence {intra:,.0f}"
    )
    full, released = every + shares + intra, drawn + shares + intra
    report(
        "naive double loop over every pair, SVDs, sentences / measuring", f"{full / measuring:,.0f}x", "at least 900x"
    )
    report("the released way (pair list, 1,000 of it drawn) / measuring", f"{released / measuring:,.0f}x")
    shares_of_run = [part / (encoding + part) for part in (core, measuring)]
    report("measuring's share of a first run, the paper's measures", f"{shares_of_run[0]:.1%}", "at most 6%")
    report("    with centred MEV and norms, as by default", f"{shares_of_run[1]:.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sentences", type=int, default=26_556, help="how many sentences (default: %(default)s)")
    parser.add_argument("--sts", type=Path, help="folder of the SemEval files, instead of made-up sentences")
    parser.add_argument("--checkpoint", type=Path, help="folder of a model, instead of a randomly initialised one")
    parser.add_argument(
        "--skip-memory", action="store_true", help="leave out peak memory (writes a few GB for a while)"
    )
    parser.add_argument("--threads", type=int, default=2, help="beside one; 1: leave it out (on a busy machine)")
    parser.add_argument("--memory", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        remember(options.memory, options.sentences)
        return

    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(prefix="ctxexp-bench-") as place:
        folder = Path(place)
        corpus = made_up(options.sentences, rng)
        if options.sts:
            scored = factory("dataset", "sts_2012_2016")(path=str(options.sts))
            corpus = Corpus(scored.name, scored.sentences[: options.sentences])
        checkpoint = options.checkpoint or minilm_shaped(corpus, folder / "model")
        encoder: Any = factory("model", "huggingface")(checkpoint=str(checkpoint), device="cpu")
        unique = list(dict.fromkeys(corpus.sentences))
        lengths = np.asarray(encoder.lengths(unique))
        print(
            f"{corpus.name}: {len(corpus.sentences):,} sentences, {len(unique):,} unique, {corpus.n_words:,} words, "
            f"{int(lengths.sum()):,} pieces with markers in unique ones; {encoder.n_layers} layers x {encoder.dim}"
        )

        encoding(corpus, checkpoint, folder, threads=sorted({1, options.threads}))
        measuring_against_naive(corpus, encoder, folder / "cache")
        if not options.skip_memory:
            for name, size in (("1x", options.sentences // 4), ("4x", options.sentences)):
                got = peak(folder / name, size)
                what = f"peak memory at {name} ({size:,} sentences) less its layer's"
                report(what, f"{got['peak'] - got['layer']:.2f} GB", f"at most 0.7 GB; layer {got['layer']:.2f} GB")


if __name__ == "__main__":
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        if os.environ.get(variable) != "1":  # read when NumPy is loaded, so start again
            one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
            sys.exit(subprocess.run([sys.executable, *sys.argv], env={**os.environ, **one}).returncode)
    main()
