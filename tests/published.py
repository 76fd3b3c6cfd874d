"""The folder of published data, which isn't part of the checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def published_data(*parts: str) -> Path:
    """A path in the folder that CTXEXP_SHARED names, or in `shared` beside the checkout.

    Where the data isn't there the test is skipped; it fails where the variable is set, as a nightly job sets it.
    """
    named = os.environ.get("CTXEXP_SHARED")
    path = Path(named or ROOT.parent / "shared", *parts)
    if not path.exists():
        (pytest.fail if named else pytest.skip)(f"no published data: {path} is not there (set CTXEXP_SHARED)")
    return path
