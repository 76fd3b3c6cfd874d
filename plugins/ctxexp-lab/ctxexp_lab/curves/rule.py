"""A rule that stops a training: `effective_rank < 3`."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ctxexp.errors import ConfigError
from ctxexp.report import decimal
from ctxexp.results import Estimates

_RULE = re.compile(
    r"\s*(?P<measure>[A-Za-z]\w*)\s*(?P<sign>[<>])\s*(?P<limit>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"(?:\s+in\s+(?:layer\s+(?P<layer>\d+)|(?P<any>any)\s+layer))?(?:\s+after\s+step\s+(?P<after>\d+))?\s*"
)


@dataclass(frozen=True)
class StopRule:
    """A measure beyond a limit, in the last layer, in one layer or in any.

    A layer is beyond the limit where its whole 95% interval is: that of other sentences like the measured ones, at one
    step, not of other texts or trainings. Where the measure has no interval, its value counts. A cone is no collapse:
    released GPT-2 ends at an anisotropy of .978, and early in a training all vectors may point one way.

    Args:
        measure: The measure's label.
        is_above: Whether values above the limit stop the training, not those below.
        limit: The limit.
        layer: The number of the layer; -1: the last one; None: any.
        after: The step behind which the rule holds; -1: from the first one on.

    Example:
        >>> StopRule.parse("contextuality > .9 in any layer after step 300")
        StopRule(measure='contextuality', is_above=True, limit=0.9, layer=None, after=300)
    """

    measure: str
    is_above: bool
    limit: float
    layer: int | None = -1
    after: int = -1

    @classmethod
    def parse(cls, text: str) -> StopRule:
        """The rule of a text. Raises ConfigError."""
        match = _RULE.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise ConfigError(
                f"stop_when={text!r}: expected a measure, < or >, and a number, as in 'effective_rank < 3', which is "
                "about the last layer; behind it 'in layer 3' or 'in any layer', and 'after step 1000'"
            )
        layer = None if match["any"] else int(match["layer"]) if match["layer"] else -1
        after = int(match["after"]) if match["after"] else -1
        return cls(match["measure"], match["sign"] == ">", float(match["limit"]), layer, after)

    def breach(self, curve: Estimates, step: int) -> str:
        """What breaks the rule at a step, in words; empty where nothing does. Raises ConfigError for a layer that isn't
        there."""
        value, low, high = (np.asarray(x, np.float64) for x in curve)
        if self.layer is not None and self.layer >= len(value):
            raise ConfigError(f"stop_when: no layer {self.layer}; the model has layers 0 to {len(value) - 1}")
        near_end = low if self.is_above else high
        near_end = np.where(np.isfinite(near_end), near_end, value)
        beyond = near_end > self.limit if self.is_above else near_end < self.limit  # NaN is neither
        layers = range(len(value)) if self.layer is None else [self.layer % len(value)]
        broken = next((layer for layer in layers if beyond[layer]), None)
        if broken is None or step <= self.after:
            return ""
        interval = f" [{decimal(low[broken], 3)}, {decimal(high[broken], 3)}]" if np.isfinite(low[broken]) else ""
        sign = ">" if self.is_above else "<"
        return f"{self.measure} {decimal(value[broken], 3)}{interval} {sign} {self.limit:g} in layer {broken}"
