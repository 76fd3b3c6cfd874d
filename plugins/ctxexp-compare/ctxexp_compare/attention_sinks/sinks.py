"""Signs of a sink (a piece's norm beside the layer's median, and the attention that it draws beyond an even share), the
sinks that were found, and leaving them out.

Massive activations after Sun, Chen, Kolter & Liu (2024), attention sinks after Xiao et al. (2023) and Gu et al. (2025),
who call a piece a head's sink where it draws more than .3 of the attention on average.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import ctxexp
from ctxexp import Control, Corpus, Encoder, Sentence
from ctxexp.results import Key

if TYPE_CHECKING:
    import pandas as pd

    from ctxexp import Occurrences

FACTOR = 5.0  # times the layer's median norm, as control=no_sinks has it
SHARE = 0.3  # of the attention, beyond an even share, mean over heads
KINDS = ("first", "special", "delimiter", "later")  # of places
QUERIES = 4  # fewest pieces whose attention is averaged: a piece before the last draws its neighbour's alone


def norm_ratios(norms: np.ndarray) -> np.ndarray:
    """Each piece's norm over the median of its layer.

    Args:
        norms: (layers, n) of all pieces of a text, special ones among them.

    Returns:
        (layers, n); 1 throughout a layer of zeros.

    Example:
        >>> norm_ratios(np.array([[1.0, 2.0, 20.0]])).tolist()
        [[0.5, 1.0, 10.0]]
    """
    norms = np.asarray(norms, np.float64)
    median = np.median(norms, axis=1, keepdims=True)
    return np.divide(norms, median, out=np.ones_like(norms), where=median > 0)


def received_attention(weights: np.ndarray, *, causal: bool) -> np.ndarray:
    """The attention that each piece draws from the others that see it, beyond an even share.

    Args:
        weights: (heads, n, n) of one sentence and layer, queries by keys; each row sums to 1.
        causal: Whether a piece sees no later one. An even share is then 1 / (place + 1) of a query's attention, and
            1 / n otherwise.

    Returns:
        (n,) the mean over heads and queries, in (-1, 1); NaN where fewer than 4 pieces see it.

    Example:
        >>> weights = np.zeros((1, 6, 6))
        >>> weights[:, :, 0] = 1  # all look at the first
        >>> received_attention(weights, causal=False)[:2].round(2).tolist()
        [0.83, -0.17]
    """
    mean = np.asarray(weights, np.float64).mean(axis=0)
    n = len(mean)
    sees = np.tril(np.ones((n, n), bool), -1) if causal else ~np.eye(n, dtype=bool)
    even = 1 / np.arange(1, n + 1) if causal else np.full(n, 1 / n)
    count = sees.sum(axis=0)
    total = np.where(sees, mean - even[:, None], 0).sum(axis=0)
    return np.where(count >= QUERIES, total / np.maximum(count, 1), np.nan)


def sink_mask(
    norms: np.ndarray, attention: np.ndarray | None = None, *, factor: float = FACTOR, share: float = SHARE
) -> np.ndarray:
    """Which pieces are sinks in any layer: for any tool that has norms, or attention, of its own.

    Args:
        norms: (layers, n) of all pieces of a text.
        attention: (layers, n) of `received_attention`; None: by norm alone.
        factor: Times the layer's median norm from which on a piece counts.
        share: Drawn attention beyond an even share from which on it counts.

    Returns:
        (n,) bool.

    Example:
        >>> sink_mask(np.array([[1.0, 2.0, 20.0, 1.0]])).tolist()
        [False, False, True, False]
    """
    found = np.asarray((norm_ratios(norms) > factor).any(axis=0))
    if attention is not None:
        found = np.asarray(found | (np.nan_to_num(attention, nan=-1.0) > share).any(axis=0))
    return found


@dataclass(frozen=True)
class Sinks:
    """Every piece of a text with its scores, and which of them are sinks.

    Args:
        title: The model.
        sentences: The text.
        sentence: (n,) each piece's sentence.
        place: (n,) its place among the sentence's pieces, special ones counted, 0 first.
        tokens: (n,) its name in the vocabulary.
        spans: (n, 2) its characters, start and end; (0, 0) for what isn't of the text.
        kinds: (n,) first, special, delimiter or later.
        units: (n,) the number of the word of the sentence that it is part of; -1 for none.
        ratios: (layers, n) its norm over the layer's median.
        attention: (layers, n) the attention that it draws beyond an even share; None: the model gives none.
        factor: The ratio above which it is a sink.
        share: The drawn attention above which it is one.
    """

    title: str
    sentences: tuple[Sentence, ...]
    sentence: np.ndarray
    place: np.ndarray
    tokens: np.ndarray
    spans: np.ndarray
    kinds: np.ndarray
    units: np.ndarray
    ratios: np.ndarray
    attention: np.ndarray | None
    factor: float
    share: float

    @property
    def by_norm(self) -> np.ndarray:
        """(n,) bool: in any layer."""
        return np.asarray((self.ratios > self.factor).any(axis=0))

    @property
    def by_attention(self) -> np.ndarray:
        """(n,) bool: in any layer; none where the model gives no attention."""
        if self.attention is None:
            return np.zeros(len(self.place), bool)
        return np.asarray((np.nan_to_num(self.attention, nan=-1.0) > self.share).any(axis=0))

    @property
    def is_sink(self) -> np.ndarray:
        """(n,) bool: by norm or by attention."""
        return np.asarray(np.logical_or(self.by_norm, self.by_attention))

    @property
    def frame(self) -> pd.DataFrame:
        """A row a kind of place: its pieces, how many of them are sinks, in which layers, and the largest scores."""
        import pandas as pd

        rows = []
        for kind in KINDS:
            own = self.kinds == kind
            if not own.any():
                continue
            (layers,) = np.nonzero((self.ratios[:, own] > self.factor).any(axis=1))
            drawn = None if self.attention is None else np.nan_to_num(self.attention[:, own], nan=-1.0)
            (looked,) = np.nonzero((drawn > self.share).any(axis=1)) if drawn is not None else (np.zeros(0, int),)
            rows.append(
                {
                    "kind": kind,
                    "pieces": int(own.sum()),
                    "by_norm": int(self.by_norm[own].sum()),
                    "by_attention": int(self.by_attention[own].sum()),
                    "both": int((self.by_norm & self.by_attention)[own].sum()),
                    "layers_by_norm": number_ranges(layers.tolist(), "-") or "-",
                    "layers_by_attention": number_ranges(looked.tolist(), "-") or "-",
                    "largest_ratio": float(self.ratios[:, own].max()),
                    "most_attention": float("nan") if drawn is None else float(drawn.max()),
                }
            )
        return pd.DataFrame(rows)

    @property
    def pieces(self) -> pd.DataFrame:
        """A row a sink: sentence, place, characters, token, kind, and its largest scores with their layers."""
        import pandas as pd

        (at,) = np.nonzero(self.is_sink)
        columns = {
            "sentence": self.sentence[at],
            "place": self.place[at],
            "start": self.spans[at, 0],
            "end": self.spans[at, 1],
            "token": self.tokens[at],
            "kind": self.kinds[at],
            "by_norm": self.by_norm[at],
            "by_attention": self.by_attention[at],
            "ratio": self.ratios[:, at].max(axis=0),
            "ratio_layer": self.ratios[:, at].argmax(axis=0),
        }
        if self.attention is not None:
            drawn = np.nan_to_num(self.attention[:, at], nan=-1.0)
            columns |= {"attention": drawn.max(axis=0), "attention_layer": drawn.argmax(axis=0)}
        return pd.DataFrame(columns)

    def units_left_out(self, sentence: Sentence) -> np.ndarray:
        """The numbers of the sentence's words that have a sink among their pieces; none of a sentence that isn't in the
        text."""
        number = {own: i for i, own in enumerate(self.sentences)}.get(sentence)
        if number is None:
            return np.zeros(0, np.int64)
        units = self.units[(self.sentence == number) & self.is_sink]
        return np.unique(units[units >= 0])

    def save_mask(self, path: Path | str) -> None:
        """Write the mask as `.npz`, for any tool with NumPy: `sentence`, `place`, `start`, `end`, `by_norm` and
        `by_attention` (n,) of every piece, `texts` (sentences,)."""
        np.savez_compressed(
            Path(path),
            sentence=self.sentence,
            place=self.place,
            start=self.spans[:, 0],
            end=self.spans[:, 1],
            by_norm=self.by_norm,
            by_attention=self.by_attention,
            texts=np.array([one.text for one in self.sentences]),
        )


def number_ranges(numbers: Iterable[int], to: str = " to ") -> str:
    """Rising numbers in words: `0, 3 to 5, 37`; empty for none."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}{to}{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


METRICS = ("contextuality", "anisotropy", "self_similarity", "intra_sentence_similarity", "max_explainable_variance")


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
        A row a metric and layer: its main curve (less chance, where it has a level) with and without the sinks, and the
        difference.
    """
    import pandas as pd

    corpus = Corpus("text", sinks.sentences)
    chosen = ["bootstrap=0", "figures.explorer=0", *options]
    with_sinks, without = (
        ctxexp.measure(encoder, corpus, metrics=metrics, options=chosen, progress=False, control=control)
        for control in ("none", WithoutSinks(sinks))
    )
    rows = []
    for metric in metrics:
        key = Key(metric, "adjusted")
        curves = [of.by_key[key].value if key in of.by_key else of.curve(metric) for of in (with_sinks, without)]
        for layer, (a, b) in enumerate(np.stack(curves, axis=1).tolist()):
            rows.append({"metric": metric, "layer": layer, "with": a, "without": b, "difference": b - a})
    return pd.DataFrame(rows)
