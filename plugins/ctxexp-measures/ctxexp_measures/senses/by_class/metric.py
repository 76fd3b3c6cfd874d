"""Measures by class of word: self-similarity, separation of senses, variance components."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge

from ctxexp import Block, Corpus, Estimate, Group, GroupMean, Metric, Reading, Text
from ctxexp.command import registry
from ctxexp.errors import DataError
from ctxexp.maths import Resamples
from ctxexp_measures.senses.attributes import Labels, once, row_attributes, tags_of_rows
from ctxexp_measures.senses.components.design import Design, population
from ctxexp_measures.senses.components.estimate import ValueWithInfluence
from ctxexp_measures.senses.components.metric import VarianceComponents, to_estimate

By = Literal["pos", "frequency", "pieces"]
UNTAGGED = "untagged"
BANDS = (10, 30, 100, 300, 1000)  # first counts of the bands of frequency but the lowest
MOST = 3  # tokens; words of as many or more are one class
LEAST = 5  # words of a class

log = logging.getLogger("ctxexp")


def require_tags(metric: str, by: Sequence[By], corpus: Corpus) -> None:
    """Raise DataError where parts of speech are asked of a corpus that has none."""
    if "pos" in by and "pos" not in corpus.tags:
        raise DataError(
            f"{metric}: corpus {corpus.name!r} has no parts of speech; choose dataset=semcor, or "
            f"metric.{metric}.by=[frequency,pieces]"
        )


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


def warn_left_out(text: Text, metric: str, words: Mapping[str, int]) -> None:
    """Warn, once per run, of the classes that have too few words, and therefore no value, with their numbers of
    words."""
    key = f"ctxexp_measures.senses.left_out {metric}"
    if words and key not in text.derived:
        text.derived[key] = True
        named = ", ".join(f"{name} ({n})" for name, n in words.items())
        log.warning(f"{metric}: classes of fewer than {LEAST} words are left out: {named}")


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
        self.by = tuple(by)
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
        clusters = self._text.occurrences.clusters
        resamples = Resamples(clusters, self.resampling[1], self.resampling[0])
        statistics: dict[str, float | Estimate] = {}
        for name, rows_of_class in sorted(self._scores.items()):
            _, scores, rows, influences = zip(*rows_of_class, strict=True)
            at, n, (shares, bands) = np.concatenate(rows), len(scores), self.weights(name)
            if n >= LEAST:
                of_row = np.concatenate([w * one for w, one in zip(shares, influences, strict=True)])
                value = ValueWithInfluence(
                    float(shares @ np.array(scores)), clusters.sum_by_block(clusters.of_row[at], of_row)
                )
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
    none. The chance level, `baseline`, is the one of self-similarity, for all classes. Contextuality isn't
    given by class: it compares words within bands of frequency, which a class fills too little.
    """

    over = "word"
    name: ClassVar[str] = "self_similarity_by_class"
    title = "Self-similarity by class of word"
    reading = Reading(unit="cosine", main="raw")
    definition = "mean cosine over all pairs of a word's occurrences"
    _cosine_statistic: ClassVar[str] = "baseline"
    invariances = frozenset({"rotation", "scale", "row_scale"})

    def scorer(self) -> GroupMean:
        return registry().find("metric", "self_similarity").factory()


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

    def __init__(self, *, by: Sequence[By] = ALL, permutations: Annotated[int, Ge(0)] = 200, seed: int = 0) -> None:
        super().__init__(by=by)
        self.permutations, self.seed = permutations, seed
        self._permuted: dict[str, list[np.ndarray]] = {}  # of each class: a word each

    def scorer(self) -> GroupMean:
        factory = registry().find("metric", "sense_separation").factory
        return factory(permutations=self.permutations, seed=self.seed)

    def bind_text(self, text: Text) -> None:
        super().bind_text(text)
        if "pos" in self.by:
            rows = np.arange(len(text.occurrences.forms))
            tags = lambda: np.array([tag or UNTAGGED for tag in tags_of_rows(text, "pos", rows)], object)  # noqa: E731
            self._tags = once(text, "tags", tags)

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
        return scorer

    def compute(self) -> dict[str, float | Estimate]:
        statistics = super().compute()
        for name, values in sorted(self._permuted.items()) if self.permutations else ():
            if f"{name}/raw" in statistics:
                means = self.weights(name)[0] @ np.array(values)
                statistics[f"{name}/permuted"] = Estimate(
                    float(means.mean()), *np.percentile(means, [2.5, 97.5]).tolist()
                )
        return statistics


class VarianceComponentsByClass(VarianceComponents):
    """Shares of the variance of the vectors of a class's words, in [0, 1] but for noise, for every class.

    What each share is says `VarianceComponents`; here every class is decomposed by itself, about its own mean, so that
    `word` is what tells the words of the class apart. Classes by `pos`, by `frequency` and by `pieces` as in
    `self_similarity_by_class`; words are those that are decomposed, lemma and part of speech where the corpus tags
    them. Statistics are named by class, `pos NOUN/context`, with its `words` and `occurrences`. Classes of fewer than
    five words have no shares, and a warning names them; a factor that a class's rows can't tell (sentences, where each
    holds one of them) stays in the `rest` of that class.
    """

    title = "What word vectors vary with, by class of word"
    name: ClassVar[str] = "variance_components_by_class"

    def __init__(self, *, by: Sequence[By] = ALL) -> None:
        super().__init__()
        self.by = tuple(by)

    def require(self, corpus: Corpus) -> None:
        require_tags(self.name, self.by, corpus)

    def compute(self) -> dict[str, float | Estimate]:
        statistics = super().compute()
        if self._text is None:
            return statistics
        small = self._classes(self._text)[1]
        warn_left_out(self._text, self.name, {name: words for name, (words, _) in small.items()})
        for name, (words, rows) in small.items():
            statistics |= {f"{name}/words": float(words), f"{name}/occurrences": float(rows)}
        return statistics

    def _sizes(self, design: Design) -> dict[str, float]:
        return {"words": float(design.n_words), "occurrences": float(len(design.attributes))}

    def _designs(self, text: Text) -> dict[str, Design]:
        return self._classes(text)[0]

    def _classes(self, text: Text) -> tuple[dict[str, Design], dict[str, tuple[int, int]]]:
        """The design of every class, by its name; words and rows of those that are too small for one."""

        def make() -> tuple[dict[str, Design], dict[str, tuple[int, int]]]:
            whole = row_attributes(text)
            some = population(whole, min_contexts=text.occurrences.min_contexts)
            word = whole.word.codes[np.searchsorted(whole.rows, some.rows)]
            designs: dict[str, Design] = {}
            small: dict[str, tuple[int, int]] = {}
            for names in classes(text, whole.word.codes, whole.rows, self.by).values():
                of_row = np.array(names)[word]
                for name in np.unique(of_row).tolist():
                    mine = some.subset(np.flatnonzero(of_row == name))
                    if len(mine.word) < LEAST:
                        small[name] = len(mine.word), len(mine)
                    else:
                        designs[name] = Design.of(mine)
            return designs, small

        return once(text, f"designs {self.by}", make)
