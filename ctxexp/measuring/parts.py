"""The measured text's halves and a quarter of it: what a finding says must be true of both halves, and a page shows how
much the numbers hang on the amount of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.baselines.drawn import OnePerSentence
from ctxexp.measuring.bootstrap import Units
from ctxexp.measuring.measure import measure
from ctxexp.measuring.streams import Stream
from ctxexp.measuring.words import WordRows
from ctxexp.metric import Metric
from ctxexp.results import Results
from ctxexp.results.values import LAYER

if TYPE_CHECKING:
    import pandas as pd

    from ctxexp.measuring.study import Study
    from ctxexp.vectors.stores import Stores

TABLE = "parts_of_the_text"
LEAST_CLUSTERS = 8  # that a text needs to be halved and quartered
HALVES = ("half", "other half")
STATISTICS = ("raw", "baseline", "share_of_room", "mean_cosine")


def measure_parts(
    words: WordRows, stores: Stores, study: Study, prototypes: Mapping[str, Metric]
) -> pd.DataFrame | None:
    """A row a part, measure, statistic and layer, of the measures whose cost is small: mean cosines, no single rows or
    singular values. None without such a measure, or for a text that has no halves."""
    import pandas as pd

    metrics = {
        label: study.metrics[label]
        for label, prototype in prototypes.items()
        if prototype.cosine_statistic and (prototype.scored or prototype.cosine_statistic != "baseline")
    }
    if not metrics or words.units is None or words.units.n < LEAST_CLUSTERS:
        return None
    tables = []
    for name, rows in draw_parts(words.units, np.random.default_rng([study.seed, Stream.PARTS])):
        part = WordRows(
            words.store,
            stores.part(study.corpus, rows),
            OnePerSentence(
                size=2, redraws=0, exact=True
            ),  # in closed form: small parts have few sentences to draw from
            named_baseline=study.named_baseline,
            seed=study.seed,
            eps=words.eps,
            is_part=True,
        )
        tables.append(part_table(name, measure([part], metrics, seed=study.seed, bootstrap=0)))
    return pd.concat(tables, ignore_index=True)


def draw_parts(units: Units, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """A quarter, a half that holds it and the other half of a text: each part's rows (n_rows,) bool, by whole clusters
    in random order."""
    sizes = np.bincount(units.of_row[units.of_row >= 0], minlength=units.n_blocks)
    order = rng.permutation(units.n_blocks)
    before = np.empty(units.n_blocks)
    before[order] = (np.cumsum(sizes[order]) - sizes[order] / 2) / max(sizes.sum(), 1)
    place = np.where(units.of_row >= 0, before[units.of_row], np.nan)
    yield "quarter", place < 0.25
    yield HALVES[0], place < 0.5
    yield HALVES[1], place >= 0.5


def part_table(part: str, results: Results) -> pd.DataFrame:
    """The curves of a part's results, with its words and the bands that they fill."""
    frame = results.frame
    chosen = frame[frame.statistic.isin(STATISTICS) & (frame.place == LAYER)]
    filled = " ".join(str(int(each)) for each in results.info.mix.filled)
    words = results.info.corpus.occurrences
    columns = ["measure", "task", "statistic", "layer", "value"]
    return chosen[columns].assign(part=part, words=words, filled=filled)[["part", "words", "filled", *columns]]
