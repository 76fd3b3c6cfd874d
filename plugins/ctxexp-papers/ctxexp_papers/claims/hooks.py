"""The hook of this distribution: papers, by plugins that bring them."""

from __future__ import annotations

import pluggy

from ctxexp import Register

PAPER = "paper"
hookspec = pluggy.HookspecMarker("ctxexp")


class PaperHooks:
    """Hooks that a plugin may implement where this distribution is installed; marked `optionalhook=True`, anywhere."""

    @hookspec
    def register_papers(self, register: Register) -> None:
        """Offer papers whose claims `ctxexp claims` tests.

        Args:
            register: Takes a name and a function() -> pathlib.Path of the paper's file.

        Example:
            >>> from importlib.resources import files
            >>> from ctxexp import hookimpl
            >>> class Plugin:
            ...     @hookimpl(optionalhook=True)
            ...     def register_papers(self, register):
            ...         register("mine_2026", lambda: files("my_package") / "mine_2026.toml")
        """
