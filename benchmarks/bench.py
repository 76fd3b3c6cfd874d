"""Speed and memory as ratios of CPU seconds on one thread, all from this run: `python -m benchmarks.bench`.

Encoding: a randomly initialised BERT of all-MiniLM-L6's shape (6 layers, 384 wide: the same work as trained weights)
and made-up sentences as long and as repetitive as the scored STS 2012-2016 sentences, beside a bare forward pass,
matrix products and one sentence at a time, by turns on slices of the corpus, so that a slow spell hits each; and an
untrained ELMo beside a bare LSTM of its size. Measuring: beside the released code's way. A start: beside torch's.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import naive
from ctxexp import Corpus, EncodedSentence, Encoder, Occurrences, Sentence, measure
from ctxexp.command import Experiment, configured, registry

PAPER = ["anisotropy", "self_similarity", "intra_sentence_similarity", "max_explainable_variance"]
DIM = 384
ROUNDS, MOST = 6, 3000  # slices, and the sentences in all of them
SINGLE = 40  # sentences of a slice that are encoded one at a time
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def clocked(f: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of this process, and the result."""
    began = time.process_time()
    result = f()
    return time.process_time() - began, result


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


def word_pieces(corpus: Corpus, vocabulary: int = 8000) -> Any:
    """A tokenizer of word pieces learnt from the sentences."""
    from tokenizers import BertWordPieceTokenizer
    from transformers import PreTrainedTokenizerFast

    learner = BertWordPieceTokenizer(lowercase=True)
    learner.train_from_iterator((one.text for one in corpus.sentences), vocab_size=vocabulary, show_progress=False)
    marks = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=learner._tokenizer, model_max_length=512, **marks)


def minilm_shaped(corpus: Corpus, folder: Path) -> Path:
    """A checkpoint of all-MiniLM-L6's shape with random weights, and word pieces of the sentences."""
    import torch
    from transformers import BertConfig, BertModel

    tokenizer = word_pieces(corpus)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": DIM, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 4 * DIM}
    BertModel(BertConfig(vocab_size=len(tokenizer), **shape), add_pooling_layer=False).save_pretrained(folder)
    return folder


def forward(model: Any, shapes: Sequence[tuple[int, int]]) -> None:
    """The bare forward pass on batches of these shapes, no mask, hidden states kept by the model as usual."""
    import torch

    with torch.inference_mode():
        for b, t in shapes:
            model(input_ids=torch.full((b, t), 5), output_hidden_states=True)


def products(config: Any, shapes: Sequence[tuple[int, int]]) -> None:
    """The same forward pass's matrix products and nothing else."""
    import torch

    d, f, h, layers = config.hidden_size, config.intermediate_size, config.num_attention_heads, config.num_hidden_layers
    with torch.inference_mode():
        square, up, down = (torch.randn(*shape) for shape in ((d, d), (d, f), (f, d)))
        for b, t in shapes:
            x, wide = torch.randn(b * t, d), torch.randn(b * t, f)
            q, k = torch.randn(b * h, t, d // h), torch.randn(b * h, d // h, t)
            scores = torch.randn(b * h, t, t)
            for _ in range(layers):
                for a, weight in (*[(x, square)] * 4, (x, up), (wide, down)):
                    torch.mm(a, weight)
                torch.bmm(q, k)
                torch.bmm(scores, q)


def one_at_a_time(encoder: Any, corpus: Corpus) -> None:
    for sentence in corpus.sentences:
        list(encoder.encode([sentence]))


def encoding(corpus: Corpus, checkpoint: Path, folder: Path) -> None:
    """Times the encoding of slices of the corpus in every way, and reports their ratios."""
    from transformers import AutoModel

    rng, unique = np.random.default_rng(0), list(dict.fromkeys(corpus.sentences))
    model: Any = AutoModel.from_pretrained(checkpoint).eval()
    make = factory("model", "huggingface")
    encoders = {
        name: make(checkpoint=str(checkpoint), device="cpu", dtype=dtype)
        for name, dtype in (("loop", "float32"), ("bfloat16", "bfloat16"))
    }
    lengths = np.asarray(encoders["loop"].lengths(unique))
    order = rng.permutation(len(unique))[:MOST]
    forward(model, [(8, 16)] * 3)
    took: defaultdict[str, float] = defaultdict(float)
    for i, part in enumerate(np.array_split(order, ROUNDS)):
        some = Corpus("slice", tuple(unique[j] for j in part))
        few = Corpus("few", some.sentences[:SINGLE])
        shapes = [(len(b), int(lengths[part][b[0]])) for b in batches(lengths[part], 2048)]
        ways: dict[str, Callable[[], Any]] = {
            name: partial(open_store, encoder, some, folder / f"{name}-{i}") for name, encoder in encoders.items()
        }
        ways["bare"] = partial(forward, model, shapes)
        ways["products"] = partial(products, model.config, shapes)
        for name, way in ways.items():
            took[name] += clocked(way)[0]
        single = clocked(partial(one_at_a_time, encoders["loop"], few))[0]
        took["single"] += single * len(some.sentences) / len(few.sentences)
    report("bare equal-length forward pass / encoding loop", f"{took['bare'] / took['loop']:.1%}", "at least 95%")
    report("same-shape products / forward pass", f"{took['products'] / took['bare']:.1%}", "at least 95%")
    single = took["single"] * len(corpus.sentences) / len(unique)  # it encodes repeated sentences again
    report("one sentence at a time / encoding loop", f"{single / took['loop']:.1f}x", "at least 4x")
    report("float32 encoding loop / bfloat16", f"{took['loop'] / took['bfloat16']:.2f}x")


def elmo(corpus: Corpus, folder: Path, projection: int = 128, cells: int = 1280) -> None:
    """An untrained ELMo of the mini's shape beside a bare `nn.LSTM(proj_size=...)` of its size, on the same batches: no
    clips, no residual, no token layer, no markers dropped and nothing copied out."""
    import torch

    clips = {"cell_clip": 3, "proj_clip": 3, "use_skip_connections": True}
    words = {"n_highway": 1, "n_characters": 262, "max_characters_per_token": 50, "activation": "relu"}
    filters = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256]]
    (folder / "options.json").write_text(json.dumps({
        "lstm": {"dim": cells, "projection_dim": projection, "n_layers": 2, **clips},
        "char_cnn": {"embedding": {"dim": 16}, "filters": filters, **words},
    }), encoding="utf-8")  # fmt: skip
    encoder = factory("model", "elmo")(weights="untrained", options_file=str(folder / "options.json"), device="cpu")
    sentences = list(dict.fromkeys(corpus.sentences))[:600]
    of_length = [[sentences[i] for i in b] for b in batches(np.array([len(one) for one in sentences]), 2048)]
    bare = torch.nn.LSTM(projection, cells, 2, proj_size=projection)
    inputs = [torch.randn(len(some[0]) + 2, len(some), projection) for some in of_length]

    def encode() -> None:
        encoder.forget_words()
        for some in of_length:
            list(encoder.encode(some))

    @torch.inference_mode()
    def lstm() -> None:
        for x in inputs:
            bare(x)
            bare(x.flip(0))

    encode()
    ratio = np.median([clocked(lstm)[0] / clocked(encode)[0] for _ in range(3)])
    report("bare LSTM of ELMo's size / ELMo's encoding", f"{ratio:.1%}")


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


def memory(folder: Path, sentences: int) -> None:
    """The peak of a process that finds all vectors in the folder; `remember` prints it."""
    for _ in range(2):  # the first encodes
        args = [sys.executable, "-m", __spec__.name, "--memory", str(folder), "--sentences", str(sentences)]
        out = subprocess.run(args, check=True, capture_output=True, text=True).stdout
    peak, layer = map(float, out.split()[-2:])
    report(f"peak memory ({sentences:,} sentences) less its layer's", f"{peak - layer:.2f} GB",
           f"at most 0.7 GB; layer {layer:.2f} GB")  # fmt: skip


def remember(folder: Path, sentences: int) -> None:
    """Measure a made-up corpus and print this process's peak memory and the size of one layer, in GB."""
    corpus = made_up(sentences, np.random.default_rng(1))
    measure_words(Drawn(), corpus, folder)
    status = Path("/proc/self/status").read_text()  # ru_maxrss would count what the parent held when it started this
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1e6
    print(peak, sum(len(sentence) for sentence in set(corpus.sentences)) * DIM * 4 / 1e9)


def measure_words(encoder: Encoder, corpus: Corpus, cache: Path, metrics: list[str] | None = None) -> None:
    """A run of these metrics (None: the default ones), the bootstrap included."""
    options = [f"cache.folder={cache}", "figures.explorer=0", "cache.limit_gb=null"]
    measure(encoder, corpus, metrics=metrics, options=options, progress=False)


def measuring(corpus: Corpus, encoder: Any, cache: Path) -> None:
    """Encode the whole corpus, measure it, and time the naive ways on a sample of its words."""
    encoded, _ = clocked(lambda: open_store(encoder, corpus, cache))
    _, (store, occurrences) = clocked(lambda: open_store(encoder, corpus, cache))
    default, core = (clocked(partial(measure_words, encoder, corpus, cache, some))[0] for some in (None, PAPER))
    layer = np.asarray(store.layer(store.n_layers // 2))
    drawn, every, shares, intra = (
        store.n_layers * naive.seconds(f, layer, occurrences, kind, order=order, most=most, budget=budget)
        for f, kind, order, most, budget in (
            (naive.self_similarity, "word", 2, 1500, 8),
            (naive.double_loop, "word", 2, 300, 8),
            (naive.explained_variance, "word", 1, 3000, 8),
            (naive.intra_sentence_similarity, "sentence", 1, 1000, 3),
        )
    )
    print(
        f"CPU seconds: encoding {encoded:.1f}, measuring {default:.2f}; naive, extrapolated: self-similarity "
        f"{every:,.0f} (every pair) or {drawn:,.0f} (1,000 drawn), MEV {shares:,.0f}, intra-sentence {intra:,.0f}"
    )
    full, released = every + shares + intra, drawn + shares + intra
    report("naive double loop over every pair, SVDs, sentences / measuring", f"{full / default:,.0f}x", "at least 900x")
    report("the released way (pair list, 1,000 of it drawn) / measuring", f"{released / default:,.0f}x")
    report("measuring's share of a first run, the paper's measures", f"{core / (encoded + core):.1%}", "at most 6%")
    report("    with centred MEV and norms, as by default", f"{default / (encoded + default):.1%}")


# -- a start


def child_seconds(*args: str, **env: str) -> float:
    """CPU seconds of that Python command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *args], env={**os.environ, **env}, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def start(folder: Path, runs: int = 4) -> None:
    """A default run whose vectors are cached, in a store that is there; the least of each, since load only adds."""
    run = partial(child_seconds, "-m", "ctxexp", "model=bert", f"tracking.folder={folder}/runs",
                  CTXEXP_CACHE=f"{folder}/start")  # fmt: skip
    run()
    rounds = [(run(), child_seconds("-c", "import torch")) for _ in range(runs)]
    took, torch = (min(side) for side in zip(*rounds, strict=True))
    report("a cached run / `import torch`", f"{took / torch:.1f}x", f"{took:.2f} CPU s")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sentences", type=int, default=26_556, help="how many sentences (default: %(default)s)")
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
    with tempfile.TemporaryDirectory(prefix="ctxexp-bench-") as place:
        folder = Path(place)
        corpus = made_up(options.sentences, np.random.default_rng(0))
        checkpoint = minilm_shaped(corpus, folder / "model")
        encoder: Any = factory("model", "huggingface")(checkpoint=str(checkpoint), device="cpu")
        unique = list(dict.fromkeys(corpus.sentences))
        print(
            f"{corpus.name}: {len(corpus.sentences):,} sentences, {len(unique):,} unique, {corpus.n_words:,} words, "
            f"{sum(encoder.lengths(unique)):,} pieces with markers in unique ones"
        )
        encoding(corpus, checkpoint, folder)
        elmo(corpus, folder)
        measuring(corpus, encoder, folder / "cache")
        for size in (options.sentences // 4, options.sentences):
            memory(folder / str(size), size)
        start(folder)


if __name__ == "__main__":
    if any(os.environ.get(variable) != "1" for variable in ONE_THREAD):  # read when NumPy is loaded, so start again
        args = [sys.executable, "-m", __spec__.name, *sys.argv[1:]]
        sys.exit(subprocess.run(args, env={**os.environ, **ONE_THREAD}).returncode)
    main()
