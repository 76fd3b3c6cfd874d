"""Self-similarity by class of word: part of speech, frequency, number of the model's tokens; and its table."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ctxexp import Block, Corpus, Estimate, Group, Metric, Reading, Results, Text
from ctxexp.command import registry
from ctxexp.errors import DataError
from ctxexp.maths import Resamples
from ctxexp.report import LabelledResults, Table
from ctxexp.results import Key
from ctxexp_measures.senses.attributes import Labels, once, tags_of_rows
from ctxexp_measures.senses.components.estimate import ValueWithInfluence
from ctxexp_measures.senses.components.figure import models
from ctxexp_measures.senses.components.metric import to_estimate

By = Literal["pos", "frequency", "pieces"]
NAME = "self_similarity_by_class"
UNTAGGED = "untagged"
BANDS = (10, 30, 100, 300, 1000)  # first counts of the bands of frequency but the lowest
MOST = 3  # tokens; words of as many or more are one class
LEAST = 5  # words of a class

log = logging.getLogger("ctxexp")


def classes(text: Text, words: np.ndarray, rows: np.ndarray, by: Sequence[By]) -> dict[By, list[str]]:
    """The class of each kind that each word is in, as `pos NOUN`, by its number.

    Word words[i] stands in the store's row rows[i] (n,). `pos`: the tag that most of its rows have, the earlier one of
    two, `untagged` if most have none; `frequency`: how many rows it has, in bands; `pieces`: the model's tokens of it,
    the mean over its rows, rounded.
    """
    n = int(words.max(initial=-1)) + 1
    counts = np.bincount(words, minlength=n)
    names_by_kind: dict[By, list[str]] = {}
    for kind in by:
        if kind == "frequency":
            names = [band(count) for count in counts.tolist()]
        elif kind == "pieces":
            tokens = np.bincount(words, text.tokens[rows, 1], minlength=n) / np.maximum(counts, 1)
            names = [f"{MOST}+" if mean >= MOST else str(mean) for mean in (tokens + 0.5).astype(int).tolist()]
        else:
            names = _commonest(words, tags_of_rows(text, "pos", rows), n)
        names_by_kind[kind] = [f"{kind} {name}" for name in names]
    return names_by_kind


def band(n: int) -> str:
    """The band of a word that occurs n times: `10-29`, `1000+`."""
    at = sum(n >= first for first in BANDS)
    if at == len(BANDS):
        return f"{BANDS[-1]}+"
    return f"{BANDS[at - 1]}-{BANDS[at] - 1}" if at else f"1-{BANDS[0] - 1}"


def _commonest(words: np.ndarray, tags: Sequence[str], n: int) -> list[str]:
    """(n,) the commonest tag of each word, the earliest of equally common ones."""
    labels = Labels.of(tag or UNTAGGED for tag in tags)
    pairs, counts = np.unique(words * len(labels) + labels.codes, return_counts=True)
    word, tag = np.divmod(pairs, len(labels))
    order = np.lexsort([tag, -counts, word])
    first = order[np.flatnonzero(np.diff(word[order], prepend=-1))]
    names = [UNTAGGED] * n
    for i, code in zip(word[first].tolist(), tag[first].tolist(), strict=True):
        names[i] = str(labels.names[code])
    return names


class SelfSimilarityByClass(Metric):
    """Mean over the words of a class of the mean cosine between a word's occurrences, in [-1, 1], for every class.

    Classes by `pos` (the tag that most of a word's occurrences have), by `frequency` (how often it occurs in the text,
    in bands) and by `pieces` (the model's tokens of the word, the mean over its occurrences, rounded): words that a
    tokenizer splits are rarer, and their vectors are means, which alone moves them, so that curves of models with other
    tokenizers differ by it. Words are weighed as all words are. Statistics are named by class: `pos NOUN/raw` with its
    interval (sentences or documents are drawn anew, the words held), its `words` and their `occurrences`, and of
    weights by bands how many `bands` of frequency they fill. Classes of fewer than five words have no `raw`, and a
    warning names them. The chance level, `baseline`, is the one of self-similarity, for all classes. Contextuality
    isn't given by class: it compares words within bands of frequency, which a class fills too little.

    by: pos needs a data set with parts of speech (semcor)
    """

    over = "word"
    title = "Self-similarity by class of word"
    reading = Reading(unit="cosine", main="raw")
    definition = "mean cosine over all pairs of a word's occurrences"
    cosine_statistic = "baseline"
    invariances = frozenset({"rotation", "scale", "row_scale"})

    def __init__(self, *, by: Sequence[By] = ("pos", "frequency", "pieces")) -> None:
        self.by = tuple(by)
        self._text: Text | None = None
        self._of_form: dict[By, list[str]] = {}
        self._scores: dict[str, list[tuple[str, float, np.ndarray, np.ndarray]]] = {}
        """Of each class: word, score, rows, influence."""

    def require(self, corpus: Corpus) -> None:
        if "pos" in self.by and "pos" not in corpus.tags:
            raise DataError(
                f"{NAME}: corpus {corpus.name!r} has no parts of speech; choose dataset=semcor, or "
                f"metric.{NAME}.by=[frequency,pieces]"
            )

    def bind_text(self, text: Text) -> None:
        forms = text.occurrences.forms
        # A bounded text holds words without the rest of their sentences
        rows = text.occurrences.by_sentence.rows if text.corpus.bound is None else text.occurrences.rows
        self._text = text
        self._of_form = once(text, f"classes {self.by}", lambda: classes(text, forms[rows], rows, self.by))

    def update(self, group: Group) -> None:
        self.update_block(Block.of(group))

    def update_block(self, block: Block) -> None:
        if self._text is None or block.rows is None:
            return
        scorer = registry().find("metric", "self_similarity").factory()
        scorer.update_block(block)
        forms = self._text.occurrences.forms[block.rows[:, 0]].tolist()
        scores, influence = scorer._group_scores().scores.tolist(), scorer._row_influence(block)
        for form, key, score, *rest in zip(forms, block.keys, scores, block.rows, influence, strict=True):
            for kind in self.by if np.isfinite(score) else ():
                self._scores.setdefault(self._of_form[kind][form], []).append((str(key), score, *rest))

    def compute(self) -> dict[str, float | Estimate]:
        if self._text is None:
            return {"raw": float("nan")}
        clusters = self._text.occurrences.clusters
        resamples = Resamples(clusters, self.resampling[1], self.resampling[0])
        statistics: dict[str, float | Estimate] = {}
        few: dict[str, int] = {}
        for name, words_of_class in sorted(self._scores.items()):
            words, scores, rows, influences = zip(*words_of_class, strict=True)
            at, n, (shares, bands) = np.concatenate(rows), len(scores), self._weights(words)
            if n < LEAST:
                few[name] = n
            else:
                of_row = np.concatenate([w * one for w, one in zip(shares, influences, strict=True)])
                by_block = clusters.sum_by_block(clusters.of_row[at], of_row)
                value = ValueWithInfluence(float(shares @ np.array(scores)), by_block)
                statistics[f"{name}/raw"] = to_estimate(value, resamples)
            statistics |= {f"{name}/words": float(n), f"{name}/occurrences": float(len(at))}
            if bands is not None:
                statistics[f"{name}/bands"] = float(bands)
        if few:
            once(self._text, f"few {NAME}", lambda: _warn_left_out(few))
        return statistics

    def _weights(self, words: Sequence[str]) -> tuple[np.ndarray, int | None]:
        """The weights (words,) of a class's words, which add up to 1, and how many bands of frequency they fill, where
        bands weigh."""
        assert self._text is not None
        text = self._text.occurrences
        own = np.array([text.text_counts[word] for word in words], np.int64)
        mixed = text.mix.of(own, text.text_total)
        weights = mixed.weights(np.ones(len(own), bool))
        bands = int(mixed.filled.sum()) if mixed.mix.weights == "bands" else None
        return np.full(len(own), 1 / len(own)) if weights is None else weights, bands


def _warn_left_out(few: Mapping[str, int]) -> None:
    """Warn of the classes that have too few words, and therefore no value, with their numbers of words."""
    named = ", ".join(f"{name} ({n})" for name, n in few.items())
    log.warning(f"{NAME}: classes of fewer than {LEAST} words are left out: {named}")


def table(runs: Sequence[LabelledResults]) -> Table | None:
    """Table with a row for each model and class: words, occurrences, the last layer's value; None if no run has
    classes. The CSV has every layer."""
    import pandas as pd

    numbers = pd.DataFrame(_rows(runs))
    if numbers.empty:
        return None
    columns = ["model", "corpus", "class", "words", "occurrences", "filled", "layer", "value [95%]"]
    last = numbers[numbers.layer == numbers.groupby(["model", "corpus"]).layer.transform("max")]
    lines = [
        [r.model, r.corpus, r.name, f"{r.words:,}", f"{r.occurrences:,}", r.filled, str(r.layer),
         _format_value(r.value, r.low, r.high)]
        for r in last.rename(columns={"class": "name"}).itertuples(index=False)
    ]  # fmt: skip
    notes = [f"classes of fewer than {LEAST} words are left out"]
    return Table("Self-similarity by class of word, in the last layer", numbers, columns, lines, notes)


def _rows(runs: Sequence[LabelledResults]) -> Iterator[dict[str, Any]]:
    """Yields a row for each run, class and layer; `filled` says how many bands of frequency the class fills where it
    doesn't fill all of them."""
    for label, results in models(runs, NAME):
        for measure in (m for m, about in results.info.measures.items() if about.name == NAME):
            names = [key.task for key in results.by_key if key.measure == measure and key.statistic == "words"]
            for name in sorted(names, key=_order):
                curve = results.by_key.get(Key(measure, "raw", name))
                about: dict[str, Any] = {"model": label, "corpus": results.info.corpus.name, "class": name}
                about |= {size: _size(results, Key(measure, size, name)) for size in ("words", "occurrences")}
                about["filled"] = _filled(results, Key(measure, "bands", name))
                for layer in range(results.n_layers):
                    ends = [float("nan")] * 3 if curve is None else [float(part[layer]) for part in curve]
                    yield {**about, "layer": layer, **dict(zip(("value", "low", "high"), ends, strict=True))}


def _order(name: str) -> tuple[str, int, str]:
    """Kinds by name; in each classes of numbers by their first, the others by name."""
    kind, _, of = name.partition(" ")
    first = of.rstrip("+").split("-")[0]
    return kind, int(first) if first.isdigit() else -1, of


def _size(results: Results, key: Key) -> int:
    return int(np.nanmax(results.by_key[key].value))


def _filled(results: Results, bands: Key) -> str:
    every = len(results.info.mix.filled)
    filled = _size(results, bands) if bands in results.by_key else every
    return f"{filled} of {every} bands" if filled < every else ""


def _format_value(value: float, low: float, high: float) -> str:
    """The value with its interval, where there are resamples."""
    if np.isnan(value):
        return "left out"
    return f"{value:.3f}" if np.isnan(low) else f"{value:.3f} [{low:.3f}, {high:.3f}]"
