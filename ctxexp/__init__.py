"""How contextual a model's word representations are, layer by layer.

Functions:
    measure(model, text)                  Measure a model on a text, as the command does; returns Results.
    load(folder)                          The Results of one finished run.
    runs(folder)                          The Results of all finished runs of a tracking folder, by label.
    compare(results)                      Several Results side by side: a frame, figures, a table in a notebook.
    from_transformers(model, tokenizer)   A transformers model in memory, for `measure`.
    from_arrays(vectors, words)           Vectors in memory, for `measure`.

Contracts, to derive from:
    Encoder, Metric and GroupMean, Baseline, Transform, Control, Sink; `hookimpl` marks a plugin's hooks.

Values:
    Sentence, Corpus, Pair, Sense         the text
    EncodedSentence                               the vectors of a sentence
    Group, Block, Pairs, Estimate         arguments and results of metrics
    Results, Run, CtxexpError             results of runs, a run's description, errors

Example:
    >>> import numpy as np
    >>> import ctxexp
    >>> words = [["a", "bank"], ["the", "bank"], ["bank", "notes"]]
    >>> vectors = [np.random.default_rng(i).normal(size=(2, 2, 8)) for i in range(3)]  # two layers of eight columns
    >>> results = ctxexp.measure(
    ...     ctxexp.from_arrays(vectors, words), metrics="word_norm", options=["min_contexts=2"], progress=False
    ... )
    >>> results.curve("word_norm").round(2).tolist()
    [2.23, 2.55]
"""

from __future__ import annotations

from ctxexp.baseline import Baseline
from ctxexp.command.face import compare, load, measure, runs
from ctxexp.control import Control
from ctxexp.dataset import Corpus, Pair, Sense, Sentence
from ctxexp.errors import CtxexpError
from ctxexp.measuring.groups import Block, Group, Pairs
from ctxexp.metric import Estimate, GroupMean, Metric
from ctxexp.model import EncodedSentence, Encoder
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
    "EncodedSentence",
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
