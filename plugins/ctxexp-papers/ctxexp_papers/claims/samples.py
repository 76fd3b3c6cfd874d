"""A statistic's values in disjoint samples of a model's text, layer by layer, and tests on their intervals.

Sentences are dealt into samples, so that values of one layer are independent but for words that repeat: the interval
is Student's t over samples, whatever the statistic. The same sentences make a sample in every layer and in the
untrained twin. Statistics that hang on the number of rows (spectra, neighbours) are of that many rows: each brings a
control of the same size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from ctxexp.maths import Stream
from ctxexp_papers.claims.checks import LEVEL, Bound, Check
from ctxexp_papers.claims.source import UNTRAINED, Inputs, Source, has_twin
from ctxexp_papers.claims.statistics.best_layer import best_layer_gain
from ctxexp_papers.claims.statistics.paired import paired_difference
from ctxexp_papers.claims.statistics.walks import hump_p, trend_p

if TYPE_CHECKING:
    from ctxexp_compare.space import Space

SAMPLES, ROWS, LAYERS = 20, 1000, 13
"""How many samples; rows of one and layers of a model, at the most."""
KINDS = {"gpt2": "decoder", "smollm2": "decoder", "bert": "encoder", "minilm": "encoder", "elmo": "recurrent"}
"""Models by what a word sees; a model that isn't listed counts for no claim on one kind."""
NOT_OWN = "neither the paper's models nor its text"


@dataclass(frozen=True)
class TextSample:
    """Rows of whole sentences, in their order: places in a layer, and each row's sentence, word form (numbers), and
    whether it is the first measured word of its sentence; (n,) each."""

    rows: np.ndarray
    sentence: np.ndarray
    word: np.ndarray
    is_first: np.ndarray

    def sentences(self, x: np.ndarray, *, least: int = 1) -> list[np.ndarray]:
        """The rows of `x` (n, d) by sentence, of those with `least` words."""
        ends = np.flatnonzero(np.diff(self.sentence)) + 1
        return [part for part in np.split(x, ends) if len(part) >= least]


Statistics = Callable[[np.ndarray, TextSample], Mapping[str, float]]
"""From a sample's rows in a layer, (n, d) float64, to values by name."""


@dataclass(frozen=True)
class Sampled:
    """A model's values by statistic, (samples, layers), with the numbers of the layers; those of its untrained twin."""

    model: str
    values: Mapping[str, np.ndarray]
    layers: tuple[int, ...] = ()
    twin: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass
class Samples(Source):
    """Models' values in samples of a text; or, of a theorem, values of drawn instances by case."""

    members: list[Sampled] = field(default_factory=list)

    def models(self) -> list[str]:
        return [member.model for member in self.members]

    def of(self, *kinds: str, statistic: str = "") -> list[Sampled]:
        """Members of these kinds (none: all) that have the statistic; those of the paper itself count whatever they
        are called."""
        wanted = [m for m in self.members if not kinds or KINDS.get(m.model.split()[0], m.model) in kinds]
        return [m for m in wanted if not statistic or statistic in m.values]


def measured(
    inputs: Inputs,
    paper: str,
    statistics: Statistics,
    *,
    title: str,
    kinds: Sequence[str] = (),
    twins: bool = False,
    by_word: bool = False,
    samples: int = SAMPLES,
    rows: int = ROWS,
    layers: int = LAYERS,
    sentences: int | None = None,
    options: Sequence[str] = (),
) -> list[Samples]:
    """The offered models' values, as evidence that gives no verdict; nothing without a model of these kinds.

    Args:
        inputs: the models.
        paper: its name, for the command.
        statistics: what is measured of a sample.
        title: what it is measured on, beside the models.
        kinds: of models (see KINDS); none: all.
        twins: whether to measure untrained twins too, of models that have them.
        by_word: one occurrence of each word, words dealt into samples, instead of sentences.
        samples: how many.
        rows: of a sample, at the most.
        layers: of a model, at the most, evenly spaced.
        sentences: at most so many are read.
        options: arguments for the models.
    """
    members = []
    for model in inputs.models:
        if kinds and KINDS.get(model.split()[0]) not in kinds:
            continue
        space = inputs.space(model, *options, sentences=sentences)
        members.append(_sampled(model, space, statistics, samples, rows, layers, by_word))
        if twins and (twin := _twin(inputs, model, options, sentences)) is not None:
            untrained = _sampled(model, twin, statistics, samples, rows, layers, by_word)
            members[-1] = Sampled(model, members[-1].values, members[-1].layers, untrained.values)
    if not members:
        return []
    command = f"python -m ctxexp claims paper={paper} model='{','.join(m.model for m in members)}'"
    return [Samples("other", title, {m.model: [NOT_OWN] for m in members}, command=command, members=members)]


def _twin(inputs: Inputs, model: str, options: Sequence[str], sentences: int | None) -> Space | None:
    return inputs.space(model, *options, UNTRAINED, sentences=sentences) if has_twin(model) else None


def _sampled(
    model: str,
    space: Space,
    statistics: Statistics,
    samples: int,
    rows: int,
    layers: int,
    by_word: bool,
) -> Sampled:
    from ctxexp_compare.space import evenly_spaced

    parts = text_samples(space, samples=samples, rows=rows, by_word=by_word)
    numbers = evenly_spaced(space.layers.layer_numbers, layers)
    by_layer = []
    for number in numbers:
        layer = space.layers.layer(number)
        by_layer.append([statistics(np.asarray(layer[part.rows], np.float64), part) for part in parts])
    names = by_layer[0][0]
    values = {name: np.array([[row[name] for row in rows_] for rows_ in by_layer]).T for name in names}
    return Sampled(model, values, tuple(numbers))


def text_samples(space: Space, *, samples: int, rows: int, by_word: bool = False) -> list[TextSample]:
    """Disjoint samples of a space's occurrences: whole sentences, dealt at random by a fixed seed."""
    every = np.lexsort([space.spans[:, 0], space.sentence])
    _, words = np.unique(space.words(every), return_inverse=True)
    sentence = space.sentence[every]
    is_first = np.append(True, np.diff(sentence) > 0)
    if by_word:
        chosen = np.unique(words, return_index=True)[1]
        every, words, sentence, is_first = every[chosen], words[chosen], sentence[chosen], is_first[chosen]
    units = np.arange(len(every)) if by_word else sentence
    distinct = np.unique(units)
    deal = np.random.default_rng(0).permutation(len(distinct)) % samples
    part_of = deal[np.searchsorted(distinct, units)]
    parts = []
    for number in range(samples):
        at = np.flatnonzero(part_of == number)
        last = at[rows] if len(at) > rows else None
        if last is not None:  # whole sentences alone
            at = at[units[at] < units[last]]
        parts.append(TextSample(space.rows[every[at]], sentence[at], words[at], is_first[at]))
    return parts


def in_layers(member: Sampled, values: np.ndarray, bound: Bound, *, least: float = 1.0, ways: int = 1) -> Check:
    """Whether values (samples, layers) lie within the bound in a share `least` of the layers, by their intervals.

    Any of the layers that may be missing could be counted wrongly, any of those needed could break it, in each of the
    `ways` in which the claim can fail (models): intervals are as wide as so many looks need. The effect is that of the
    layer that decides.
    """
    finite = np.isfinite(values).all(axis=0)
    if not finite.any():
        return Check(member.model, text="undefined: too few rows for the width, or no such rows")
    is_by_layer = len(member.layers) == values.shape[1]
    numbers = np.array(member.layers if is_by_layer else range(values.shape[1]))[finite]
    values, count = values[:, finite], int(finite.sum())
    needed = math.ceil(least * count - 1e-9)
    worst, _ = bound.margins(*_ends(values, count - needed + 1))
    broken, best = bound.margins(*_ends(values, needed * ways))
    yes, no = int((worst > 0).sum()), int(((best <= 0) & (broken < 0)).sum())
    passed = True if yes >= needed else False if count - no < needed else None
    at = int(np.argsort(worst, kind="stable")[count - needed])
    span = paired_difference(values[:, at])
    brief = f"{span.value:.3f}" if count == 1 else f"{yes} of {count}"
    text = f"{brief} layers; layer {numbers[at]} decides" if count > 1 else ""
    return Check(member.model, "", passed, *span, text, brief=brief)


def exceeds(
    member: Sampled, one: np.ndarray, other: np.ndarray | float = 0.0, *, ways: int = 1, text: str = ""
) -> Check:
    """Whether one value a sample (samples,) exceeds another of the same samples, or a number."""
    if not np.isfinite(one - other).all():
        return Check(member.model, text="undefined: too few rows for the width, or no such rows")
    span, wide = paired_difference(one, other), paired_difference(one, other, ways=ways)
    passed = True if span.above() else False if wide.above() is False else None
    return Check(member.model, "", passed, *span, text, brief=f"{span.value:+.3f}")


def peaks(member: Sampled, values: np.ndarray, *, ways: int = 1) -> Check:
    """Whether a middle layer exceeds the better of the first and the last: the layer is held out sample by sample."""
    if values.shape[1] < 3 or not np.isfinite(values).all():
        return Check(member.model, text="fewer than three layers, or undefined")
    gain = best_layer_gain(
        values,
        rivals=(0, values.shape[1] - 1),
        rng=np.random.default_rng([0, Stream.BEST_LAYER]),
        ways=ways,
        resamples=2000,
    )
    at = (member.layers or tuple(range(values.shape[1])))[gain.layers[0]]
    text = f"layer {at}; any middle layer: [{gain.least:+.3f}, {gain.most:+.3f}]"
    brief = f"{gain.value:+.3f}"
    return Check(member.model, "", gain.passed, gain.value, gain.low, gain.high, len(values), text, brief=brief)


def beyond_walks(check: Check, curve: np.ndarray) -> Check:
    """The check of a hump, which holds only where fewer than 5% of walks have as clear a one. It fails only where a
    walk would as rarely be as clearly otherwise: sunk in the middle (2.5%), or a trend from end to end (1.25%)."""
    rng = np.random.default_rng([0, Stream.CLAIMS, 15])
    p, sunk, trend = hump_p(curve, rng), hump_p(-curve, rng), trend_p(curve, rng)
    is_otherwise = sunk < LEVEL / 2 or trend < LEVEL / 4
    beyond = p < LEVEL if check.passed else is_otherwise
    passed = check.passed if beyond else None
    text = f"{check.text}; {p:.1%} of walks have as clear a hump, {sunk:.1%} a hollow, {trend:.1%} a trend"
    return replace(check, passed=passed, text=text)


def middle(member: Sampled) -> int:
    """The place of the middle layer."""
    return int(next(iter(member.values.values())).shape[1]) // 2


def _ends(values: np.ndarray, ways: int) -> tuple[np.ndarray, np.ndarray]:
    """The ends (layers,) of `paired_difference` of every layer's values (samples, layers)."""
    n = len(values)
    half = float(stdtrit(n - 1, 1 - 0.025 / ways)) * values.std(axis=0, ddof=1) / np.sqrt(n)
    mean = values.mean(axis=0)
    return mean - half, mean + half
