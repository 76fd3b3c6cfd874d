"""The hooks of plugins: functions that get `register(name, factory)`. Config files need no hook: they are found in the
folder `ctxexp_conf` beside the plugin's module.

The keyword arguments of a factory are the config keys of its name; a verb or a report registers the function itself.
`register` takes a callable, or its place as text, `"package.module:name"`, which is imported when it is first needed:
commands that don't use it start without it. ctxexp's own names come through the same hooks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pluggy

from ctxexp.lazy import VerbPackage

Factory = Callable[..., Any]
Register = Callable[[str, Factory | str], None]

hookspec = pluggy.HookspecMarker("ctxexp")
hookimpl = pluggy.HookimplMarker("ctxexp")


class HookSpecs:
    """Specifications of the hooks that a plugin may implement, in the order in which names are listed.

    Each takes `register`, which takes a name and what is offered by it.

    Example:
        >>> class Plugin:
        ...     @hookimpl
        ...     def register_models(self, register):
        ...         register("mine", "my_package.models:mine")
    """

    @hookspec
    def register_models(self, register: Register) -> None:
        """Offer encoders, each by a factory(**config) -> ctxexp.Encoder."""

    @hookspec
    def register_datasets(self, register: Register) -> None:
        """Offer corpora, each by a factory(**config) -> ctxexp.Corpus."""

    @hookspec
    def register_controls(self, register: Register) -> None:
        """Offer control conditions: changes of the text (shuffled words), or occurrences that are left out; each by a
        factory(**config) -> ctxexp.Control.
        """

    @hookspec
    def register_transforms(self, register: Register) -> None:
        """Offer transforms of a layer's vectors, such as removing its strongest directions, each by a factory(**config)
        -> ctxexp.Transform.
        """

    @hookspec
    def register_metrics(self, register: Register) -> None:
        """Offer metrics, each by a factory(**config) -> ctxexp.Metric."""

    @hookspec
    def register_baselines(self, register: Register) -> None:
        """Offer baselines, each by a factory(**config) -> ctxexp.Baseline."""

    @hookspec
    def register_sinks(self, register: Register) -> None:
        """Offer destinations of results, such as a tracking server, each by a factory(**config) -> ctxexp.Sink."""

    @hookspec
    def register_engines(self, register: Register) -> None:
        """Offer engines, execution backends that read texts and encode sentences, each by a factory(**config) ->
        ctxexp.Engine.
        """

    @hookspec
    def register_readers(self, register: Register) -> None:
        """Offer readers of a text that is larger than memory, each by the config's key that asks for it
        (`words.max_contexts`) and a factory(**config) -> ctxexp.TextReader.
        """

    @hookspec
    def register_commands(self, register: Register) -> None:
        """Offer verbs, `ctxexp NAME ...`, each a plain function with types and defaults. Its docstring is the verb's
        help, its result the exit status (None: 0); a CtxexpError that it raises is one line to the user.
        """

    @hookspec
    def register_reports(self, register: Register) -> None:
        """Offer tables and figures of a sweep's runs, each by the name of its file and a function(runs) ->
        ctxexp.report.Table for a name `table_...`, matplotlib's Figure for another; None where these runs have nothing
        for it.
        """


HOOKS = tuple(name for name in vars(HookSpecs) if not name.startswith("_"))
COMMAND = "command"  # the first word of a command line
REPORT = "report"  # a table or figure of a sweep's runs
READER = "reader"  # of a text beyond memory
ALL_KINDS = tuple(hook.removeprefix("register_").removesuffix("s") for hook in HOOKS)
CONFIG_KINDS = tuple(kind for kind in ALL_KINDS if kind not in (COMMAND, REPORT, READER))  # chosen by a config

sys.modules[__name__].__class__ = VerbPackage  # ctxexp.plugins(...)
