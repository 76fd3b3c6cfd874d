"""The contracts as checks, for authors of plugins: from pytest, or as `python -m ctxexp conform NAME`.

from ctxexp.testing import check

def test_it_is_a_metric():
    check("metric", MyMetric)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ctxexp.errors import UnknownName
from ctxexp.testing.encoders import check_encoder
from ctxexp.testing.metrics import check_metric
from ctxexp.testing.report import Report
from ctxexp.testing.sinks import check_dataset, check_sink
from ctxexp.testing.transforms import check_baseline, check_control, check_transform

__all__ = ["check"]

_CHECKS: Mapping[str, Callable[..., Report]] = {
    "model": check_encoder,
    "dataset": check_dataset,
    "control": check_control,
    "transform": check_transform,
    "metric": check_metric,
    "baseline": check_baseline,
    "sink": check_sink,
}


def check(kind: str, make: Any, *, name: str = "", **more: Any) -> Report:
    """The report on the laws of a kind's contract: those `passed`, `failures` by law, `notes`; its text is for people.

    Args:
        kind: `model`, `dataset`, `control`, `transform`, `metric`, `baseline` or `sink`.
        make: A factory without arguments, such as the class; of a model or a data set the thing itself, too.
        name: What the report calls it.
        **more: Of a model, `others`: encoders with other settings by what sets them apart (`pooling=first`); where
            their vectors differ, their names must.

    Raises:
        ConformanceError: Laws are broken: its text, as an AssertionError, lists each with its cause.

    Example:
        >>> from ctxexp.command import registry
        >>> check("transform", registry().find("transform", "center").factory).failures
        {}
    """
    if kind not in _CHECKS:
        raise UnknownName("kind", kind, _CHECKS)
    return _CHECKS[kind](make, name=name, **more)
