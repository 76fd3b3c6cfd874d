"""`STS=FOLDER python -m docs.numbers.word_mix`: the table of docs/measures/self-similarity.md on the reference mix of
words (random subsets of all STS sentences)."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd

import ctxexp
from ctxexp import Corpus, Pair
from ctxexp.command import Experiment, configured
from docs.numbers.marked import write_marked
from docs.numbers.part import ROOT, markdown, without_leading_zero

PAGE = ROOT / "docs" / "measures" / "self-similarity.md"
SIZES, LAYERS = (750, 1500, 3000, 7000), (4, 5, 6)
WEIGHTS = ("bands", "equal")


def sizes_table(sts: str, model: str, sizes: tuple[int, ...] = SIZES) -> pd.DataFrame:
    """A row a size: words and punctuation marks, and by weights the contextuality in each of the layers."""
    data = {"dataset": "sts", "dataset.split": "all", "dataset.path": sts}
    experiment = Experiment(configured("random_words", None, data))  # which sentences are alike: no model's matter
    _, every, _ = experiment.study.space(experiment.vectors)
    sentences, group = experiment.study.corpus.sentences, every.clusters.pair_group
    assert group is not None
    order = np.random.default_rng(0).permutation(np.array(every.distinct.keys, np.int64))
    rows = []
    for size in sizes:
        numbers = np.sort(order[:size])
        chosen, of_group = [sentences[i] for i in numbers.tolist()], np.argsort(group[numbers], kind="stable")
        linked = np.flatnonzero(np.diff(group[numbers][of_group]) == 0)  # sentences that are not drawn together
        pairs = tuple(Pair(int(of_group[i]), int(of_group[i + 1]), 0.0) for i in linked)
        row: dict[str, object] = {"sentences": size, "words": sum(map(len, chosen))}
        for weights in WEIGHTS:
            options = {"words.mean": weights, "bootstrap": 0, "figures.explorer": 0}
            part = Corpus("part", tuple(chosen), pairs)
            found = ctxexp.measure(model, part, metrics="contextuality", layers=LAYERS, options=options, progress=False)
            values = found["contextuality"][list(LAYERS)]
            row |= {f"{weights} {layer}": value for layer, value in zip(LAYERS, values, strict=True)}
            row |= {f"{weights} filled": found.info.mix.mark}
        rows.append(row)
        print(row, flush=True)
    return pd.DataFrame(rows)


def write_sizes(sizes: pd.DataFrame) -> None:
    rows = []
    for _, row in sizes.iterrows():
        cells = [f"{row.sentences:,.0f}", f"{row.words:,.0f}"]
        for weights in WEIGHTS:
            values = " ".join(without_leading_zero(row[f"{weights} {layer}"]) for layer in LAYERS)
            cells.append(", ".join(filter(None, [values, row[f"{weights} filled"]])))
        rows.append(cells)
    head = ["sentences", "words and marks", "three bands (the default): layers 4, 5, 6", "all words alike"]
    write_marked(PAGE, "word mix", markdown(head, rows))


if __name__ == "__main__":
    write_sizes(sizes_table(os.environ["STS"], "minilm"))
