"""Numbers and lists as a finding writes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MOST_LISTED = 6  # parts that a sentence names


def number(value: float, beside: np.ndarray) -> str:
    """The number with two decimals, or as many, up to four, as tell different numbers beside it apart."""
    finite = np.abs(beside[np.isfinite(beside)])
    digits = 1 if finite.max(initial=0) >= 10 else 2
    while digits < 4 and len(set(np.round(finite, digits))) < len(set(finite)):
        digits += 1
    return f"{value:,.{digits}f}"


def name_or_count(parts: Sequence[str], values: np.ndarray, noun: str, at: Sequence[int] | None = None) -> str:
    """The parts, or how many they are and the range of their values: "9 others (0.31 to 0.39)"; `at` are their places
    among the values (None: all)."""
    if len(parts) <= MOST_LISTED:
        return enumeration(parts)
    own = values if at is None else values[list(at)]
    low, high = (number(float(end), values) for end in (own.min(), own.max()))
    return f"{len(parts)} {noun} ({low} to {high})"


def enumeration(parts: Sequence[str]) -> str:
    """The parts as a sentence lists them: "a, b and c"."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)
