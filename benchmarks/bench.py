"""Speed and memory of encoding and measuring, as ratios of CPU seconds on one thread, all from this run.

`python benchmarks/bench.py` uses a randomly initialised BERT of all-MiniLM-L6's shape (6 layers, 384 wide: the same
work as trained weights) and made-up sentences as long and as repetitive as the scored STS 2012-2016 sentences.
`--checkpoint` takes a model folder, `--sts` a folder of SemEval files, `--sentences` a smaller number.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import naive
import numpy as np

from ctxexp import Corpus, Occurrences
from ctxexp.baselines import OnePerSentence
from ctxexp.datasets.checks import is_punctuation
from ctxexp.measuring.measure import measure
from ctxexp.measuring.words import WordRows
from ctxexp.metrics.contextuality import (
    Anisotropy,
    IntraSentenceSimilarity,
    MaxExplainableVariance,
    SelfSimilarity,
    WordNorm,
)

DEFAULT = {
    "anisotropy": Anisotropy,
    "self_similarity": SelfSimilarity,
    "intra_sentence_similarity": IntraSentenceSimilarity,
    "max_explainable_variance": MaxExplainableVariance,
    "max_explainable_variance_centred": lambda: MaxExplainableVariance(definition="centred"),
    "word_norm": WordNorm,
}
FULL = {**DEFAULT, "max_explainable_variance_released": lambda: MaxExplainableVariance(definition="released")}


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


# -- memory, in a process of its own


def peak(folder: Path) -> dict[str, float]:
    """Peak memory in GB of measuring the vectors in `folder`, as a fresh process sees it."""
    out = subprocess.run(
        [sys.executable, __file__, "--memory", str(folder)], check=True, capture_output=True, text=True
    )
    result: dict[str, float] = json.loads(out.stdout.splitlines()[-1])
    return result


class Folder:
    """Two layers of vectors, mapped from a folder as a store maps them."""

    def __init__(self, folder: Path) -> None:
        index = np.load(folder / "index.npz")
        self.unit_codes, self.offsets, self.stored_of = index["codes"], index["offsets"], index["stored_of"]
        self.vocabulary = (folder / "vocabulary.txt").read_text().split("\n")
        self.folder, self.n_layers, self.layer_numbers = folder, 2, (0, 1)
        self.dim = self.layer(0).shape[1]

    def layer(self, i: int) -> np.ndarray:
        return np.load(self.folder / "layer.npy", mmap_mode="r")

    @property
    def corpus(self) -> Corpus:
        units = [self.vocabulary[c] for c in self.unit_codes.tolist()]
        return Corpus.of("folder", [units[self.offsets[s] : self.offsets[s + 1]] for s in self.stored_of.tolist()])


def write_folder(folder: Path, n_sentences: int, dim: int) -> float:
    """Random vectors of a made-up corpus; one layer's size in GB."""
    rng = np.random.default_rng(1)
    corpus = made_up(n_sentences, rng)
    unique = list(dict.fromkeys(s.words for s in corpus.sentences))
    number = {words: i for i, words in enumerate(unique)}
    vocabulary = sorted({w for words in unique for w in words})
    code = {w: i for i, w in enumerate(vocabulary)}
    codes = np.array([code[w] for words in unique for w in words], np.int32)
    offsets = np.cumsum([0, *map(len, unique)])
    np.savez(folder / "index.npz", codes=codes, offsets=offsets, stored_of=[number[s.words] for s in corpus.sentences])
    (folder / "vocabulary.txt").write_text("\n".join(vocabulary))
    layer = np.lib.format.open_memmap(folder / "layer.npy", "w+", np.float32, (len(codes), dim))
    words = rng.standard_normal((len(vocabulary), dim), np.float32)
    for at in range(0, len(codes), 50_000):
        part = codes[at : at + 50_000]
        layer[at : at + len(part)] = words[part] + rng.standard_normal((len(part), dim), np.float32)
    layer.flush()
    return layer.nbytes / 1e9


def remember(folder: Path) -> None:
    """Measure a folder's vectors and print this process's peak memory, before and after, in GB."""

    def now() -> float:
        status = Path("/proc/self/status")
        if status.exists():  # ru_maxrss would count what the parent held when it started this process
            return (
                int(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1]) / 1e6
            )
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / (1e9 if sys.platform == "darwin" else 1e6)

    store = Folder(folder)
    occurrences = Occurrences.of(store, store.corpus)
    before = now()
    measure([WordRows(store, occurrences, OnePerSentence())], FULL)
    print(json.dumps({"before": before, "peak": now(), "most": int(occurrences.counts[-1])}))


# -- the whole


def measuring_against_naive(corpus: Corpus, encoder: Any, cache: Path) -> None:
    """Encode the whole corpus, measure it, and time the naive ways on a sample of its words."""
    from encoding import clocked, report

    from ctxexp.vectors.encode import open_store

    encoding, store = clocked(lambda: open_store(corpus, encoder, cache=cache))
    indexing, occurrences = clocked(lambda: Occurrences.of(store, corpus, keep=lambda u: not is_punctuation(u)))
    measuring, _ = clocked(lambda: measure([WordRows(store, occurrences, OnePerSentence())], DEFAULT))
    core, _ = clocked(
        lambda: measure([WordRows(store, occurrences, OnePerSentence())], {k: DEFAULT[k] for k in list(DEFAULT)[:4]})
    )
    everything, _ = clocked(lambda: measure([WordRows(store, occurrences, OnePerSentence())], FULL))
    n, layer = store.n_layers, np.asarray(store.layer(store.n_layers // 2))
    words, sentences = occurrences.by_word, occurrences.by_sentence
    drawn = naive.seconds(naive.self_similarity, layer, words, order=2, most=1500, budget=8) * n
    every = naive.seconds(naive.double_loop, layer, words, order=2, most=300, budget=8) * n
    shares = naive.seconds(naive.explained_variance, layer, words, order=1, most=3000, budget=8) * n
    intra = naive.seconds(naive.intra_sentence_similarity, layer, sentences, order=1, most=1000, budget=3) * n
    print(
        f"CPU seconds: encoding {encoding:.1f}; index {indexing:.2f}; measuring, bootstrap included: {measuring:.2f} "
        f"(default metrics), {core:.2f} (without centred MEV and norms), {everything:.2f} (with the released MEV too)"
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
    shares_of_run = [(indexing + part) / (encoding + indexing + part) for part in (core, measuring)]
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
        remember(options.memory)
        return

    import torch
    from encoding import encoding, minilm_shaped, report
    from transformers.utils import logging

    from ctxexp.models.huggingface import huggingface

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(prefix="ctxexp-bench-") as place:
        folder = Path(place)
        corpus = sts(options.sts, options.sentences) if options.sts else made_up(options.sentences, rng)
        checkpoint = options.checkpoint or minilm_shaped(corpus, folder / "model")
        encoder: Any = huggingface(checkpoint=str(checkpoint), device="cpu")
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
                (folder / name).mkdir()
                one_layer = write_folder(folder / name, size, 384)
                got = peak(folder / name)
                what = f"peak memory at {name} ({size:,} sentences, top word {got['most']:,}) less its layer's"
                report(what, f"{got['peak'] - one_layer:.2f} GB", f"at most 0.7 GB; layer {one_layer:.2f} GB")


def sts(folder: Path, n: int) -> Corpus:
    """The scored sentences of STS 2012-2016 (without MSRvid), both sides, as the word tokenizer cuts them."""
    from ctxexp.datasets import tokenizer

    cut = tokenizer()
    texts: list[str] = []
    for scores in sorted(folder.glob("STS201*/*.gs.*.txt")):
        if "ALL" in scores.name or "MSRvid" in scores.name:
            continue
        texts.extend(_scored(scores))
    return Corpus("STS 2012-2016", tuple(cut(text) for text in texts[:n]))


def _scored(scores: Path) -> list[str]:
    import gzip

    pairs = scores.with_name(scores.name.replace(".gs.", ".input."))
    data = pairs.read_bytes() if pairs.exists() else gzip.decompress(pairs.with_name(pairs.name + ".gz").read_bytes())
    found: list[str] = []
    for score, line in zip(scores.read_text().split("\n"), data.decode().split("\n"), strict=False):
        if score.strip():
            found.extend(text.strip() for text in line.split("\t")[:2])
    return found


if __name__ == "__main__":
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        if os.environ.get(variable) != "1":  # read when NumPy is loaded, so start again
            one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
            sys.exit(subprocess.run([sys.executable, *sys.argv], env={**os.environ, **one}).returncode)
    main()
