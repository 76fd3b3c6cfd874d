"""A worker of Ray's: an actor that keeps what it works with."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import cloudpickle
import ray

from ctxexp.sinks.disk.process import started

Driver = tuple[int, str]
"""A process on this machine: its number, and a text that another process of that number has otherwise."""


@ray.remote
class Worker:
    """Makes what it works with for its first item, and keeps it. It ends with the driver of a cluster that is begun for
    the run (`driver`, else None); elsewhere Ray ends it."""

    def __init__(self, work: bytes, driver: Driver | None) -> None:
        self.work, self.made = work, None
        if driver:
            threading.Thread(target=_end_with, args=driver, daemon=True).start()

    def node(self) -> str:
        return str(ray.get_runtime_context().get_node_id())

    def do(self, item: Any) -> Any:
        self.made = self.made or cloudpickle.loads(self.work)()
        return self.made(item)


def _end_with(pid: int, start: str) -> None:
    """End this process when the driver is gone: a killed one's raylet may go before it tells its workers."""
    while started(pid) in (start, None):
        time.sleep(1)
    os._exit(1)
