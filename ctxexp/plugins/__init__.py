"""Plugins and their offers: everything that a config can name, and the verbs of the command, come through hooks."""

from __future__ import annotations

from ctxexp.plugins.hookspecs import (
    ALL_KINDS,
    COMMAND,
    CONFIG_KINDS,
    REPORT,
    USER_FACING_KINDS,
    Factory,
    Register,
    hookimpl,
)
from ctxexp.plugins.offers import Offer, PluginVersion, arguments
from ctxexp.plugins.registry import Registry, build_registry

__all__ = [
    "ALL_KINDS",
    "COMMAND",
    "CONFIG_KINDS",
    "REPORT",
    "USER_FACING_KINDS",
    "Factory",
    "Offer",
    "PluginVersion",
    "Register",
    "Registry",
    "arguments",
    "build_registry",
    "hookimpl",
]
