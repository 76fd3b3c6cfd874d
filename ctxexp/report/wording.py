"""The words on figures and pages: titles, definitions, units, and what the runs were. Numbers are formatted here.

Facts of runs stand below a title: weights, text, encoders, what intervals resample.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from ctxexp.results import Results
from ctxexp.results.results import OVER_WORDS, mix_mark
from ctxexp.results.run_info import CLUSTERS, SIZE_MATCHED, MeasureInfo
from ctxexp.results.values import Key
from ctxexp.vectors.encoding import MANY

T = TypeVar("T")
AVERAGE = "avg"  # the task that is the mean over tasks
LabelledResults = tuple[str, Results]
"""A chart label (usually the model) and what was measured."""

MINUS = "\u2212"  # a hyphen is shorter than a plus sign
LAYER_AXIS = "layer (0 = input layer)"
_PLURALS = {"corpus": "corpora"}
CONTEXTUALITY = "contextuality (0: context changes nothing, 1: as unlike as another word)"
_UNITS = {"share": "share of variance", "contextuality": CONTEXTUALITY}  # units that say on an axis what they are of
UNITS_TO_ONE = ("cosine", "share of variance")  # of which 1 is the most, so that they may share an axis
LOG_UNITS = ("l2 norm",)  # of lengths, which models differ in by factors
_LONGEST_NAME, _LONGEST_WORD = 200, 80  # characters of an encoder's name: two lines of a foot, and less than one


def unique_labels(runs: Sequence[tuple[str, T]]) -> list[tuple[str, T]]:
    """Labels as one line each; a repeated label gets a number.

    Example:
        >>> unique_labels([("bert", 1), ("bert", 2)])
        [('bert', 1), ('bert #2', 2)]
    """
    labels: set[str] = set()
    labelled_runs = []
    for label, results in runs:
        base = name = one_line(label) or "run"
        count = 1
        while name in labels:
            count += 1
            name = f"{base} #{count}"
        labels.add(name)
        labelled_runs.append((name, results))
    return labelled_runs


def one_line(text: object) -> str:
    """The text in one line, single spaces between its words."""
    return " ".join(str(text).split())


def decimal(value: float, digits: int = 2, *, sign: bool = False) -> str:
    """A number as figures and tables show it, on request with its sign: `0.24`, `+0.240`, with a real minus sign, and
    none before a zero.

    Example:
        >>> decimal(-0.237, sign=True), decimal(-0.001)
        ('−0.24', '0.00')
    """
    return f"{value:{'+' if sign else ''}z.{digits}f}".replace("-", MINUS)


def table_number(value: float) -> str:
    """A number as tables show it: three decimals for shares and cosines, one for lengths."""
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"


def info_of(runs: Iterable[Results], measure: str) -> MeasureInfo:
    """The metadata of the measure as the first of the runs that has some states it."""
    return next((r.info.measures[measure] for r in runs if measure in r.info.measures), MeasureInfo())


def full_title(measure: str, task: str, runs: Sequence[Results], *, variant: bool = True) -> str:
    """The measure's name as prose with its task, its variant and, where the texts of all runs lack bands of frequency,
    the mark of that.

    Args:
        measure: The measure's label.
        task: Its task; "": none.
        runs: Results that may state the metric's own title.
        variant: Whether its variant is named.

    Returns:
        A title for a figure or a row of a table.

    Example:
        >>> full_title("self_similarity", "avg", [])
        'Self similarity, mean over tasks'
    """
    about = info_of(runs, measure)
    name = one_line(about.title) or one_line(measure.replace("_", " ")).capitalize()
    parts = [name, "mean over tasks" if task == AVERAGE else task]
    if variant:
        parts.append(about.variant or "")
    name = ", ".join(filter(None, parts))
    marks = _marks(measure, runs)
    return f"{name} ({marks.pop()})" if len(marks) == 1 and marks != {""} else name


def _marks(measure: str, runs: Iterable[Results]) -> set[str]:
    """The marks of the runs that have the measure."""
    return {mix_mark(results, measure) for results in runs if measure in results.info.measures}


def mix_labels(measure: str, runs: Sequence[LabelledResults]) -> list[str]:
    """The runs' labels beside a measure's values; where their texts fill different bands, with what they fill."""
    differ = len(_marks(measure, [results for _, results in runs])) > 1
    labels = []
    for label, results in runs:
        mark = mix_mark(results, measure)
        labels.append(f"{label} ({mark})" if differ and mark else label)
    return labels


def direction(runs: Iterable[Results], measure: str) -> str:
    """The meaning of the measure's high values, "higher = more contextual"; empty where no run states it."""
    higher = one_line(info_of(runs, measure).higher)
    return f"higher = {higher}" if higher else ""


def unit_label(runs: Iterable[Results], measure: str) -> str:
    """The unit of the measure's values in words: `cosine`, `share of variance`; `value` where no run states one."""
    unit = one_line(info_of(runs, measure).unit) or "value"
    return _UNITS.get(unit, unit)


def figure_name(measure: str, runs: Iterable[Results]) -> str:
    """The figure on which a measure has its panel: one for the variants of a metric, one for a measure's tasks."""
    about = info_of(runs, measure)
    return about.name if about.variant else measure


def axis_label(measure: str, statistic: str, results: Iterable[Results] = (), task: str = "") -> str:
    """The axis label of a statistic, with its unit: "cosine − chance".

    Example:
        >>> axis_label("self_similarity", "adjusted")
        'value − chance'
    """
    runs = list(results)
    unit = unit_label(runs, measure)
    if unit == "score" and statistic:  # one of several benchmarks: which
        unit = f"score, {Key.of(measure, statistic).label()}"
    alone = not any(Key(measure, "adjusted", task) in r.by_key for r in runs)
    key = Key(measure, statistic, task)  # where runs' baselines differ, the label names it
    names = [baseline_label(r, key) for r in runs if statistic == "adjusted"]
    which = next((f"{name} " for name in names if name), "")
    level = level_word(runs, measure)
    forms = {
        "adjusted": f"{{}} − {which}{level}",
        "share_of_room": "share of the room above chance",
        "baseline": f"{{}} of {level}",
        "raw": "{}" if alone else "{}, raw",
    }
    return forms.get(statistic, "{}").format(unit)


def level_word(runs: Iterable[Results], measure: str) -> str:
    """The word for a measure's level without context: "chance", or "baseline" where the metric has one of its own."""
    levels = {each.info.measure(measure).level for each in runs}
    return "chance" if levels <= {"", "exact", "drawn", SIZE_MATCHED} else "baseline"


def seeds_suffix(results: Results) -> str:
    """The end of the label of a mean over seeds; empty for a single run."""
    return f", mean of {len(results.info.seeds)} seeds ± sd" if results.info.seeds else ""


def baseline_label(results: Results, key: Key) -> str:
    """The label of the baseline that the curve is, or is adjusted by, such as "size-matched"; empty: the run's own."""
    if key.baseline:
        return key.baseline.replace("_", "-")
    level = results.info.measure(key.measure).level
    return level if key.statistic in ("baseline", "adjusted", "share_of_room") and level == SIZE_MATCHED else ""


def other_baselines(runs: Iterable[Results], measure: str, task: str = "") -> list[str]:
    """The names of the baselines that the measure is adjusted by beside its first, in order of appearance."""
    first = Key(measure, "adjusted", task)
    keys = dict.fromkeys(key for run in runs if first in run.by_key for key in run.by_key)
    return [key.baseline for key in keys if key.baseline and key._replace(baseline="") == first]


def group_size_phrase(results: Iterable[Results], measure: str) -> str:
    """The size of a size-matched group in words: "word's own size"."""
    of_sentence = "sentence" in [each.info.measure(measure).over for each in results]
    return "sentence's own length" if of_sentence else "word's own size"


def baseline_phrase(results: Results, measure: str | None = None) -> str:
    """The baseline in a few words; empty if the run doesn't say.

    "1,000 occurrences, one per sentence", "exact, one per sentence", "random groups of each word's own size".

    Where groups are matched in size, no one size can be named, except for measures on the sample.
    """
    chance = results.info.baseline
    names_size = not chance.matched or (measure is not None and results.info.measure(measure).over == "sample")
    kinds = {info.level for label, info in results.info.measures.items() if measure in (None, label)}
    own = kinds - {"", "exact", "drawn", SIZE_MATCHED}
    if own and kinds - {""} == own:
        return " or ".join(sorted(own))
    matched_phrase = f"random groups of each {group_size_phrase([results], measure or '')}"
    if kinds == {SIZE_MATCHED} and names_size:
        return matched_phrase
    size_phrase = f"{chance.size:,} occurrences" if names_size and chance.size else ""
    if "exact" in kinds:
        size_phrase = f"exact or {size_phrase}" if size_phrase and "drawn" in kinds else "exact"
    parts = [size_phrase, one_line(chance.name).replace("_", " ")]
    phrase = ", ".join(part for part in parts if part)
    return f"{phrase} or {matched_phrase}" if SIZE_MATCHED in kinds and names_size else phrase


def group_count_phrase(results: Results, measure: str, task: str = "") -> str:
    """The number of groups that the mean is over, as in "812 words"; a range where layers differ, empty if unknown."""
    counts = results.by_key.get(Key(measure, "n", task))
    if counts is None or not np.isfinite(n := counts.value).any():
        return ""
    over = results.info.measure(measure).over or "group"
    over = {"sample": "occurrence", "sense": "word", "text": "use"}.get(over, over)  # what a group stands for
    low, high = int(np.nanmin(n)), int(np.nanmax(n))
    number = f"{low:,}" if low == high else f"{low:,}–{high:,}"
    return f"{number} {over if high == 1 else _PLURALS.get(over, over + 's')}"


def shared_facts(
    runs: Sequence[LabelledResults], measure: str | None = None, *, transforms: bool = True, intervals: bool = True
) -> list[str]:
    """Facts that the runs have in common, for below a title: weights, corpus, sentences' pooling, control, transform,
    baseline; how many where runs differ. `transforms=False` leaves these out, for a figure that names them,
    `intervals=False` what is resampled, for one that shows none.

    Example:
        >>> import ctxexp
        >>> text = ["The bank was wet.", "The bank lent us money."]
        >>> results = ctxexp.measure("gpt2", text, metrics="word_norm", min_contexts=2, progress=False)
        >>> shared_facts([("gpt2", results)])[0]
        'weights mini'
    """
    every = [results for _, results in runs]
    weights = [r.info.model.weights for r in every]
    fits = [r.info.transform.fit for r in every]
    poolings = [r.info.pooling.name for r in every if _of_pairs(r, measure)]
    kinds: list[tuple[str, str, str, Iterable[str]]] = [  # a kind, several of it, what goes without saying, each run's
        ("weights", "kinds of weights", "", [] if "" in weights else weights),  # a model hasn't that choice
        ("corpus", "corpora", "", [r.info.corpus.name for r in every]),
        ("", "bounds of contexts", "all contexts", [r.info.corpus.contexts for r in every]),
        ("sentence vectors:", "poolings of sentences", "", [name.replace("_", " ") for name in poolings]),
        ("control:", "controls", "none", [r.info.control for r in every]),
        ("transform", "transforms", "none", [r.info.transform.name for r in every if transforms]),
        ("fitted on", "fitted texts", "target", [fit.text if fit else "target" for fit in fits]),
        ("chance:", "levels of chance", "", [baseline_phrase(r, measure) for r in every if _has_baseline(r, measure)]),
        ("intervals over:", "units of intervals", "",
         [interval_source(r) for r in every if intervals and _has_interval(r, measure)]),
    ]  # fmt: skip
    phrases = []
    for kind, plural, default, texts in kinds:
        distinct = sorted({*map(one_line, texts)} - {""})
        if distinct not in ([], [default]):
            phrases.append(f"{kind} {distinct[0]}".strip() if len(distinct) == 1 else f"{len(distinct)} {plural}")
    mixes = [
        (label, r.info.mix.phrase) for label, r in runs if measure is None or r.info.measure(measure).over in OVER_WORDS
    ]
    for phrase in dict.fromkeys(phrase for _, phrase in mixes if phrase):
        labels = [label for label, other in mixes if other == phrase]
        phrases.append(phrase if len(labels) == len(mixes) else f"{', '.join(labels)}: {phrase}")
    phrases += sorted({one_line(f"{r.info.control}: {r.info.control_note}") for _, r in runs if r.info.control_note})
    unknown = max((r.info.corpus.unknown_share or 0 for _, r in runs), default=0)
    if unknown > MANY:
        phrases.append(f"{'up to ' if len(runs) > 1 else ''}{unknown:.1%} of the pieces unknown to the model")
    return phrases


def encoder_lines(runs: Sequence[LabelledResults]) -> list[str]:
    """A line for each encoder with the labels that stand for it: "bert: BertModel, 5 layers of 128".

    Runs without such metadata are left out. The exact encoder, hashes and options, is in the results and in the page's
    table of runs. Labels of one encoder share a line: "bert, bert (no first word): BertModel".
    """
    labels_by_line: dict[tuple[str, str], list[str]] = {}
    for label, results in runs:
        model, n = results.info.model, results.n_layers
        name = one_line(model.details.get("architecture") or model.encoder)
        if len(name) > _LONGEST_NAME or any(len(word) > _LONGEST_WORD for word in name.split()):
            name = ""
        size = f"{n} layer{'s' * (n != 1)} of {model.dim}" if model.dim else ""
        first = text_start(results)
        if name or size:
            line = ", ".join(filter(None, (name, size, first and f"first: {first}")))
            labels_by_line.setdefault((model.encoder, line), []).append(label)
    return [f"{', '.join(labels)}: {line}" for (_, line), labels in labels_by_line.items()]


def text_start(results: Results) -> str:
    """The tokens before each text that the model reads, and whether the tokenizer adds them; empty unless the model is
    causal, where the first piece sees itself alone, or `model.prefix` decided it."""
    model = results.info.model
    if model.start is None or not (model.causal or model.start.source != "tokenizer"):
        return ""
    return one_line(model.start)


def interval_source(results: Results) -> str:
    """The clusters that the run's intervals resample, in the plural; empty if it has no intervals."""
    if seeds := results.info.seeds:
        return f"{len(seeds)} seeds (mean ± standard deviation)"
    unit = one_line(results.info.resampled.unit or results.info.resampled.pairs)
    these_words = ", the words held fixed" if results.info.resampled.intervals == "these_words" else ""
    return CLUSTERS.get(unit, unit) + these_words


def _has_baseline(results: Results, measure: str | None) -> bool:
    """Whether the measure (None: any) has a baseline, or is itself measured on the baseline's sample."""
    is_of_sample = measure is None or results.info.measure(measure).over == "sample"
    return is_of_sample or Key(measure or "", "baseline") in results.by_key


def _of_pairs(results: Results, measure: str | None) -> bool:
    """Whether the measure, or any of the run, is of pairs of sentence vectors."""
    measures = results.info.measures
    return any(one.over == "pair" for label, one in measures.items() if measure in (None, label))


def _has_interval(results: Results, measure: str | None) -> bool:
    curves = [estimates for key, estimates in results.by_key.items() if key.measure == measure]
    return measure is None or any(np.isfinite(estimates.low).any() for estimates in curves)
