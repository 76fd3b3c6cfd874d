"""For who ships a model: its geometry card, and a gate that says when a quantised, fine-tuned or new one has moved."""

from __future__ import annotations

import ctxexp
from ctxexp.plugins import Register
from ctxexp_card.card import Card, card
from ctxexp_card.gate import Gate, Moved, diff

__all__ = ["Card", "Gate", "Moved", "card", "diff"]


@ctxexp.hookimpl
def register_commands(register: Register) -> None:
    register("card", "ctxexp_card.command:card")
    register("diff", "ctxexp_card.command:diff")
