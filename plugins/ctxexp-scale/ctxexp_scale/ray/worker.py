"""Worker of Ray: an actor that keeps its model between items."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import cloudpickle
import ray

from ctxexp import Engine

Driver = tuple[int, str]
"""A process on this machine: its number, and a text that differs for another process of the same number."""


@ray.remote
class RayWorker:
    """Unpickles its working function at its first item, and keeps it. It ends with the driver of a cluster that was
    begun for the run (`driver`, else None); elsewhere Ray ends it."""

    def __init__(self, work: bytes, driver: Driver | None) -> None:
        self.work = work
        self.worker: Callable[[Any], Any] | None = None
        if driver:
            threading.Thread(target=_end_with, args=driver, daemon=True).start()

    def node(self) -> str:
        return str(ray.get_runtime_context().get_node_id())

    def do(self, item: Any) -> Any:
        self.worker = self.worker or cloudpickle.loads(self.work)()
        return self.worker(item)


def _end_with(pid: int, start: str) -> None:
    """End this process when the driver is gone: a killed one's raylet may go before it tells its workers."""
    while Engine.process_identity(pid) in (start, None):
        time.sleep(1)
    os._exit(1)
