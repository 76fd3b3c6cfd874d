"""Variance components of a layer's word vectors: the word, its form, its sense, its place, its sentence, the rest."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import numpy as np

from ctxexp import Estimate, Reading, Text
from ctxexp.maths import Curve, Resamples, interval
from ctxexp_measures.senses.attributes import TextMetric, once, row_attributes
from ctxexp_measures.senses.components.design import Design, ambiguous, population
from ctxexp_measures.senses.components.estimate import ValueWithInfluence, components, shares, squares

CONTEXT = ("sense", "sentence", "document", "rest")
"""The components that depend on the text around a word."""
ROUNDING = 5e-4  # of a share: what is nearer to 0 is shown as 0.0%
AMBIGUOUS = "ambiguous"
FACTOR, MOST = 5, 0.5  # times the median length; of all squared lengths, from which such rows are spoken of
SINKS = "ctxexp_measures.senses.sinks"  # whether they were
BELOW = "ctxexp_measures.senses.below"  # likewise, of components below 0

log = logging.getLogger("ctxexp")


class VarianceComponents(TextMetric):
    """Shares of the variance of a layer's word vectors, in [0, 1] but for noise: components over their sum.

    Rows follow x = mean + word + form + sense + position + sentence + document + rest, each part a vector, variance the
    sum over dimensions. `word`: a word is its spelling without case, or lemma and part of speech where the corpus tags
    them; `form`: its exact pieces to the model, so case, a blank before it, and inflection where lemmas are known (the
    spelling where the model has no pieces); `sense`: labelled senses within a form.
    These are fixed: which words there are is part of the question. `position` is what a form's place does (the number
    of tokens before it), by itself and together with the form. `sentence` and, where the corpus has documents,
    `document` (then `sentence` is what is left within one) are random effects that all words share; `rest` is what a
    word does by itself in one sentence. `context` is sense, sentence, document and rest together.

    Sequential sums of squares (word, form, sense, then place; Henderson's method III 1953 for the others, among
    occurrences of one form and sense at one place), each solved for its exact expectation with a variance of the rest
    for every word, so that the estimate of nothing may fall below 0; the components of `word`, `form` and `sense` are
    then of these very words. Where no word sees another (`control=alone`) nothing varies within form and place, so
    that context has a floor of 0. A warning says where a component's whole interval lies below 0, which no variance
    can: the rows of a network follow the model above only about. Intervals draw sentences, or documents, anew. Of words
    with sense labels only the labelled occurrences count; words need `min_contexts` sentences, and two occurrences in
    one form and sense at one place. This is a share of variance, at the vectors' own scale: one loud direction may be
    most of it, where contextuality scales it down. Where
    the corpus has senses, `ambiguous/...` decomposes the words with several. A factor that can't be told apart, such as
    the sentence where each holds one row, is left out and stays in `rest`. `total`: the sum of the components; `n`:
    rows. A warning says where a few rows of extreme length, as sinks, are most of what there is.

    How vectors go with senses, layer by layer, is earlier work: Reif et al. 2019 (Visualizing and Measuring the
    Geometry of BERT, arXiv 1906.02715), Chronis and Erk 2020 (When is a bishop not like a rook?,
    doi:10.18653/v1/2020.conll-1.17).
    """

    over = "corpus"
    title = "What word vectors vary with"
    reading = Reading(
        unit="share of variance",
        subject="word vectors",
        lower="less ruled by context",
        higher="more ruled by context",
        main="context",
    )
    definition = (
        "share of the variance that is sense, sentence, document or rest, not word, form or position; its floor, where "
        "no word sees another (control=alone), is 0"
    )
    invariances = frozenset({"rotation", "scale", "shift", "permutation"})

    def __init__(self) -> None:
        self._parts: dict[str, dict[str, ValueWithInfluence]] = {}

    def take(self, text: Text, rows: np.ndarray, x: np.ndarray) -> None:
        for name, design in self._designs(text).items():
            mine = x[0][np.searchsorted(rows[0], design.attributes.rows)]
            self._parts[name] = components(design, squares(mine, design), text.occurrences.clusters.n_blocks)
            _look_at_sinks(text, mine)

    def compute(self) -> dict[str, float | Estimate]:
        if self._text is None:
            return {"context": float("nan")}
        rng, replicates = self.resampling
        resamples = Resamples(self._text.occurrences.clusters, replicates, rng)
        designs, statistics = self._designs(self._text), dict[str, float | Estimate]()
        for task, parts in self._parts.items():
            of_task: dict[str, float | Estimate] = {
                name: to_estimate(share, resamples) for name, share in shares(parts, CONTEXT).items()
            }
            of_task |= {"total": sum(part.value for part in parts.values())}
            of_task["n"] = float(len(designs[task].attributes))
            _look_below_zero(self._text, task, of_task)
            statistics |= {f"{task}/{name}" if task else name: value for name, value in of_task.items()}
        return statistics

    def _designs(self, text: Text) -> dict[str, Design]:
        """Designs by task: of all rows, and of those of ambiguous words where there are any."""

        def make() -> dict[str, Design]:
            whole = Design.of(population(row_attributes(text), min_contexts=text.occurrences.min_contexts))
            some = ambiguous(whole)
            several = some is not None and len(some) < len(whole.attributes)
            return {"": whole} | ({AMBIGUOUS: Design.of(some)} if some and several else {})

        return once(text, "designs", make)


def _look_at_sinks(text: Text, x: np.ndarray) -> None:
    """Warn, once a run, where a few rows of extreme length hold most of all squared lengths."""
    squares = np.vecdot(x, x).astype(np.float64)
    large = squares > FACTOR**2 * np.median(squares)
    share = float(squares[large].sum() / max(squares.sum(), 1e-300))
    if share > MOST and not text.derived.get(SINKS):
        text.derived[SINKS] = True
        log.warning(
            f"variance_components: the {large.sum():,} of {len(x):,} rows of more than {FACTOR} times the median "
            f"length hold {share:.0%} of all squared lengths in a layer, so that shares are of little else there; "
            "control=no_sinks leaves them out"
        )


def _look_below_zero(text: Text, task: str, statistics: Mapping[str, float | Estimate]) -> None:
    """Warn, once a run, where a component's whole interval is below 0: the rows don't follow the model."""
    below = {name: one for name, one in statistics.items() if isinstance(one, Estimate) and one.high < -ROUNDING}
    if below and not text.derived.get(BELOW):
        text.derived[BELOW] = True
        listing = ", ".join(f"{name} {x.value:.2%} [{x.low:.2%}, {x.high:.2%}]" for name, x in below.items())
        of = f" of {task} words" if task else ""
        log.warning(
            f"variance_components: in a layer {listing}{of}: the whole interval is below 0, which no variance can be. "
            "The vectors there don't follow the sum of parts; read shares of that size as 0"
        )


def to_estimate(share: ValueWithInfluence, resamples: Resamples) -> Estimate:
    """The number with its interval and replicates."""
    replicates = resamples.of(Curve(np.array([share.value]), share.influence[None]))
    low, high = interval(replicates)
    return Estimate(share.value, float(low[0]), float(high[0]), replicates[0])
