"""Heat maps: every place beside every other, one measure a figure, spaces parted by lines."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp.report import Ink, add_captions, empty_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ctxexp_compare.contract import Null
    from ctxexp_compare.matrices import Similarities

ALONE = "each word alone"  # label of `control=alone`
COLOURS = "cividis"  # even in lightness, also to the colour-blind
TICKS = (0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1)  # of the colours, on a scale of square roots
MANY = 26  # places up to which each cell has its number


def heat_map(comparison: Similarities, name: str) -> Figure:
    """The measure adjusted for chance, 0 (chance, or below) to 1 (as a space with itself); a dot where the 95% interval
    holds 0."""
    from matplotlib.colors import PowerNorm
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    matrix = comparison.matrices[name]
    value, low, _ = matrix.adjusted
    p = len(comparison.places)
    size = float(np.clip(0.3 * p, 3.6, 9.5))
    figure = empty_figure(size + 2.1, size + 0.9)
    axes = figure.add_subplot()
    scale = PowerNorm(0.5, vmin=0, vmax=1)  # most spaces are little alike: there the eye needs the steps
    image = axes.imshow(np.clip(value, 0, 1), norm=scale, cmap=COLOURS, interpolation="nearest")
    _ticks(axes, comparison)
    axes.tick_params(labelsize=7 if p <= 40 else 5.5, length=2, pad=2)
    for i, j in np.ndindex(p, p):
        if low[i, j] <= 0:
            axes.plot(j + 0.34, i - 0.34, "o", color="white", markersize=1.8)
        if p <= MANY and np.isfinite(value[i, j]):
            text = re.sub(r"^(-?)0\.", r"\1.", f"{value[i, j]:z.2f}")
            axes.text(
                j, i, text, ha="center", va="center", fontsize=5.6, color="white" if value[i, j] < 0.3 else Ink.TEXT
            )
    bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02, ticks=TICKS)
    bar.set_label("likeness above chance: 0 = chance, 1 = as a space with itself", fontsize=8.5)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)
    if not matrix.measure.symmetric:
        axes.set_ylabel("A", fontsize=9)
        axes.set_xlabel("B", fontsize=9)
    sample = comparison.sample
    facts = [
        comparison.text,
        row_note(comparison),
        f"95% intervals over {len(np.unique(sample.blocks)):,} {sample.unit}s",
    ]
    facts.append(_width(comparison, name))
    notes = [f"{name}: {matrix.measure.definition}.", _chance(comparison, name)]
    notes += [
        f"{note}."
        for note in (control_note(comparison, name), training_run_note(comparison), *comparison.warnings)
        if note
    ]
    dot = Line2D([], [], color="white", marker="o", markersize=3, linestyle="")  # as on the map, on its dark end
    key = [(Patch(color=image.cmap(0.0)), dot)]
    add_captions(
        figure, title(comparison, name), facts, key, ["can't be told from chance: the interval holds 0"], notes
    )
    return figure


def title(comparison: Similarities, name: str) -> str:
    """Title with the figure's main finding: the most alike layers of two spaces, or the least alike ones of one."""
    value, low, high = comparison.matrices[name].adjusted
    labels = [place.label for place in comparison.places]
    own = np.array([ALONE not in label for label in labels])
    value = np.where(np.outer(own, own), value, np.nan) if own.any() else value
    apart = np.array([[a != b for b in labels] for a in labels])
    head = comparison.matrices[name].measure.title
    if apart.any() and np.isfinite(value[apart]).any():
        i, j = np.unravel_index(np.nanargmax(np.where(apart, value, np.nan)), value.shape)
        a, b = ("", "and") if comparison.matrices[name].measure.symmetric else ("from ", "to")
        finding = f"most alike across models: {a}{comparison.places[i]} {b} {comparison.places[j]}"
    else:
        off = ~np.eye(len(labels), dtype=bool)
        if not off.any() or not np.isfinite(value[off]).any():
            return head
        i, j = np.unravel_index(np.nanargmin(np.where(off, value, np.nan)), value.shape)
        finding = f"least alike: {comparison.places[i]} and layer {comparison.places[j].layer}"
    return f"{head}: {finding}, {value[i, j]:.2f} [{low[i, j]:.2f}, {high[i, j]:.2f}]"


def _width(comparison: Similarities, name: str) -> str:
    _, low, high = comparison.matrices[name].adjusted
    widths = (high - low)[np.isfinite(high - low)] / 2
    return f"half an interval is at most {widths.max():.3f}" if len(widths) else ""


def permutation_scope(null: Null) -> str:
    """Wording of the rows among which chance permutes."""
    return "within words" if null == "words" else "freely"


def row_note(comparison: Similarities) -> str:
    """Wording of the rows' lengths: at norm 1, or as they are."""
    return "rows at norm 1" if comparison.row_choice == "unit_norm" else "rows as they are"


def training_run_note(comparison: Similarities) -> str:
    """Note that each model is one training run; empty where a single space is compared with itself."""
    one = len({place.label.removesuffix(f" ({ALONE})") for place in comparison.places}) == 1
    return "" if one else "Each model is one training run: intervals are over the text, not over trainings"


def control_note(comparison: Similarities, name: str) -> str:
    """Note on the negative control, the scores of two unrelated tables of words; empty where there is none."""
    raw, adjusted = comparison.matrices[name].control
    if not np.isfinite(raw):
        return ""
    values = f"raw {raw:.3f}, adjusted {round(adjusted, 3) + 0.0:.3f}"  # no -0
    return f"Negative control for {name}, a random vector a word in each space: {values}"


def _chance(comparison: Similarities, name: str) -> str:
    matrix = comparison.matrices[name]
    off = ~np.eye(len(comparison.places), dtype=bool)
    sd = matrix.sd[off]
    if not off.any() or not np.isfinite(matrix.chance[off]).any():
        return "Chance, one space's rows permuted: not drawn."
    spread = f", sd at most {np.nanmax(sd):.4f}" if np.isfinite(sd).any() else ""
    text = (
        f"Chance, one space's rows permuted {permutation_scope(comparison.null)}: {_range(matrix.chance[off])}{spread}"
    )
    if comparison.null == "words":
        text += f"; freely: {_range(matrix.free[off])}"
    blank = "" if np.isfinite(matrix.adjusted[0]).all() else " White: chance leaves nothing to find."
    return f"{text}. A space with itself: {matrix.measure.self_score:g}.{blank}"


def _range(values: np.ndarray) -> str:
    lowest, highest = np.nanmin(values), np.nanmax(values)
    return f"{lowest:.4f}" if highest - lowest < 5e-5 else f"{lowest:.4f} to {highest:.4f}"


def _ticks(axes: Axes, comparison: Similarities) -> None:
    """Label both axes with layers and spaces' names, and draw lines between spaces."""
    p = len(comparison.places)
    numbers = [str(place.layer) for place in comparison.places]
    axes.set_xticks(range(p), numbers)
    axes.set_yticks(range(p), numbers)
    axes.spines[:].set_visible(False)
    at = 0
    for label, group in groupby(comparison.places, key=lambda place: place.label):
        n = len(list(group))
        middle = at + (n - 1) / 2
        named: dict[str, Any] = {"fontsize": 8.5, "color": Ink.FAINT, "parse_math": False, "annotation_clip": False}
        axes.annotate(
            label, (middle, 1), (0, 4), xycoords=("data", "axes fraction"), textcoords="offset points",
            ha="center" if n > len(label) / 4 else "left", va="bottom",
            rotation=0 if n > len(label) / 4 else 35, **named,
        )  # fmt: skip
        axes.annotate(
            label, (0, middle), (-20, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
            ha="right", va="center", **named,
        )  # fmt: skip
        at += n
        if at < p:
            axes.axhline(at - 0.5, color="white", linewidth=1.6)
            axes.axvline(at - 0.5, color="white", linewidth=1.6)
