"""What can be said of a config before torch, MLflow or a model is loaded: its values, its files and its device."""

from __future__ import annotations

from ctxexp.command.config import Config
from ctxexp.command.run import fit_text
from ctxexp.errors import ConfigError, DataError, near
from ctxexp.files.paths import user_path
from ctxexp.models.choices import check_arguments
from ctxexp.vectors.device import check_device
from ctxexp.vectors.pool import POOLINGS


def preflight(config: Config) -> None:
    """Raise CtxexpError for the first thing that a run of this config would fail at. What isn't raised may fail still:
    files are not read to their end."""
    for device in (config.device, config.model.arguments.get("device"), config.transform.arguments.get("device")):
        if isinstance(device, str):
            check_device(device)
    config.baseline.make()
    config.transform.make()
    for label, part in config.metric.items():
        sample = getattr(part.make(), "sample", None)
        if isinstance(sample, int) and sample < 1:
            raise ConfigError(f"metric.{label}.sample={sample}: expected at least 1, or null for all")
    if config.dataset.offer.ours:
        _check_data(config)
    if config.model.offer.ours:  # a stranger's may have other arguments and poolings
        check_arguments(**config.model.arguments)
        if (pooling := config.sentence.pooling) not in POOLINGS:
            raise ConfigError(f"sentence.pooling={pooling!r}: no such pooling{near(pooling, POOLINGS)}")
    fit_text(config)


def _check_data(config: Config) -> None:
    """A data set with a limit is read to its first sentence, of others the path must be there."""
    given, known = config.dataset.arguments, config.dataset.known() or {}
    if "limit" in known:
        limit = given.get("limit")
        config.dataset.make(limit=1 if limit is None else min(limit, 1))
    elif given.get("path") and not user_path(given["path"]).exists():
        raise DataError(f"no such file or folder: {user_path(given['path'])} (dataset.path)")
