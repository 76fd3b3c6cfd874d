"""Baselines of twins for ctxexp: is it context, or the word's place in the sentence, or its frequency?"""

from __future__ import annotations

from pathlib import Path

import ctxexp
from ctxexp.plugins import Register


@ctxexp.hookimpl
def register_baselines(register: Register) -> None:
    register("frequency_matched", "ctxexp_twins.baselines:FrequencyMatched")
    register("position_matched", "ctxexp_twins.baselines:PositionMatched")


@ctxexp.hookimpl
def config_folders() -> str:
    return str(Path(__file__).parent / "conf")
