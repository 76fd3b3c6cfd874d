"""What tests with Ray share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from tests.conftest import shared  # noqa: F401  # a fixture


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """One cluster of two processors for all tests, whose workers find what this process finds."""
    ray = pytest.importorskip("ray")
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()
    os.environ["PYTHONPATH"] = before
