"""ELMo's three ways of use, compared on a small task: frozen layers, a trained mix of them, everything trained.

`python -m ctxexp.probe`. Peters et al. 2018, equation 1; the task is word-sense classification on the embedded corpus.
"""

from __future__ import annotations

from ctxexp.probe.task import Task, folds_of, word_bootstrap
from ctxexp.probe.train import USES, Score, Settings, probe, table

__all__ = ["USES", "Score", "Settings", "Task", "folds_of", "probe", "table", "word_bootstrap"]
