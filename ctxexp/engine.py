"""What an engine must offer: work done on many items, by as many workers as it has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Engine(ABC):
    """Where texts are read and sentences encoded: in this process, in others, on a cluster.

    Work comes in items that don't depend on each other, and leaves what it makes in files that workers and driver
    share, or gives it back; done again, an item gives the same. So an engine may do one twice, and a run that is begun
    again asks for what is missing only. Everything else stays in the driver, sinks too.
    """

    name: ClassVar[str] = ""
    workers: int = 1  # one: the driver does the work itself, without shards
    shard_tokens: int = 32_768  # of the model's tokens that are encoded as one item

    @abstractmethod
    def each(self, make: Callable[[], Callable[[T], R]], items: Iterable[T]) -> Iterator[R]:
        """What `make()` gives of each item, in whatever order.

        A worker calls `make` once, and keeps what it gives: it loads the model, say. `make` and items can be pickled,
        by cloudpickle where they are a notebook's. Whatever they raise is raised here; an item whose worker dies is
        given to another.
        """
