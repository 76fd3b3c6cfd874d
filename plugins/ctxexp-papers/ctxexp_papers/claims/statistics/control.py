"""Is an effect learned? It must exceed that of the same network untrained, or of shuffled text, unit by unit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ctxexp_papers.claims.statistics.paired import Interval, paired_difference


class Excess(NamedTuple):
    """An effect, the control's, and the difference on the same units; `passed` is the outcome of all three."""

    effect: Interval
    control: Interval
    difference: Interval

    @property
    def passed(self) -> bool | None:
        """True where both the effect and its excess over the control are above 0; False where the effect isn't, or
        where the control has one that is as large; else None."""
        effect, control, more = self.effect.above(), self.control.above(), self.difference.above()
        if effect and more:
            return True
        return False if effect is False or (more is False and control) else None


def excess(effect: np.ndarray, control: np.ndarray, *, clusters: list[object] | None = None) -> Excess:
    """An effect beside that of its control (an untrained twin, shuffled text) on the same units.

    Args:
        effect: (n,) the effect by unit: a task's gain, a word's difference; above 0 as claimed.
        control: (n,) the same of the control.
        clusters: n labels, such as words; None: every unit is its own.

    Returns:
        The three intervals.

    Raises:
        ValueError: With too few units (see `paired_difference`).
    """
    return Excess(
        paired_difference(effect, clusters=clusters),
        paired_difference(control, clusters=clusters),
        paired_difference(effect, control, clusters=clusters),
    )
