"""Verbs for ctxexp's command: `train`, the recipe of its small models, and `probe`, ELMo's layers on word senses."""

from __future__ import annotations

import ctxexp
from ctxexp.plugins import Register


def _train(argv: list[str]) -> int:
    """Train a small model, or go on where one was stopped: model=bert|gpt2|elmo text=FOLDER minutes=45 (or steps=)."""
    from ctxexp_train.train import main

    return main(argv)


def _probe(argv: list[str]) -> int:
    """Tell word senses from ELMo's frozen layers, a learnt mix of them, or the trained network: use=frozen,mix,all."""
    from ctxexp_train.probe.command import main

    return main(argv)


@ctxexp.hookimpl
def register_commands(register: Register) -> None:
    register("train", _train)
    register("probe", _probe)
