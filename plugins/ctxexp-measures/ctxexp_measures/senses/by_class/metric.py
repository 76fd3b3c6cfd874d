"""Means over the words of a class: self-similarity, and separation of senses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ctxexp import Block, Corpus, Estimate, Group, GroupMean, Metric, Reading, Text
from ctxexp.command import registry
from ctxexp.maths import Resamples
from ctxexp_measures.senses.attributes import tags_of_rows
from ctxexp_measures.senses.by_class.classes import LEAST, UNTAGGED, By, classes, kinds, require_tags, warn_left_out
from ctxexp_measures.senses.components.estimate import ValueWithInfluence
from ctxexp_measures.senses.components.metric import to_estimate

ALL: tuple[By, ...] = ("pos", "frequency", "pieces")


class ByClass(Metric):
    """Mean of another measure's scores over the words of a class, weighed as all words are, for every class.

    Classes by `pos`, by `frequency` (how often the word occurs in the text, in bands) and by `pieces` (the model's
    tokens of the word, the mean over its occurrences, rounded): words that a tokenizer splits are rarer, and their
    vectors are means, which alone moves them, so that curves of models with other tokenizers differ by it. Statistics
    are named by class: `pos NOUN/raw` with its interval (sentences or documents are drawn anew, the words held), its
    `words` and their `occurrences`, and of weights by bands how many `bands` of frequency they fill. Classes of fewer
    than five words have no `raw`, and a warning names them.
    """

    reading = Reading(main="raw")
    name: ClassVar[str]  # in configs

    def __init__(self, *, by: Sequence[By] = ALL) -> None:
        self.by = kinds(by)
        self._text: Text | None = None
        self._of_form: dict[By, list[str]] = {}
        self._scores: dict[str, list[tuple[str, float, np.ndarray, np.ndarray]]] = {}
        """Of each class: word, score, rows, influence."""

    @abstractmethod
    def scorer(self) -> GroupMean:
        """A new instance of the measure that scores words."""

    def require(self, corpus: Corpus) -> None:
        require_tags(self.name, self.by, corpus)

    def bind_text(self, text: Text) -> None:
        key = f"ctxexp_measures.senses.classes {self.by}"
        if key not in text.derived:
            forms = text.occurrences.forms
            # A bounded text holds words without the rest of their sentences
            rows = text.occurrences.by_sentence.rows if text.corpus.bound is None else text.occurrences.rows
            text.derived[key] = classes(text, forms[rows], rows, self.by)
        self._text, self._of_form = text, text.derived[key]  # type: ignore[assignment]

    def update(self, group: Group) -> None:
        self.update_block(Block.of(group))

    def update_block(self, block: Block) -> None:
        if self._text is None or block.rows is None:
            return
        form = self._text.occurrences.forms[block.rows[:, 0]]
        self.score_groups(block, [[self._of_form[kind][i] for kind in self.by] for i in form.tolist()])

    def score_groups(self, block: Block, named: Sequence[Sequence[str]]) -> GroupMean:
        """Score a block's groups and add each score to the group's classes; returns the scorer."""
        scorer = self.scorer()
        scorer.update_block(block)
        scores, influence = scorer._group_scores().scores.tolist(), scorer._row_influence(block)
        assert block.rows is not None
        for names, key, score, *rest in zip(named, block.keys, scores, block.rows, influence, strict=True):
            for name in names if np.isfinite(score) else ():
                self._scores.setdefault(name, []).append((str(key), score, *rest))
        return scorer

    def weights(self, name: str) -> tuple[np.ndarray, int | None]:
        """The weights (words,) of a class's words, which add up to 1, and how many bands of frequency they fill, where
        bands weigh."""
        assert self._text is not None
        text = self._text.occurrences
        own = np.array([text.text_counts[word] for word, *_ in self._scores[name]], np.int64)
        mixed = text.mix.of(own, text.text_total)
        weights = mixed.weights(np.ones(len(own), bool))
        bands = int(mixed.filled.sum()) if mixed.mix.weights == "bands" else None
        return np.full(len(own), 1 / len(own)) if weights is None else weights, bands

    def compute(self) -> dict[str, float | Estimate]:
        if self._text is None:
            return {"raw": float("nan")}
        units = self._text.occurrences.units
        resamples = Resamples(units, self.resampling[1], self.resampling[0])
        statistics: dict[str, float | Estimate] = {}
        for name, rows_of_class in sorted(self._scores.items()):
            _, scores, rows, influences = zip(*rows_of_class, strict=True)
            at, n, (shares, bands) = np.concatenate(rows), len(scores), self.weights(name)
            if n >= LEAST:
                of_row = np.concatenate([w * one for w, one in zip(shares, influences, strict=True)])
                value = ValueWithInfluence(float(shares @ np.array(scores)), units.summed(units.of_row[at], of_row))
                statistics[f"{name}/raw"] = to_estimate(value, resamples)
            statistics |= {f"{name}/words": float(n), f"{name}/occurrences": float(len(at))}
            if bands is not None:
                statistics[f"{name}/bands"] = float(bands)
        few = {
            name: len(rows_of_class)
            for name, rows_of_class in sorted(self._scores.items())
            if len(rows_of_class) < LEAST
        }
        warn_left_out(self._text, self.name, few)
        return statistics


class SelfSimilarityByClass(ByClass):
    """Mean over the words of a class of the mean cosine between a word's occurrences, in [-1, 1], for every class.

    See `ByClass`; the part of speech of a word is the tag that most of its occurrences have, `untagged` if most have
    none. The chance level, `baseline`, is the one of self-similarity, for all classes.
    """

    over = "word"
    name: ClassVar[str] = "self_similarity_by_class"
    title = "Self-similarity by class of word"
    reading = Reading(unit="cosine", main="raw")
    definition = "mean cosine over all pairs of a word's occurrences"
    _cosine_statistic: ClassVar[str] = "baseline"
    invariances = frozenset({"rotation", "scale", "row_scale"})

    def scorer(self) -> GroupMean:
        scorer: GroupMean = registry().find("metric", "self_similarity").factory()
        return scorer


class SenseSeparationByClass(ByClass):
    """Mean over the words of a class of (mean cosine of same-sense pairs - that of cross-sense pairs), in [-2, 2].

    See `ByClass`, and `SenseSeparation` for a word's score. By part of speech only senses of one tag are compared: of
    `saw` the noun's with each other and the verb's, so that what is told apart is no part of speech, and a word may be
    in several classes. By frequency and by tokens all senses of a word are. The chance level is 0 in every class.
    """

    over = "sense"
    name: ClassVar[str] = "sense_separation_by_class"
    title = "Separation of word senses by class of word"
    reading = Reading(unit="cosine", main="raw")
    definition = "mean cosine of a word's same-sense pairs minus that of its cross-sense pairs"
    invariances = frozenset({"rotation", "scale", "row_scale"})

    def __init__(self, *, by: Sequence[By] = ALL, permutations: int = 200, seed: int = 0) -> None:
        super().__init__(by=by)
        self.permutations, self.seed = permutations, seed
        self._permuted: dict[str, list[np.ndarray]] = {}  # of each class: a word each
        self.scorer()  # holds the options to what it takes

    def scorer(self) -> GroupMean:
        factory = registry().find("metric", "sense_separation").factory
        scorer: GroupMean = factory(permutations=self.permutations, seed=self.seed)
        return scorer

    def bind_text(self, text: Text) -> None:
        super().bind_text(text)
        key = "ctxexp_measures.senses.tags"
        if "pos" in self.by and key not in text.derived:
            rows = np.arange(len(text.occurrences.forms))
            text.derived[key] = np.array([tag or UNTAGGED for tag in tags_of_rows(text, "pos", rows)], object)
        self._tags: np.ndarray = text.derived.get(key)  # type: ignore[assignment]

    def update_block(self, block: Block) -> None:
        if self._text is None or block.rows is None:
            return
        whole = [kind for kind in self.by if kind != "pos"]
        forms = self._text.occurrences.forms[block.rows[:, 0]].tolist()
        named = [[self._of_form[kind][form] for kind in whole] for form in forms]
        torn = []  # words of several parts of speech
        for i, rows in enumerate(block.rows if "pos" in self.by else ()):
            if len(tags := sorted(set(self._tags[rows]))) == 1:
                named[i].append(f"pos {tags[0]}")
            else:
                torn += [(i, tag, np.flatnonzero(self._tags[rows] == tag)) for tag in tags]
        self.score_groups(block, named)
        for i, tag, at in torn:
            labels = tuple(block.labels[i][k] for k in at.tolist())
            self.score_groups(
                Block([block.keys[i]], block.x[i, at][None], block.rows[i, at][None], [labels]), [[f"pos {tag}"]]
            )

    def score_groups(self, block: Block, named: Sequence[Sequence[str]]) -> GroupMean:
        scorer: Any = super().score_groups(block, named)
        for names, parts in zip(named, scorer.parts, strict=True):
            for name in names if np.isfinite(parts[:2]).all() else ():
                self._permuted.setdefault(name, []).append(parts[2:])
        return scorer  # type: ignore[no-any-return]

    def compute(self) -> dict[str, float | Estimate]:
        statistics = super().compute()
        for name, values in sorted(self._permuted.items()) if self.permutations else ():
            if f"{name}/raw" in statistics:
                means = self.weights(name)[0] @ np.array(values)
                statistics[f"{name}/permuted"] = Estimate(
                    float(means.mean()), *np.percentile(means, [2.5, 97.5]).tolist()
                )
        return statistics
