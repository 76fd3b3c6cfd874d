"""The contract of engines, work on many items by as many workers as the engine has; and the built-in one. The
distribution `ctxexp-scale` has others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, TypeVar

from ctxexp.dataset import Sentence
from ctxexp.files.process import defer_signals, process_identity
from ctxexp.model import EncodedSentence, Encoder

T = TypeVar("T")
R = TypeVar("R")


class Engine(ABC):
    """Where texts are read and sentences encoded: in this process, in others, on a cluster.

    Work comes in items that don't depend on each other, and leaves what it makes in files that workers and driver
    share, or gives it back; done again, an item gives the same. So an engine may do one twice, and a run that is begun
    again asks for what is missing only. Everything else stays in the driver, sinks too.

    What watches over workers is here too: `defer_signals` keeps a library's wait from being cut short, and
    `process_identity` tells whether a process is still the one that it was.

    Example:
        >>> from ctxexp.command import registry
        >>> local = registry().find("engine", "local").factory()
        >>> sorted(local.map_unordered(lambda: abs, [-1, 2]))
        [1, 2]
    """

    name: ClassVar[str] = ""
    workers: int = 1  # one: the driver does the work itself
    defer_signals = staticmethod(defer_signals)
    process_identity = staticmethod(process_identity)

    @abstractmethod
    def map_unordered(self, make: Callable[[], Callable[[T], R]], items: Iterable[T]) -> Iterator[R]:
        """The results of `make()` for each item.

        Args:
            make: Called once by each worker, whose items its result then handles: it loads the model, say. It can be
                pickled, by cloudpickle where it is a notebook's.
            items: The items, which can be pickled as well.

        Returns:
            The results, in any order. An item whose worker dies may be given to another, but not for ever, since it
            may be what kills them. No worker outlives the driver.

        Raises:
            CtxexpError: Workers died too often.
            Exception: Whatever `make` or the handling of an item raised.

        Example:
            >>> from ctxexp.engines import Local
            >>> sorted(Local().map_unordered(lambda: abs, [-1, 2, -3]))
            [1, 2, 3]
        """

    def encode(
        self,
        encoder: Encoder,
        make: Callable[[], Encoder],
        batches: Sequence[tuple[Sequence[Sentence], int]],
        folder: Path,
        advance: Callable[[int], object],
    ) -> tuple[int, Iterator[EncodedSentence]] | None:
        """Vectors that workers compute (optional).

        Args:
            encoder: The driver's.
            make: Gives each worker its own.
            batches: Sentences that are encoded together, with the number of their tokens.
            folder: Where workers may leave what they make. Its name tells all that vectors depend on, so that a run
                goes on with what a stopped one left there; it is removed once the vectors are stored.
            advance: Is told of words that are done.

        Returns:
            How many sentences were encoded now, and the vectors of all, in the order of the batches; None: this process
            encodes.
        """
        return None


class Local(Engine):
    """This process."""

    name = "local"

    def map_unordered(self, make: Callable[[], Callable[[T], R]], items: Iterable[T]) -> Iterator[R]:
        return map(make(), items)
