"""Offered models, measured as a paper's tests ask: a metric's statistic in disjoint samples of a text, layer by layer.

Sentences are dealt into samples, so that values of one layer are independent but for words that repeat: the interval
is Student's t over samples, whatever the metric. The same sentences make a sample in every layer, and in the untrained
twin.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp import Group
from ctxexp.command import registry
from ctxexp_papers.claims.evidence import ARCHITECTURES, UNTRAINED, Inputs, Member, Source, has_twin, model_label
from ctxexp_papers.claims.kinds import Test, key_of
from ctxexp_papers.claims.statistics import LayerCurve

if TYPE_CHECKING:
    from ctxexp_compare import Space

SAMPLES, ROWS, LAYERS = 20, 1000, 13
"""How many samples; rows of one and layers of a model, at the most."""
NOT_OWN = "neither the paper's models nor its text"
Values = dict[str, LayerCurve]


@dataclass(frozen=True)
class TextSample:
    """Rows of whole sentences, in their order: places in a layer, and each row's sentence, word form (numbers), and
    whether it is the first measured word of its sentence; (n,) each."""

    rows: np.ndarray
    sentence: np.ndarray
    word: np.ndarray
    is_first: np.ndarray


def of_models(inputs: Inputs, paper: str, evidence: Mapping[str, Any], tests: Sequence[Test]) -> list[Source]:
    """The offered models' curves by measurement; none without a model of the kinds that the evidence is of."""
    measurements = {key_of(test): test for test in tests}
    wanted = evidence.get("kinds", ())
    models = [m for m in inputs.models if not wanted or ARCHITECTURES.get(m.split()[0], m.split()[0]) in wanted]
    if evidence.get("of") == "pairs":
        members = list(_pairs(inputs, models, evidence, measurements))
    else:
        members = [Member(m, curves) for m in models if (curves := _of_model(inputs, m, evidence, measurements))]
    if not members:
        return []
    command = f"python -m ctxexp claims paper={paper} model='{','.join(models)}'"
    departures = {m.model: [NOT_OWN] for m in members}
    return [Source("other", evidence.get("title", "the run's text"), members, departures, command)]


def _of_model(inputs: Inputs, model: str, evidence: Mapping[str, Any], measurements: Mapping[str, Test]) -> Values:
    """By the arguments of the model that a measurement is of, and whether that is the untrained twin."""
    if evidence.get("of") == "tables":
        table = inputs.tied_table(model)
        return {} if table is None else _of_table(table, measurements)
    curves: Values = {}
    by_model: dict[tuple[str, ...], dict[str, Test]] = {}
    for key, test in measurements.items():
        if not test.get("twin") or has_twin(model):
            chosen = (*evidence.get("options", ()), *test.get("model_options", ()))
            by_model.setdefault((*chosen, *([UNTRAINED] if test.get("twin") else [])), {})[key] = test
    for options, own in by_model.items():
        space = inputs.space(model, *options, sentences=evidence.get("sentences"))
        curves |= (_of_steps if evidence.get("of") == "steps" else _of_space)(space, evidence, own)
    return curves


def _pairs(
    inputs: Inputs, models: Sequence[str], evidence: Mapping[str, Any], measurements: Mapping[str, Test]
) -> Iterator[Member]:
    """Every two models, each in its middle layer, over the same occurrences: similarity adjusted by random order within
    words (0: chance; 1: a space with itself). Models of other occurrences make no pair."""
    from ctxexp_compare import Sample

    every = [m for m in models if m.split()[0] in ARCHITECTURES and "weights=" not in m]
    for names in combinations(every, 2):
        spaces = [inputs.space(model) for model in names]
        if not np.array_equal(spaces[0].spans, spaces[1].spans):
            continue
        layers = [s.layers.layer(s.layers.layer_numbers[len(s.layers.layer_numbers) // 2]) for s in spaces]
        parts = [text_samples(space, samples=SAMPLES, rows=evidence.get("rows", ROWS)) for space in spaces]
        values: dict[str, list[float]] = {key: [] for key in measurements}
        for both in zip(*parts, strict=True):
            words = np.unique(both[0].word, return_inverse=True)[1]
            sample = Sample(both[0].sentence, words=words, strata=words)
            x, y = (np.asarray(layer[part.rows], np.float64) for layer, part in zip(layers, both, strict=True))
            for key, test in measurements.items():
                values[key].append(similarity_beyond_chance(comparison(test["metric"]), x, y, sample))
        curves = {key: LayerCurve.of_samples(np.array(column)[:, None]) for key, column in values.items()}
        yield Member("-".join(map(model_label, names)), curves)


def similarity_beyond_chance(measure: Any, x: np.ndarray, y: np.ndarray, sample: Any) -> float:
    """A comparison of rows at norm 1, less that by chance, as a share of what a space has with itself beyond that."""
    one, other = (measure.prepare_side(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), sample)
                  for rows in (x, y))  # fmt: skip
    chance = measure.chance(one, other, sample, 1).mean
    return float((measure.score(one, other).value - chance) / (measure.self_score_at(len(sample)) - chance))


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


def _of_space(space: Space, evidence: Mapping[str, Any], measurements: Mapping[str, Test]) -> Values:
    """Curves of samples by measurement."""
    from ctxexp_compare.space import evenly_spaced

    parts = text_samples(
        space,
        samples=evidence.get("samples", SAMPLES),
        rows=evidence.get("rows", ROWS),
        by_word=evidence.get("by_word", False),
    )
    numbers = evenly_spaced(space.layers.layer_numbers, evidence.get("layers", LAYERS))
    values = {key: np.empty((len(parts), len(numbers))) for key in measurements}
    for j, number in enumerate(numbers):
        layer = space.layers.layer(number)
        for i, part in enumerate(parts):
            x: np.ndarray = np.asarray(layer[part.rows], np.float64)
            known: dict[str, Mapping[str, Any]] = {}
            for key, test in measurements.items():
                values[key][i, j] = statistic_of(x, part, test, known)
    return {key: LayerCurve.of_samples(table, numbers) for key, table in values.items()}


def _of_steps(space: Space, evidence: Mapping[str, Any], measurements: Mapping[str, Test]) -> Values:
    """The same of comparisons (`rows = "step"`: with the step to the next layer) of each layer with the next one."""
    from ctxexp_compare import Sample
    from ctxexp_compare.space import evenly_spaced

    parts = text_samples(space, samples=evidence.get("samples", SAMPLES), rows=evidence.get("rows", ROWS))
    numbers = evenly_spaced(space.layers.layer_numbers[:-1], evidence.get("layers", LAYERS))
    values = {key: np.empty((len(parts), len(numbers))) for key in measurements}
    for j, number in enumerate(numbers):
        one, two = space.layers.layer(number), space.layers.layer(number + 1)
        for i, part in enumerate(parts):
            x, y = (np.asarray(layer[part.rows], np.float64) for layer in (one, two))
            sample = Sample(part.sentence)
            for key, test in measurements.items():
                compared = comparison(test["metric"])
                sides = [
                    compared.prepare_side(rows, sample) for rows in (x, y - x if test.get("rows") == "step" else y)
                ]
                values[key][i, j] = compared.score(*sides).value
    return {key: LayerCurve.of_samples(table, numbers) for key, table in values.items()}


def _of_table(table: np.ndarray, measurements: Mapping[str, Test]) -> Values:
    """The same of disjoint random rows of a model's tied table, of those that stand for text."""
    parts = np.array_split(np.random.default_rng(0).permutation(len(table)), SAMPLES)
    values = {key: np.empty((len(parts), 1)) for key in measurements}
    for i, rows in enumerate(parts):
        part = TextSample(rows, np.arange(len(rows)), rows, np.zeros(len(rows), bool))
        for key, test in measurements.items():
            values[key][i, 0] = statistic_of(np.asarray(table[rows], np.float64), part, test, {})
    return {key: LayerCurve.of_samples(column) for key, column in values.items()}


def comparison(metric: str) -> Any:
    """The registered measure of two spaces that a test names, as in `cka/adjusted`."""
    name = metric.split("/")[0]
    offer = registry().find("comparison", name)
    with offer.plugin_call():
        return offer.factory()


def statistic_of(x: np.ndarray, part: TextSample, test: Test, known: dict[str, Mapping[str, Any]]) -> float:
    """The statistic that a test names, of a sample's rows (n, d): less that of rows without the effect where it names
    such a null, NaN where a statistic that is `given` isn't above its bound. `known` keeps a metric's other ones."""
    name, statistic = test["metric"].split("/")
    own = _statistics(name, x, part, test, known)
    if any(not own[other] > bound for other, bound in test.get("given", {}).items()):
        return float("nan")
    value = _defined(own, statistic, test)
    if null := test.get("less"):
        value -= _defined(_statistics(name, NULLS[null](x), part, test, known, null), statistic, test)
    return value


def _defined(statistics: Mapping[str, Any], statistic: str, test: Test) -> float:
    """The statistic, or what the test says of one that is undefined."""
    value = float(statistics.get(statistic, float("nan")))
    return float(test["undefined"]) if np.isnan(value) and "undefined" in test else value


def _statistics(
    name: str, x: np.ndarray, part: TextSample, test: Test, known: dict[str, Mapping[str, Any]],
    null: str = "",
) -> Mapping[str, Any]:  # fmt: skip
    choices = {key: test[key] for key in ("options", "rows", "words") if key in test}
    key = json.dumps([name, choices, null], sort_keys=True)
    if key not in known:
        offer = registry().find("metric", name)
        with offer.plugin_call():
            metric = offer.factory(**test.get("options", {}))
        for group in _groups(metric.over, x, part, least=test.get("words", 1), later=test.get("rows") == "later"):
            metric.update(group)
        known[key] = metric.compute()
    return known[key]


def _groups(over: str, x: np.ndarray, part: TextSample, *, least: int, later: bool) -> Iterator[Group]:
    """A sample's rows as a metric takes them: by sentence, of those with so many words, or all as one group."""
    kept = ~part.is_first if later else np.ones(len(x), bool)
    if over != "sentence":
        yield Group(0, x[kept])
        return
    ends = np.flatnonzero(np.diff(part.sentence)) + 1
    for number, rows in enumerate(np.split(np.arange(len(x)), ends)):
        if len(rows) >= least:
            yield Group(number, x[rows[kept[rows]]])


def _shuffled_columns(x: np.ndarray) -> np.ndarray:
    return np.random.default_rng(len(x)).permuted(x, axis=0)


def _one_cloud(x: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.multivariate_normal(np.zeros(x.shape[1]), np.cov(x, rowvar=False), len(x))


NULLS = {"columns shuffled": _shuffled_columns, "a cloud of its covariance": _one_cloud}
"""Rows like a sample's but for the effect, by name."""
