"""What tests with Ray share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One cluster for a file's tests, whose workers find what this process finds."""
    ray = pytest.importorskip("ray")
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    yield
    ray.shutdown()
    os.environ["PYTHONPATH"] = before
