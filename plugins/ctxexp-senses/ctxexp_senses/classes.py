"""Self-similarity by class of word: by part of speech, by frequency, by number of the model's tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Literal, get_args

import numpy as np

from ctxexp.dataset import Corpus
from ctxexp.errors import DataError, MetricError, near
from ctxexp.maths.geometry import mean_cosine
from ctxexp.maths.influence import of_mean_cosine
from ctxexp.measuring.bootstrap import Resamples
from ctxexp.measuring.occurrences import Text
from ctxexp.metric import Block, Estimate, Group, Metric, Over
from ctxexp_senses.components.estimate import Moved
from ctxexp_senses.components.metric import estimated
from ctxexp_senses.known import known, tagged

By = Literal["pos", "frequency", "pieces"]
UNTAGGED = "untagged"
BANDS = (10, 30, 100, 300, 1000)  # first counts of the bands of frequency but the lowest
MOST = 3  # tokens; words of as many or more are one class
LEAST = 5  # words of a class


class SelfSimilarityByClass(Metric):
    """Mean over the words of a class of the mean cosine between a word's occurrences, in [-1, 1], for every class.

    Classes by `pos` (the tag that most of a word's occurrences have; `untagged` if most have none), by `frequency` (how
    often the word occurs in the text, in bands) or by `pieces` (the model's tokens of the word, the mean over its
    occurrences, rounded): words that a tokenizer splits are rarer, and their vectors are means, which alone moves
    them, so that curves of models with other tokenizers differ by it. Statistics are named by class: `pos NOUN/raw`,
    its interval (sentences or documents are drawn anew, as for self-similarity) and `n` words. Classes of fewer than
    five words have none. The chance level, `baseline`, is the one of self-similarity, for all classes.
    """

    over: ClassVar[Over] = "word"
    title = "Self-similarity by class of word"
    unit: ClassVar[str] = "cosine"
    main: ClassVar[str] = "raw"
    definition = "mean cosine over all pairs of a word's occurrences"
    cosine_level: ClassVar[str] = "baseline"
    invariances = frozenset({"rotation", "scale", "row_scale"})

    def __init__(self, *, by: Sequence[By] = ("pos", "frequency", "pieces")) -> None:
        for kind in by:
            if kind not in get_args(By):
                raise MetricError(f"by={kind!r}: no such classes{near(str(kind), get_args(By))}")
        self.by = tuple(by)
        self._text: Text | None = None
        self._classes: dict[str, list[str]] = {}  # of each word
        self._scores: dict[str, float] = {}
        self._moved: dict[str, np.ndarray] = {}  # of each class, (blocks,)
        self._resample: tuple[np.random.Generator, int] = (np.random.default_rng(0), 0)

    def require(self, corpus: Corpus) -> None:
        if "pos" in self.by and "pos" not in corpus.tags:
            raise DataError(
                f"self_similarity_by_class: corpus {corpus.name!r} has no parts of speech; choose dataset=semcor, or "
                "metric.self_similarity_by_class.by=[frequency,pieces]"
            )

    def meet(self, text: Text) -> None:
        key = f"ctxexp_senses.classes {self.by}"
        if key not in text.derived:
            text.derived[key] = classes(text, self.by)
        self._text, self._classes = text, text.derived[key]  # type: ignore[assignment]

    def update(self, group: Group) -> None:
        self.update_block(Block.of(group))

    def update_block(self, block: Block) -> None:
        scores = mean_cosine(block.x)
        influence = of_mean_cosine(block.x)
        for i, word in enumerate(block.keys):
            self._scores[str(word)] = float(scores[i])
            if self._text is not None and block.rows is not None and np.isfinite(scores[i]):
                units = self._text.occurrences.units
                moved = units.summed(units.of_row[block.rows[i]], influence[i])
                for name in self._classes.get(str(word), ()):
                    self._moved[name] = self._moved.get(name, 0) + moved

    def resample(self, rng: np.random.Generator, replicates: int) -> None:
        self._resample = rng, replicates

    def compute(self) -> dict[str, float | Estimate]:
        if self._text is None:
            return {"raw": float("nan")}
        resamples = Resamples(self._text.occurrences.units, self._resample[1], self._resample[0])
        members: dict[str, list[float]] = {}
        for word, score in sorted(self._scores.items()):
            for name in self._classes.get(word, ()) if np.isfinite(score) else ():
                members.setdefault(name, []).append(score)
        found: dict[str, float | Estimate] = {}
        for name in dict.fromkeys(name for names in self._classes.values() for name in names):
            scores = members.get(name, [])
            if len(scores) >= LEAST:
                share = Moved(float(np.mean(scores)), self._moved[name] / len(scores))
                found |= {f"{name}/raw": estimated(share, resamples), f"{name}/n": float(len(scores))}
        return found


def classes(text: Text, by: Sequence[By]) -> dict[str, list[str]]:
    """The classes that each measured word is in, one of a kind."""
    words = text.occurrences.by_word
    rows = known(text).rows
    at = np.full(len(text.occurrences.forms), -1, np.int64)
    at[rows] = np.arange(len(rows))
    pos, pieces = np.array(tagged(text, "pos", rows), object), known(text).pieces
    found: dict[str, list[str]] = {}
    for i, word in enumerate(words.keys):
        mine = at[words.rows[words.starts[i] : words.starts[i + 1]]]
        tokens = int(pieces[mine].mean() + 0.5)
        of: dict[str, str] = {
            "frequency": band(len(mine)),
            "pieces": f"{MOST}+" if tokens >= MOST else str(tokens),
            "pos": Counter(pos[mine].tolist()).most_common(1)[0][0] or UNTAGGED,
        }
        found[str(word)] = [f"{kind} {of[kind]}" for kind in by]
    return found


def band(n: int) -> str:
    """The band of a word that occurs n times: `10-29`, `1000+`."""
    at = sum(n >= first for first in BANDS)
    if at == len(BANDS):
        return f"{BANDS[-1]}+"
    return f"{BANDS[at - 1]}-{BANDS[at] - 1}" if at else f"1-{BANDS[0] - 1}"
