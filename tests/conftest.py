"""Fixtures that every test module may use."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.published import published_data
from tests.warm import Warm


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs published data, by its fixture's name."""
    for item in items:
        if isinstance(item, pytest.Function) and {"shared", "published"} & {*item.fixturenames}:
            item.add_marker("published")


# Workers and commands side by side: with a thread a core each they would mostly wait for each other, at full load.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# As the command line does: libraries make 350,000 objects that stay.
gc.set_threshold(100_000, 20, 100)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of evaluation data and ELMo fixtures."""
    return published_data()


@pytest.fixture(scope="session")
def warm(common: Path) -> Warm:
    """What runs `python -m ctxexp` in a process of its own without importing everything anew; one for all workers."""
    return Warm(common / "warm", os.getppid() if os.environ.get("PYTEST_XDIST_WORKER") else os.getpid())


@pytest.fixture(scope="session")
def common(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this session share."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own) / "common"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def empty_store(common: Path) -> Path:
    """A folder with an empty tracking store, to be copied: making one takes seconds."""
    from ctxexp.sinks import database

    database.prepare_store(common / "empty-store")
    return common / "empty-store"


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny model of some type (`tests.tiny_models`), made once: tests change copies of it alone."""
    from tests import tiny_models

    base = tmp_path_factory.mktemp("tiny")
    return cache(lambda kind: tiny_models.make(kind, base / kind))


@pytest.fixture
def two_threads() -> Iterator[int]:
    """torch with two threads, as a user's has several: what left it with one would show."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield 2
    torch.set_num_threads(before)


@pytest.fixture(autouse=True, scope="session")
def _places_of_its_own(common: Path) -> None:
    """Tests track where they say, and know no model from before, whatever the machine's user has set and run."""
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    os.environ["CTXEXP_CACHE"] = str(common / "cache")


@pytest.fixture(autouse=True)
def _interrupts_are_heard() -> None:
    """A shell's background job starts with interrupts ignored, and so would the processes that tests interrupt; a
    command that ended in this process left them to the system."""
    if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, signal.SIG_DFL):
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def no_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep's end draws no comparison."""
    monkeypatch.setattr("ctxexp.jobs.sweep.write_summary", lambda *args, **links: None)
