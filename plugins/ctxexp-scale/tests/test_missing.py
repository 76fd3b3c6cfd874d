"""Names whose library is missing say what to install."""

from __future__ import annotations

import sys

import pytest
from ctxexp_scale.ray.engine import RayEngine

from ctxexp.errors import ConfigError


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not there
    with pytest.raises(ConfigError, match=r"ray, which isn't installed: pip install ray$"):
        RayEngine()
