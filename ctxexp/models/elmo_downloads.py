"""Where ELMo's two files are: a path, a URL, the hub's cache or ctxexp's own; no silent fallback."""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

from ctxexp.datasets.downloads import UNREACHABLE, cache_folder, content_at
from ctxexp.errors import DiskError, ModelError
from ctxexp.files import atomic_write, user_path

log = logging.getLogger("ctxexp")
ORIGINAL = "elmo_2x4096_512_2048cnn_2xhighway"  # the "original" model: 93.6M parameters, 1 Billion Word benchmark
_NAMES = f"{ORIGINAL}_options.json", f"{ORIGINAL}_weights.hdf5"
_URLS = [f"https://allennlp.s3.amazonaws.com/models/elmo/{ORIGINAL.removeprefix('elmo_')}/{name}" for name in _NAMES]


def hub_cache() -> Path:
    """The hub library's cache folder."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def locate(given: str, key: str) -> Path:
    """The file that `given` (a path or an http(s) URL) names; a URL is downloaded to the cache once.

    `key` is the config key in errors.
    """
    if given.startswith(("http://", "https://")):
        return _fetch(given, key)
    path = user_path(given)
    if not path.is_file():
        raise ModelError(f"{key}={given}: no file at {path.absolute()}; expected a path or an http(s) URL")
    return path


def original_files() -> tuple[Path, Path]:
    """Options and weights of the original ELMo: from the hub's cache, ctxexp's cache, or AllenNLP's server."""
    if files := local_original():
        return files
    targets = [_target(url) for url in _URLS]
    try:
        for url, key in zip(_URLS, ("options_file", "weight_file"), strict=True):
            _fetch(url, key)
    except ModelError as error:
        raise ModelError(
            f"weights=published: no {' and '.join(_NAMES)} in the hub's cache ({hub_cache()}) or in "
            f"{targets[0].parent}, and {error}. Either run once with a network, or give copies of both files with "
            "model.options_file=<path> model.weight_file=<path>"
        ) from None
    return targets[0], targets[1]


def local_original() -> tuple[Path, Path] | None:
    """Its options and weights in the hub's cache or ctxexp's; None where neither has both."""
    for folder in (*sorted(hub_cache().glob("models--*/snapshots/*")), _target(_URLS[0]).parent):
        if all((folder / name).is_file() for name in _NAMES):
            return folder / _NAMES[0], folder / _NAMES[1]
    return None


def _target(url: str) -> Path:
    folder, _, name = url.partition("?")[0].rpartition("/")
    return cache_folder() / "models" / "elmo" / hashlib.sha256(folder.encode()).hexdigest()[:12] / (name or "file")


def _fetch(url: str, key: str) -> Path:
    target = _target(url)
    if target.is_file():
        return target
    if os.environ.get("HF_HUB_OFFLINE", "0").lower() in ("1", "true", "yes", "on"):
        raise ModelError(f"{key}: {url} is not in {target.parent}, and HF_HUB_OFFLINE forbids downloading it")
    try:
        content = content_at(url)
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(target) as part:
            part.write_bytes(content)
    except (*UNREACHABLE, DiskError) as error:
        raise ModelError(f"{key}: {url} could not be downloaded to {target.parent} ({error})") from None
    log.info("downloaded %s to %s (sha256 %s)", url, target, hashlib.sha256(content).hexdigest())
    return target
