"""When is a difference none? Where its whole interval lies within a margin that is a share of its own scale."""

from __future__ import annotations

MARGIN = 0.05  # of the scale


def is_equivalent(low: float, high: float, *, scale: float, share: float = MARGIN) -> bool | None:
    """Whether an effect is none: two one-sided tests (Schuirmann 1987), by its 95% interval at level 2.5% each.

    Args:
        low: Lower end of the effect's interval.
        high: Upper end.
        scale: The range that the effect could have, in its units: the room above chance, a standard deviation, the
            rival's value. A margin without a scale calls every effect of a small quantity none.
        share: Of the scale that counts as none.

    Returns:
        True where the interval lies within the margin, False where all of it lies beyond, None where it spans an end.

    Raises:
        ValueError: If the scale isn't positive.

    Example:
        >>> is_equivalent(-0.01, 0.02, scale=0.5), is_equivalent(-0.01, 0.02, scale=0.1)
        (True, None)
    """
    margin = share * scale
    if not margin > 0:
        raise ValueError(f"a margin needs a positive scale and share, got {scale} and {share}")
    if -margin < low and high < margin:
        return True
    return False if low >= margin or high <= -margin else None
