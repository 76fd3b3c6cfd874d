"""Figure and table of a measure by class of word: a column a model, a row a kind of classes, a line a class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp import Results
from ctxexp.report import PALETTE, Ink, LabelledResults, Table, add_captions, claimed_order, empty_figure
from ctxexp.results import Estimates, Key
from ctxexp_measures.senses.by_class.metric import LEAST
from ctxexp_measures.senses.components.figure import controls, models
from ctxexp_measures.senses.components.metric import CONTEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLES = {"pos": "part of speech", "frequency": "occurrences in the text", "pieces": "the model's tokens of a word"}
LEVEL, PERMUTED = "random occurrences", "permuted labels: 2.5% and 97.5%"
FEW_WORDS_NOTE = f"classes of fewer than {LEAST} words are left out"
THIN = "Where no band shows, the interval is thinner than the line."
_DASHED: dict[str, Any] = {"color": Ink.FAINT, "linewidth": 1.2, "linestyle": (0, (4, 2))}
_DOTTED: dict[str, Any] = {"linewidth": 0.8, "linestyle": ":"}


@dataclass(frozen=True)
class ClassFigure:
    """Figure of a measure by class: the statistic, and the texts beside it."""

    name: str
    statistic: str
    title: str
    facts: str
    percent: bool = False


@dataclass(frozen=True)
class WordClass:
    """Results of one class of a run; no curve where it has too few words. `mark` says how many bands of frequency it
    fills where it doesn't fill all of them."""

    curve: Estimates | None
    permuted: Estimates | None
    mark: str
    words: int
    occurrences: int


SELF_SIMILARITY = ClassFigure(
    "self_similarity_by_class", "raw", "Self-similarity by class of word",
    "mean cosine over all pairs of a word's occurrences, mean over the words of a class by bands of frequency",
)  # fmt: skip
SENSE_SEPARATION = ClassFigure(
    "sense_separation_by_class", "raw", "Separation of word senses by class of word",
    "mean cosine of a word's same-sense pairs less that of its cross-sense pairs (by part of speech within one), mean "
    "over the words of a class by bands of frequency; 0: senses make no difference",
)  # fmt: skip
COMPONENTS = ClassFigure(
    "variance_components_by_class", "context", "How much of what varies among a class's words is context?",
    f"share of the variance of the vectors of a class's words that is {', '.join(CONTEXT[:-1])} or {CONTEXT[-1]}; "
    "control=alone, where no word sees another, gives each layer's floor",
    percent=True,
)  # fmt: skip
MEASURES = (SELF_SIMILARITY, SENSE_SEPARATION, COMPONENTS)


def self_similarity(runs: Sequence[LabelledResults]) -> Figure | None:
    """Self-similarity by class; None without any."""
    return _figure(runs, SELF_SIMILARITY)


def sense_separation(runs: Sequence[LabelledResults]) -> Figure | None:
    """Sense separation by class; None without any."""
    return _figure(runs, SENSE_SEPARATION)


def variance_components(runs: Sequence[LabelledResults]) -> Figure | None:
    """The share of context by class; None without any."""
    return _figure(runs, COMPONENTS)


def runs_with(runs: Sequence[LabelledResults], of: ClassFigure) -> list[tuple[str, str, Results]]:
    """Label, measure and results of each run that has the measure."""
    return [
        (label, measure, results)
        for label, results in models(runs, of.name)
        for measure, about in results.info.measures.items()
        if about.name == of.name
    ]


def classes_of(results: Results, measure: str, statistic: str) -> dict[str, dict[str, WordClass]]:
    """The classes of a measure by kind and name, in their order: by name, or by their first number."""
    classes_by_kind: dict[str, dict[str, WordClass]] = {}
    for key, estimate in results.by_key.items():
        kind, _, name = key.task.partition(" ")
        if key.measure == measure and key.statistic == "words" and kind in TITLES:
            words, occurrences = estimate.value, results.by_key[key._replace(statistic="occurrences")].value
            curve, permuted = (results.by_key.get(key._replace(statistic=each)) for each in (statistic, "permuted"))
            sizes = (int(np.nanmax(values)) for values in (words, occurrences))
            classes_by_kind.setdefault(kind, {})[name] = WordClass(curve, permuted, _mark(results, key), *sizes)
    return {kind: {name: of[name] for name in sorted(of, key=_order)} for kind, of in classes_by_kind.items()}


def _mark(results: Results, words: Key) -> str:
    """How many bands of frequency a class fills, as in "2 of 3 bands"; empty where it fills all, or none weigh."""
    bands, every = results.by_key.get(words._replace(statistic="bands")), len(results.info.mix.filled)
    filled = every if bands is None else int(np.nanmax(bands.value))
    return f"{filled} of {every} bands" if filled < every else ""


def _figure(runs: Sequence[LabelledResults], of: ClassFigure) -> Figure | None:
    entries = runs_with(runs, of)
    if not entries:
        return None
    curves = [classes_of(results, measure, of.statistic) for _, measure, results in entries]
    kinds = [kind for kind in TITLES if any(kind in each for each in curves)]
    canvas = empty_figure(2.5 * len(entries) + 2.6, 2.2 * len(kinds) + 0.2)
    grid = canvas.subplots(len(kinds), len(entries), squeeze=False, sharey="row")
    levels = [results.by_key.get(Key(measure, "baseline")) for _, measure, results in entries]
    for i, kind in enumerate(kinds):
        by_model = [each.get(kind, {}) for each in curves]
        names = sorted({name for classes in by_model for name in classes}, key=_order)
        for j, (label, *_) in enumerate(entries):
            _panel(grid[i, j], names, by_model[j], levels[j], of)
            grid[i, j].set_title(label if i == 0 else "", loc="left", fontsize=10.5, color=Ink.TEXT, parse_math=False)
            grid[i, j].set_xlabel("layer (0 = input layer)" if i == len(kinds) - 1 else "", fontsize=9)
        grid[i, 0].set_ylabel(TITLES[kind], fontsize=9.5, parse_math=False)
        _class_legend(grid[i, -1], names, by_model)
    every = [one for each in curves for classes in each.values() for one in classes.values()]
    labelled = [(label, results) for label, _, results in entries]
    facts = [of.facts, FEW_WORDS_NOTE if any(one.curve is None for one in every) else "", controls(labelled)]
    key = _key(level=any(levels), permuted=any(one.permuted for one in every))
    add_captions(
        canvas, of.title, facts, list(key.values()), list(key), [THIN],
        finding=finding(entries, curves, of), encoders=labelled,
    )  # fmt: skip
    return canvas


def finding(
    entries: Sequence[tuple[str, str, Results]],
    curves: Sequence[dict[str, dict[str, WordClass]]],
    of: ClassFigure,
) -> str:
    """The sentence on the last layers: of each kind the two classes farthest apart of those whose order is certain, and
    the same, in every run that has both. Those that fill other bands of frequency aren't compared, but by frequency."""
    texts = []
    for kind, title in TITLES.items():
        gaps: dict[tuple[str, str], list[float]] = {}
        for (_, measure, results), classes in zip(entries, curves, strict=True):
            by_class = {name: one.curve for name, one in classes.get(kind, {}).items() if one.curve is not None}
            names = [name for name, curve in by_class.items() if np.isfinite(curve.value).any()]
            if len(names) < 2:
                continue
            keys = [Key(measure, of.statistic, f"{kind} {name}") for name in names]
            at = [int(np.flatnonzero(np.isfinite(results.by_key[key].value))[-1]) for key in keys]
            values, order = claimed_order([(results, key, last) for key, last in zip(keys, at, strict=True)])
            for i, j in permutations(range(len(names)), 2):
                if kind != "frequency" and classes[kind][names[i]].mark != classes[kind][names[j]].mark:
                    continue
                gap = float(values[j] - values[i]) if order[i, j] > 0 else 0.0
                gaps.setdefault((names[i], names[j]), []).append(gap)
        certain = {pair: min(each) for pair, each in gaps.items() if min(each) > 0}
        if certain:
            lower, higher = max(certain, key=lambda pair: certain[pair])
            texts.append(f"by {title}, {higher} lies above {lower}")
        elif gaps:
            texts.append(f"by {title}, no two classes lie in one order")
    models = "in each model that has both" if len(entries) > 1 else f"in {entries[0][0]}"
    return f"For certain at the last layer, {models}: {'; '.join(texts)}." if texts else ""


def _key(*, level: bool, permuted: bool) -> dict[str, object]:
    """Legend of bands and broken lines, by label."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    key: dict[str, object] = {"95% interval": Patch(color=Ink.FAINT, alpha=0.25, linewidth=0)}
    if level:
        key[LEVEL] = Line2D([], [], **_DASHED)
    if permuted:
        key[PERMUTED] = Line2D([], [], color=Ink.FAINT, **_DOTTED)
    return key


def _order(name: str) -> tuple[int, str]:
    """Classes of numbers by their first, the others by name."""
    first = name.rstrip("+").split("-")[0]
    return (int(first) if first.isdigit() else -1, name)


def _class_legend(axes: Axes, names: Sequence[str], by_model: Sequence[dict[str, WordClass]]) -> None:
    """The classes of a row at its right, with their sizes; of models that differ in these, the range."""
    from matplotlib.lines import Line2D

    handles, texts = [], []
    for i, name in enumerate(names):
        own = [classes[name] for classes in by_model if name in classes]
        has_curve = any(one.curve is not None for one in own)
        words, occurrences = _range([one.words for one in own]), _range([one.occurrences for one in own])
        handles.append(Line2D([], [], **_line(i)) if has_curve else Line2D([], [], linestyle=""))
        marks = dict.fromkeys(one.mark for one in own if one.mark and has_curve)
        what = ", ".join([f"{occurrences} occurrences" if has_curve else "left out", *marks])
        texts.append(f"{name}: {words} words,\n{what}")
    axes.legend(
        handles, texts, fontsize=7.5, frameon=False, loc="upper left", bbox_to_anchor=(1, 1.05), handlelength=1.6
    )


def _range(sizes: Sequence[int]) -> str:
    low, high = min(sizes), max(sizes)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _line(i: int) -> dict[str, Any]:
    return {"color": PALETTE[i % len(PALETTE)], "linewidth": 1.8, "marker": "o", "markersize": 3}


def _panel(
    axes: Axes, names: Sequence[str], classes: dict[str, WordClass], level: Estimates | None, of: ClassFigure
) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    for i, name in enumerate(names):
        one = classes.get(name)
        if one is None or one.curve is None:
            continue
        x = np.flatnonzero(np.isfinite(one.curve.value))  # a model's chosen layers
        style = _line(i)
        axes.plot(x, one.curve.value[x], **style)
        axes.fill_between(x, one.curve.low[x], one.curve.high[x], color=style["color"], alpha=0.15, linewidth=0)
        for ends in (one.permuted.low, one.permuted.high) if one.permuted else ():
            axes.plot(x, ends[x], color=style["color"], **_DOTTED)
    if level is not None:
        axes.plot(np.arange(len(level.value)), level.value, **_DASHED)
    else:
        axes.axhline(0, color=Ink.TEXT, linewidth=0.6)
    if of.percent:
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    axes.tick_params(labelsize=9, length=3)
    axes.grid(axis="y", color=Ink.GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def table(runs: Sequence[LabelledResults]) -> Table | None:
    """Table with a row for each measure, model and class: words, occurrences, the last layer's value; None if no run
    has classes."""
    import pandas as pd

    numbers = pd.DataFrame(rows_of(runs))
    if numbers.empty:
        return None
    columns = ["model", "corpus", "measure", "class", "words", "occurrences", "filled", "layer", "value [95%]"]
    last = numbers[numbers.layer == numbers.groupby(["model", "corpus", "measure"]).layer.transform("max")]
    lines = [
        [r.model, r.corpus, r.measure, f"{r.kind} {r.name}", f"{r.words:,}", f"{r.occurrences:,}", r.filled,
         str(r.layer), _format_value(r.value, r.low, r.high)]
        for r in last.rename(columns={"class": "name"}).itertuples(index=False)
    ]  # fmt: skip
    facts = {f"{spec.name}: {spec.facts}": None for spec in MEASURES if spec.name in set(numbers.measure)}
    return Table("By class of word, in the last layer", numbers, columns, lines, [*facts, FEW_WORDS_NOTE])


def _format_value(value: float, low: float, high: float) -> str:
    """The value with its interval, where there are resamples."""
    if np.isnan(value):
        return "left out"
    return f"{value:.3f}" if np.isnan(low) else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def rows_of(runs: Sequence[LabelledResults]) -> Iterator[dict[str, Any]]:
    """Yields a row for each measure, run, class and layer."""
    for spec in MEASURES:
        for label, measure, results in runs_with(runs, spec):
            by_kind = classes_of(results, measure, spec.statistic)
            for kind, name, one in ((k, n, c) for k in TITLES for n, c in by_kind.get(k, {}).items()):
                about: dict[str, Any] = {
                    "model": label,
                    "corpus": results.info.corpus.name,
                    "measure": spec.name,
                    "kind": kind,
                }
                about |= {"class": name, "words": one.words, "occurrences": one.occurrences, "filled": one.mark}
                for layer in range(results.n_layers):
                    yield {**about, "layer": layer, **_value_and_interval(one, layer)}


def _value_and_interval(one: WordClass, layer: int) -> dict[str, Any]:
    if one.curve is None:
        return {"value": np.nan, "low": np.nan, "high": np.nan}
    return {name: float(getattr(one.curve, name)[layer]) for name in ("value", "low", "high")}
