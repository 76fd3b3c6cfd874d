"""Plugins and their offers: everything that a config can name, and the verbs of the command, come through hooks."""

from __future__ import annotations

from ctxexp.plugins.hookspecs import ALL_KINDS as ALL_KINDS
from ctxexp.plugins.hookspecs import COMMAND as COMMAND
from ctxexp.plugins.hookspecs import CONFIG_KINDS as CONFIG_KINDS
from ctxexp.plugins.hookspecs import REPORT as REPORT
from ctxexp.plugins.hookspecs import USER_FACING_KINDS as USER_FACING_KINDS
from ctxexp.plugins.hookspecs import Factory as Factory
from ctxexp.plugins.hookspecs import Register as Register
from ctxexp.plugins.hookspecs import hookimpl as hookimpl
from ctxexp.plugins.offers import Offer as Offer
from ctxexp.plugins.offers import PluginVersion as PluginVersion
from ctxexp.plugins.offers import arguments as arguments
from ctxexp.plugins.registry import Registry as Registry
from ctxexp.plugins.registry import build_registry as build_registry
