"""ELMo's three ways of use, compared on a small task: frozen layers, a trained mix of them, everything trained.

`ctxexp probe`. Peters et al. 2018, equation 1; the task is word-sense classification on the embedded corpus.
"""

from __future__ import annotations

from ctxexp_lab.probe.task import SenseTask, folds_of, word_bootstrap
from ctxexp_lab.probe.train import USES, ProbeScore, Settings, probe, table

__all__ = ["USES", "ProbeScore", "SenseTask", "Settings", "folds_of", "probe", "table", "word_bootstrap"]
