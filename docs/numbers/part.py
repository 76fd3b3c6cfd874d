"""A part of a page that is made of numbers, which are kept beside the page; and how its table is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from ctxexp import Corpus
from ctxexp.command import registry
from docs.numbers.marked import write_marked, write_small

ROOT = Path(__file__).resolve().parents[2]
MINIS = ROOT / "ctxexp" / "models" / "minis" / "weights"
ONE_TRAINING_RUN = "Each model is one training run"
SWEEP = "mlruns/results/*/summary"


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


def interval(row: pd.Series, name: str = "value", form: str = ".2f", ends: tuple[str, str] = ("low", "high")) -> str:
    """`0.36 [0.35, 0.37]`; a form that ends with % gives percents: `36% [35, 37]`."""
    value, low, high = (row[column] for column in (name, *ends))
    if not form.endswith("%"):
        return f"{value:{form}} [{low:{form}}, {high:{form}}]"
    return f"{value:{form}} [{100 * low:{form[:-1]}f}, {100 * high:{form[:-1]}f}]"


def without_leading_zero(value: float, decimals: int = 3) -> str:
    """`.360`, `-.360`; 0 before the point only in `10.360` and the like."""
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:z.{decimals}f}")


def rounded(file: str, decimals: int = 4) -> Callable[[Path], pd.DataFrame]:
    """A table of the folder that a part is made of, with so many decimals."""
    return lambda output: pd.read_csv(output / file).round(decimals)


@dataclass(frozen=True)
class Step:
    """Commands that are typed in the checkout, and write into it by themselves."""

    commands: str
    needs: tuple[str, ...] = ()
    """Variables of the environment: folders of data."""


@dataclass(frozen=True, kw_only=True)
class Drawing(Step):
    """Figures in docs/, by name a pattern of the drawn file. Its commands are typed in an empty folder, and leave what
    is measured at `output_glob` there."""

    commands: str = ""
    output_glob: str = SWEEP
    figures: Mapping[str, str] = field(default_factory=dict)

    def write(self, output: Path, root: Path = ROOT) -> None:
        """Take what lies in the folder `output` into the checkout at `root`."""
        for name, drawn in self.figures.items():
            write_small(min(output.glob(drawn)), root / "docs" / name)


@dataclass(frozen=True, kw_only=True)
class Part(Drawing):
    """A table of a page: `collect` makes the numbers (a CSV in docs/) of what was measured, and `table` makes of these
    the text between the page's marks."""

    mark: str
    page: str
    numbers: str
    collect: Callable[[Path], pd.DataFrame]
    table: Callable[[pd.DataFrame], str]

    def write(self, output: Path, root: Path = ROOT) -> None:
        """Figures, numbers and the page's table."""
        super().write(output, root)
        self.collect(output).to_csv(root / "docs" / self.numbers, index=False)
        write_marked(root / self.page, self.mark, self.table(self.read(root)))

    def read(self, root: Path = ROOT) -> pd.DataFrame:
        """The kept numbers."""
        return pd.read_csv(root / "docs" / self.numbers)
