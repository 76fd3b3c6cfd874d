"""The contracts as checks, for authors of plugins: from pytest, or as `python -m ctxexp conform NAME`.

    from ctxexp.testing import check_metric

    def test_it_is_a_metric():
        check_metric(MyMetric)

Each takes a factory without arguments, returns a `Report`, and raises ConformanceError (an AssertionError) whose text
lists every broken law with its cause.
"""

from __future__ import annotations

from ctxexp.errors import ConformanceError
from ctxexp.testing.encoders import check_encoder
from ctxexp.testing.metrics import check_metric
from ctxexp.testing.report import Report
from ctxexp.testing.sinks import MemorySink, check_dataset, check_engine, check_sink
from ctxexp.testing.transforms import check_baseline, check_control, check_transform

__all__ = [
    "ConformanceError",
    "MemorySink",
    "Report",
    "check_baseline",
    "check_control",
    "check_dataset",
    "check_encoder",
    "check_engine",
    "check_metric",
    "check_sink",
    "check_transform",
]
