"""The command `ctxexp`: Hydra's configs and what they build, and the verbs beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctxexp.command.cli import Verb
from ctxexp.command.face import configured
from ctxexp.command.names import typed_model
from ctxexp.plugins.registry import registry
from ctxexp.progress import Progress, show

if TYPE_CHECKING:
    from ctxexp.command.build import Built

__all__ = [
    "Built",
    "Progress",
    "Verb",
    "configured",
    "registry",
    "show",
    "typed_model",
]


def __getattr__(name: str) -> Any:
    if name != "Built":
        raise AttributeError(f"ctxexp.command has no {name!r}")
    from ctxexp.command.build import Built  # with what checks configs: not at `import ctxexp`

    return Built
