"""The hook of this distribution: papers, by plugins that know it."""

from __future__ import annotations

from ctxexp import Register
from ctxexp.plugins import hookspec

PAPER = "paper"


class PaperHooks:
    """Hooks that a plugin may implement where this distribution is installed; marked `optionalhook=True`, anywhere."""

    @hookspec
    def register_papers(self, register: Register) -> None:
        """Offer papers whose claims `ctxexp claims` tests.

        Args:
            register: Takes a name and a function() -> ctxexp_papers.claims.Paper.

        Example:
            >>> from ctxexp import hookimpl
            >>> class Plugin:
            ...     @hookimpl(optionalhook=True)
            ...     def register_papers(self, register):
            ...         register("mine_2026", "my_package.mine_2026:paper")
        """
