"""The results of a run: a frame of values, tables, and the choices behind them; on disk before anywhere else."""

from __future__ import annotations

from ctxexp.results.results import Results as Results  # public as ctxexp.Results
from ctxexp.results.run_info import RunInfo
from ctxexp.results.values import LAYER, Estimates, Key

__all__ = [
    "LAYER",
    "Estimates",
    "Key",
    "RunInfo",
]
