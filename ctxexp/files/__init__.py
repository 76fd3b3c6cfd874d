"""Files that are whole or aren't there: written under a temporary name and renamed, and listed in the manifest
of their folder; paths as users type them.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxexp.errors import ConfigError, DiskError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

PART = ".part"  # suffix of the temporary name
STALE = 60  # seconds without a write, after which another machine's temporary file counts as abandoned
MAKE_ROOM = "make room there or choose another folder, and repeat the command (resume=true skips jobs that finished)"
MANIFEST = "files.json"
UNSEALED = {"status.json", MANIFEST}  # status.json changes as the job goes on
_TYPES = {"i": "int64", "u": "int64", "f": "float64", "b": "bool"}  # NumPy's kind -> type; unsigned ones become signed
OTHER_KINDS = (
    ".json", ".html", ".md", ".parquet", ".feather", ".xlsx", ".pkl", ".tsv", ".txt", ".png", ".svg", ".pdf",
)  # fmt: skip  # of files that a folder's name isn't
NO_ARCHIVE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, MemoryError)
"""Errors that zipfile raises for bytes that are no archive, or one that it can't read."""


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path; it replaces `path` when the block succeeds, and is deleted when it fails.

    The folder is made if need be. Raises DiskError for errors of the file system.

    Example:
        >>> path = Path("vectors.bin")
        >>> with atomic_write(path) as part:
        ...     _ = part.write_bytes(b"all of it")
        >>> path.read_bytes()
        b'all of it'
    """
    part = path.with_name(f"{path.name}.{os.getpid()}{PART}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        clear_parts(path.parent, escape(path.name))
        yield part
        part.replace(path)
    except OSError as error:
        raise DiskError(disk_error_message(error, path)) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def clear_parts(folder: Path, pattern: str = "*") -> list[Path]:
    """Delete temporary files of killed processes in `folder` and return their paths: those of files whose name matches
    the glob `pattern`, whose process is not here and that nobody touched for STALE seconds (another machine's process
    may write to a shared folder)."""
    removed = []
    for part in folder.glob(f"{pattern}.*{PART}"):
        from psutil import pid_exists  # here, since most folders hold none

        pid = part.stem.rpartition(".")[2]
        with suppress(OSError):  # another process removed it, or may
            if pid.isdigit() and not pid_exists(int(pid)) and time.time() - part.stat().st_mtime > STALE:
                part.unlink()
                removed.append(part)
    return removed


def write_file(path: Path, content: str | bytes) -> Path:
    """Write bytes, or text as UTF-8, atomically, and return the path.

    Example:
        >>> write_file(Path("answer.txt"), "yes\\n").name
        'answer.txt'
    """
    with atomic_write(path) as part:
        part.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def sealed_json(content: Mapping[str, object]) -> str:
    """The content as JSON that holds its own crc32: `unseal_json` tells whether it is still that.

    Example:
        >>> unseal_json(sealed_json({"rows": 3}))
        {'rows': 3}
    """
    text = json.dumps(content)
    return json.dumps({**json.loads(text), "crc32": zlib.crc32(text.encode())})


def unseal_json(text: str) -> dict[str, Any]:
    """The content of a `sealed_json`. Raises ValueError for anything else, a changed one too."""
    content = json.loads(text)
    if not isinstance(content, dict) or content.pop("crc32", None) != zlib.crc32(json.dumps(content).encode()):
        raise ValueError("it is not as it was written")
    return content


def check_writable(path: Path) -> None:
    """Raise `DiskError` unless a file or folder could be made at that path, or what is there be written; makes nothing.

    Example:
        >>> check_writable(Path("figures/layer_3.png"))
    """
    try:
        there = next(place for place in (path, *path.parents) if place.exists())
        if there != path and not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(there, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise DiskError(disk_error_message(error, path)) from error


def check_absent(path: Path, name: str = "") -> None:
    """Raise `ConfigError` for a file that is there, and for a folder that holds files of that name.

    Example:
        >>> check_absent(Path("bert.pin"))
    """
    if _is_there(path, name):
        raise ConfigError(f"{path} is there already, and is kept: choose another place (out=), or add replace=true")


def check_place(out: Path, name: str, *, is_folder: bool, replaces: bool) -> None:
    """Raise `DiskError` where `out` can't be written, as a folder or a .csv, `ConfigError` where files of that name are
    there that nobody said to replace."""
    if is_folder and out.suffix.lower() in OTHER_KINDS and not out.exists():
        raise ConfigError(f"out={out}: expected a folder, or a name that ends in .csv; json=true prints JSON")
    check_writable(out)
    if is_folder and out.suffix != ".csv" and out.is_file():
        raise DiskError(f"cannot write {out}: a file where a folder is to be; choose another place (out=)")
    if not replaces:
        check_absent(out, name)


def absent_folder(path: Path, name: str) -> Path:
    """The folder, or the first of `path-2`, `path-3` ... that holds no file of that name."""
    free, n = path, 1
    while _is_there(free, name):
        n += 1
        free = path.with_name(f"{path.name}-{n}")
    return free


def _is_there(path: Path, name: str) -> bool:
    return path.is_file() or (bool(name) and any(path.glob(f"{escape(name)}.*")))


def is_disk_full(error: BaseException | None) -> bool:
    """Whether the error, or one that caused it, says that a disk or a quota is full."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__ or error.__context__
    return False


def disk_error_message(error: OSError, path: Path | None = None) -> str:
    """A one-line message why the file can't be written and what to do; without `path` it names the error's own file."""
    path = Path(str(error.filename)) if path is None and error.filename else path
    if is_disk_full(error):
        where = f"cannot write {path.name}: the disk of {path.parent}" if path else "a disk"
        return f"{where} is full; {MAKE_ROOM}"
    return f"cannot write {path}: {error.strerror or error}; choose a writable place"


def render_page(package: str, name: str, **values: object) -> str:
    """The page `name` of the package with these values filled in, HTML-escaped."""
    from jinja2 import Environment, PackageLoader

    pages = Environment(loader=PackageLoader(package, ""), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return pages.get_template(name).render(values)


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write the table with full precision, UTF-8, one header line; NaN as an empty cell.

    Example:
        >>> import pandas as pd
        >>> write_csv(pd.DataFrame({"word": ["bank"]}), Path("words.csv"))
    """
    with atomic_write(path) as part:
        table.to_csv(part, index=False, encoding="utf-8", lineterminator="\r\n")


def column_types(table: pd.DataFrame) -> dict[str, str]:
    """The column types that `read_csv` needs: int64, float64, bool or str by column name."""
    return {str(name): _TYPES.get(dtype.kind, "str") for name, dtype in table.dtypes.items()}


def read_csv(path: Path, types: Mapping[str, str]) -> pd.DataFrame:
    """Read a table that `write_csv` wrote, with these column types; an empty cell of a text column is an empty text."""
    import pandas as pd

    cells = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    return pd.DataFrame({name: _convert(cells[name], kind) for name, kind in types.items()})


def _convert(cells: pd.Series, kind: str) -> pd.Series | np.ndarray:
    """The column's cells (n,) converted to its type; pandas' own parser of numbers may miss the last bit."""
    if kind == "str":
        return cells
    if kind == "bool":
        return cells == "True"
    return cells.replace("", "nan").to_numpy(str).astype(kind)


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name. Raises ValueError for one that isn't as long as it says, and zipfile's errors
    (NO_ARCHIVE) for bytes that are no archive."""
    import numpy as np  # not for a command's help

    with path.open("rb") as file, np.lib.npyio.NpzFile(file) as arrays:
        return dict(arrays)


def seal_folder(folder: Path) -> None:
    """Write the manifest: every file of the folder, by its path in it, with the digest of its bytes."""
    digest_by_name = {
        path.relative_to(folder).as_posix(): digest_of(path)
        for path in sorted(folder.rglob("*"))
        if path.name not in UNSEALED and path.suffix not in (PART, ".lock", ".tmp") and is_own_file(path, folder)
    }
    write_file(folder / MANIFEST, json.dumps(digest_by_name, indent=1, ensure_ascii=False))


def is_own_file(path: Path, folder: Path) -> bool:
    """Whether the path below `folder` is a file that lies there, not one that a link leads to elsewhere."""
    return path.is_file() and path.resolve().is_relative_to(folder.resolve())


def digest_of(path: Path) -> str:
    """BLAKE2b of the file's bytes, 32 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def find_damage(folder: Path, names: Collection[str] | None = None) -> str | None:
    """A message about the first file that differs from the manifest; None if all agree. `names`: check only these
    files, if the manifest has them."""
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        expected = {str(name): str(value) for name, value in content.items() if names is None or name in names}
    except FileNotFoundError:
        return None if names is not None else f"{MANIFEST} is missing"
    except (OSError, ValueError, AttributeError, RecursionError):
        return f"{MANIFEST} is damaged"
    for name, value in expected.items():
        try:
            if digest_of(folder / name) != value:
                return f"{name} is not as it was written"
        except OSError as error:
            return f"{name} cannot be read ({error.strerror or error})"
    return None


def digest(data: bytes) -> str:
    """blake2b, 32 hex digits."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def user_path(given: str | Path) -> Path:
    """The path, with `~` and `~name` expanded. Raises ConfigError for an empty text and an unknown name.

    Example:
        >>> user_path("~").is_absolute()
        True
    """
    if not str(given):  # as the current folder it would take what is written in silence
        raise ConfigError("'' is no path: it is empty; . is the current folder")
    try:
        return Path(given).expanduser()
    except RuntimeError:
        raise ConfigError(f"{str(given)!r}: no user of that name has a home here; write the path in full") from None
