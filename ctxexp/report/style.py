"""How figures look: title and facts above the axes, legend and notes below, the files they are saved to, and colours of
models: the same label gets the same colour in figures, pages and MLflow charts. No heavy import.
"""

from __future__ import annotations

import base64
import colorsys
import hashlib
import io
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxexp.files import atomic_write
from ctxexp.files.process import defer_signals
from ctxexp.progress import in_notebook
from ctxexp.report.wording import LabelledResults, encoder_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Style = dict[str, Any]  # matplotlib's keywords
PAGE = 7.2  # inches: the 690 px that pages give a figure, at which a point of text is a point
FIXED = {"bert": "#1f77b4", "gpt2": "#d62728", "elmo": "#2ca02c"}
"""The paper's models."""
PALETTE = (  # after Okabe & Ito and Tol: told apart with the common colour-vision deficiencies
    "#e69f00",
    "#56b4e9",
    "#cc79a7",
    "#332288",
    "#44aa99",
    "#999933",
    "#882255",
    "#8c564b",
    "#9467bd",
    "#636363",
    "#7b6d00",
)


class Ink(StrEnum):
    """Colours of text, of secondary text, and of grid lines.

    Example:
        >>> print(Ink.FAINT)
        #666666
    """

    TEXT = "#222222"
    FAINT = "#666666"
    GRID = "#dddddd"


SUMMARY = "#7f7f7f"  # colour of a sweep's summary curve among those of its runs
_KNOWN_SHADES = {"untrained": 0.5, "published": -0.35, "mini": 0.3}
_SHADES = (0.4, -0.2, 0.55, 0.2)  # towards white (> 0) or black (< 0)


def empty_figure(width: float, height: float) -> Figure:
    """An empty figure that a notebook shows as it is, without pyplot; once a cell, however often it is asked to.

    Example:
        >>> empty_figure(4, 3).get_size_inches().tolist()
        [4.0, 3.0]
    """
    with defer_signals():  # half of it can't be imported again, and the comparison of a sweep that ends here needs it
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
    encoders: Sequence[LabelledResults] = (),
) -> None:
    """Title, finding and facts above the axes, legend, notes and lines of the runs' `encoders` below: the figure grows
    by the room that they need.

    Example:
        >>> figure = empty_figure(4, 3)
        >>> (line,) = figure.subplots().plot([0, 1], [0.2, 0.4])
        >>> add_captions(figure, "Self-similarity", ["3 sentences"], [line], ["bert"], [])
        >>> figure.get_size_inches()[1] > 3
        np.True_
    """
    width, body = figure.get_size_inches()
    heads = textwrap.wrap(title, int(width * 8.5))
    shows = textwrap.wrap(finding, int(width * 12), break_on_hyphens=False)
    whole = [fact if len(fact) > 50 else fact.replace(" ", "\u00a0") for fact in facts if fact]  # wrapped between facts
    small = textwrap.wrap("; ".join(whole), int(width * 13.5))
    feet = [
        line
        for note in (*notes, *encoder_lines(encoders))
        for line in textwrap.wrap(note, int(width * 13.5), break_on_hyphens=False)
    ]
    room, lengths = int(width * 12), [len(name) + 7 for name in names]
    columns = max(1, len(names) if sum(lengths) <= room else room // max(lengths))
    head = 0.2 + 0.24 * len(heads) + 0.2 * len(shows) + 0.17 * len(small)
    legend, foot = 0.08 + 0.22 * -(-len(names) // columns), 0.17 * len(feet)
    height = head + body + legend + foot + 0.06
    figure.set_size_inches(width, height)
    left, under = 0.1 / width, 1 - (0.14 + 0.24 * len(heads)) / height
    facts_top = under - 0.2 * len(shows) / height
    bold: Style = {"va": "top", "fontsize": 13, "fontweight": "bold", "color": Ink.TEXT, "parse_math": False}
    quiet: Style = {"color": Ink.FAINT, "parse_math": False}
    figure.text(left, 1 - 0.1 / height, "\n".join(heads), **bold)
    figure.text(left, under, "\n".join(shows), va="top", fontsize=11, color=Ink.TEXT, parse_math=False)
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


def file_stem(name: str) -> str:
    """The name made safe for a file."""
    return re.sub(r"[^\w.-]+", "_", name).strip("._") or "figure"


def save_figure(figure: Figure, folder: Path, name: str, kinds: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write `name`.png, `name`.svg ..., the same bytes for the same figure; the name is made safe for a file.

    Example:
        >>> [path.name for path in save_figure(empty_figure(1, 1), Path("."), "a figure", ["svg"])]
        ['a_figure.svg']
    """
    import matplotlib

    paths = [folder / f"{file_stem(name)}.{kind}" for kind in kinds]
    undated: Any = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    options: Any = {"png": {"pil_kwargs": {"compress_level": 3}}}  # no larger than 6 makes it, in half the time
    style: Any = {
        "svg.hashsalt": "ctxexp",
        "pdf.fonttype": 42,
        "figure.autolayout": False,
        "figure.constrained_layout.use": False,
    }
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


def colours(labels: Sequence[str]) -> dict[str, str]:
    """A distinct "#rrggbb" for each label, in the order given.

    bert, gpt2 and elmo are fixed; any other model or checkpoint is hashed to a palette, and past its end to generated
    hues. Labels that differ only in what follows the model's name ("bert", "bert (untrained)") share the hue and
    differ in lightness. The labels' order never matters; one label's colour moves only when another one claims it
    first.

    Example:
        >>> colours(["bert", "gpt2"])["bert"]
        '#1f77b4'
    """
    families: dict[str, list[str]] = {}
    for label in sorted(set(labels)):
        families.setdefault(family(label), []).append(label)
    used_colours: set[str] = set()
    hues: dict[str, str] = {}
    for name in sorted(families, key=lambda name: (name not in FIXED, name)):
        # the fixed colours stay free even where their models are absent: a label's colour mustn't depend on the others
        free = (c for c in preferences(name) if c not in hues.values() and (name in FIXED or c not in FIXED.values()))
        hues[name] = next(free)
    colour_of: dict[str, str] = {}
    shaded: list[tuple[str, str]] = []
    for name, members in families.items():
        plain = min(members, key=lambda label: (label.strip().casefold() != name, label))
        if plain.strip().casefold() == name:
            colour_of[plain] = hues[name]
        shaded.extend((label, hues[name]) for label in members if label not in colour_of)
    used_colours.update(hues.values())  # a family's own colour stays free for its plain label
    for label, hue in shaded:
        colour_of[label] = next(colour for colour in _shades(label, hue) if colour not in used_colours)
        used_colours.add(colour_of[label])
    return {label: colour_of[label] for label in labels}


def family(label: str) -> str:
    """The model with its checkpoint, without annotations: "bert" of "BERT (untrained)" and of "bert + flow"."""
    words = re.split(r"\s*[(\[:,+]", label.strip(), maxsplit=1)
    return words[0].casefold() or label.strip().casefold()


def _stable_hash(text: str) -> int:
    """The same number in every process, unlike hash()."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")


def preferences(name: str) -> Iterator[str]:
    """The colours a family would take, best first; never ends."""
    if name in FIXED:
        yield FIXED[name]
    start = _stable_hash(name)
    for step in range(len(PALETTE)):
        yield PALETTE[(start + step) % len(PALETTE)]
    yield from _generated(start)


def _shades(label: str, hue: str) -> Iterator[str]:
    """Lighter and darker versions of a family's colour, best first; never ends."""
    for word, amount in _KNOWN_SHADES.items():
        if word in label.casefold():
            yield _blend(hue, amount)
    start = _stable_hash(label)
    for step in range(len(_SHADES)):
        yield _blend(hue, _SHADES[(start + step) % len(_SHADES)])
    yield from _generated(start)


def _blend(colour: str, amount: float) -> str:
    """Towards white (0..1) or black (-1..0)."""
    channels = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    end = 255 if amount > 0 else 0
    return "#" + "".join(f"{round(c + (end - c) * abs(amount)):02x}" for c in channels)


def _generated(start: int) -> Iterator[str]:
    """Hues by the golden angle, in turn at several lightnesses; never ends."""
    hue = start % 3600 / 3600
    for step in count():
        hue = (hue + 0.6180339887498949) % 1
        rgb = colorsys.hls_to_rgb(hue, (0.42, 0.58, 0.32)[step % 3], (0.65, 0.85)[step % 2])
        yield "#" + "".join(f"{round(255 * c):02x}" for c in rgb)
