"""How often the gate fails a model against itself, at margins of 0 and the default; into the README of ctxexp-compare.

`python -m docs.numbers.itself`: pairs of resamples of each mini's text, the words the same, of which at most 5% should
fail at a margin of 0, but for sampling; whole runs of the ELMo mini over two random sets of sentences each, whose
words differ too, which no interval knows of; and planted texts of documents, told and untold.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from tempfile import TemporaryDirectory

import numpy as np
from ctxexp_compare.gate import diff

import ctxexp
from ctxexp.command import Built, configured
from docs.numbers.marked import write_marked
from docs.numbers.part import ROOT, markdown
from docs.numbers.planted_gate import false_alarms

README, MARK = ROOT / "plugins" / "ctxexp-compare" / "README.md", "itself"
MODELS = ("bert", "gpt2", "elmo")
RESAMPLED, TEXTS, SENTENCES = 200, 60, 200  # pairs of resamples, pairs of texts, sentences of a text
DOCUMENTS, PLANTED = (20, 40, 100), 1000  # documents of a planted text, planted texts

Failures = tuple[int, int]
"""Of pairs, how many fail at a margin of 0, and at the default one."""


def failures(pairs: int, sentences: int) -> Failures:
    """How many of the pairs fail at a margin of 0, and at the default one."""
    built = Built(configured("elmo"))
    layers, occurrences, _ = built.study.space(built.vectors)
    by = occurrences.by_sentence
    numbers = np.array(by.keys, int).tolist()
    rows = {key: by.rows[a:b] for key, a, b in zip(numbers, by.starts[:-1], by.starts[1:], strict=True)}
    whole = np.stack([np.asarray(layers.layer(i)) for i in layers.layer_numbers])
    form = built.words.form
    spoken = [[word for word in one.words if form(word) is not None] for one in built.corpus.sentences]
    kept = sorted(rows)
    rng, strict, usual = np.random.default_rng(0), 0, 0
    for pair in range(pairs):
        chosen = rng.permutation(kept)[: 2 * sentences]
        halves = [
            _measured(chosen[:sentences], rows, whole, spoken),
            _measured(chosen[sentences:], rows, whole, spoken),
        ]
        strict += bool(diff(*halves, margin=0, same_text=False, independent_sentences=True).outside)
        usual += bool(diff(*halves, same_text=False, independent_sentences=True).outside)
        print(f"{pair + 1} pairs: {strict} fail at a margin of 0, {usual} at the default", flush=True)
    return strict, usual


def _measured(
    chosen: np.ndarray, rows: dict[int, np.ndarray], whole: np.ndarray, spoken: Sequence[Sequence[str]]
) -> ctxexp.Results:
    vectors = [whole[:, rows[int(i)]] for i in chosen]
    encoder = ctxexp.from_arrays(vectors, [spoken[i] for i in chosen.tolist()])
    with TemporaryDirectory() as cache:
        options = [f"cache.folder={cache}", "min_contexts=3", "bootstrap=200", "figures.explorer=0"]
        metrics = ["anisotropy", "self_similarity", "intra_sentence_similarity"]
        return ctxexp.measure(encoder, metrics=metrics, options=options, progress=False)


def resamples(run: ctxexp.Results, pairs: int) -> Failures:
    """How many pairs of a run's own bootstrap replicates fail, as if each were a run over a text of its own."""
    keys = [key for key in run.replicates if key.statistic in ("share_of_room", "mean_cosine")]

    def at(i: int) -> ctxexp.Results:
        frame = run.frame.copy()
        for key in keys:
            frame.loc[(frame[list(key.columns)] == key.columns).all(axis=1), "value"] = run.replicates[key][:, i]
        corpus = replace(run.info.corpus, fingerprint=str(i))
        return replace(run, frame=frame, info=replace(run.info, corpus=corpus))

    drawn = [(at(2 * i), at(2 * i + 1)) for i in range(pairs)]
    strict = sum(bool(diff(a, b, margin=0, same_text=False, independent_sentences=True).outside) for a, b in drawn)
    return strict, sum(bool(diff(a, b, same_text=False, independent_sentences=True).outside) for a, b in drawn)


def table(own: Mapping[str, Failures], texts: Failures, told: Sequence[float], untold: float) -> str:
    """A Markdown table: each model's resamples, two texts, and planted documents."""
    rows = [[f"resamples of one text ({model})", f"{RESAMPLED}", *map(str, of)] for model, of in own.items()]
    rows.append([f"two texts of {SENTENCES} random sentences (elmo)", f"{TEXTS}", *map(str, texts)])
    planted = [(f"{n} documents", share) for n, share in zip(DOCUMENTS, told, strict=True)]
    planted.append((f"{DOCUMENTS[1]} documents, which aren't told", untold))
    rows += [[f"planted texts of {what}", f"{PLANTED:,}", f"{share:.1%}", ""] for what, share in planted]
    return markdown(["the same model over", "pairs", "fail at a margin of 0", "at the default"], rows)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    own = {model: resamples(ctxexp.measure(model, progress=False), RESAMPLED) for model in MODELS}
    told = [false_alarms("document", documents=n, texts=PLANTED) for n in DOCUMENTS]
    untold = false_alarms("sentence", documents=DOCUMENTS[1], texts=PLANTED)
    write_marked(README, MARK, table(own, failures(TEXTS, SENTENCES), told, untold))
