"""The list of `ctxexp models`: what can be typed as a model, how large its files are, whether they are here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ctxexp.errors import ModelError
from ctxexp.models.transformer.checkpoint import is_complete
from ctxexp.plugins.arguments import arguments
from ctxexp.plugins.registry import Offer

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model, as the model is typed; decorates its factory, so that `ctxexp models` lists them.

    Args:
        typed: The words of a command that choose it.
        n_bytes: Their size where they are not here.
        source: The model's name elsewhere.
        fetch: How they get here.
        find: The folder or file that they are in; None or ModelError: they are not here.

    Example:
        >>> @ModelFiles("mine", 0, "a small model", "reinstall it", lambda: None)
        ... def mine(): ...
    """

    typed: str
    n_bytes: float
    source: str
    fetch: str
    find: Callable[[], Path | None]

    def __call__(self, factory: F) -> F:
        vars(factory)["model_files"] = (self, *getattr(factory, "model_files", ()))
        return factory


class ListedModel(NamedTuple):
    """A line of the list: what is typed, the size of its files (0: it has none, or unknown), whether they are here
    (None: it has none), and a note."""

    typed: str
    n_bytes: float
    is_here: bool | None
    note: str


def registered_models(offers: Iterable[Offer]) -> Iterator[ListedModel]:
    """The models of these offers, in each of the ways that they are typed."""
    for offer in offers:
        every: tuple[ModelFiles, ...] = () if offer.problem else getattr(offer.factory, "model_files", ())
        for files in every:
            place = _locate(files)
            size, note = (_size(place), "") if place else (files.n_bytes, f": {files.fetch}")
            yield ListedModel(files.typed, size, place is not None, files.source + note)
        if not every:
            parameters = {} if offer.problem else arguments(offer.factory) or {}
            needed = [f"model.{key}=..." for key, (_, default) in parameters.items() if default is Parameter.empty]
            yield ListedModel(" ".join([offer.name, *needed]), 0, None, offer.summary)


def cached_models() -> Iterator[ListedModel]:
    """The models in the hub's cache that are whole, by name."""
    from huggingface_hub import constants, scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repositories = scan_cache_dir(constants.HF_HUB_CACHE).repos
    except CacheNotFound:
        return
    for one in sorted(repositories, key=lambda one: str(one.repo_id)):
        if one.repo_type == "model" and any(is_complete(revision.snapshot_path) for revision in one.revisions):
            yield ListedModel(one.repo_id, one.size_on_disk, True, "in the hub's cache")


def _locate(files: ModelFiles) -> Path | None:
    try:
        return files.find()
    except ModelError:
        return None


def _size(place: Path) -> int:
    every = [place] if place.is_file() else place.rglob("*")
    return sum(path.stat().st_size for path in every if path.is_file())
