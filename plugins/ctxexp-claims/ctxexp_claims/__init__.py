"""A verb for ctxexp's command: `claims`, the sentences of Ethayarajh (2019) as tests on one's own runs."""

from __future__ import annotations

import ctxexp
from ctxexp.plugins import Register


def _claims(argv: list[str]) -> int:
    """Test the claims of Ethayarajh (2019) on finished runs, or on the figures that the authors released."""
    from ctxexp_claims.command import main

    return main(argv)


@ctxexp.hookimpl
def register_commands(register: Register) -> None:
    register("claims", _claims)
