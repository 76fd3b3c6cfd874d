"""Encoders that are loaded only when they must encode; until then a stored description stands in for them."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

from ctxexp.dataset import Sentence
from ctxexp.datasets.downloads import cache_folder
from ctxexp.errors import DiskError, error_text
from ctxexp.files import clear_parts, digest, seal, unseal, write_file
from ctxexp.files.code_version import code_version
from ctxexp.model import EncodedSentence, Encoder, TextStart
from ctxexp.models.choices import is_cpu

Description = dict[str, Any]  # an encoder's attributes, read from JSON
log = logging.getLogger("ctxexp")

DESCRIPTION_KEYS = (
    "name", "n_layers", "dim", "dtype", "title", "details", "sequential", "positional", "causal", "start", "layers",
    "class_code",
)  # fmt: skip
CODE = code_version()  # when this is imported, as in `ctxexp.vectors.encode`


class LazyEncoder(Encoder):
    """An encoder known by its description; `load` builds the encoder itself, once, when anything else is needed."""

    _own = frozenset(
        {*DESCRIPTION_KEYS, "_load", "_whole", "_own", "_class_code", "corpus", "poolings", "layer_numbers"}
    )

    def __init__(self, description: Description, load: Callable[[], Encoder]) -> None:
        """Take a description with all of `DESCRIPTION_KEYS`."""
        layers = None if description["layers"] is None else tuple(description["layers"])
        attributes = {key: description[key] for key in DESCRIPTION_KEYS if key != "class_code"}
        attributes |= {"layers": layers, "start": _start(description["start"])}
        vars(self).update(attributes, _load=load, _class_code=description["class_code"])

    def __getattribute__(self, name: str) -> Any:
        """The described attribute; any other is read from the loaded encoder."""
        if name.startswith("__") or name in LazyEncoder._own:
            return super().__getattribute__(name)
        return getattr(self._whole, name)

    @property
    def class_code(self) -> str:
        return self._class_code  # type: ignore[no-any-return]

    @cached_property
    def _whole(self) -> Encoder:
        return self._load()  # type: ignore[no-any-return]

    def encode(self, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
        return self._whole.encode(batch)


def lazy(parts: object, load: Callable[[], Encoder], *, device: str) -> Encoder:
    """The encoder that `load` builds; from the second time on a `LazyEncoder` with the description in the user's cache.

    `parts` is everything that determines the encoder, files as digests of their content; equal parts must have equal
    reprs. The version of ctxexp's code and of the libraries is added to the key. (Importing torch and transformers
    costs more than measuring cached vectors.) Where there may be a GPU, only torch can tell which device `auto` is: the
    model is loaded.
    """
    if not is_cpu(device):
        return load()
    text = repr([parts, device, CODE, platform.node()])
    key = digest(text.encode())
    path = cache_folder() / "encoders" / f"{key}.json"
    if description := _read(path, key):
        for warning in description["details"].get("warnings", "").splitlines():
            log.warning("%s", warning)  # a second run is told what the first was
        return LazyEncoder(description, load)
    encoder = load()
    clear_parts(path.parent)
    with suppress(DiskError):  # then the next run loads it too
        write_file(path, seal({"key": key, "encoder": _describe(encoder)}))
    return encoder


def _describe(encoder: Encoder) -> Description:
    start = None if encoder.start is None else asdict(encoder.start)
    attributes = dict(zip(DESCRIPTION_KEYS, attrgetter(*DESCRIPTION_KEYS)(encoder), strict=True))
    return attributes | {"details": dict(encoder.details), "start": start}


def _start(start: Description | None) -> TextStart | None:
    return None if start is None else TextStart(tuple(start["tokens"]), start["source"])


def _read(path: Path, key: str) -> Description | None:
    """The description in the file, if it is intact and belongs to `key`; None, with a warning, for any other file."""
    if not path.is_file():
        return None
    try:
        meta = unseal(path.read_bytes())
        if meta["key"] != key:
            raise ValueError("it is another encoder's")
        description: Description = {name: meta["encoder"][name] for name in DESCRIPTION_KEYS}
        return description
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("the encoder's description in %s is damaged (%s): loading the model", path, error_text(error))
        return None
