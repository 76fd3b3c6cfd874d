"""The contract of readers of a text of which not every row is stored, and what is made of sums in place of rows. The
distribution `ctxexp-scale` has readers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from ctxexp.dataset import Corpus, TextStream
from ctxexp.engines import Engine
from ctxexp.maths.resampling import Clusters, Stream
from ctxexp.measuring.record import Record
from ctxexp.measuring.word_measures import WordMeasure, add_words, word_columns
from ctxexp.measuring.word_rows import Intervals, mix_info
from ctxexp.metrics import Metric
from ctxexp.progress import Progress
from ctxexp.results.results import AVERAGED
from ctxexp.results.run_info import BaselineInfo, ResamplingInfo

if TYPE_CHECKING:
    from ctxexp.baselines import Baseline
    from ctxexp.controls import Control
    from ctxexp.maths.word_mix import MixedWords, WordMix
    from ctxexp.model import Encoder
    from ctxexp.transforms import Transform
    from ctxexp.vectors.stores import Vectors, WordFilter


class Choices(Protocol):
    """What a reader sees of a study."""

    @property
    def corpus(self) -> Corpus: ...
    @property
    def encoder(self) -> Encoder: ...
    @property
    def metrics(self) -> Mapping[str, Callable[[], Metric]]: ...
    @property
    def baseline(self) -> Baseline: ...
    @property
    def control(self) -> Control: ...
    @property
    def words(self) -> WordFilter: ...
    @property
    def mix(self) -> WordMix: ...
    @property
    def intervals(self) -> Intervals: ...
    @property
    def seed(self) -> int: ...


class TextReader(ABC):
    """Reads and measures a text that is larger than memory, or whose vectors are larger than the disk. A plugin offers
    it by the config's key that asks for it (`words.max_contexts`), by a factory with that key and its neighbours.

    `stores_rows`: the rows of what `corpus` leaves of the text are stored and measured; else those of `sum_up` are.

    Example:
        >>> class First(TextReader):
        ...     def corpus(self, text, *, form, min_contexts, seed, engine, progress):
        ...         return text.corpus(limit=1)
        >>> First().stores_rows
        True
    """

    stores_rows: ClassVar[bool] = True

    @abstractmethod
    def corpus(
        self,
        text: Corpus | TextStream,
        *,
        form: Callable[[str], str | None],
        min_contexts: int,
        seed: int,
        engine: Engine,
        progress: Progress,
    ) -> Corpus:
        """The text as it is measured.

        Args:
            text: The text, in memory or to be read in parts.
            form: The word that a unit counts for; None where it isn't measured.
            min_contexts: The number of distinct sentences that a word needs.
            seed: The run's.
            engine: Whose workers read.
            progress: Shows how far it is.

        Returns:
            The corpus; one of which not all words have rows says which by its `bound`.
        """

    def check(  # noqa: B027  # optional
        self, metrics: Mapping[str, Metric], baseline: Baseline, transform: Transform, control: Control
    ) -> None:
        """Check, before a text or a model is loaded, that the text can be measured so (optional).

        Raises:
            ConfigError: It can't.
        """

    def sum_up(
        self, study: Choices, metrics: Mapping[str, Metric], vectors: Vectors, progress: Progress
    ) -> AbstractContextManager[SummedText]:
        """The sums of a study's text, where no row is stored; they are there until the context ends."""
        raise NotImplementedError


class SummedText(Protocol):
    """A text of which sums are there in place of rows, or some of its shards, those with a row.

    `words` are those in enough sentences, `counts` (3, words) their rows, sentences and rows at the first place of a
    sentence; `tallies` counts rows, and words `skipped`, `left_out`, `unknown` and `pieces`; `unit` says what a shard
    is of; `facts` are those of `CorpusInfo`.
    """

    @property
    def words(self) -> Sequence[str]: ...
    @property
    def counts(self) -> np.ndarray: ...
    @property
    def tallies(self) -> Mapping[str, int]: ...
    @property
    def facts(self) -> Mapping[str, Any]: ...
    @property
    def unit(self) -> str: ...
    @property
    def n_shards(self) -> int: ...
    @property
    def n_encoded(self) -> int: ...
    def half(self, shards: Sequence[int]) -> SummedText: ...
    def measures(
        self,
        metrics: Mapping[str, Metric],
        mixed: MixedWords,
        *,
        intervals: Intervals | None,
        advance: Callable[[int], object],
    ) -> dict[str, WordMeasure]: ...


def measure_summed(
    text: SummedText, record: Record, study: Choices, mix: WordMix, progress: Progress | None = None
) -> None:
    """Measure the words of a text by its sums, weighed by the mix."""
    rows, contexts, first = text.counts
    mixed, encoder = mix.of(rows, text.tallies["rows"]), study.encoder
    numbers, intervals = tuple(encoder.layer_numbers), study.intervals if record.bootstrap else None
    with Progress.of(progress).stage("measuring", total=len(numbers), unit="layers") as stage:
        measures = text.measures(record.prototypes, mixed, intervals=intervals, advance=stage.advance)
    for label, measure in measures.items():
        if (scores := measure.scores) is not None and len(text.words):
            causal = encoder.causal is True
            measures[label] = replace(
                measure,
                columns=word_columns(text.words, rows, contexts, first / rows, scores, is_causal=causal),
                above=scores - measure.levels[""][0].value if measure.levels else None,
                n_clusters=np.minimum(contexts, text.n_shards),  # a word's sentences are dealt to shards by chance
            )
    add_words(record, measures, Clusters(text.unit, text.n_shards, *np.empty((2, 0), np.int64)), numbers)
    layers, given = numbers if len(numbers) < encoder.n_layers else (), record.info
    info = replace(
        given,
        mix=mix_info(mixed),
        model=replace(given.model, n_layers=encoder.n_layers, layers=layers, dim=encoder.dim),
        corpus=replace(given.corpus, occurrences=text.tallies["rows"], words=len(text.words), **text.facts),
        baseline=BaselineInfo(name=study.baseline.name),
        resampled=ResamplingInfo(unit=text.unit, n=text.n_shards, intervals=study.intervals),
    )
    record.set_info(info, {label: "exact" if one.cosine_statistic else "" for label, one in record.prototypes.items()})


def summed_halves(text: SummedText, study: Choices, metrics: Mapping[str, Metric]) -> Iterator[Record]:
    """The means over words of both halves of the text, by whole shards in random order and by the bands that both
    fill."""
    n = text.n_shards
    order = np.random.default_rng([study.seed, Stream.PARTS]).permutation(n).tolist()
    halves = [text.half(sorted(some)) for some in (order[: n // 2], order[n // 2 :])]
    filled = (study.mix.of(half.counts[0], half.tallies["rows"]).filled for half in halves)
    by_both = replace(study.mix, among=np.logical_and(*filled))
    means = {label: study.metrics[label] for label, metric in metrics.items() if metric.over in AVERAGED}
    for half in halves:
        measure_summed(half, record := Record(means, metrics, seed=study.seed, bootstrap=0), study, by_both)
        yield record
