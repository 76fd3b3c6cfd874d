"""The hooks of plugins: functions that get `register(name, factory)`. Config files need no hook: they are found in the
folder `ctxexp_conf` beside the plugin's module.

The keyword arguments of a factory are the config keys of its name; a verb or a report registers the function itself.
`register` takes a callable, or its place as text, `"package.module:name"`, which is imported when it is first needed:
commands that don't use it start without it. ctxexp's own names come through the same hooks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pluggy

Factory = Callable[..., Any]
Register = Callable[[str, Factory | str], None]

hookspec = pluggy.HookspecMarker("ctxexp")
hookimpl = pluggy.HookimplMarker("ctxexp")


class HookSpecs:
    """Specifications of the hooks that a plugin may implement, in the order in which names are listed."""

    @hookspec
    def register_models(self, register: Register) -> None:
        """Offer encoders.

        Args:
            register: Takes a name and its factory(**config) -> ctxexp.Encoder.

        Example:
            >>> class Plugin:
            ...     @hookimpl
            ...     def register_models(self, register):
            ...         register("mine", "my_package.models:mine")
        """

    @hookspec
    def register_datasets(self, register: Register) -> None:
        """Offer corpora.

        Args:
            register: Takes a name and its factory(**config) -> ctxexp.Corpus.

        Example:
            >>> class Plugin:
            ...     @hookimpl
            ...     def register_datasets(self, register):
            ...         register("mine", "my_package.datasets:mine")
        """

    @hookspec
    def register_controls(self, register: Register) -> None:
        """Offer control conditions: changes of the text (shuffled words), or occurrences that are left out.

        Args:
            register: Takes a name and its factory(**config) -> ctxexp.Control.

        Example:
            >>> class Plugin:
            ...     @hookimpl
            ...     def register_controls(self, register):
            ...         register("mine", "my_package.controls:mine")
        """

    @hookspec
    def register_transforms(self, register: Register) -> None:
        """Offer transforms of a layer's vectors, such as removing its strongest directions.

        Args:
            register: Takes a name and its factory(**config) -> ctxexp.Transform.

        Example:
            >>> class Plugin:
            ...     @hookimpl
            ...     def register_transforms(self, register):
            ...         register("mine", "my_package.transforms:mine")
        """

    @hookspec
    def register_metrics(self, register: Register) -> None:
        """Offer metrics.

        Args:
            register: Takes a name and its factory(**config) -> ctxexp.Metric.

        Example:
            >>> class Plugin:
            ...     @hookimpl
            ...     def register_metrics(self, register):
            ...         register("mine", "my_package.metrics:mine")
        """

    @hookspec
    def register_baselines(self, register: Register) -> None:
        """Offer baselines.

        Args:
            register: Takes a name and its factory(**config) -> ctxexp.Baseline.

        Example:
            >>> class Plugin:
            ...     @hookimpl
            ...     def register_baselines(self, register):
            ...         register("mine", "my_package.baselines:mine")
        """

    @hookspec
    def register_sinks(self, register: Register) -> None:
        """Offer destinations of runs' results, such as a tracking server.

        Args:
            register: Takes a name and its factory(**config) -> ctxexp.Sink.

        Example:
            >>> class Plugin:
            ...     @hookimpl
            ...     def register_sinks(self, register):
            ...         register("mine", "my_package.sinks:mine")
        """

    @hookspec
    def register_engines(self, register: Register) -> None:
        """Offer engines: execution backends that read texts and encode sentences.

        Args:
            register: Takes a name and its factory(**config) -> ctxexp.engine.Engine.

        Example:
            >>> class Plugin:
            ...     @hookimpl
            ...     def register_engines(self, register):
            ...         register("mine", "my_package.engines:mine")
        """

    @hookspec
    def register_commands(self, register: Register) -> None:
        """Offer verbs, `ctxexp NAME ...`.

        Args:
            register: Takes a name and a plain function with types and defaults. Its docstring is the verb's help, its
                result the exit status (None: 0); a CtxexpError that it raises is one line to the user.

        Example:
            >>> class Plugin:
            ...     @hookimpl
            ...     def register_commands(self, register):
            ...         register("mine", "my_package.command:mine")
        """

    @hookspec
    def register_reports(self, register: Register) -> None:
        """Offer tables and figures of a sweep's runs.

        Args:
            register: Takes a name, that of the file, and a function(runs) -> SweepTable (report.sweep_tables) for a
                name `table_...`, matplotlib's Figure for another; None where these runs have nothing for it.

        Example:
            >>> class Plugin:
            ...     @hookimpl
            ...     def register_reports(self, register):
            ...         register("table_mine", "my_package.report:table")
        """


HOOKS = tuple(name for name in vars(HookSpecs) if not name.startswith("_"))
COMMAND = "command"  # the first word of a command line
REPORT = "report"  # a table or figure of a sweep's runs
ALL_KINDS = tuple(hook.removeprefix("register_").removesuffix("s") for hook in HOOKS if hook.startswith("register_"))
CONFIG_KINDS = tuple(kind for kind in ALL_KINDS if kind not in (COMMAND, REPORT))  # chosen by a config
USER_FACING_KINDS = (*CONFIG_KINDS, COMMAND)  # users write these names in configs or on the command line
FIRST_PARTY = (  # ctxexp's own, through the same hooks
    *(f"ctxexp.{kind}s" for kind in CONFIG_KINDS),
    "ctxexp.command.verbs",
)
