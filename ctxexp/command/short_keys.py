"""A key by its last part alone: `pooling=first` for `model.pooling=first`, where one chosen option takes it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import get_type_hints

from ctxexp.command.config import RunOptions, leaves, parse_config
from ctxexp.command.experiment import Experiment
from ctxexp.command.options import plain_config
from ctxexp.errors import SYNONYMS, CtxexpError
from ctxexp.plugins.registry import GROUPS, registry

log = logging.getLogger("ctxexp")


def is_short(key: str) -> bool:
    """Whether a key is none of a config's own, and may be the last part of one."""
    return key.isidentifier() and key not in (*GROUPS, *get_type_hints(RunOptions))


def full_key(key: str, value: object, choices: Mapping[str, object]) -> str:
    """The dotted key that its last part stands for: that of the chosen options which takes the value, where it is one;
    else the key as it is.

    Example:
        >>> full_key("pooling", "first", {"model": "bert"}), full_key("seed", 1, {})
        ('model.pooling', 'seed')
    """
    if not is_short(key):
        return key
    groups = {group: choice for group, choice in choices.items() if group in GROUPS}
    try:
        paths = [path for path, _ in leaves(plain_config(groups))]
    except CtxexpError:  # which is said where it is composed
        return key
    keys = [path for path in paths if path.count(".") == 1 and path.endswith(f".{key}")]
    keys = [path for path in keys if path in SYNONYMS.get(key, keys)]  # others mean something else by it
    if len(keys) > 1:  # a hint is tried: a key that changes nothing is none
        keys = [one for one in keys if not one.startswith("sentence.") or _try(groups, needs_pairs=True)]
    if len(keys) > 1:
        keys = [one for one in keys if _try({**groups, one: value})]
    if len(keys) != 1:
        return key
    log.info("%s= is read as %s=", key, keys[0])
    return keys[0]


def _try(choices: Mapping[str, object], *, needs_pairs: bool = False) -> bool:
    """Whether a run takes these choices, and, with `needs_pairs`, measures pairs of sentences."""
    try:
        experiment = Experiment(parse_config(plain_config(choices), registry()))
        experiment.check()
        return not needs_pairs or any(one.over == "pair" for one in experiment.prototypes.values())
    except CtxexpError:
        return False
