"""Files in a folder that workers and driver share: each is complete or absent, and says what it is."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ctxexp.errors import error_text

log = logging.getLogger("ctxexp")


@dataclass(frozen=True)
class ShardFile:
    """Arrays by name of one shard, `name` in a folder whose own name tells what its shards are made from."""

    folder: Path
    name: str

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name}.npz"

    @property
    def identity(self) -> str:
        """The shard's identity, which the file holds beside its arrays."""
        return f"{self.folder.name}/{self.name}"

    @contextmanager
    def open(self) -> Iterator[np.lib.npyio.NpzFile]:
        """The arrays, each read when it is asked for."""
        with np.load(self.path) as arrays:
            yield arrays

    @contextmanager
    def write(self) -> Iterator[ArrayWriter]:
        """Write arrays beside the shard's place, and put them there."""
        own = self.path.with_suffix(f".{socket.gethostname()}-{os.getpid()}.npz")
        try:
            with zipfile.ZipFile(own, "w") as file:
                writer = ArrayWriter(file)
                writer.add("identity", np.array(self.identity))
                yield writer
            own.replace(self.path)
        finally:
            own.unlink(missing_ok=True)

    def is_usable(self) -> bool:
        """Whether an earlier run left this shard; anything else in its place is removed."""
        if not os.path.lexists(self.path):
            return False
        if damage := self._damage():
            log.warning("the shard %s can't be taken (%s): making it again", self.path, damage)
            if self.path.is_dir():
                shutil.rmtree(self.path)
            else:
                self.path.unlink()
        return not damage

    def _damage(self) -> str:
        """The reason why the file can't be used: it is damaged, or another shard's; empty if it can."""
        try:
            with zipfile.ZipFile(self.path) as file:
                if name := file.testzip():
                    return f"the checksum of {name} differs"
            with self.open() as arrays:
                return "" if str(arrays["identity"]) == self.identity else "it is another shard's"
        except Exception as error:  # zipfile raises whatever its bytes make of it
            return error_text(error)


class ArrayWriter:
    """Adds arrays to a file, one by one."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self.file = file

    def add(self, name: str, array: np.ndarray) -> None:
        with self.file.open(f"{name}.npy", "w", force_zip64=True) as target:
            np.lib.format.write_array(target, array, allow_pickle=False)


def remove_unfinished(folder: Path) -> None:
    """Remove what workers left that were killed while they wrote."""
    for left in folder.glob("*.*.npz"):
        left.unlink(missing_ok=True)
