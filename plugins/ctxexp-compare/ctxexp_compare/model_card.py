"""The geometry card of a model: its curves, chance levels, sinks and best layers, all of them a run's own numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp import Results
from ctxexp.report import Table, full_title, save_figure, shared_facts, write_file
from ctxexp.results import Key
from ctxexp_compare.attention_sinks.sinks import number_ranges

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = 1  # of the JSON
ANISOTROPIC = 0.5  # mean cosine of unrelated words from which a card warns
SINK = 1.0  # standard deviation of word lengths in their median, likewise
UNKNOWN = 0.03  # share of pieces, or of words without a vector, likewise
PAPER_MEASURES = ("self_similarity", "anisotropy", "intra_sentence_similarity", "max_explainable_variance")
WIDE = 0.05  # half an interval, likewise
FEW_WORDS, FEW_UNITS = 100, 100


@dataclass(frozen=True)
class Card:
    """A run as a card; everything that it says is made of the run's numbers."""

    results: Results
    title: str
    command: str = ""
    """The command as typed, where a model was measured for the card."""
    measured: Sequence[str] = ()
    """What was measured of the model's layers and cosines, a line each (`advice`)."""

    @property
    def keys(self) -> list[Key]:
        """The main curves, contextuality first, then the paper's; of variants the plain one (the JSON has all)."""
        every = [key for key in self.results.main_keys if not self.results.info.measure(key.measure).variant]
        order = ("contextuality", *PAPER_MEASURES)
        return sorted(every, key=lambda key: order.index(key.measure) if key.measure in order else len(order))

    @property
    def table(self) -> Table:
        """Every main curve, one row per layer, in brackets what stands beside it: raw or chance."""
        import pandas as pd

        layers = self._layers()
        numbers = {"layer": np.array(layers)}
        heads, cells = ["layer"], [[str(i) for i in layers]]
        for key in self.keys:
            name, values, beside = self._name(key), self.results.by_key[key].value, self._beside(key)
            numbers |= {name: values[layers]} | {f"{name}: {other}": curve[layers] for other, curve in beside.items()}
            heads.append(name + (f" ({', '.join(beside)})" if beside else ""))
            own = [_cell(values[i]) for i in layers]
            rest = [f" ({', '.join(_cell(curve[i]) for curve in beside.values())})" * bool(beside) for i in layers]
            cells.append([a + b for a, b in zip(own, rest, strict=True)])
        return Table("", pd.DataFrame(numbers), heads, list(zip(*cells, strict=True)))

    @property
    def findings(self) -> list[str]:
        """One sentence per main curve: its shape, as far as the data show it."""
        return self.results.findings(self.title)

    @property
    def extremes(self) -> list[str]:
        """A line a main curve: its highest and lowest layer with intervals, and how far it is above the last."""
        return [line for key in self.keys if (line := self._extremes(key))]

    @property
    def advice(self) -> list[str]:
        """Which layer to use and which cosine is high, or what to type to know."""
        typed = "not measured: `ctxexp layer MODEL` and `ctxexp floor MODEL` measure them, for layer= and floor= here"
        return list(self.measured) or [typed]

    @property
    def sinks(self) -> list[str]:
        """Lines on sinks, from the lengths of vectors, and from the largest dimensions where they were measured."""
        return list(self._sinks())

    @property
    def controls(self) -> list[str]:
        """One line per main curve: the last layer beside what it would be without context; and
        one on the controls that need runs of their own."""
        return self.results.controls(self.title, {key.measure for key in self.keys})

    @property
    def warnings(self) -> list[str]:
        """One line each: what a reader should know before using a number of these."""
        return list(self._warnings())

    def markdown(self, picture: str) -> str:
        """The card as a section of a model hub's README; `picture` is the address of its figure."""
        facts = [*shared_facts([(self.title, self.results)]), *_amounts(self.results)]
        parts = [
            "## Geometry of the word vectors",
            *([f"![Curves of {self.title} by layer]({picture})"] if self.drawable else []),
            f"{self.title}: {'; '.join(facts)}. In brackets 95% intervals. Made by ctxexp {self.results.info.version}. "
            "It is of one training run: another of the same recipe may lie further off than these intervals reach.",
        ]
        for head, lines in (
            ("In words", self.findings),
            ("Before you use these numbers", self.warnings),
            ("Highest and lowest layers", self.extremes),
            ("Which layer, and which cosine is high", self.advice),
            ("Sinks", self.sinks),
            ("Negative controls (no context, or no training)", self.controls),
        ):
            if lines:
                parts += [f"**{head}**", "\n".join(f"- {line}" for line in lines)]
        parts += ["**By layer** (layer 0 is the input layer)", self.table.markdown().partition("\n\n")[2].strip()]
        definitions = [f"- {self._name(key)}: {self._about(key)}" for key in self.keys if self._about(key)]
        return "\n\n".join([*parts, "\n".join(definitions)]) + "\n"

    def json(self) -> dict[str, Any]:
        """The same in JSON's types: every curve whole, with intervals, in six significant digits."""
        info = self.results.info
        curves = {}
        for key, estimates in self.results.by_key.items():
            ends = {name: [_plain(v) for v in getattr(estimates, name)] for name in estimates._fields}
            curves[str(key)] = ends if np.isfinite(estimates.low).any() else {"value": ends["value"]}
        return {
            "format": FORMAT,
            "title": self.title,
            "command": self.command,
            "findings": self.findings,
            "warnings": self.warnings,
            "extremes": self.extremes,
            "advice": self.advice,
            "sinks": self.sinks,
            "controls": self.controls,
            "curves": curves,
            "run": info.to_json(),
        }

    @property
    def drawable(self) -> bool:
        """Whether any curve has a value."""
        return any(np.isfinite(self.results.by_key[key].value).any() for key in self.results.main_keys)

    def figure(self) -> Figure:
        """The headline curves. Raises MetricError where none has a value."""
        return self.results.plot()

    def _layers(self) -> list[int]:
        return list(self.results.info.model.layers) or list(range(self.results.n_layers))

    def _beside(self, key: Key) -> dict[str, np.ndarray]:
        """Raw and chance beside a curve, by name."""
        if key.name not in ("raw", "adjusted"):
            return {}
        others = [key._replace(statistic=name) for name in ("raw", "baseline") if name != key.statistic]
        return {one.label(): self.results.by_key[one].value for one in others if one in self.results.by_key}

    def _about(self, key: Key) -> str:
        definition = self.results.info.definition(key.measure)
        is_matched = self.results.info.measure(key.measure).level == "size-matched"
        if not definition or not is_matched or key.statistic not in ("baseline", "adjusted", "share_of_room"):
            return definition
        facts = shared_facts([(self.title, self.results)], key.measure)
        return "; ".join([definition, *(fact for fact in facts if fact.startswith("chance: "))])

    def _name(self, key: Key) -> str:
        title = full_title(key.measure, key.task, [self.results])
        return f"{title}, {key.label()}" if key.statistic in ("share_of_room", "adjusted") else title

    def _extremes(self, key: Key) -> str:
        estimates = self.results.by_key[key]
        if np.isfinite(estimates.value).sum() < 2:
            return ""
        last = max(i for i in self._layers() if np.isfinite(estimates.value[i]))
        top, bottom = int(np.nanargmax(estimates.value)), int(np.nanargmin(estimates.value))
        sentence = f"{self._name(key)}: highest in layer {top}, {self._value(key, top)}, "
        sentence += f"lowest in layer {bottom}, {self._value(key, bottom)}"
        if top == last:
            return f"{sentence}; the last layer is the highest"
        above = self.results.difference(self.results, key, layers=[top], others=[last])
        if not np.isfinite(above.low[0]):
            return f"{sentence}; {number(above.value[0])} above the last"
        ends = f"[{number(above.low[0])}, {number(above.high[0])}]"
        return f"{sentence}; {number(above.value[0])} {ends} above the last"

    def _value(self, key: Key, layer: int) -> str:
        estimates = self.results.by_key[key]
        value, low, high = (float(part[layer]) for part in estimates)
        return f"{number(value)} [{number(low)}, {number(high)}]" if np.isfinite(low) else number(value)

    def _sinks(self) -> Iterator[str]:
        median, sd = (self.results.by_name.get(f"word_norm/{statistic}") for statistic in ("median", "sd"))
        if median is not None and sd is not None:
            with np.errstate(invalid="ignore", divide="ignore"):
                spread = sd / median
            if np.isfinite(spread).any():
                top = int(np.nanargmax(spread))
                long_layers = [i for i in range(len(spread)) if spread[i] > SINK]
                where = (
                    f"in layers {number_ranges(long_layers)} some words are far longer than others"
                    if long_layers
                    else "none in the lengths"
                )
                yield (
                    f"{where}: these spread by {spread[top]:.2f} times their median in layer {top}, where that is "
                    "largest"
                )
        for label, measure in self.results.info.measures.items():
            share = self.results.by_name.get(f"{label}/top_1")
            if measure.name == "rogue_dimensions" and share is not None and np.isfinite(share).any():
                top = int(np.nanargmax(share))
                yield f"one dimension makes {share[top]:.0%} of the mean cosine in layer {top}, where that is most"

    def _warnings(self) -> Iterator[str]:
        info = self.results.info
        empty = [key for key in self.keys if not np.isfinite(self.results.by_key[key].value).any()]
        if empty:
            yield f"undefined in every layer, for want of contexts: {', '.join(map(self._name, empty))}"
        cosine = self.results.by_name.get("anisotropy/mean_cosine")
        if cosine is not None and (high := [i for i in range(len(cosine)) if cosine[i] >= ANISOTROPIC]):
            low, top = number(min(cosine[high])), number(max(cosine[high]))
            where = f"layer{'s' * (len(high) > 1)} {number_ranges(high)}"
            yield (
                f"in {where} the cosine of unrelated words is {low}{f' to {top}' if top != low else ''}: read a cosine "
                "only against that"
            )
        if (share := info.corpus.unknown_share) is not None and share > UNKNOWN:
            yield f"{share:.1%} of the pieces are unknown to the model's tokenizer: this text is not its own"
        if info.corpus.skipped_share > UNKNOWN:
            yield f"{info.corpus.skipped_share:.1%} of the words have no vector"
        if info.mix.mark:
            yield info.mix.phrase
        if 0 < info.corpus.words < FEW_WORDS:
            yield f"only {info.corpus.words} words have {info.corpus.min_contexts} contexts"
        if 0 < info.resampled.n < FEW_UNITS:
            yield f"only {info.resampled.clusters}: intervals speak of other text like this"
        for key in self.keys:
            estimates = self.results.by_key[key]
            half = (estimates.high - estimates.low) / 2
            if np.isfinite(half).any() and np.nanmax(half) > WIDE and abs(np.nanmax(estimates.value)) < 10:
                yield f"{self._name(key)}: half an interval is up to {number(np.nanmax(half))}"
        if info.model.dtype in ("float16", "bfloat16"):
            yield f"computed in {info.model.dtype}"
        if any(line for line in self.sinks if line.startswith("in layers")):
            yield "a few vectors are far longer than the rest (sinks): means over words are mostly theirs"


def card(results: Results, title: str = "", command: str = "", measured: Sequence[str] = ()) -> Card:
    """The card of a run."""
    return Card(results, title or results.info.title or results.info.model.name or "model", command, measured)


def write(model_card: Card, folder: Path) -> list[Path]:
    """Write card.md, card.json and, where any curve has a value, card.svg; the paths."""
    import json

    paths = [
        write_file(folder / "card.md", model_card.markdown("card.svg")),
        write_file(folder / "card.json", json.dumps(model_card.json(), indent=1, ensure_ascii=False, allow_nan=False)),
    ]
    return [*paths, *(save_figure(model_card.figure(), folder, "card", kinds=("svg",)) if model_card.drawable else ())]


def _amounts(results: Results) -> list[str]:
    text = results.info.corpus
    amounts = f"{text.sentences:,} sentences, {text.occurrences:,} occurrences, {text.words:,} words with "
    return [f"{amounts}{text.min_contexts} contexts", f"seed {results.info.seed}"]


def _cell(value: float) -> str:
    return number(value) if np.isfinite(value) else ""


def _plain(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None


def number(value: float) -> str:
    """Three decimals for shares and cosines, one for lengths."""
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"
