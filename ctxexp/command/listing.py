"""`ctxexp plugins [FILE.py ...]`: installed plugins with their offers, and broken ones; `json=true`: all names."""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from ctxexp.command.help import ConfigKey, config_keys, option_keys, option_names, summary_of
from ctxexp.command.names import GROUPS, load_plugin_files, registry
from ctxexp.files.code_version import __version__
from ctxexp.plugins.hookspecs import ALL_KINDS, COMMAND, CONFIG_KINDS
from ctxexp.plugins.offers import Offer, PluginVersion
from ctxexp.plugins.registry import Registry
from ctxexp.plugins.types import arguments, type_text, value_text
from ctxexp.progress import show


def listing(registry: Registry) -> str:
    """The listing as text, one section per plugin: distribution and version, then its offers, each with the first
    sentence of its docstring and its config keys."""
    own = [offer for offer in registry.offers.values() if offer.builtin]
    sections = [_section("ctxexp", __version__, own)]
    for source in registry.sources:
        offers = [o for o in registry.offers.values() if o.supplier == source]
        sections.append(_section(_title(source), source.version, offers))
    if registry.broken:
        sections.append("\n".join(["broken, and left out:", *(f"  {' '.join(b.split())}" for b in registry.broken)]))
    return "\n\n".join(sections)


def signature_text(offer: Offer) -> str:
    """The offer's config keys with types and defaults, as in `size: int = 3, path: str`."""
    if offer.problem:
        return ""
    parameters = arguments(offer.factory)
    if parameters is None:
        return "any"
    return ", ".join(
        f"{name}: {type_text(kind)}" + ("" if default is inspect.Parameter.empty else f" = {value_text(default)}")
        for name, (kind, default) in parameters.items()
    )


def _title(source: PluginVersion) -> str:
    return source.distribution if source.distribution == source.plugin else f"{source.plugin} ({source.distribution})"


def _section(title: str, version: str, offers: list[Offer]) -> str:
    lines = [f"{title} {version}"]
    for offer in sorted(offers, key=lambda o: ((*ALL_KINDS, o.kind).index(o.kind), o.name)):
        lines.append(f"  {offer.usage:<36} {offer.summary}".rstrip())
        if offer.kind in CONFIG_KINDS and (keys := signature_text(offer)):
            lines.append(f"      {keys}")
    return "\n".join(lines)


def listing_dict(registry: Registry) -> dict[str, object]:
    """The listing as values of JSON types: groups with their options, the config's own keys, verbs and plugins."""
    verbs = {name: registry.find(COMMAND, name) for name in registry.names(COMMAND)}
    return {
        "version": __version__,
        "groups": {
            group: {
                name: {"about": summary_of(group, name), "keys": _keys(option_keys(group, name))}
                for name in option_names(group)
            }
            for group in GROUPS
        },
        "values": _keys(config_keys()),
        "verbs": {name: {"about": verb.summary, "arguments": signature_text(verb)} for name, verb in verbs.items()},
        "plugins": [
            asdict(source) | {"offers": [o.usage for o in registry.offers.values() if o.supplier == source]}
            for source in registry.sources
        ],
        "broken": registry.broken,
    }


def _keys(keys: Iterable[ConfigKey]) -> dict[str, dict[str, str]]:
    return {key.name: {"value": key.value, "about": key.comment} for key in keys}


def main(files: list[Path], *, as_json: bool = False) -> int:
    """Print the listing, as text or (`json=true`) as JSON; returns the exit status, 1 if an installed plugin is
    broken."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the listing has these warnings
        if files:
            load_plugin_files([str(file) for file in files])
        current = registry()
    if as_json:
        print(json.dumps(listing_dict(current), indent=1, ensure_ascii=False))
    else:
        show(listing(current))
    return 1 if current.broken else 0
