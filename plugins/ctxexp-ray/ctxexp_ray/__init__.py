"""Ray for ctxexp: an engine whose workers are the actors of a cluster, local or anyone's."""

from __future__ import annotations

from pathlib import Path

import ctxexp
from ctxexp.plugins import Register


@ctxexp.hookimpl
def register_engines(register: Register) -> None:
    register("ray", "ctxexp_ray.engine:Ray")


@ctxexp.hookimpl
def config_folders() -> str:
    return str(Path(__file__).parent / "conf")
