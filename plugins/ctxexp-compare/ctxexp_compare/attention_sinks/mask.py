"""Leaving sinks out: a control over what was found, and what it does to each curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import ctxexp
from ctxexp import Control, Corpus, Encoder, Sentence
from ctxexp_compare.attention_sinks.found import Sinks

if TYPE_CHECKING:
    import pandas as pd

    from ctxexp import Occurrences

METRICS = ("anisotropy", "self_similarity", "intra_sentence_similarity", "max_explainable_variance")


class WithoutSinks(Control):
    """Words with a sink among their pieces are encoded but not measured.

    Args:
        sinks: What was found.
        sentences: The measured text, in order; None: the text that the sinks were looked for in. Words of sentences
            that weren't looked at stay.

    Example:
        >>> from ctxexp_compare import sinks
        >>> text = ["The bank of the river was wet.", "A bank lends money to the river."]
        >>> without = WithoutSinks(sinks("gpt2", text))
        >>> chosen = {"metrics": "word_norm", "min_contexts": 2, "bootstrap": 0, "progress": False}
        >>> len(ctxexp.measure("gpt2", text, control=without, **chosen)["word_norm"])
        5
    """

    name = "without_sinks"
    label = "without sinks"

    def __init__(self, sinks: Sinks, sentences: Sequence[Sentence] | None = None) -> None:
        self.sinks, self.sentences = sinks, tuple(sinks.sentences if sentences is None else sentences)

    def note(self, start: object) -> str:
        n, total = int(self.sinks.is_sink.sum()), len(self.sinks.place)
        return f"{n} of {total} pieces are sinks of {self.sinks.title}, by norm or attention: it selects on the outcome"

    def left_out(self, store: object, occurrences: Occurrences) -> np.ndarray:
        out = np.zeros(len(occurrences.places), bool)
        groups = occurrences.by_sentence
        for i, key in enumerate(groups.keys):
            rows = groups.rows[groups.starts[i] : groups.starts[i + 1]]
            words = self.sinks.units_left_out(self.sentences[int(str(key))])
            out[rows[np.isin(occurrences.places[rows], words)]] = True
        return out


def effects(
    encoder: Encoder, sinks: Sinks, *, metrics: Sequence[str] = METRICS, options: Sequence[str] = ()
) -> pd.DataFrame:
    """The change of each curve when the sinks are left out.

    Args:
        encoder: The model in which they were found.
        sinks: What was found.
        metrics: Names of metrics, as on the command line.
        options: Further arguments of the command line, `min_contexts=3` say.

    Returns:
        A row a metric and layer: its main curve with and without the sinks (the share of the room above chance of those
        that have it), and their difference.
    """
    import pandas as pd

    corpus = Corpus("text", sinks.sentences)
    chosen = ["bootstrap=0", "figures.explorer=0", *options]
    with_sinks, without = (
        ctxexp.measure(encoder, corpus, metrics=metrics, options=chosen, progress=False, control=control)
        for control in ("none", WithoutSinks(sinks))
    )
    rows = [
        {"metric": metric, "layer": layer, "with": a, "without": b, "difference": b - a}
        for metric in metrics
        for layer, (a, b) in enumerate(
            zip(with_sinks.curve(metric).tolist(), without.curve(metric).tolist(), strict=True)
        )
    ]
    return pd.DataFrame(rows)
