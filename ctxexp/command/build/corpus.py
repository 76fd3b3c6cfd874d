"""The text that a config measures: a data set, deduplicated, changed by the control, bounded or cut into shards."""

from __future__ import annotations

from typing import Any

from ctxexp.command.config import Config
from ctxexp.command.options import SHARDS
from ctxexp.control import Control
from ctxexp.dataset import Corpus, TextStream
from ctxexp.datasets.checks import check_corpus, check_sentences, deduplicate
from ctxexp.datasets.contexts import BoundOptions, ShardOptions, bound_corpus, load_sharder
from ctxexp.engine import Engine
from ctxexp.errors import ConfigError, DataError
from ctxexp.measuring.study import WordFilter
from ctxexp.progress import Progress


def load_corpus(
    config: Config, control: Control, engine: Engine, words: WordFilter, progress: Progress, **others: object
) -> Corpus:
    """The text of the config's data set; `others` stand in place of its arguments.

    With `words.max_contexts` it is what that leaves of the text, with `one_pass.shards` a text that measures itself.
    Raises DataError for what is no text, ConfigError for a stream that can't be read in parts.
    """
    text = _load_text(config, control, others)
    if isinstance(text, Corpus):
        text = _change(config, control, deduplicate(text) if config.words.deduplicate else text)
        if not _in_parts(config):
            return text
    options: dict[str, Any] = {
        "min_contexts": words.min_contexts,
        "form": words.form,
        "sample": config.words.sample,
        "seed": config.seed,
    }
    with config.dataset.plugin_call():
        if config.shards:
            shard_options = ShardOptions(shards=config.shards, **options)
            return load_sharder(SHARDS).shard_text(text, shard_options, engine, progress)
        assert config.words.max_contexts
        bounds = BoundOptions(
            max_contexts=config.words.max_contexts, max_sentences=config.words.max_sentences, **options
        )
        corpus = bound_corpus(text, bounds, engine=engine, progress=progress)
        check_sentences(corpus)
        return corpus


def _in_parts(config: Config) -> bool:
    """Whether the text is read a part at a time."""
    return bool(config.words.max_contexts or config.shards)


def _load_text(config: Config, control: Control, others: dict[str, object]) -> Corpus | TextStream:
    """The data set's text, as a stream where it can be one and is read in parts."""
    part, in_parts = config.dataset, _in_parts(config)
    if in_parts and "stream" in (part.signature() or {}) and not control.changes_text:
        others = {"stream": True, **others}
    text: object = part.make(**others)
    with part.plugin_call():
        if not isinstance(text, Corpus | TextStream):
            raise DataError(f"dataset {part.name!r}: expected a Corpus or TextStream, got {type(text).__name__}")
        if isinstance(text, Corpus):
            check_corpus(text)
        elif not in_parts or control.changes_text:
            why = f"control={control.name} changes" if in_parts else "needs words.max_contexts, such as 256, or"
            message = f"streams a text: {why} all of it in memory, dataset.stream=false"
            raise ConfigError(f"dataset {part.name!r} {message}")
    return text


def _change(config: Config, control: Control, corpus: Corpus) -> Corpus:
    """The corpus as the control changes it."""
    with config.control.plugin_call():
        changed: object = control.corpus(corpus, config.seed)
        if not isinstance(changed, Corpus):
            got = type(changed).__name__
            raise DataError(f"control {control.label!r}: corpus() gave {got}; expected a Corpus")
        if changed is not corpus:
            check_corpus(changed)
    return changed
