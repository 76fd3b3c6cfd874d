"""ctxexp: how contextual a model's word representations are, layer by layer."""

from __future__ import annotations

from ctxexp.baseline import Baseline
from ctxexp.control import Control
from ctxexp.dataset import Corpus, Pair, Sense, Sentence
from ctxexp.errors import CtxexpError
from ctxexp.face import compare, load, measure, runs
from ctxexp.metric import Block, Estimate, Group, GroupMean, Metric, Pairs
from ctxexp.model import Encoded, Encoder
from ctxexp.models.memory import from_arrays, from_transformers
from ctxexp.plugins import hookimpl
from ctxexp.results import Results
from ctxexp.sink import Run, Sink
from ctxexp.transform import Transform
from ctxexp.vectors.code_version import __version__

__all__ = [
    "Baseline",
    "Block",
    "Control",
    "Corpus",
    "CtxexpError",
    "Encoded",
    "Encoder",
    "Estimate",
    "Group",
    "GroupMean",
    "Metric",
    "Pair",
    "Pairs",
    "Results",
    "Run",
    "Sense",
    "Sentence",
    "Sink",
    "Transform",
    "__version__",
    "compare",
    "from_arrays",
    "from_transformers",
    "hookimpl",
    "load",
    "measure",
    "runs",
]
