"""What measures a text of which no row is stored: of another distribution, such as ctxexp-one-pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ctxexp.baseline import Baseline
from ctxexp.control import Control
from ctxexp.dataset import Corpus, Shards
from ctxexp.engine import Engine
from ctxexp.metric import Metric
from ctxexp.progress import Progress
from ctxexp.transform import Transform

if TYPE_CHECKING:
    from ctxexp.results import Results
    from ctxexp.results.run_info import PoolingInfo
    from ctxexp.study import Study, Vectors


class Told(Protocol):
    """What a run records of how its vectors were made; see `ctxexp.vectors.spaces.Spaces`."""

    @property
    def left_out(self) -> Mapping[str, int]: ...
    @property
    def encoded(self) -> int: ...
    @property
    def pooling_info(self) -> PoolingInfo: ...
    def skipped(self, corpus: Corpus) -> tuple[int, float]: ...
    def unknown(self, corpus: Corpus) -> tuple[int, int]: ...
    def made(self, corpus: Corpus) -> dict[str, str]: ...


class Unstored(Corpus, ABC):
    """A text that holds no sentence, and is measured without a row being stored."""

    @abstractmethod
    def measured(self, study: Study, vectors: Vectors, progress: Progress) -> tuple[Results, Told]:
        """The study's results, but for what names them."""


@dataclass(frozen=True, kw_only=True)
class Dealing:
    """How a text is read: in so many `shards`; `form` gives the word that a unit counts for (None: none), which needs
    `min_contexts` distinct sentences; `sample`: so many words, by hash of `seed` (None: all)."""

    shards: int
    form: Callable[[str], str | None]
    min_contexts: int
    sample: int | None = None
    seed: int = 0


class Measurer(ABC):
    """Offered by `register_measurers`."""

    @abstractmethod
    def require(
        self,
        metrics: Mapping[str, Metric],
        baseline: Baseline,
        transform: Transform,
        control: Control,
        *,
        others: Sequence[str] = (),
    ) -> None:
        """Raise ConfigError, before any text or model is loaded, for what needs rows; `others` are metrics that don't,
        by name."""

    @abstractmethod
    def text(self, text: Corpus | Shards, dealing: Dealing, engine: Engine, progress: Progress) -> Unstored:
        """The text, read once by the engine."""
