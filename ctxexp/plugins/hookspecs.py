"""The whole surface for plugins: functions that get `register(name, factory)`, and a folder of configs.

A factory's keyword arguments are the config keys of its name, a verb's function is the verb. `register` takes it, or
where it is: `"package.module:name"` is imported when it is asked for first, so that no start pays for what it doesn't
use. What ships with ctxexp comes through the same hooks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pluggy

Factory = Callable[..., Any]
Register = Callable[[str, Factory | str], None]

hookspec = pluggy.HookspecMarker("ctxexp")
hookimpl = pluggy.HookimplMarker("ctxexp")


class Hooks:
    """What a plugin may implement, in the order in which names are listed."""

    @hookspec
    def register_models(self, register: Register) -> None:
        """Offer encoders: factory(**config) -> ctxexp.model.Encoder."""

    @hookspec
    def register_datasets(self, register: Register) -> None:
        """Offer corpora: factory(**config) -> ctxexp.dataset.Corpus."""

    @hookspec
    def register_controls(self, register: Register) -> None:
        """Offer controls of text and occurrences: factory(**config) -> ctxexp.control.Control."""

    @hookspec
    def register_transforms(self, register: Register) -> None:
        """Offer calibrations of the space: factory(**config) -> ctxexp.transform.Transform."""

    @hookspec
    def register_metrics(self, register: Register) -> None:
        """Offer metrics: factory(**config) -> ctxexp.metric.Metric."""

    @hookspec
    def register_baselines(self, register: Register) -> None:
        """Offer chance levels: factory(**config) -> ctxexp.baseline.Baseline."""

    @hookspec
    def register_sinks(self, register: Register) -> None:
        """Offer where runs are sent: factory(**config) -> ctxexp.sink.Sink."""

    @hookspec
    def register_engines(self, register: Register) -> None:
        """Offer where texts are read and sentences encoded: factory(**config) -> ctxexp.engine.Engine."""

    @hookspec
    def register_commands(self, register: Register) -> None:
        """Offer verbs, `ctxexp NAME ...`: a plain function with types and defaults; its docstring is its help, what it
        gives the exit status (None: 0). A CtxexpError that it raises is one line to the user."""

    @hookspec
    def register_tables(self, register: Register) -> None:
        """Offer tables of a sweep's runs, its files table_NAME: function(runs) -> SweepTable, or None where these runs
        have nothing for it (ctxexp.papers.sweep_tables)."""

    @hookspec
    def register_figures(self, register: Register) -> None:
        """Offer figures of a sweep's runs, its files NAME.png and NAME.svg: function(runs) -> matplotlib's Figure, or
        None where these runs have nothing for it."""

    @hookspec
    def register_comparisons(self, register: Register) -> None:
        """Offer measures of two spaces: factory(**arguments) -> ctxexp_compare.TwoSpaces, of the distribution
        ctxexp-compare."""

    @hookspec
    def register_measurers(self, register: Register) -> None:
        """Offer what measures a text of which no row is stored: factory() ->
        ctxexp.measuring.one_pass.measurer.Measurer; `words.one_pass` asks for `one_pass`."""

    @hookspec
    def config_folders(self) -> str:  # type: ignore[empty-body]  # a specification has no body
        """Offer an absolute folder of extra config files (model/*.yaml, experiment/*.yaml ...)."""


HOOKS = tuple(name for name in vars(Hooks) if not name.startswith("_"))
COMMAND = "command"  # what a command line may begin with
TABLE, FIGURE = "table", "figure"  # what a sweep makes of its runs
COMPARISON = "comparison"  # what two spaces are compared by
MEASURER = "measurer"  # what measures without storing rows
UNTYPED = (TABLE, FIGURE, COMPARISON, MEASURER)  # what nobody names
OFFERED = tuple(hook.removeprefix("register_").removesuffix("s") for hook in HOOKS if hook.startswith("register_"))
KINDS = tuple(kind for kind in OFFERED if kind not in (COMMAND, *UNTYPED))  # what a config names
FIRST_PARTY = (  # what ships, by the same door
    *(f"ctxexp.{kind}s" for kind in KINDS),
    "ctxexp.command.verbs",
)
