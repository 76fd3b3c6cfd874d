"""Figure of the probe: a panel a model, its curves by layer beside what no layer is needed for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ctxexp import Results
from ctxexp.report import (
    PALETTE,
    Ink,
    LabelledResults,
    add_captions,
    empty_figure,
    shared_facts,
    unique_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "probe"
LINES = {  # statistic: colour, dash, label
    "raw": (PALETTE[0], "-", "accuracy on documents or sentences held out"),
    "held_out_words": (PALETTE[1], "-", "on words held out"),
    "baseline": (Ink.TEXT, (0, (4, 2)), "control task: labels that hold nothing but the word (of senses: shuffled)"),
    "random": (PALETTE[3], (0, (1, 1.2)), "a random vector a word"),
    "majority": (Ink.FAINT, (0, (1, 1.2)), "the commonest label"),
}
TWINS = {  # control: likewise
    "alone": (PALETTE[4], (0, (3, 1.5)), "accuracy, each word alone"),
    "untrained": (PALETTE[0], (0, (1, 1.2)), "accuracy, untrained twin"),
}


def measures(runs: Sequence[LabelledResults]) -> list[tuple[str, Results, str]]:
    """Label, results and measure of each probe of a model that is no control of another's."""
    return [
        (label, results, measure)
        for label, results in unique_labels(runs)
        if not results.info.is_control
        for measure, about in results.info.measures.items()
        if about.name == NAME
    ]


def _twins(results: Results, measure: str, runs: Sequence[LabelledResults]) -> dict[str, np.ndarray | None]:
    """The accuracy of each twin of the run on the same labels; None for one that isn't there."""
    found = {name: results.twin(measure, name, runs) for name in TWINS}
    return {name: None if other is None else other.by_name.get(f"{measure}/raw") for name, other in found.items()}


def figure(runs: Sequence[LabelledResults]) -> Figure | None:
    """Figure with a panel for each model's probe; None without any."""
    from matplotlib.lines import Line2D

    probes = measures(runs)
    if not probes:
        return None
    by_labels: dict[str, list[tuple[str, Results, str]]] = {}
    for probe in probes:
        by_labels.setdefault(probe[1].info.measure(probe[2]).definition, []).append(probe)
    columns = max(map(len, by_labels.values()))
    canvas = empty_figure(max(6.4, 3.1 * columns + 0.8), 3.1 * len(by_labels) + 0.5)
    grid = canvas.subplots(len(by_labels), columns, squeeze=False, sharey="row")
    for line, of_labels in zip(grid, by_labels.values(), strict=True):
        for axes, (label, results, measure) in zip(line, of_labels, strict=False):
            _panel(axes, label, results, measure, _twins(results, measure, runs))
        for axes in line[len(of_labels) :]:
            axes.set_axis_off()
        line[0].set_ylabel("accuracy", fontsize=9.5)
    names = [name for name in LINES if any(f"{m}/{name}" in results.by_name for _, results, m in probes)]
    styles = [LINES[name] for name in names]
    every = [_twins(results, m, runs) for _, results, m in probes]
    styles += [style for name, style in TWINS.items() if any(of[name] is not None for of in every)]
    facts = [*by_labels, "bands: 95% intervals, of other text and control tasks; folds and classifiers held"]
    facts += shared_facts([(label, results) for label, results, _ in probes], probes[0][2])
    handles = [Line2D([], [], color=colour, linestyle=dash) for colour, dash, _ in styles]  # type: ignore[arg-type]
    add_captions(
        canvas,
        "What does a linear probe read out of a layer?",
        facts,
        handles,
        [name for *_, name in styles],
        [],
        finding=finding(probes),
        encoders=[(label, results) for label, results, _ in probes],
    )
    return canvas


def finding(probes: Sequence[tuple[str, Results, str]]) -> str:
    """A sentence on where each probe is the most selective; on those that are certainly selective in no layer."""
    best, none = [], []
    for label, results, measure in probes:
        gain, low = (results.by_name.get(f"{measure}/adjusted{end}") for end in ("", "_ci_low"))
        if gain is None or low is None or not np.isfinite(gain).any():
            continue
        layer = int(np.nanargmax(np.where(low > 0, gain, np.nan))) if (low > 0).any() else None
        if layer is None:
            none.append(label)
        else:
            best.append(f"{label} in layer {layer}, by {100 * gain[layer]:.0f} points")
    sentences = [f"Furthest above its control task: {'; '.join(best)}." if best else ""]
    sentences.append(f"Certainly above it in no layer: {', '.join(none)}." if none else "")
    return " ".join(filter(None, sentences))


def _panel(axes: Axes, label: str, results: Results, measure: str, twins: Mapping[str, np.ndarray | None]) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    axes.set_title(label, loc="left", fontsize=10.5, color=Ink.TEXT, parse_math=False)
    for name, (colour, dash, _) in LINES.items():
        values = results.by_name.get(f"{measure}/{name}")
        if values is None:
            continue
        x = np.flatnonzero(np.isfinite(values))
        solid = dash == "-"
        axes.plot(x, values[x], color=colour, linestyle=dash, linewidth=2 if solid else 1.3, marker="o" * solid, ms=4)
        if solid and (low := results.by_name.get(f"{measure}/{name}_ci_low")) is not None:
            high = results.by_name[f"{measure}/{name}_ci_high"]
            axes.fill_between(x, low[x], high[x], color=colour, alpha=0.2, linewidth=0)
    for name, accuracy in twins.items():
        if accuracy is not None:
            colour, dash, _ = TWINS[name]
            axes.plot(np.arange(len(accuracy)), accuracy, color=colour, linestyle=dash, linewidth=1.3)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_xlabel("layer (0 = input layer)", fontsize=9)
    axes.grid(axis="y", color=Ink.GRID, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9, length=3)
