"""The sinks that were found: tables, and a mask that other tools read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp import Sentence

if TYPE_CHECKING:
    import pandas as pd


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
        for kind in dict.fromkeys(("first", "special", "delimiter", "later", *self.kinds.tolist())):
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
