"""A part of a page that is made of numbers, which are kept beside the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from ctxexp import Corpus
from ctxexp.command import registry
from docs.numbers.marked import marked, write_marked, write_small

ROOT = Path(__file__).resolve().parents[2]
MINIS = ROOT / "ctxexp" / "models" / "minis" / "weights"
ONE_TRAINING_RUN = "Each model is one training run"


def polysemy() -> Corpus:
    """The text that ships with ctxexp."""
    corpus: Corpus = registry().find("dataset", "polysemy").factory()
    return corpus


def one_run_each(models: Iterable[object], *, intervals: bool = True) -> str:
    """A paragraph to end what compares models with, blank line first; empty for one model."""
    if len({str(model) for model in models}) < 2:
        return ""
    return f"\n\n{ONE_TRAINING_RUN}{': intervals are over the text, not over trainings' * intervals}."


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


@dataclass(frozen=True)
class Part:
    """A table of a page. `numbers` (a CSV) and `figures` (what was drawn, by the picture's name) lie in docs/; `table`
    makes of the numbers the text between the page's marks, and `kept` makes the numbers of what was measured."""

    mark: str
    page: str
    numbers: str
    kept: Callable[[Path], pd.DataFrame]
    table: Callable[[pd.DataFrame], str]
    figures: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, type] = field(default_factory=dict)
    """Columns that aren't what they look like."""

    def write(self, made: Path, root: Path = ROOT) -> None:
        """Take what lies in the folder `made` into the checkout at `root`."""
        self.kept(made).to_csv(root / "docs" / self.numbers, index=False)
        for name, drawn in self.figures.items():
            write_small(made / drawn, root / "docs" / name)
        write_marked(root / self.page, self.mark, self.table(self.read(root)))

    def read(self, root: Path = ROOT) -> pd.DataFrame:
        """The kept numbers."""
        return pd.read_csv(root / "docs" / self.numbers, dtype=dict(self.kinds))

    def said(self, root: Path = ROOT) -> str:
        """What the page says now."""
        return marked(root / self.page, self.mark)
