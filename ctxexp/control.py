"""Controls: the same measures on another text, or without the occurrences that are suspected to make a curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxexp.dataset import Corpus

if TYPE_CHECKING:
    import numpy as np

    from ctxexp.measuring.occurrences import Occurrences
    from ctxexp.model import Encoder, TextStart
    from ctxexp.vectors.layers import Layers


class Control:
    """Changes the corpus before it is encoded, or leaves occurrences out of what is measured after all were encoded.

    Words, sentences and baselines then see the same rest. Override any of `corpus`, `left_out`, `skips` (only
    one of these two) and `note`.

    `name` is what the command calls it, `words` what labels, figures and captions do (by default the name).
    """

    name: str = ""
    words: str = ""

    def __init_subclass__(cls) -> None:
        cls.name = cls.name or cls.__name__
        if "name" in vars(cls) and "words" not in vars(cls):
            cls.words = cls.name.replace("_", " ").strip()

    def corpus(self, corpus: Corpus, seed: int) -> Corpus:
        """The corpus to encode: the given one, or a new one whose pairs and senses point to what they did."""
        return corpus

    def require(self, encoder: Encoder) -> None:  # optional
        """Raise ConfigError, before anything is encoded, where what this encoder gives is not enough for it."""

    def left_out(self, store: Layers, occurrences: Occurrences) -> np.ndarray | None:
        """(n_rows,) bool: the store's rows that are not measured; None for none. `occurrences` holds all of them."""
        return self.skips(occurrences.places)

    def skips(self, places: np.ndarray) -> np.ndarray | None:
        """The same, (n,) bool, where rows are judged by their places in their sentences (n,) alone, 0 first."""
        return None

    def note(self, start: TextStart | None) -> str:
        """What is to be said of it where `start` stands before each text, never measured; empty for nothing."""
        return ""

    @property
    def changes_text(self) -> bool:
        """Whether it may change the corpus."""
        return type(self).corpus is not Control.corpus

    @property
    def leaves_out(self) -> bool:
        """Whether it may leave occurrences out."""
        return self.needs_rows or type(self).skips is not Control.skips

    @property
    def needs_rows(self) -> bool:
        """Whether it judges them by more than their places."""
        return type(self).left_out is not Control.left_out
