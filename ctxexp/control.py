"""Controls: the same measures on another text, without context, or without occurrences suspected to make a curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxexp.dataset import Corpus

if TYPE_CHECKING:
    import numpy as np

    from ctxexp.model import Encoder, TextStart
    from ctxexp.occurrences import Layers, Occurrences


class Control:
    """Changes the corpus before it is encoded, or how it is encoded, or leaves occurrences out of what is measured
    after all were encoded.

    Words, sentences and baselines then see the same rest. Override any of `corpus`, `encoder`, `left_out`,
    `skips` (only one of these two) and `note`.

    `name` is its name on the command line, `label` that in labels, figures and captions (by default the name).

    Example:
        >>> class FirstTen(Control):
        ...     name = "first_ten"
        ...     def corpus(self, corpus, seed):
        ...         return Corpus(corpus.name, corpus.sentences[:10])
        >>> FirstTen().label, FirstTen().changes_text, FirstTen().leaves_out
        ('first ten', True, False)
    """

    name: str = ""
    label: str = ""

    def __init_subclass__(cls) -> None:
        cls.name = cls.name or cls.__name__
        if "name" in vars(cls) and "label" not in vars(cls):
            cls.label = cls.name.replace("_", " ").strip()

    def corpus(self, corpus: Corpus, seed: int) -> Corpus:
        """The corpus to encode.

        Args:
            corpus: The data set's corpus; it stays unchanged.
            seed: The run's seed: the same seed gives the same corpus.

        Returns:
            The given corpus, or a new one whose pairs and senses refer to the same sentences and words.

        Example:
            >>> text = Corpus.of("text", [["a", "bank"]])
            >>> Control().corpus(text, seed=0) is text
            True
        """
        return corpus

    def encoder(self, encoder: Encoder) -> Encoder:
        """The encoder to measure.

        Args:
            encoder: The configured model.

        Returns:
            The given encoder, or another of the same units, layers and width, under a name of its own.
        """
        return encoder

    def require(self, encoder: Encoder) -> None:  # optional
        """Check, before anything is encoded, that the encoder gives what this control needs.

        Args:
            encoder: The model that will be measured.

        Raises:
            ConfigError: It doesn't.
        """

    def left_out(self, store: Layers, occurrences: Occurrences) -> np.ndarray | None:
        """The rows that are not measured.

        Args:
            store: The vectors.
            occurrences: The words, sentences and places of all rows.

        Returns:
            A mask (n_rows,) bool, True for a row that is left out; None for none.
        """
        return self.skips(occurrences.places)

    def skips(self, places: np.ndarray) -> np.ndarray | None:
        """The same where rows are judged by their places alone; without one of these two nothing is left out.

        Args:
            places: The place of each row in its sentence (n,), 0 first.

        Returns:
            A mask (n,) bool; None for none.

        Example:
            >>> import numpy as np
            >>> class NoFirstTwo(Control):
            ...     def skips(self, places):
            ...         return places < 2
            >>> NoFirstTwo().skips(np.arange(4)).tolist()
            [True, True, False, False]
        """
        return None

    def note(self, start: TextStart | None) -> str:
        """A remark for figures and reports.

        Args:
            start: The tokens before each text, never measured; None: not known.

        Returns:
            The remark; empty for none.

        Example:
            >>> Control().note(None)
            ''
        """
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
