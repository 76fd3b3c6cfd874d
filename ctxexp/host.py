"""What belongs to the process that ctxexp is called in: its streams, its MLflow's autologging, its random
numbers, its OmegaConf values."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any


def is_terminal(stream: Any) -> bool:
    """Whether the stream is a terminal; none (as under pythonw), a closed one and one that can't say are none."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def open_streams() -> None:
    """Let a command print whatever it is started with: a missing stream takes what comes, and a sign that the output's
    encoding doesn't have becomes a `?`."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:  # else a file of ours gets the number that C libraries print to
        pass
    nowhere = os.fdopen(fd, "w", encoding="utf-8")
    sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


@contextmanager
def without_autologging() -> Iterator[None]:
    """Fit without MLflow's autologging, where the caller has it on: their run is of their own fits."""
    mlflow: Any = sys.modules.get("mlflow.utils.autologging_utils")
    if mlflow is None or mlflow._AUTOLOGGING_GLOBALLY_DISABLED:  # off already: leaving that would turn it on
        yield
        return
    with mlflow.disable_autologging():
        yield


@contextmanager
def callers_process() -> Iterator[None]:
    """Leave the caller's `random` as it was, from which some libraries draw when they are imported."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)


def plain(value: Any) -> Any:
    """The value with OmegaConf's lists and mappings as Python's own, interpolations resolved."""
    if "omegaconf" not in sys.modules:
        return value
    from omegaconf import OmegaConf

    if OmegaConf.is_config(value):
        return OmegaConf.to_container(value, resolve=True)
    if type(value) is dict:
        return {key: plain(each) for key, each in value.items()}
    is_of_configs = type(value) in (list, tuple) and value and OmegaConf.is_config(value[0])  # a text may be long
    return list(map(plain, value)) if is_of_configs else value
