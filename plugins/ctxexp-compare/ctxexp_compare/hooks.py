"""The hook of this distribution: measures of two spaces, by plugins that know it."""

from __future__ import annotations

import pluggy

from ctxexp import Register

COMPARISON = "comparison"
hookspec = pluggy.HookspecMarker("ctxexp")


class ComparisonHooks:
    """Hooks that a plugin may implement where this distribution is installed; marked `optionalhook=True`, anywhere."""

    @hookspec
    def register_comparisons(self, register: Register) -> None:
        """Offer measures of two spaces.

        Args:
            register: Takes a name and its factory(**arguments) -> ctxexp_compare.TwoSpaces.

        Example:
            >>> from ctxexp import hookimpl
            >>> class Plugin:
            ...     @hookimpl(optionalhook=True)
            ...     def register_comparisons(self, register):
            ...         register("mine", "my_package.comparisons:mine")
        """
