"""What a row of numbers is said by: its mean, median, spread and length."""

from __future__ import annotations

import numpy as np


def summary(values: np.ndarray) -> dict[str, float]:
    """`raw` (the mean), median, sd (ddof 1) and n of finite values, whatever their order, to the last bit."""
    ordered = np.sort(values)
    return {
        "raw": float(ordered.mean()) if ordered.size else float("nan"),
        "median": float(np.median(ordered)) if ordered.size else float("nan"),
        "sd": float(ordered.std(ddof=1)) if ordered.size > 1 else float("nan"),
        "n": float(ordered.size),
    }
