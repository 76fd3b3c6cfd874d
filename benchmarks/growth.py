"""What a bounded run costs as the text grows: time by stage, peak memory, the store.

`python benchmarks/growth.py CORPUS` takes text of CORPUS (.txt or .txt.xz, a sentence a line), rare words replaced by
frequent ones so that every size has one vocabulary, and measures 1e5, 1e6 and 1e7 words of it, each in a process of its
own. `--one-pass` measures all contexts instead, once without a store and once with all rows in it.
"""

from __future__ import annotations

import argparse
import json
import lzma
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import ctxexp
from ctxexp.command import Progress

VOCABULARY = 2000
CONTEXTS, SAMPLE, SENTENCES = 64, 100, 512
OPTIONS = [
    f"words.max_contexts={CONTEXTS}", f"words.max_sentences={SENTENCES}", f"words.sample={SAMPLE}",
    "words.tokenizer=whitespace", "dataset.documents=blank", "figures.explorer=0",
    "metric=[self_similarity,intra_sentence_similarity,anisotropy]", "bootstrap=100",
]  # fmt: skip
SHARDS = 16
ONE_PASS = [
    *(option for option in OPTIONS if not option.startswith(("words.max", "words.sample", "metric"))),
    f"one_pass.shards={SHARDS}", "metric=one_pass",
]  # fmt: skip
STORED = [option for option in ONE_PASS if not option.startswith("one_pass.shards")]
WAYS = {"bounded": OPTIONS, "one pass": ONE_PASS, "stored": STORED}


class Clock(Progress):
    """Seconds by stage."""

    def __init__(self) -> None:
        super().__init__()
        self.took: Counter[str] = Counter()

    @contextmanager
    def stage(self, name: str, total: float, unit: str = "it") -> Iterator[Any]:
        began = time.perf_counter()
        with super().stage(name, total, unit) as stage:
            yield stage
        self.took[name.split(" ")[0]] += time.perf_counter() - began


def lines(corpus: Path) -> Iterator[str]:
    """The lines of a file, or of a folder's files in turn."""
    files = [corpus] if corpus.is_file() else sorted(corpus.glob("*.txt*"))
    for file in files:
        with lzma.open(file, "rt", encoding="utf-8") if file.suffix == ".xz" else file.open(encoding="utf-8") as stream:
            yield from stream


def write(corpus: Path, path: Path, n_words: int) -> None:
    """So many words of the corpus in one vocabulary: another word stands for each that isn't among the commonest."""
    counts = Counter(word for line in islice(lines(corpus), 20_000) for word in line.split())
    known = [word for word, _ in counts.most_common(VOCABULARY)]
    stand_in = {word: word for word in known}
    done = 0
    with path.open("w", encoding="utf-8") as out:
        for line in lines(corpus):
            words = line.split()
            for i in range(0, len(words) or 1, 25):  # as sentences are long, not paragraphs
                some = [stand_in.setdefault(w, known[zlib.crc32(w.encode()) % VOCABULARY]) for w in words[i : i + 25]]
                out.write(" ".join(some) + "\n")
                done += len(some)
            if len(stand_in) > 10**6:
                stand_in = {word: word for word in known}
            if done >= n_words:
                return
    raise SystemExit(f"{corpus} has {done:,} words, fewer than the {n_words:,} that are asked for")


def measured(path: str, model: str, way: str) -> dict[str, object]:
    """Costs of a run over the text at `path`, in this process."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as cache:
        began = time.perf_counter()
        found = ctxexp.measure(model, path, options=[*WAYS[way], f"cache.folder={cache}"], progress=clock)
        took, cpu = time.perf_counter() - began, time.process_time()
        store = sum(file.stat().st_size for file in Path(cache).rglob("*") if file.is_file())
    text = found.info.corpus
    return {
        "words": text.text_words or text.occurrences, "sentences": text.text_sentences, "encoded": text.sentences,
        "store": store,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "all": took, "cpu": cpu,
        **clock.took, "dim": found.info.model.dim,
        "raw": found.curve("self_similarity", "raw").tolist(),
    }  # fmt: skip


def grown(corpus: Path, sizes: Sequence[int], model: str) -> list[dict[str, float]]:
    """Print and return the costs at each size."""
    rows = []
    print(f"{model}, at most {CONTEXTS} contexts of {SAMPLE} words, {SENTENCES} whole sentences; {VOCABULARY:,} words")
    heads = ("words", "choose s", "us/word", "fetch s", "encode s", "measure s", "encoded", "peak MB", "store MB")
    print(" ".join(f"{head:>10}" for head in heads))
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "text.txt"
            write(corpus, path, size)
            row = _child(path, model, "bounded")
        rows.append(row)
        rate, mega = 1e6 * row["choose"] / row["words"], 1e-6
        print(
            f"{row['words']:>10,} {row['choose']:>10.1f} {rate:>10.2f} {row['fetch']:>10.1f} {row['encode']:>10.1f} "
            f"{row['measuring']:>10.1f} {row['encoded']:>10,} {row['peak'] * mega:>10,.0f} "
            f"{row['store'] * mega:>10,.1f}",
            flush=True,
        )
    return rows


def in_one_pass(corpus: Path, sizes: Sequence[int], model: str) -> bool:
    """Print what one pass costs at each size beside a run that stores all rows; whether memory stays where it is."""
    print(f"{model}, all contexts of {VOCABULARY:,} words, {SHARDS} shards of sums")
    print(
        " ".join(f"{h:>10}" for h in ("words", "way", "encode s", "measure s", "CPU s", "peak MB", "disk MB", "apart"))
    )
    found = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "text.txt"
            write(corpus, path, size)
            rows = {way: _child(path, model, way) for way in ("one pass", "stored")}
        for way, row in rows.items():
            apart = max(abs(a - b) for a, b in zip(row["raw"], rows["stored"]["raw"], strict=True))
            print(
                f"{row['words']:>10,} {way:>10} {row['encode']:>10.1f} {row['measuring']:>10.1f} {row['cpu']:>10.1f} "
                f"{row['peak'] * 1e-6:>10,.0f} {row['store'] * 1e-6:>10,.1f} {apart:>10.1e}",
                flush=True,
            )
        found[size] = rows["one pass"]
    first, last = found[sizes[0]], found[sizes[-1]]
    peak, most = last["peak"] / first["peak"], SHARDS * VOCABULARY * len(last["raw"]) * last["dim"] * 8
    print(
        f"one pass, {first['words']:,} to {last['words']:,} words: peak x{peak:.2f} (at most 1.3), disk at most",
        end=" ",
    )
    print(f"{most * 1e-6:,.0f} MB: shards x words x layers x width x 8 bytes")
    return peak <= 1.3


def _child(path: Path, model: str, way: str) -> Any:
    """What a run costs in a process of its own."""
    words = [sys.executable, __file__, str(path), "--child", model, "--way", way]
    return json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()[-1])


def judged(rows: Sequence[dict[str, float]]) -> bool:
    """Print how the last size stands to the one before, and whether that is within bounds."""
    a, b = rows[-2:]
    peak, store = b["peak"] / a["peak"], b["store"] / a["store"]
    rate = (b["choose"] / b["words"]) / (a["choose"] / a["words"])
    rest = (b["encode"] + b["measuring"]) / (a["encode"] + a["measuring"])
    print(f"from {a['words']:,} to {b['words']:,} words: peak x{peak:.2f}, store x{store:.2f} (at most 1.3);")
    print(f"  choosing a word x{rate:.2f} (linear: 1), encoding and measuring x{rest:.2f} (flat: 1)")
    return peak <= 1.3 and store <= 1.3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--words", nargs="+", type=float, default=[1e5, 1e6, 1e7])
    parser.add_argument("--model", default="bert")
    parser.add_argument(
        "--one-pass", action="store_true", help="all contexts without a store, beside all of them stored"
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--way", default="bounded", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(measured(str(given.corpus), given.child, given.way)))
        return
    sizes = [int(n) for n in given.words]
    if given.one_pass:
        good = in_one_pass(given.corpus, sizes, given.model)
    else:
        rows = grown(given.corpus, sizes, given.model)
        good = len(rows) < 2 or judged(rows)
    sys.exit(not good)


if __name__ == "__main__":
    main()
