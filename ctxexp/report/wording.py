"""The words on figures and pages: titles, definitions, units, and what the runs were. Numbers are formatted here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ctxexp.results.run_info import SIZE_MATCHED, CorpusInfo, MeasureInfo, Resampled
from ctxexp.results.values import Key
from ctxexp.vectors.batches import MANY

if TYPE_CHECKING:
    from ctxexp.results import Results

T = TypeVar("T")
AVERAGE = "avg"  # the task that is the mean over tasks
Run = tuple[str, "Results"]
"""A chart label (usually the model) and what was measured."""

LAYER_AXIS = "layer (0 = input layer)"
_LONGEST_NAME, _LONGEST_WORD = 200, 80  # characters of an encoder's name: two lines of a foot, and less than one
_PLURALS = {"corpus": "corpora"}
_UNITS = {"share": "share of variance"}  # a unit that says on an axis what it is of


def unique_labels(runs: Sequence[tuple[str, T]]) -> list[tuple[str, T]]:
    """Labels as one line each; a repeated label gets a number."""
    seen: set[str] = set()
    named = []
    for label, results in runs:
        base = name = one_line(label) or "run"
        count = 1
        while name in seen:
            count += 1
            name = f"{base} #{count}"
        seen.add(name)
        named.append((name, results))
    return named


def one_line(text: object) -> str:
    return " ".join(str(text).split())


def about(results: Results, measure: str) -> MeasureInfo:
    """What the run says of a measure; blank where it says nothing."""
    return results.info.measures.get(measure, MeasureInfo())


def title(measure: str, runs: Iterable[Results], task: str = "") -> str:
    """The measure's name as prose, the metric's own where a run states it, and the task."""
    known = next((said for results in runs if (said := one_line(about(results, measure).title))), "")
    known = known or one_line(measure.replace("_", " ")).capitalize()
    return f"{known}, {'mean over tasks' if task == AVERAGE else task}" if task else known


def canonical(results: Results, measure: str) -> str:
    """What is measured, whatever its label: the metric's name with its variant, as `self_similarity` or
    `max_explainable_variance_released`; the label where the run doesn't say."""
    said = about(results, measure)
    if not said.name or said.variant is None:
        return measure
    return f"{said.name}_{said.variant}" if said.variant else said.name


def figure_of(measure: str, runs: Iterable[Results]) -> str:
    """The figure on which a measure has its panel: one for the variants of a metric, one for a measure's tasks."""
    return next((said.name for r in runs if (said := about(r, measure)).variant), measure)


def mains(results: Results, measure: str) -> tuple[str, ...]:
    """The statistics that may stand for the measure, the first first: the one that its metric names, if it names one,
    adjusted, raw."""
    own = about(results, measure).main
    return (*([own] if own else []), "adjusted", "raw")


def main(results: Results, measure: str, task: str = "", *, wanted: str = "") -> Key | None:
    """The curve that stands for the measure: of `wanted`, its metric's choice, adjusted, raw and the others (no count,
    spread or level) the first with a finite value, or else the first; None if there is none."""
    others = [key.statistic for key in results.held if key.statistic not in NEVER_MAIN]
    keys = [Key(measure, statistic, task) for statistic in (wanted, *mains(results, measure), *others)]
    keys = [key for key in keys if key in results.held]
    return next((key for key in keys if np.isfinite(results.held[key].value).any()), next(iter(keys), None))


def main_curves(results: Results) -> list[Key]:
    """The curve of each measure and task that its metric names, or adjusted or raw, where it has one of these."""
    found = (main(results, *subject) for subject in results.subjects())
    return [key for key in found if key and key.statistic in mains(results, key.measure)]


def define(measure: str, results: Results, task: str = "") -> str:
    """The definition that the run states, of a task with the task; else an empty text."""
    said = one_line(about(results, measure).definition)
    return f"{'mean over tasks' if task == AVERAGE else task}: {said}" if said and task else said


def axis_label(measure: str, statistic: str, results: Iterable[Results] = (), task: str = "") -> str:
    """What the number is: "cosine − baseline"."""
    runs = list(results)
    unit = next((u for r in runs if (u := one_line(about(r, measure).unit))), "value")
    unit = _UNITS.get(unit, unit)
    if unit == "score" and statistic:  # one of several benchmarks: which
        unit = f"score, {readable(statistic)}"
    alone = not any(Key(measure, "adjusted", task) in r.held for r in runs)
    if any(by_size(r, Key(measure, statistic, task)) for r in runs) and statistic == "adjusted":
        statistic = "size_matched_adjusted"
    forms = {
        "adjusted": "{} − baseline",
        "size_matched_adjusted": "{} − size-matched baseline",
        "corrected": "{} above chance, as a share of the room above it",
        "size_matched_corrected": "{} above size-matched chance, as a share of the room above it",
        "baseline": "{} of the baseline",
        "raw": "{}" if alone else "{}, raw",
    }
    return forms.get(statistic, "{}").format(unit)


def readable(statistic: str) -> str:
    """A statistic's name for a legend."""
    names = {
        "size_matched_adjusted": "adjusted, size-matched",
        "size_matched_baseline": "baseline, size-matched",
        "corrected": "chance-corrected",
        "size_matched_corrected": "chance-corrected, size-matched",
        "mean_cosine": "mean",
    }
    return names.get(statistic, statistic.replace("_", " "))


NEVER_MAIN = (
    "n", "undefined", "sd", "baseline", "size_matched_baseline", "size_matched_adjusted", "corrected",
    "corrected_undefined", "size_matched_corrected", "size_matched_corrected_undefined",
)  # fmt: skip
_DRAWN = {  # what intervals draw anew
    "sentence": "sentences",
    "document": "documents",
    "shard of sentences": "shards of sentences",
    "shard of documents": "shards of documents",
    "pair": "sentence pairs",
    "group of pairs": "groups of pairs that share a sentence",
}


def facts(runs: Sequence[Run], measure: str | None = None, *, transforms: bool = True) -> list[str]:
    """What the runs have in common, for under a title: weights, corpus, sentences' pooling, control, transform,
    baseline; how many where runs differ. `transforms=False` leaves these out, for a figure that names them."""
    said = []
    chance = [baseline_words(r, measure) for _, r in runs if measure is None or _has_baseline(r, measure)]
    used = [one_line(r.info.transform.name) for _, r in runs]
    fits = [one_line(fit.text if (fit := r.info.transform.fit) else "target") for _, r in runs]
    if set(fits) == {"target"}:
        fits = []
    if set(used) == {"none"}:
        fits = []
    if set(used) == {"none"} or not transforms:
        used = []
    resampled = [drawn_anew(r) for _, r in runs if measure is None or _has_interval(r, measure)]
    controls = [one_line(r.info.control) for _, r in runs]
    if set(controls) == {"none"}:
        controls = []
    texts = [r.info.corpus for _, r in runs]
    bounds = [contexts_words(text) for text in texts] if any(t.max_contexts or t.one_pass for t in texts) else []
    pooled = [one_line(r.info.pooling.name).replace("_", " ") for _, r in runs if _of_pairs(r, measure)]
    weights = [one_line(r.info.model.weights) for _, r in runs]
    if "" in weights:  # beside others there is a model that hasn't that choice
        weights = []
    for kind, plural, words in (
        ("weights", "kinds of weights", weights),
        ("corpus", "corpora", [one_line(r.info.corpus.name) for _, r in runs]),
        ("", "bounds of contexts", bounds),
        ("sentence vectors:", "poolings of sentences", pooled),
        ("control:", "controls", controls),
        ("transform", "transforms", used),
        ("fitted on", "fitted texts", fits),
        ("baseline:", "baselines", chance),
        ("intervals over:", "units of intervals", resampled),
    ):
        known = sorted(set(words) - {""})
        if known:
            said.append(f"{kind} {known[0]}".strip() if len(known) == 1 else f"{len(known)} {plural}")
    said += sorted({one_line(f"{r.info.control}: {r.info.control_note}") for _, r in runs if r.info.control_note})
    unknown = max((r.info.corpus.unknown_share or 0 for _, r in runs), default=0)
    if unknown > MANY:
        said.append(f"{'up to ' if len(runs) > 1 else ''}{unknown:.1%} of the pieces unknown to the model")
    return said


def contexts_words(text: CorpusInfo) -> str:
    """How many contexts of a word were measured, and how where no row was stored."""
    if text.one_pass:
        return "all contexts, in one pass, no vector stored"
    return f"at most {text.max_contexts:,} contexts a word" if text.max_contexts else "all contexts"


def identities(runs: Sequence[Run]) -> list[str]:
    """What each label stands for: "bert: <encoder>, 5 layers of 128"; runs that don't say are left out.

    An encoder's name is whole, so that it can be looked for, or left out where it would fill the foot. Labels of one
    encoder share a line: "bert, bert (no first word): <encoder>".
    """
    said: dict[str, list[str]] = {}
    for label, results in unique_labels(runs):
        name = one_line(results.info.model.encoder)
        if len(name) > _LONGEST_NAME or any(len(word) > _LONGEST_WORD for word in name.split()):
            name = ""
        size = (
            f"{results.n_layers} layer{'s' * (results.n_layers != 1)} of {results.info.model.dim}"
            if results.info.model.dim
            else ""
        )
        first = f"first: {first}" if (first := stands_first(results)) else ""
        if name or size:
            said.setdefault(", ".join(part for part in (name, size, first) if part), []).append(label)
    return [f"{', '.join(labels)}: {what}" for what, labels in said.items()]


def stands_first(results: Results) -> str:
    """What stands first when the model reads a text, and whether the tokenizer adds it; empty unless the model is
    causal, where the first piece sees itself alone, or `model.prefix` decided it."""
    model = results.info.model
    if model.start is None or not (model.causal or model.start.source != "tokenizer"):
        return ""
    return one_line(model.start)


def averaged(results: Results) -> str:
    """What the label of a mean over seeds ends with; empty for a run."""
    return f", mean of {len(results.info.seeds)} seeds ± sd" if results.info.seeds else ""


def drawn_anew(results: Results) -> str:
    """What the run's intervals are over; empty if it has none."""
    if seeds := results.info.seeds:
        return f"{len(seeds)} seeds (mean ± standard deviation)"
    unit = one_line(results.info.resampled.unit or results.info.resampled.pairs)
    return _DRAWN.get(unit, unit)


def units_drawn(resampled: Resampled) -> str:
    """ "7 shards of documents": how many of what the intervals of words draw anew."""
    unit = one_line(resampled.unit)
    return f"{resampled.n:,} {unit if resampled.n == 1 else _DRAWN.get(unit, f'{unit}s')}"


def _has_baseline(results: Results, measure: str) -> bool:
    """What is measured on the baseline's own sample is the baseline of the others."""
    return about(results, measure).over == "sample" or Key(measure, "baseline") in results.held


def _of_pairs(results: Results, measure: str | None) -> bool:
    """Whether the measure, or any of the run, is of pairs of sentence vectors."""
    said = results.info.measures
    return any(one.over == "pair" for label, one in said.items() if measure in (None, label))


def _has_interval(results: Results, measure: str) -> bool:
    return any(np.isfinite(held.low).any() for key, held in results.held.items() if key.measure == measure)


def by_size(results: Results, key: Key) -> bool:
    """Whether the curve is a level of random groups of each group's own size, or is adjusted by it."""
    if key.statistic.startswith("size_matched_"):
        return True
    return key.statistic in ("baseline", "adjusted", "corrected") and about(results, key.measure).level == SIZE_MATCHED


def own_size(results: Iterable[Results], measure: str) -> str:
    """ "word's own size": what such groups are as large as."""
    of_sentence = "sentence" in [about(each, measure).over for each in results]
    return "sentence's own length" if of_sentence else "word's own size"


def baseline_words(results: Results, measure: str | None = None) -> str:
    """ "1,000 occurrences, one per sentence", "exact, one per sentence", "random groups of each word's own size": the
    chance level in a few words; empty if the run doesn't say.

    Matched groups have the size of what they are compared with: only what is measured on the sample has one to name.
    """
    chance = results.info.baseline
    named = not chance.matched or (measure is not None and about(results, measure).over == "sample")
    kinds = {said.level for label, said in results.info.measures.items() if measure in (None, label)}
    sized = f"random groups of each {own_size([results], measure or '')}"
    if kinds == {SIZE_MATCHED} and named:
        return sized
    drawn = f"{chance.size:,} occurrences" if named and chance.size else ""
    if "exact" in kinds:
        drawn = f"exact or {drawn}" if drawn and "drawn" in kinds else "exact"
    parts = [drawn, one_line(chance.name).replace("_", " ")]
    said = ", ".join(part for part in parts if part)
    return f"{said} or {sized}" if SIZE_MATCHED in kinds and named else said


def count_words(results: Results, measure: str, task: str = "") -> str:
    """ "812 words": how many groups the mean is over, a range where layers differ; empty if unknown."""
    n = results.values(measure, "n", task=task)
    if n is None or not np.isfinite(n).any():
        return ""
    over = about(results, measure).over or "group"
    over = {"sample": "occurrence", "sense": "word"}.get(over, over)  # what a group of the kind stands for
    low, high = int(np.nanmin(n)), int(np.nanmax(n))
    number = f"{low:,}" if low == high else f"{low:,}–{high:,}"
    return f"{number} {over if high == 1 else _PLURALS.get(over, over + 's')}"
