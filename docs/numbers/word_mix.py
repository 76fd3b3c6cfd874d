"""`STS=FOLDER python -m docs.numbers.word_mix`: the tables of docs/measures/self-similarity.md on the reference mix of
words (random subsets of all STS sentences), and on the share of the room (against the centred space)."""

from __future__ import annotations

import os
import sys

import numpy as np
import pandas as pd

import ctxexp
from ctxexp import Corpus, Pair
from ctxexp.command import Experiment, configured, registry
from docs.numbers.marked import write_marked
from docs.numbers.part import ROOT, markdown, without_leading_zero

PAGE = ROOT / "docs" / "measures" / "self-similarity.md"
SIZES, LAYERS = (750, 1500, 3000, 7000, 15000, 30000), (4, 5, 6)
WEIGHTS = ("bands", "equal")
MODELS = ("bert", "gpt2", "elmo", "minilm")


def sizes_table(sts: str, model: str, sizes: tuple[int, ...] = SIZES) -> pd.DataFrame:
    """A row a size: words and punctuation marks, and by weights the share of the room in each of the layers."""
    data = {"dataset": "sts", "dataset.split": "all", "dataset.path": sts}
    experiment = Experiment(configured(model, None, data, layers=LAYERS))
    _, every, _ = experiment.study.space(experiment.vectors)
    sentences, group = experiment.study.corpus.sentences, every.clusters.pair_group
    assert group is not None
    order = np.random.default_rng(0).permutation(np.array(every.distinct.keys, np.int64))
    alone = registry().find("baseline", "one_per_sentence").factory(size=2, redraws=0, exact=True)
    rows = []
    for size in sizes:
        numbers = np.sort(order[:size])
        chosen, of_group = [sentences[i] for i in numbers.tolist()], np.argsort(group[numbers], kind="stable")
        linked = np.flatnonzero(np.diff(group[numbers][of_group]) == 0)  # sentences that are not drawn together
        pairs = tuple(Pair(int(of_group[i]), int(of_group[i + 1]), 0.0) for i in linked)
        row: dict[str, object] = {"sentences": size, "words": sum(map(len, chosen))}
        for weights in WEIGHTS:
            options = {"words.weights": weights, "bootstrap": 0, "figures.explorer": 0}
            part = Corpus("part", tuple(chosen), pairs)
            found = ctxexp.measure(
                model, part, metrics="self_similarity", baseline=alone, layers=LAYERS, options=options, progress=False
            )
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
        + [" ".join(without_leading_zero(row[f"{weights} {layer}"]) for layer in LAYERS) for weights in WEIGHTS]
        for _, row in sizes.iterrows()
    ]
    head = ["sentences", "words and marks", "three bands (the default): layers 4, 5, 6", "all words alike"]
    write_marked(PAGE, "word mix", markdown(head, rows))


def write_centred(centred: pd.DataFrame) -> None:
    rows = []
    for model, of_model in centred.groupby("model", sort=False):
        shares, spaces = (" ".join(map(without_leading_zero, of_model[c])) for c in ("share_of_room", "raw"))
        furthest = (of_model.share_of_room - of_model.raw).abs().max()
        rows.append([str(model), shares, spaces, without_leading_zero(furthest)])
    head = ["model", "share of the room, by layer", "self-similarity after `center_unit_norm`", "furthest apart"]
    write_marked(PAGE, "centred", markdown(head, rows))


if __name__ == "__main__":
    write_centred(pd.concat([centred_table(model) for model in sys.argv[1:] or MODELS]))
    write_sizes(sizes_table(os.environ["STS"], "minilm"))
