"""The results of a run: a frame of values, tables, and the choices behind them; on disk before anywhere else."""

from __future__ import annotations

from ctxexp.results.files import FRAME, REPLICATES, RESULTS_FILE
from ctxexp.results.frame import Results

__all__ = ["FRAME", "REPLICATES", "RESULTS_FILE", "Results"]
