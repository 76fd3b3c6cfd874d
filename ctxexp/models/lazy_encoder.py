"""Encoders that are loaded only when they must encode, for which a stored description stands in until then."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from typing import Any

from ctxexp.dataset import Sentence
from ctxexp.datasets.downloads import cache_folder
from ctxexp.errors import DiskError
from ctxexp.files import digest, sealed_json, unseal_json, write_file
from ctxexp.files.code_version import code_version
from ctxexp.model import EncodedSentence, Encoder, TextStart
from ctxexp.models.options import is_cpu

log = logging.getLogger("ctxexp")
DESCRIPTION_KEYS = (
    "name", "n_layers", "dim", "dtype", "title", "details", "sequential", "positional", "causal", "start", "layers",
    "class_code",
)  # fmt: skip
CODE = code_version()  # when this is imported, as in `ctxexp.vectors.encoding`


class LazyEncoder(Encoder):
    """An encoder known by its description; `load` builds the encoder itself, once, when anything else is needed."""

    def __init__(self, description: Mapping[str, Any], load: Callable[[], Encoder]) -> None:
        """Take a description with all of `DESCRIPTION_KEYS`."""
        vars(self).update(description, _load=load)

    def __getattribute__(self, name: str) -> Any:
        """The described attribute; any other is read from the loaded encoder."""
        described = super().__getattribute__("__dict__")
        if name in described:
            return described[name]
        if name.startswith("__") or name in ("_loaded_encoder", "encode", "corpus", "poolings", "layer_numbers"):
            return super().__getattribute__(name)
        return getattr(self._loaded_encoder, name)

    @cached_property
    def _loaded_encoder(self) -> Encoder:
        return self._load()

    def encode(self, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
        return self._loaded_encoder.encode(batch)


def lazy_encoder(parts: object, load: Callable[[], Encoder], *, device: str) -> Encoder:
    """The encoder that `load` builds; from the second time on a `LazyEncoder` with the description in the user's cache.

    `parts` is everything that determines the encoder, files as digests of their content; equal parts must have equal
    reprs. The version of ctxexp's code and of the libraries is added to the key. (Importing torch and transformers
    costs more than measuring cached vectors.) Where there may be a GPU, only torch can tell which device `auto` is: the
    model is loaded.
    """
    if not is_cpu(device):
        return load()
    key = digest(repr([parts, device, CODE, platform.node()]).encode())
    path = cache_folder() / "encoders" / f"{key}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):  # none is there, or a damaged one, or another's
        stored = unseal_json(path.read_text("utf-8"))
        if stored["key"] == key:
            described = {name: stored[name] for name in DESCRIPTION_KEYS}
            if described["layers"] is not None:
                described["layers"] = tuple(described["layers"])
            if described["start"]:
                described["start"] = TextStart(tuple(described["start"]["tokens"]), described["start"]["source"])
            for warning in stored["details"].get("warnings", "").splitlines():
                log.warning("%s", warning)  # a second run is told what the first was
            return LazyEncoder(described, load)
    encoder = load()
    described = {name: getattr(encoder, name) for name in DESCRIPTION_KEYS}
    described |= {"key": key, "details": dict(encoder.details), "start": encoder.start and asdict(encoder.start)}
    with suppress(DiskError):  # then the next run loads it too
        write_file(path, sealed_json(described))
    return encoder
