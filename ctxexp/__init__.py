"""How contextual a model's word representations are, layer by layer.

    measure(model, text)                  measures a model on a text, as the command does; returns Results
    load(folder)                          the Results of one finished run
    runs(folder)                          the Results of all finished runs of a tracking folder, by label
    compare(results)                      several Results side by side: a frame, figures, a table in a notebook
    from_transformers(model, tokenizer)   a transformers model in memory, for `measure`, with options of its own
    from_arrays(vectors, words)           vectors in memory, for `measure`
    layer(model), floor(model), ...       each verb of the command, with its keys: `help(ctxexp.layer)`

A model is a name (`gpt2`), a repository of the hub or a folder; a text is sentences, or a file with one a line. Results
have `sentence`, `summary()`, `plot(measure)`, `report()` and every number in `frame`: `help(ctxexp.Results)`.

For plugins: Encoder, Metric and GroupMean, Baseline, Transform, Control, Sink, Engine and TextReader are contracts;
`hookimpl` marks hooks, Register is what they call, and lazy_names loads a package's names when they are asked for;
Sentence, Corpus, Pair and Sense are text, EncodedSentence its vectors; Text and Occurrences are a text that was
encoded; Group, Block, Pairs and Estimate are what metrics take and give, SimilarityMetric and ScoredPairs those of gold
pairs, WordMeasure what is written of one over words, Reading how their values are read, Output what they keep as files;
Run describes a run to a sink; CtxexpError is the base of all errors. More for plugins: ctxexp.errors, .maths,
.datasets, .models, .results, .report, .command and .testing.

Example:
    >>> import ctxexp
    >>> text = ["The bank of the river was wet.", "The bank lent us money.", "We sat on the bank."]
    >>> results = ctxexp.measure("gpt2", text, metrics="self_similarity", min_contexts=2, progress=False)
    >>> results["self_similarity"].round(1).tolist()  # of the small GPT-2, by layer
    [1.0, 1.0, 1.0, 0.9, 0.8]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctxexp.lazy import lazy_names
from ctxexp.lazy import verb as _verb

if TYPE_CHECKING:
    from ctxexp.baselines import Baseline
    from ctxexp.command.api import compare, load, measure, runs
    from ctxexp.controls import Control
    from ctxexp.dataset import Corpus, Pair, Sense, Sentence
    from ctxexp.engines import Engine
    from ctxexp.errors import CtxexpError
    from ctxexp.files.code_version import __version__ as __version__
    from ctxexp.groups import Block, Group, Pairs
    from ctxexp.measuring.text_reader import TextReader
    from ctxexp.measuring.word_measures import WordMeasure
    from ctxexp.metrics import Estimate, GroupMean, Metric, Output, Reading
    from ctxexp.metrics.annotated import ScoredPairs, SimilarityMetric
    from ctxexp.model import EncodedSentence, Encoder
    from ctxexp.models.huggingface import from_transformers
    from ctxexp.models.word_vectors import from_arrays
    from ctxexp.occurrences import Occurrences, Text
    from ctxexp.plugins import Register, hookimpl
    from ctxexp.results import Results
    from ctxexp.sinks import Run, Sink
    from ctxexp.transforms import Transform

__all__ = [
    "Baseline",
    "Block",
    "Control",
    "Corpus",
    "CtxexpError",
    "EncodedSentence",
    "Encoder",
    "Engine",
    "Estimate",
    "Group",
    "GroupMean",
    "Metric",
    "Occurrences",
    "Output",
    "Pair",
    "Pairs",
    "Reading",
    "Register",
    "Results",
    "Run",
    "ScoredPairs",
    "Sense",
    "Sentence",
    "SimilarityMetric",
    "Sink",
    "Text",
    "TextReader",
    "Transform",
    "WordMeasure",
    "compare",
    "from_arrays",
    "from_transformers",
    "hookimpl",
    "lazy_names",
    "load",
    "measure",
    "runs",
]

_public = lazy_names(__name__, __file__)


def __getattr__(name: str) -> Any:
    """A public name, or a verb of the command as a function."""
    try:
        return _public(name)
    except AttributeError:
        if name.startswith("_"):
            raise
    return _verb(name)


def __dir__() -> list[str]:
    return __all__
