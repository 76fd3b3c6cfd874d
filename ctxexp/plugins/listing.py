"""`ctxexp plugins [FILE.py ...]`: what is installed, what each plugin offers, and what is broken."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path

from ctxexp.command.types import type_text, value_text
from ctxexp.plugins.arguments import arguments
from ctxexp.plugins.hookspecs import KINDS, OFFERED
from ctxexp.plugins.offers import Offer, Source
from ctxexp.plugins.registry import Registry, build_registry
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


def main(files: list[Path]) -> int:
    """Print the listing; 1 if an installed plugin is broken."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # they are in the listing
        registry = build_registry(files=files)
    show(listing(registry))
    return 1 if registry.broken else 0
