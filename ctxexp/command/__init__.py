"""The command `ctxexp`: Hydra's configs and what they build, and the verbs beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxexp.lazy import lazy_names

if TYPE_CHECKING:
    from ctxexp.command.api import configured
    from ctxexp.command.experiment import Experiment
    from ctxexp.command.overrides import typed_model
    from ctxexp.plugins.registry import registry
    from ctxexp.progress import Progress, show

__all__ = [
    "Experiment",
    "Progress",
    "configured",
    "registry",
    "show",
    "typed_model",
]

__getattr__ = lazy_names(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
