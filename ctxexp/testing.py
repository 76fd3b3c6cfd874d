"""The contracts as checks, for authors of plugins: from pytest, or as `python -m ctxexp conform NAME`.

    from ctxexp.testing import check_metric

    def test_it_is_a_metric():
        check_metric(MyMetric)

Each takes a factory without arguments, returns a `Report`, and raises ConformanceError (an AssertionError) whose text
lists every broken law with its cause.
"""

from __future__ import annotations

from ctxexp.conformance.baselines import check_baseline
from ctxexp.conformance.datasets import check_dataset
from ctxexp.conformance.encoders import check_encoder
from ctxexp.conformance.metrics import check_metric
from ctxexp.conformance.report import Report
from ctxexp.conformance.transforms import check_transform
from ctxexp.errors import ConformanceError

__all__ = [
    "ConformanceError",
    "Report",
    "check_baseline",
    "check_dataset",
    "check_encoder",
    "check_metric",
    "check_transform",
]
