"""A worker of Ray's: an actor that keeps what it works with."""

from __future__ import annotations

from typing import Any

import cloudpickle
import ray


@ray.remote
class Worker:
    """Makes what it works with for its first item, and keeps it."""

    def __init__(self, work: bytes) -> None:
        self.work, self.made = work, None

    def node(self) -> str:
        return str(ray.get_runtime_context().get_node_id())

    def do(self, item: Any) -> Any:
        self.made = self.made or cloudpickle.loads(self.work)()
        return self.made(item)
