"""The page's word explorer, which a distribution brings (ctxexp-words): shown each layer, and drawn on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, NamedTuple, Protocol

from ctxexp.dataset import Corpus
from ctxexp.measuring.occurrences import Occurrences, Shelf
from ctxexp.measuring.words import Observer
from ctxexp.report.wording import LabelledResults

GROUP = "ctxexp.explorer"  # the entry-point group of an `Explorer`
TABLE = "word_map"  # among a run's results


class PageSection(NamedTuple):
    """A section of the page.

    Args:
        html: Its HTML.
        script: The script that draws it.
        data: The data that the script needs at once, in JSON's types.
        blocks: Further data by the id of the element that holds it, as text; the script reads one when it needs it.
    """

    html: str
    script: str
    data: dict[str, Any]
    blocks: Mapping[str, str] = {}


class Explorer(Protocol):
    """A distribution's word explorer: the object of its entry point in the group `ctxexp.explorer`."""

    def observe(self, store: Shelf, occurrences: Occurrences, corpus: Corpus, *, dim: int, most: int) -> Observer:
        """The observer of a run's layers, whose table has at most `most` occurrences."""

    def section(self, runs: Sequence[LabelledResults]) -> PageSection | None:
        """The page's section; None where no run has the table."""


def load_explorer() -> Explorer | None:
    """The installed distribution's explorer; None without any."""
    for entry in entry_points(group=GROUP):
        explorer: Explorer = entry.load()
        return explorer
    return None
