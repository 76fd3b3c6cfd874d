"""What can be said of a config before torch, MLflow or a model is loaded: its values, its files and its device."""

from __future__ import annotations

from ctxexp.command.config import Node, supplied
from ctxexp.command.fit import check_text
from ctxexp.errors import ConfigError, DataError, near
from ctxexp.files.paths import user_path
from ctxexp.plugins import Registry, arguments
from ctxexp.vectors.device import check_device
from ctxexp.vectors.pool import POOLINGS


def preflight(config: Node, registry: Registry) -> None:
    """Raise CtxexpError for the first thing that a run of this config, which is whole and of the right types, would
    fail at. What isn't raised may fail still: files are not read to their end."""
    for place in (config, config["model"], config["transform"]):
        if isinstance(place.get("device"), str):
            check_device(place["device"])
    supplied("baseline", config["baseline"], registry)
    supplied("transform", config["transform"], registry)
    for label, node in config["metric"].items():
        sample = getattr(supplied("metric", node, registry), "sample", None)
        if isinstance(sample, int) and sample < 1:
            raise ConfigError(f"metric.{label}.sample={sample}: expected at least 1, or null for all")
    _check_data(config["dataset"], registry)
    _check_model(config, registry)
    check_text(config, registry)


def _check_data(node: Node, registry: Registry) -> None:
    """A data set with a limit is read to its first sentence, of others the path must be there."""
    if not registry.find("dataset", node["name"]).ours:
        return
    if "limit" in (arguments(registry.find("dataset", node["name"]).factory) or ()):
        limit = node.get("limit")
        supplied("dataset", {**node, "limit": 1 if limit is None else min(limit, 1)}, registry)
    elif node.get("path") and not user_path(node["path"]).exists():
        raise DataError(f"no such file or folder: {user_path(node['path'])} (dataset.path)")


def _check_model(config: Node, registry: Registry) -> None:
    """The arguments of our own models, whose poolings are known too; a stranger's may have others."""
    node, pooling = config["model"], config["sentence"]["pooling"]
    if not registry.find("model", node["name"]).ours:
        return
    from ctxexp.models.choices import check_arguments

    check_arguments(**{key: value for key, value in node.items() if key != "name"})
    if pooling not in POOLINGS:
        raise ConfigError(f"sentence.pooling={pooling!r}: no such pooling{near(pooling, POOLINGS)}")
