"""`ctxexp plugins [FILE.py ...]`: what is installed, offers what, or is broken; `json=true`: all names."""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from ctxexp.command.help import Key, about, keys, names, values
from ctxexp.command.names import GROUPS, registry, use
from ctxexp.command.types import type_text, value_text
from ctxexp.plugins.arguments import arguments
from ctxexp.plugins.hookspecs import COMMAND, KINDS, OFFERED
from ctxexp.plugins.offers import Offer, Source
from ctxexp.plugins.registry import Registry
from ctxexp.progress import show
from ctxexp.vectors.code_version import __version__


def listing(registry: Registry) -> str:
    """One section a plugin: distribution and version, its names with their first line and arguments."""
    own = [offer for offer in registry.offers.values() if offer.ours]
    sections = [_section("ctxexp", __version__, own)]
    for source in registry.sources:
        brought = [o for o in registry.offers.values() if o.plugin == source.plugin]
        sections.append(_section(_title(source), source.version, brought))
    if registry.broken:
        sections.append("\n".join(["broken, and left out:", *(f"  {' '.join(b.split())}" for b in registry.broken)]))
    return "\n\n".join(sections)


def signature(offer: Offer) -> str:
    """The config keys with types and defaults: `size: int = 3, path: str`."""
    if offer.problem:
        return ""
    known = arguments(offer.factory)
    if known is None:
        return "any"
    return ", ".join(
        f"{name}: {type_text(kind)}" + ("" if default is inspect.Parameter.empty else f" = {value_text(default)}")
        for name, (kind, default) in known.items()
    )


def _title(source: Source) -> str:
    return source.distribution if source.distribution == source.plugin else f"{source.plugin} ({source.distribution})"


def _section(title: str, version: str, offers: list[Offer]) -> str:
    lines = [f"{title} {version}"]
    for offer in sorted(offers, key=lambda o: (OFFERED.index(o.kind), o.name)):
        lines.append(f"  {offer.typed:<36} {offer.about}".rstrip())
        if offer.kind in KINDS and (keys := signature(offer)):
            lines.append(f"      {keys}")
    return "\n".join(lines)


def document(registry: Registry) -> dict[str, object]:
    """Groups with their options, the config's own keys, verbs and plugins, as JSON has them."""
    verbs = {name: registry.find(COMMAND, name) for name in registry.names(COMMAND)}
    return {
        "version": __version__,
        "groups": {
            group: {name: {"about": about(group, name), "keys": _keys(keys(group, name))} for name in names(group)}
            for group in GROUPS
        },
        "values": _keys(values()),
        "verbs": {name: {"about": verb.about, "arguments": signature(verb)} for name, verb in verbs.items()},
        "plugins": [
            asdict(source) | {"offers": [o.typed for o in registry.offers.values() if o.plugin == source.plugin]}
            for source in registry.sources
        ],
        "broken": registry.broken,
    }


def _keys(found: Iterable[Key]) -> dict[str, dict[str, str]]:
    return {key.name: {"value": key.value, "about": key.about} for key in found}


def main(files: list[Path], *, as_json: bool = False) -> int:
    """Print the listing; 1 if an installed plugin is broken."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # they are in the listing
        if files:
            use([str(file) for file in files])
        found = registry()
    if as_json:
        print(json.dumps(document(found), indent=1, ensure_ascii=False))
    else:
        show(listing(found))
    return 1 if found.broken else 0
