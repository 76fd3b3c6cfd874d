"""Texts of which no row is stored, since they measure themselves: of a plugin, such as ctxexp-scale."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol

from ctxexp.baseline import Baseline
from ctxexp.control import Control
from ctxexp.dataset import Corpus, TextStream
from ctxexp.engine import Engine
from ctxexp.errors import ConfigError
from ctxexp.metric import Metric
from ctxexp.progress import Progress
from ctxexp.transform import Transform

if TYPE_CHECKING:
    from ctxexp.measuring.study import Study, Vectors
    from ctxexp.results import Results
    from ctxexp.results.run_info import PoolingInfo

GROUP = "ctxexp.sharder"  # the entry-point group of a `Sharder`


class EncodingRecord(Protocol):
    """A run's record of how its vectors were made; see `ctxexp.vectors.stores.Stores`."""

    @property
    def left_out(self) -> Mapping[str, int]: ...
    @property
    def n_encoded(self) -> int: ...
    @property
    def pooling_info(self) -> PoolingInfo: ...
    def skipped_words(self, corpus: Corpus) -> tuple[int, float]: ...
    def count_unknown(self, corpus: Corpus) -> tuple[int, int]: ...


class StreamedCorpus(Corpus, ABC):
    """A text that holds no sentence, and measures a study without storing a row."""

    @abstractmethod
    def measure(self, study: Study, vectors: Vectors, progress: Progress) -> tuple[Results, EncodingRecord]:
        """The study's results, but for what names them, and the record of its encoding."""


@dataclass(frozen=True, kw_only=True)
class ShardOptions:
    """How a text is read: in so many `shards`; `form` gives the word that a unit counts for (None: none), which needs
    `min_contexts` distinct sentences; `sample`: so many words, by hash of `seed` (None: all)."""

    shards: int
    form: Callable[[str], str | None]
    min_contexts: int
    sample: int | None = None
    seed: int = 0


class Sharder(Protocol):
    """A plugin's way to measure a text shard by shard: the object of its entry point in the group `ctxexp.sharder`."""

    def check_parts(
        self, metrics: Mapping[str, Metric], baseline: Baseline, transform: Transform, control: Control
    ) -> None:
        """Raise ConfigError, before any text or model is loaded, for parts that need stored rows."""

    def shard_text(
        self, text: Corpus | TextStream, options: ShardOptions, engine: Engine, progress: Progress
    ) -> StreamedCorpus:
        """The text in shards, read once by the engine."""


def load_sharder(option: str) -> Sharder:
    """The installed plugin's sharder. Raises ConfigError where there is none, naming the option that needs it."""
    for entry in entry_points(group=GROUP):
        sharder: Sharder = entry.load()
        return sharder
    raise ConfigError(f"{option} needs the plugin ctxexp-scale: pip install ctxexp-scale")
