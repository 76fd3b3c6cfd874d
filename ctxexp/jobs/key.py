"""The key of a job, equal for jobs with equal numbers: config, contents of texts and files, model, code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import is_dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from ctxexp.command.build.labels import plugins_used
from ctxexp.command.config import RESULT_NEUTRAL_KEYS, Component, Config
from ctxexp.errors import ConfigError
from ctxexp.files.code_version import __version__, package_digest
from ctxexp.files.paths import user_path
from ctxexp.measuring.study import Study
from ctxexp.plugins.registry import GROUP

CODE = f"{__version__} {package_digest()}"  # of the running code: computed once, on import


def key_of(config: Config, study: Study) -> str:
    """The job's key, which covers all that its numbers depend on: a finished job of the same key can stand for it."""
    data = study.corpus.content + (study.fit_on.content if study.fit_on else "") + files_digest(config)
    return job_key(config, data, study.encoder.name, CODE)


def job_key(config: Config, data_digest: str, encoder: str, version: str) -> str:
    """Hex digest (16 digits) of all that determines a job's numbers: the config without output and cache locations, the
    data, the encoder, versions.

    `data_digest` holds the digests of the contents of texts and files; `encoder` is the encoder's name, which changes
    with the content of a checkpoint; `version` is `CODE`, version and code digest of ctxexp. Plugins that supply
    something to the job are included with their versions and code digests.
    """
    decisive = {key: value for key, value in vars(config).items() if key not in RESULT_NEUTRAL_KEYS}
    others = sorted((p.plugin, p.version, code_of(p.distribution)) for p in plugins_used(config))
    text = json.dumps([decisive, data_digest, encoder, version, *others], sort_keys=True, default=_plain)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def code_of(distribution: str) -> str:
    """Hex digits that change with the code of a distribution's plugins, since in an editable install the code changes
    while the version doesn't; empty for a plugin file, whose version is its content."""
    entries = [entry for entry in entry_points(group=GROUP) if entry.dist and entry.dist.name == distribution]
    modules = {entry.module.partition(".")[0] for entry in entries}
    files = [Path(spec.origin) for module in sorted(modules) if (spec := find_spec(module)) and spec.origin]
    return " ".join(package_digest(file.parent if file.name == "__init__.py" else file) for file in files)


def _plain(value: object) -> object:
    if isinstance(value, Component):
        return {"name": value.name, **value.arguments}
    return vars(value) if is_dataclass(value) else str(value)


def files_digest(config: Config) -> str:
    """Hex digest (16 digits) that changes with what lies at the paths among the arguments of a config's metrics,
    transform, baseline and control: a file's bytes; of a folder's files their names, sizes and times. An
    unreadable file is skipped here; using it raises an error."""
    digest = hashlib.blake2b(digest_size=8)
    # the contents of a dataset's and a model's files are in `data_digest` and the encoder's name
    parts = [part for part in config.result_components() if part.kind not in ("dataset", "model")]
    for path in sorted(set(_existing_paths([dict(part.arguments) for part in parts]))):
        digest.update(f"{path}\0".encode())
        with suppress(OSError):
            if path.is_file():
                digest.update(path.read_bytes())
            for file in sorted(path.rglob("*")):
                status = file.lstat()
                digest.update(f"{file.relative_to(path)}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def _existing_paths(value: object) -> Iterator[Path]:
    """The paths among these values at which a file or folder exists."""
    if isinstance(value, dict):
        yield from _existing_paths(list(value.values()))
    elif isinstance(value, list):
        for one in value:
            yield from _existing_paths(one)
    elif isinstance(value, str) and value:
        try:
            path = user_path(value)
            if path.exists():
                yield path
        except (ConfigError, OSError):
            return
