"""Warnings of the libraries that load a model: the user gets those whose matter ctxexp doesn't check itself."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ctxexp.errors import line

LIBRARIES = ("transformers", "peft", "accelerate", "safetensors", "tokenizers", "gguf")
CHECKED = re.compile(
    r"LOAD REPORT|newly initialized|were not used when"  # `unused_weights` accounts for each weight
    r"|is deprecated|generation|Unauthenticated"  # names of arguments; what writes text; the hub's limits
    r"|fast path|kernel|flash|sdpa|gradient checkpointing",  # how it is computed, not what
    re.IGNORECASE,
)
NOT_OF_MODELS = (DeprecationWarning, FutureWarning, PendingDeprecationWarning, ResourceWarning)


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.texts[line(record.getMessage())] = None


@contextmanager
def library_warnings() -> Iterator[list[str]]:
    """Without progress bars and reports of libraries; at the end the list holds their warnings, each once."""
    from transformers.utils import logging as bars

    collector, said = _Collector(), list[str]()
    loggers = [logging.getLogger(name) for name in LIBRARIES]
    states = [(one.handlers, one.level, one.propagate) for one in loggers]
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    if clear := getattr(getattr(logging.Logger, "warning_once", None), "cache_clear", None):
        clear()  # what was said of an earlier model is said of this one
    for one in loggers:
        one.handlers, one.propagate = [collector], False
        one.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings(record=True) as records:
            warnings.simplefilter("always")
            yield said
    finally:
        for one, (handlers, level, propagate) in zip(loggers, states, strict=True):
            one.handlers, one.propagate = handlers, propagate
            one.setLevel(level)
        if shown:
            bars.enable_progress_bar()
    for record in records:
        if not issubclass(record.category, NOT_OF_MODELS):
            collector.texts[line(str(record.message))] = None
    said += [text for text in collector.texts if not CHECKED.search(text)]
