"""Attacks that must lose nothing, change no number in silence and end in no traceback: `python -m benchmarks.faults`.

A kind of fault is a file of this folder with

    def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]

which yields `count` names of faults and what tries them. A callable that returns, or that raises a `CtxexpError` with a
message of a few lines, ended well. It raises `Lost` where something is gone, `Silent` (or a plain `AssertionError`)
where a number is wrong and nothing says so, and `unittest.SkipTest` where the machine can't do it. Anything else is a
traceback. What a case draws depends on seed and number alone, so that it can be tried again without those before it.
"""

from __future__ import annotations


class Lost(AssertionError):  # noqa: N818  # an ending, not an error of ours
    """A result, a run or a file that was there is there no more, or never came."""


class Silent(AssertionError):  # noqa: N818
    """A number is wrong and nothing says so."""
