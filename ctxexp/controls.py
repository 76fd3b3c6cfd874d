"""Controls: the same measures on another text, without context, or without occurrences suspected to make a curve; the
contract, and the built-in ones, which change the text, read words alone or leave occurrences out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt

from ctxexp.dataset import Corpus, Sense, Sentence
from ctxexp.errors import ConfigError
from ctxexp.maths.resampling import Stream
from ctxexp.model import EncodedSentence, Encoder, TextStart
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


CHUNK_BYTES = 16 << 20  # bytes of vectors, in float64, in memory at a time


class Uncontrolled(Control):
    """The text as it is, every occurrence measured."""

    name = "none"
    label = ""


class Alone(Control):
    """Each word is encoded by itself, at its place in the sentence: what a measure of context shows all the same is its
    floor in that layer.

    A transformer sees the word's pieces and no others, at the positions that they have in the sentence; special pieces
    are left out, since what a word takes from them hangs on its position. Models that take no positions (T5, which
    knows distances only, or a recurrent model) see the word's pieces alone; others, such as ELMo, a sentence of one
    word.
    """

    name = "alone"
    label = "each word alone"

    def encoder(self, encoder: Encoder) -> Encoder:
        return WordsAlone(encoder)


class WordsAlone(Encoder):
    """An encoder that gives each word of a sentence the vectors that it has without the others."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        for key in ("n_layers", "dim", "dtype", "title", "details", "positional", "causal", "start", "layers"):
            vars(self)[key] = getattr(encoder, key)
        self.name = f"{encoder.name}, each word alone"

    @property
    def class_code(self) -> str:
        return self._encoder.class_code

    def encode(self, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
        return self._encoder.encode_alone(batch)

    def count_unknown(self, sentences: Sequence[Sentence]) -> tuple[int, int]:
        return self._encoder.count_unknown(sentences)

    def token_spans(self, sentences: Sequence[Sentence]) -> Iterable[np.ndarray]:
        return self._encoder.token_spans(sentences)

    def unit_keys(self, sentences: Sequence[Sentence]) -> Iterable[Sequence[Hashable]]:
        return self._encoder.unit_keys(sentences)


class NoFirst(Control):
    """The `first` places of each text are encoded but not measured: a causal model's first word sees no other word, and
    is its attention sink where nothing stands before it (Xiao et al. 2023).

    Places count every unit of the text that has a vector, punctuation included; what the tokenizer or `model.prefix`
    puts before the text has none.

    first: places left out
    """

    name = "no_first"

    def __init__(self, *, first: Annotated[int, Ge(1)] = 1) -> None:
        self.first = first
        self.label = "no first word" if first == 1 else f"no first {first} words"

    def note(self, start: TextStart | None) -> str:
        if start is None or not start.tokens:
            return ""
        return f"places are the text's own; what stands before it is never measured: {start}"

    def skips(self, places: np.ndarray) -> np.ndarray:
        return places < self.first


class NoSinks(Control):
    """Occurrences whose norm exceeds `factor` times the layer's median norm in any layer are not measured: attention
    sinks and massive activations.

    The median is taken before any transform, over the occurrences that would be measured; in a bounded corpus
    (`words.max_contexts`) over those in its sample of sentences. The control selects on the outcome: the norm that
    decides is seen by the measures too, so that a curve may shift because of this selection alone. `no_first` and
    `model.prefix` choose by position instead.
    """

    name = "no_sinks"

    def __init__(self, *, factor: Annotated[float, Gt(1)] = 5.0) -> None:
        self.factor = float(factor)
        self.label = f"no sinks above {self.factor:g} × median"

    def note(self, start: TextStart | None) -> str:
        return "it selects on the outcome (their norms); control=no_first and model.prefix choose by place"

    def require(self, encoder: Encoder) -> None:
        if len(encoder.layer_numbers) < encoder.n_layers:
            raise ConfigError(
                f"control no_sinks judges an occurrence by its norm in every layer, of which only "
                f"{', '.join(map(str, encoder.layer_numbers))} are there; leave model.layers out"
            )

    def left_out(self, store: Layers, occurrences: Occurrences) -> np.ndarray:
        rows = occurrences.rows
        # A bounded corpus has at most so many occurrences of each word, so that frequent words are too few in it;
        # the sentences that it samples have them as often as the text.
        in_sentence_sample = np.isin(rows, occurrences.by_sentence.rows)
        out = np.zeros(len(occurrences.places), bool)
        step = max(1, CHUNK_BYTES // (8 * store.dim))
        for i in store.layer_numbers:
            vectors = store.layer(i)
            squares = np.empty(len(rows))
            for a in range(0, len(rows), step):
                chunk = vectors[rows[a : a + step]].astype(np.float64)
                squares[a : a + step] = np.einsum("nd,nd->n", chunk, chunk)
            norms = np.sqrt(squares)
            out[rows[norms > self.factor * np.median(norms[in_sentence_sample])]] = True
        return out


class Shuffled(Control):
    """Words at random positions; sentence lengths and word frequencies are unchanged.

    `how` contexts: all words of the corpus are permuted, so that each stands in a context of random words: effects that
    remain are not due to context. `how` order: the words of each sentence are permuted within it: effects that remain
    are not due to word order, but may be due to the other words of the sentence. Texts are the words joined by single
    spaces. Senses and tags follow their word. Pairs keep their gold similarity: correlations with it are at chance
    level under `contexts`; under `order` they show how much similarity remains without word order.

    how: contexts: words change places over the whole corpus; order: within their sentence
    """

    name = "shuffled"

    def __init__(self, *, how: Literal["contexts", "order"] = "contexts") -> None:
        self.how = how
        self.label = f"shuffled {how}"

    def corpus(self, corpus: Corpus, seed: int) -> Corpus:
        rng = np.random.default_rng([seed, Stream.SHUFFLE])
        lengths = np.array([len(s) for s in corpus.sentences], np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        source = np.arange(starts[-1])  # (n_words,) index of the word that moves to each position
        for a, b in [(0, starts[-1])] if self.how == "contexts" else pairwise(starts):
            source[a:b] = rng.permutation(source[a:b])
        words = [word for sentence in corpus.sentences for word in sentence.words]
        sentences = tuple(Sentence.of(words[i] for i in source[a:b].tolist()) for a, b in pairwise(starts))
        position_of = np.empty_like(source)  # (n_words,) its inverse: position that each word moves to
        position_of[source] = np.arange(len(source))
        senses = []
        for sense in corpus.senses:
            at = int(position_of[starts[sense.sentence] + sense.position])
            # of the sentences that begin there, only the last has words
            sentence = int(np.searchsorted(starts, at, side="right")) - 1
            senses.append(Sense(sentence, at - int(starts[sentence]), sense.label))
        tags = {}
        for kind, by_sentence in corpus.tags.items():
            flat = list(chain.from_iterable(by_sentence))
            tags[kind] = tuple(tuple(flat[i] for i in source[a:b].tolist()) for a, b in pairwise(starts))
        choices = {**corpus.choices, "control": self.label}
        return replace(corpus, sentences=sentences, senses=tuple(senses), choices=choices, tags=tags)
