"""Peers beside ctxexp: what the same work takes in other libraries, on the same sentences, words and machine.

    python -m benchmarks.peers CHECKPOINT [--sentences 300] [--rounds 5] [--write PAGE]

CPU seconds of one thread, theirs over ours: above 1 ctxexp is faster. Rounds take turns, and the spread is over rounds.
A peer that isn't installed, or can't load the model, is skipped with its reason. What is compared isn't always the same
work: the table says what each gives.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import naive
from benchmarks.bench import clocked
from ctxexp import Encoder
from ctxexp.command import configured, registry
from ctxexp.errors import error_text
from ctxexp.maths import mean_cosine
from docs.numbers.marked import write_marked
from docs.numbers.part import markdown

Task = Callable[[], object]
POLYSEMY = registry().find("dataset", "polysemy").factory().sentences


def our_encoder(checkpoint: str) -> Encoder:
    """The encoder of the folder or name, loaded."""
    from ctxexp.command import Experiment

    encoder = Experiment(
        configured("huggingface", None, [f"model.checkpoint={checkpoint}", "model.device=cpu"])
    ).encoder
    next(iter(encoder.encode(POLYSEMY[:1])))
    return encoder


def our_tasks(encoder: Encoder, sentences: Sequence[Any], rows: Sequence[np.ndarray]) -> dict[str, Task]:
    """ctxexp's own way of each kind of work."""
    from ctxexp_compare.distances import nearest

    by_length = sorted(sentences, key=lambda s: len(s.text))
    view = encoder.sentence_encoder()
    assert view is not None
    stacked = np.concatenate(rows)
    return {
        "sentence vectors": lambda: list(view.encode(by_length)),
        "word vectors": lambda: list(encoder.encode(by_length)),
        "self-similarity": lambda: [mean_cosine(x) for x in rows],
        "neighbours": lambda: nearest(stacked, 10, "cosine"),
    }


def sentence_transformers(checkpoint: str, texts: list[str], backend: str) -> Task:
    """The last layer's sentence vectors."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(checkpoint, device="cpu", backend=backend)  # type: ignore[arg-type,unused-ignore]
    return lambda: model.encode(texts, batch_size=32, show_progress_bar=False)


def pipeline(checkpoint: str, texts: list[str]) -> Task:
    """The last layer's pieces, by transformers' pipeline."""
    from transformers import pipeline as make

    extract = make("feature-extraction", model=checkpoint, tokenizer=checkpoint, device="cpu")
    return lambda: extract(texts, batch_size=32)


def minicons(checkpoint: str, sentences: Sequence[Any]) -> Task:
    """All layers' vectors of one word a sentence."""
    from minicons import cwe

    model = cwe.CWE(checkpoint, "cpu")
    asked = [[s.text, s.words[len(s.words) // 2]] for s in sentences]
    batches = [asked[i : i + 32] for i in range(0, len(asked), 32)]
    return lambda: [model.extract_representation(batch, layer="all") for batch in batches]


def flair(checkpoint: str, sentences: Sequence[Any]) -> Task:
    """The last layer's word vectors."""
    from flair.data import Sentence
    from flair.embeddings import TransformerWordEmbeddings

    model = TransformerWordEmbeddings(checkpoint, layers="all", fine_tune=False)

    def embed() -> None:
        texts = [Sentence(list(s.words)) for s in sentences]
        for i in range(0, len(texts), 32):
            model.embed(texts[i : i + 32])

    return embed


def faiss(rows: np.ndarray) -> Task:
    """The 10 nearest of each row by inner product of rows of length 1, ties broken by number."""
    import faiss as library

    library.omp_set_num_threads(1)
    u = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def search() -> object:
        index = library.IndexFlatIP(u.shape[1])
        index.add(u)
        return index.search(u, 11)

    return search


def peers(checkpoint: str, sentences: Sequence[Any], rows: Sequence[np.ndarray]) -> list[tuple[str, str, str, Any]]:
    """Peers: the kind of work, the name, what it gives, and what makes its task."""
    texts, stacked = [s.text for s in sentences], np.concatenate(rows)
    found: list[tuple[str, str, str, Any]] = []
    for backend in ("torch", "onnx", "openvino"):
        make = lambda backend=backend: sentence_transformers(checkpoint, texts, backend)  # noqa: E731
        found.append(("sentence vectors", f"sentence-transformers ({backend})", "last layer only", make))
    return [
        *found,
        ("word vectors", "minicons", "all layers, one word a sentence", lambda: minicons(checkpoint, sentences)),
        ("word vectors", "flair", "all layers, words", lambda: flair(checkpoint, sentences)),
        ("word vectors", "transformers pipeline", "last layer's pieces", lambda: pipeline(checkpoint, texts)),
        (
            "self-similarity", "kawine/contextual's way", "1,000 drawn pairs a word, one layer",
            lambda: lambda: [naive.self_similarity(x) for x in rows],
        ),
        ("neighbours", "faiss-cpu", "10 nearest of each of the rows", lambda: faiss(stacked)),
    ]  # fmt: skip


def row(kind: str, name: str, gives: str, make: Any, own: Task, rounds: int) -> list[str]:
    """A peer's line: the median ratio of CPU time, theirs over ours, and its spread over rounds."""
    try:
        task = make()
        task()
    except Exception as error:  # whatever a library raises where it doesn't fit the others that are here
        reason = re.sub(r" \(/.*", "", " ".join(error_text(error).split()))  # no path of this machine
        return [kind, name, gives, f"skipped: {reason[:90]}", ""]
    own()
    ratios = [clocked(task)[0] / max(clocked(own)[0], 1e-9) for _ in range(rounds)]
    return [kind, name, gives, f"{np.median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}"]


def table(checkpoint: str, n: int, rounds: int) -> str:
    """The table as Markdown; peers that are skipped are printed alone."""
    import torch

    torch.set_num_threads(1)
    sentences = list(dict.fromkeys(POLYSEMY))[:n]
    encoder = our_encoder(checkpoint)
    by_word: dict[str, list[np.ndarray]] = {}
    for one in encoder.encode(sentences):
        for unit, x in zip(one.units, one.layers[-1], strict=True):
            by_word.setdefault(unit, []).append(np.asarray(x, np.float32))
    rows = [np.stack(x) for x in by_word.values() if len(x) >= 5]
    ours = our_tasks(encoder, sentences, rows)
    head = ["work", "peer", "what it gives", "theirs / ours", "spread"]
    made = []
    for kind, name, gives, make in peers(checkpoint, sentences, rows):
        made.append(row(kind, name, gives, make, ours[kind], rounds))
        print(*made[-1], sep=" | ", flush=True)
    return markdown(head, [cells for cells in made if not cells[3].startswith("skipped: ")])


def main(args: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkpoint", help="a folder, as of sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", type=Path, help="a page with the marks of the table")
    options = parser.parse_args(args)
    text = table(options.checkpoint, options.sentences, options.rounds)
    if options.write:
        write_marked(options.write, "peers", text)


if __name__ == "__main__":
    main()
