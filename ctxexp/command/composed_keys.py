"""Keys of a composed config: all of them, and those of the run that nothing in it follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from omegaconf import DictConfig, OmegaConf

REFERENCES = {"weights": "${weights.name}", "dtype": "${dtype}", "device": "${device}"}  # how a part follows the run's
HARMLESS = ("float32", "auto", "cpu")  # values that also hold for what takes none


def flatten_keys(node: Mapping[str, object], prefix: str = "") -> list[str]:
    """The dotted keys of a config, outer ones first."""
    keys = []
    for key, value in node.items():
        keys.append(prefix + str(key))
        if isinstance(value, dict):
            keys += flatten_keys(value, f"{prefix}{key}.")
    return keys


def idle_choices(config: DictConfig, overrides: Sequence[str]) -> Iterator[str]:
    """A sentence for each of weights, dtype and device that the overrides choose and no part of the job takes."""
    text = OmegaConf.to_yaml(OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"]))
    for override in overrides:
        key, _, value = override.lstrip("+").partition("=")
        if key in REFERENCES and value not in HARMLESS and REFERENCES[key] not in text:
            yield (
                f"{key}= changes nothing for model {config.model.name!r}, which doesn't take it: jobs that differ in "
                "it alone are the same"
            )
