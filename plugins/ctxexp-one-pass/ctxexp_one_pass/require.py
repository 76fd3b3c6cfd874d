"""What one pass can't do: whatever needs rows is refused before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctxexp.baseline import Baseline
from ctxexp.control import Control
from ctxexp.errors import ConfigError, MetricError
from ctxexp.measuring.one_pass.additive import OnePass
from ctxexp.metric import Metric
from ctxexp.transform import Transform


def lacking(metric: Metric) -> str:
    """Why a metric can't be had in one pass; empty if it can."""
    if not isinstance(metric, OnePass):
        return "no form in sums"
    if metric.sample is not None:
        return f"sample={metric.sample} draws groups"
    if metric.has_null and not metric.cosine_level:
        return "its chance level is drawn"
    try:
        metric.additive()
    except MetricError as error:
        return str(error)
    return ""


def require(
    metrics: Mapping[str, Metric],
    baseline: Baseline,
    transform: Transform,
    control: Control,
    *,
    others: Sequence[str] = (),
) -> None:
    """Raise ConfigError, before any model is loaded, for what needs rows; `others` are metrics that don't, by name."""
    why = [f"metric {label} ({what})" for label, one in metrics.items() if (what := lacking(one))]
    if not baseline.closed and any(one.cosine_level for one in metrics.values()):
        why.append(f"baseline {baseline.name} (random groups; baseline=exact needs none)")
    if not transform.identity:
        why.append(f"transform {type(transform).__name__} (transform=none needs none)")
    if control.needs_rows:
        why.append(f"control {control.name} (it judges rows)")
    if why:
        offered = f"; of ctxexp's own metrics one pass does for {', '.join(others)}" if others else ""
        raise ConfigError(
            f"words.one_pass stores no rows, which are needed by {', '.join(why)}: store them, or bounded ones with "
            f"words.max_contexts=256 in its place{offered}"
        )
