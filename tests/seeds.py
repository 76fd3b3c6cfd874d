"""A seed that changes, for tests that draw what they plant."""

from __future__ import annotations

import os
from datetime import UTC, datetime


def daily_seed() -> int:
    """The number of this day, or CTXEXP_TEST_SEED where a failure is to be seen again; it is printed."""
    seed = int(os.environ.get("CTXEXP_TEST_SEED") or datetime.now(UTC).toordinal())
    print(f"CTXEXP_TEST_SEED={seed}")
    return seed
