"""Models in the cache of the hub, as its library puts them there."""

from __future__ import annotations

import hashlib
from pathlib import Path


def put(cache: Path, name: str, revision: str, *files: Path) -> Path:
    """Put files into the cache; their folder, in which each is a link to a blob."""
    repository = cache / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / revision
    for folder in (snapshot, repository / "blobs", repository / "refs"):
        folder.mkdir(parents=True)
    (repository / "refs" / "main").write_text(revision)
    for file in files:
        data = file.read_bytes()
        blob = repository / "blobs" / hashlib.sha256(data).hexdigest()
        blob.write_bytes(data)
        (snapshot / file.name).symlink_to(blob)
    return snapshot
