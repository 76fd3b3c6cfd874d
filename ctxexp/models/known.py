"""Models that are loaded when something is to be encoded: what an earlier load said of itself names the vectors."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ctxexp.dataset import Sentence
from ctxexp.datasets.download import cache_folder
from ctxexp.errors import DiskError, said
from ctxexp.files.seals import digest, seal, unseal
from ctxexp.files.writing import clear_parts, write_text
from ctxexp.model import Encoded, Encoder, TextStart
from ctxexp.vectors.code_version import code_version
from ctxexp.vectors.device import is_cpu

log = logging.getLogger("ctxexp")

SAID = (
    "name", "n_layers", "dim", "dtype", "title", "details", "sequential", "positional", "causal", "start", "layers",
    "class_code",
)  # fmt: skip
LIBRARIES = ("torch", "transformers", "tokenizers")
CODE = code_version()  # when this is imported, as in `ctxexp.vectors.encode`


class Known(Encoder):
    """An encoder of which only the description is there; `load` gives it whole, once, when more is asked."""

    _own = frozenset({*SAID, "_load", "_whole", "_own", "_class_code", "corpus", "poolings", "given"})

    def __init__(self, description: Mapping[str, Any], load: Callable[[], Encoder]) -> None:
        """`description` has all of `SAID`."""
        layers = None if description["layers"] is None else tuple(description["layers"])
        told = {key: description[key] for key in SAID if key != "class_code"}
        told |= {"layers": layers, "start": _start(description["start"])}
        vars(self).update(told, _load=load, _class_code=description["class_code"])

    def __getattribute__(self, name: str) -> Any:
        """Whatever isn't described is the whole encoder's."""
        if name.startswith("__") or name in Known._own:
            return super().__getattribute__(name)
        return getattr(self._whole, name)

    @property
    def class_code(self) -> str:
        return self._class_code  # type: ignore[no-any-return]

    @cached_property
    def _whole(self) -> Encoder:
        return self._load()  # type: ignore[no-any-return]

    def encode(self, batch: Sequence[Sentence]) -> Iterable[Encoded]:
        return self._whole.encode(batch)


def known(parts: object, load: Callable[[], Encoder], *, device: str) -> Encoder:
    """The encoder that `load` gives: itself the first time, afterwards its description, kept in the user's cache.

    `parts` is all that the encoder is made of, files by a digest of their content, and prints alike when it is alike;
    our own code and the libraries' versions are added. (Importing torch and transformers costs more than measuring
    cached vectors.) Where there may be a GPU, only torch can tell which device `auto` is: the model is loaded.
    """
    if not is_cpu(device):
        return load()
    text = repr([parts, device, CODE, platform.node(), *map(version, LIBRARIES)])
    key = digest(text.encode())
    path = cache_folder() / "encoders" / f"{key}.json"
    if description := _read(path, key):
        return Known(description, load)
    encoder = load()
    clear_parts(path.parent)
    with suppress(DiskError):  # then the next run loads it too
        write_text(path, seal({"key": key, "encoder": _describe(encoder)}))
    return encoder


def _describe(encoder: Encoder) -> dict[str, Any]:
    start = None if encoder.start is None else asdict(encoder.start)
    return {name: getattr(encoder, name) for name in SAID} | {"details": dict(encoder.details), "start": start}


def _start(described: Mapping[str, Any] | None) -> TextStart | None:
    return None if described is None else TextStart(tuple(described["tokens"]), described["source"])


def _read(path: Path, key: str) -> dict[str, Any] | None:
    """The description in the file, if it is whole and that of `key`; None, with a warning, for any other file."""
    if not path.is_file():
        return None
    try:
        meta = unseal(path.read_bytes())
        if meta["key"] != key:
            raise ValueError("it is another encoder's")
        description: dict[str, Any] = {name: meta["encoder"][name] for name in SAID}
        return description
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("the encoder's description in %s is damaged (%s): loading the model", path, said(error))
        return None
