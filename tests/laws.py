"""What tests of the conformance kit ask of it."""

from __future__ import annotations

from typing import Any

import pytest

from ctxexp.errors import ConformanceError
from ctxexp.testing import check


def fails(kind: str, subject: Any, law: str, cause: str, **more: Any) -> None:
    """The subject breaks this law of its kind by this cause."""
    with pytest.raises(ConformanceError) as caught:
        check(kind, subject, **more)
    lines = [line for line in str(caught.value).splitlines() if line.startswith(f"  BROKEN  {law}: ")]
    assert lines, caught.value
    assert cause in lines[0], lines[0]
