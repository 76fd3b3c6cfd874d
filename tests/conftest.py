"""Fixtures that every test module may use."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of evaluation data and ELMo fixtures (CTXEXP_SHARED, or `shared` beside the checkout)."""
    folder = Path(os.environ.get("CTXEXP_SHARED") or ROOT.parent / "shared")
    if not folder.is_dir():
        pytest.skip(f"no evaluation data: {folder} is not there (set CTXEXP_SHARED)")
    return folder


@pytest.fixture(autouse=True, scope="session")
def _no_tracking_server() -> None:
    """Tests track where they say, whatever the machine's user has set."""
    os.environ.pop("MLFLOW_TRACKING_URI", None)


@pytest.fixture(autouse=True, scope="session")
def _interrupts_are_heard() -> None:
    """A shell's background job starts with interrupts ignored, and so would the processes that tests interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
