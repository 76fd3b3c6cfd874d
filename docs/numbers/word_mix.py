"""`STS=FOLDER python -m docs.numbers.word_mix`: the tables of docs/measures/self-similarity.md on the reference mix of
words (random subsets of all STS sentences), and on the share of the room (against the centred space)."""

from __future__ import annotations

import os
import sys
from typing import get_args

import numpy as np
import pandas as pd

import ctxexp
from ctxexp import Occurrences
from ctxexp.baselines import OnePerSentence
from ctxexp.command import Built, configured
from ctxexp.maths.mix import Weights, WordMix
from ctxexp.measuring.measure import measure
from ctxexp.measuring.words import WordRows
from ctxexp.metrics.contextuality import SelfSimilarity
from ctxexp.vectors import Store
from docs.numbers.marked import write_marked
from docs.numbers.part import ROOT, markdown

PAGE = ROOT / "docs" / "measures" / "self-similarity.md"
SIZES, LAYERS = (750, 1500, 3000, 7000, 15000, 30000), (4, 5, 6)
MODELS = ("bert", "gpt2", "elmo", "minilm")


def sizes_table(sts: str, model: str, sizes: tuple[int, ...] = SIZES) -> pd.DataFrame:
    """A row a size: words and punctuation marks, and by weights the share of the room in each of the layers."""
    options = ["dataset=sts", "dataset.split=all", f"dataset.path={sts}", f"model.layers={list(LAYERS)}"]
    built = Built(configured(model, None, options))
    store, every, _ = built.study.space(built.vectors)
    assert isinstance(store, Store)  # no transform is over it
    corpus, of_sentence = built.study.corpus, every.distinct
    keys = np.array(of_sentence.keys, np.int64)
    order = np.random.default_rng(0).permutation(keys)
    rows = []
    for size in sizes:
        chosen = np.zeros(len(every.forms), bool)
        chosen[of_sentence.subset(np.flatnonzero(np.isin(keys, order[:size]))).rows] = True
        row: dict[str, object] = {"sentences": size, "words": sum(len(corpus.sentences[i]) for i in order[:size])}
        for weights in get_args(Weights)[:2]:
            words = Occurrences.of(store, corpus, measured=chosen, mix=WordMix(weights=weights))
            baseline = OnePerSentence(size=2, redraws=0, exact=True)
            found = measure([WordRows(store, words, baseline)], {"self_similarity": SelfSimilarity}, bootstrap=0)
            values = found.by_name["self_similarity/share_of_room"][list(LAYERS)]
            row |= {f"{weights} {layer}": value for layer, value in zip(LAYERS, values, strict=True)}
        rows.append(row)
        print(row, flush=True)
    return pd.DataFrame(rows)


def centred_table(model: str) -> pd.DataFrame:
    """A row a layer: the share of the room, and self-similarity after `transform=center_unit_norm`."""
    found = {}
    for transform, statistic in (("none", "share_of_room"), ("center_unit_norm", "raw")):
        results = ctxexp.measure(
            model, metrics=["self_similarity"], transform=transform, options=["bootstrap=0"], progress=False
        )
        found[statistic] = results.by_name[f"self_similarity/{statistic}"]
    return pd.DataFrame({"model": model, "layer": range(len(found["raw"])), **found})


def write_sizes(sizes: pd.DataFrame) -> None:
    rows = [
        [f"{row.sentences:,.0f}", f"{row.words:,.0f}"]
        + [" ".join(_share(row[f"{weights} {layer}"]) for layer in LAYERS) for weights in ("bands", "equal")]
        for _, row in sizes.iterrows()
    ]
    layers = ", ".join(map(str, LAYERS))
    head = ["sentences", "words and marks", f"three bands (the default): layers {layers}", "all words alike"]
    write_marked(PAGE, "word mix", markdown(head, rows))


def write_centred(centred: pd.DataFrame) -> None:
    rows = []
    for model, of_model in centred.groupby("model", sort=False):
        shares, spaces = (" ".join(map(_share, of_model[c])) for c in ("share_of_room", "raw"))
        rows.append([str(model), shares, spaces, _share((of_model.share_of_room - of_model.raw).abs().max())])
    head = ["model", "share of the room, by layer", "self-similarity after `center_unit_norm`", "furthest apart"]
    write_marked(PAGE, "centred", markdown(head, rows))


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


if __name__ == "__main__":
    write_centred(pd.concat([centred_table(model) for model in sys.argv[1:] or MODELS]))
    write_sizes(sizes_table(os.environ["STS"], "minilm"))
