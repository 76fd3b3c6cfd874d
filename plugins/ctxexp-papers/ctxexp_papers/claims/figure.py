"""A claim's tests as a picture: a line a test with its effect and 95% interval, in SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from ctxexp_papers.claims.checks import Check

LABELS, PLOT, ROW, MARGIN = 290, 380, 20, 26


def forest(checks: Sequence[Check], labels: Mapping[str, str]) -> Markup:
    """The picture; empty without a finite effect. 0 is marked where it is among the values, and each
    claim's own threshold as a dashed line."""
    shown = [check for check in checks if math.isfinite(check.effect)]
    if not shown:
        return Markup()
    ends = [v for c in shown for v in (c.effect, c.low, c.high, *c.threshold) if math.isfinite(v)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    span = high - low or 1.0

    def x(value: float) -> float:
        return round(LABELS + 10 + (value - low) / span * PLOT, 1)

    height = ROW * len(shown) + MARGIN
    parts = [f'<line class="zero" x1="{x(0)}" x2="{x(0)}" y1="2" y2="{height - MARGIN + 4}"/>']
    for i, check in enumerate(shown):
        parts += _row(check, labels.get(check.model, check.model), ROW * i + ROW / 2 + 2, x)
    parts += [
        f'<text class="tick" x="{x(v)}" y="{height - 6}" text-anchor="middle">{v:.3g}</text>'
        for v in dict.fromkeys((low, 0.0, high))
        if v == 0 or abs(x(v) - x(0)) > 40
    ]
    size = f'viewBox="0 0 {LABELS + PLOT + 40} {height}" width="{LABELS + PLOT + 40}" height="{height}"'
    return Markup(
        f'<svg class="forest" role="img" aria-label="effects with 95% intervals" {size}>{"".join(parts)}</svg>'
    )


def _row(check: Check, label: str, y: float, x: object) -> list[str]:
    assert callable(x)
    colour = {True: "yes", False: "no", None: "open"}[check.passed]
    text = escape(", ".join(filter(None, (label, check.variant))))
    parts = [f'<text x="{LABELS}" y="{y + 4}" text-anchor="end">{text}</text>']
    parts += [
        f'<line class="threshold" x1="{x(end)}" x2="{x(end)}" y1="{y - ROW / 2}" y2="{y + ROW / 2}"/>'
        for end in check.threshold
    ]
    if math.isfinite(check.low):
        parts.append(f'<line class="{colour}" x1="{x(check.low)}" x2="{x(check.high)}" y1="{y}" y2="{y}"/>')
    return [*parts, f'<circle class="{colour}" cx="{x(check.effect)}" cy="{y}" r="4"/>']
