"""What plugins bring: one name each, and where it came from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import cast

from ctxexp.errors import CtxexpError, PluginError, said, stranger
from ctxexp.plugins.hookspecs import COMMAND, FIGURE, FIRST_PARTY, TABLE, Factory


@dataclass(frozen=True)
class Offer:
    """One registered name: what builds it and who brought it."""

    kind: str
    name: str
    source: Factory | str  # what builds it, or where that is (`module:name`)
    plugin: str

    @cached_property
    def factory(self) -> Factory:
        """What builds it. Raises PluginError where it can't be imported."""
        if not isinstance(self.source, str):
            return self.source
        module, _, name = self.source.partition(":")
        who = f"{self.kind} {self.name!r} of plugin {self.plugin!r}"
        try:
            with stranger():
                found: object = getattr(import_module(module), name)
        except CtxexpError:
            raise
        except Exception as error:  # a stranger's module may raise anything
            raise PluginError(f"{who}: {self.source} can't be imported: {said(error)}") from error
        if not callable(found):
            got = type(found).__name__
            raise PluginError(f"{who}: {self.source} is of type {got}, expected a callable factory")
        return cast(Factory, found)

    @property
    def problem(self) -> str:
        """Why its factory can't be had; empty if it can."""
        try:
            self.factory  # noqa: B018  # the import is what is asked for
        except CtxexpError as error:
            return str(error)
        return ""

    @property
    def typed(self) -> str:
        """How one asks for it: `metric=name`, of a command `ctxexp name`; of a table or figure its file."""
        special = {COMMAND: f"ctxexp {self.name}", TABLE: f"table_{self.name}.md", FIGURE: f"{self.name}.png"}
        return special.get(self.kind, f"{self.kind}={self.name}")

    @property
    def ours(self) -> bool:
        """Whether it ships with ctxexp."""
        return self.plugin in FIRST_PARTY

    @property
    def about(self) -> str:
        """The first sentence of the factory's docstring; empty if it has none of its own. Of one that can't be had,
        why."""
        if self.problem:
            return self.problem
        doc = vars(self.factory).get("__doc__") if isinstance(self.factory, type) else self.factory.__doc__
        paragraph = " ".join((doc if isinstance(doc, str) else "").strip().partition("\n\n")[0].split())
        return re.split(r"(?<=[^.A-Z]\.) (?=[A-Z])", paragraph, maxsplit=1)[0]


@dataclass(frozen=True)
class Source:
    """A plugin that took part: its name, distribution and version (of a file: its path and content hash)."""

    plugin: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} ({self.distribution} {self.version})"
