"""What tests of the conformance kit ask of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ctxexp.errors import ConformanceError


def fails(check: Callable[..., Any], subject: Any, law: str, cause: str, **more: Any) -> None:
    """The check breaks this law by this cause."""
    with pytest.raises(ConformanceError) as caught:
        check(subject, **more)
    lines = [line for line in str(caught.value).splitlines() if line.startswith(f"  BROKEN  {law}: ")]
    assert lines, caught.value
    assert cause in lines[0], lines[0]
