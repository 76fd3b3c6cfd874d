"""Installed distributions whose metadata are damaged: what can't be read isn't installed."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from importlib.metadata import distributions, entry_points
from typing import Any

damaged: list[str] = []  # a line on each that `skip_damaged` has met


def skip_damaged() -> None:
    """Hide distributions with damaged metadata from all that this process imports.

    One of any package is enough for `entry_points` to fail, which pydantic and MLflow call too. It is for processes
    that are ctxexp's own.
    """
    try:
        entry_points()
    except Exception:  # TypeError, UnicodeDecodeError, ..., whatever the files hold
        damaged.extend(filter(None, map(_damage, distributions())))
        for name in ("importlib.metadata", "importlib_metadata"):
            with suppress(ImportError):
                _filter(import_module(name).MetadataPathFinder)


def _filter(finder: Any) -> None:
    every = finder.find_distributions
    finder.find_distributions = staticmethod(lambda *args: [one for one in every(*args) if not _damage(one)])


def _damage(distribution: Any) -> str:
    """A line on what can't be read; empty where all can. Name and folder are private: parsing all takes long."""
    try:
        _ = distribution.entry_points, distribution._normalized_name
    except Exception as error:
        place = getattr(distribution, "_path", distribution)
        return f"metadata at {place} can't be read, the package is left out: {type(error).__name__}: {error}"
    return ""
