"""The frame of a figure: title and facts above the axes, legend and notes below, and the files it is saved to."""

from __future__ import annotations

import base64
import io
import re
import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxexp.files.writing import atomic_write
from ctxexp.progress import in_notebook
from ctxexp.report.palette import FAINT, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Style = dict[str, Any]  # matplotlib's keywords
PAGE = 7.2  # inches: the 690 px that pages give a figure, at which a point of text is a point


def empty_figure(width: float, height: float) -> Figure:
    """An empty figure that a notebook shows as it is, without pyplot; once a cell, however often it is asked to."""
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        cell = -1  # the last one that showed it

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=100)
            return buffer.getvalue()

        def _ipython_display_(self) -> None:
            from IPython import get_ipython
            from IPython.display import display

            if (cell := get_ipython().execution_count) != self.cell:
                self.cell = cell
                png = base64.b64encode(self._repr_png_()).decode()
                display({"image/png": png, "text/plain": repr(self)}, raw=True)

    return NotebookFigure(figsize=(width, height), layout="constrained", facecolor="white")


def display_in_notebook(figure: Figure) -> Figure:
    """The figure; a notebook's cell shows it, even where it isn't the cell's last value (`plot();`)."""
    if in_notebook():
        figure._ipython_display_()  # type: ignore[attr-defined]  # of `empty_figure`
    return figure


def add_captions(
    figure: Figure,
    title: str,
    facts: Sequence[str],
    handles: Sequence[Any],
    names: Sequence[str],
    notes: Sequence[str],
    *,
    finding: str = "",
) -> None:
    """Title, finding and facts above the axes, legend and notes below: the figure grows by the room that they need."""
    width, body = figure.get_size_inches()
    heads = textwrap.wrap(title, int(width * 8.5))
    shows = textwrap.wrap(finding, int(width * 12), break_on_hyphens=False)
    whole = [fact if len(fact) > 50 else fact.replace(" ", "\u00a0") for fact in facts if fact]  # wrapped between facts
    small = textwrap.wrap("; ".join(whole), int(width * 13.5))
    feet = [line for note in notes for line in textwrap.wrap(note, int(width * 13.5), break_on_hyphens=False)]
    room, lengths = int(width * 12), [len(name) + 7 for name in names]
    columns = max(1, len(names) if sum(lengths) <= room else room // max(lengths))
    head = 0.2 + 0.24 * len(heads) + 0.2 * len(shows) + 0.17 * len(small)
    legend, foot = 0.08 + 0.22 * -(-len(names) // columns), 0.17 * len(feet)
    height = head + body + legend + foot + 0.06
    figure.set_size_inches(width, height)
    left, under = 0.1 / width, 1 - (0.14 + 0.24 * len(heads)) / height
    facts_top = under - 0.2 * len(shows) / height
    bold: Style = {"va": "top", "fontsize": 13, "fontweight": "bold", "color": INK, "parse_math": False}
    quiet: Style = {"color": FAINT, "parse_math": False}
    figure.text(left, 1 - 0.1 / height, "\n".join(heads), **bold)
    figure.text(left, under, "\n".join(shows), va="top", fontsize=11, color=INK, parse_math=False)
    figure.text(left, facts_top, "\n".join(small), va="top", fontsize=9, **quiet)
    figure.text(left, 0.06 / height, "\n".join(feet), va="bottom", fontsize=9, **quiet)
    key = figure.legend(
        handles, [str(i) for i in range(len(names))], loc="lower center", bbox_to_anchor=(0.5, (foot + 0.05) / height),
        ncols=columns, frameon=False, fontsize=10, borderpad=0.1, handlelength=2.6,
    )  # fmt: skip
    key.set_in_layout(False)
    for text, name in zip(key.get_texts(), names, strict=True):
        text.set_parse_math(False)  # labels are data: "$" and a leading "_" mean themselves
        text.set_text(name)
    rect = (0, (legend + foot + 0.06) / height, 1, body / height)
    figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.08, wspace=0.04, hspace=0.05, rect=rect)


def save_figure(figure: Figure, folder: Path, name: str, kinds: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write `name`.png, `name`.svg ..., the same bytes for the same figure; the name is made safe for a file."""
    import matplotlib

    stem = re.sub(r"[^\w.-]+", "_", name).strip("._") or "figure"
    paths = [folder / f"{stem}.{kind}" for kind in kinds]
    undated: Any = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    options: Any = {"png": {"pil_kwargs": {"compress_level": 3}}}  # no larger than 6 makes it, in half the time
    style: Any = {"svg.hashsalt": "ctxexp", "figure.autolayout": False, "figure.constrained_layout.use": False}
    with warnings.catch_warnings(), matplotlib.rc_context(style):
        # a label in a script that the bundled font lacks is drawn as boxes: no reason to fail a finished run
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        # nor is a measure's name that leaves no room
        warnings.filterwarnings("ignore", message="constrained_layout not applied", category=UserWarning)
        figure.set_dpi(150)
        if figure.axes and (engine := figure.get_layout_engine()) is not None:
            engine.execute(figure)
        figure.set_layout_engine(None)  # laid out once, for all: with an engine matplotlib draws each file twice
        for kind, path in zip(kinds, paths, strict=True):
            with atomic_write(path) as part:
                figure.savefig(part, format=kind, dpi=150, metadata=undated.get(kind), **options.get(kind, {}))
    return paths
