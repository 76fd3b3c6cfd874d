"""The words on figures and pages: titles, definitions, units, and what the runs were. Numbers are formatted here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ctxexp.results.frame import main_key as main_key
from ctxexp.results.frame import mix_mark as mix_mark
from ctxexp.results.run_info import SIZE_MATCHED
from ctxexp.results.values import SHARE as SHARE
from ctxexp.results.values import SHARE_OF_ROOM as SHARE_OF_ROOM
from ctxexp.results.values import Key

if TYPE_CHECKING:
    from ctxexp.results import Results

T = TypeVar("T")
AVERAGE = "avg"  # the task that is the mean over tasks
LabelledResults = tuple[str, "Results"]
"""A chart label (usually the model) and what was measured."""

MINUS = "\u2212"  # a hyphen is shorter than a plus sign
LAYER_AXIS = "layer (0 = input layer)"
_PLURALS = {"corpus": "corpora"}
_UNITS = {"share": "share of variance"}  # a unit that says on an axis what it is of
UNITS_TO_ONE = ("cosine", "share of variance")  # of which 1 is the most, so that they may share an axis
LOG_UNITS = ("l2 norm",)  # of lengths, which models differ in by factors


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


def title(measure: str, runs: Iterable[Results], task: str = "") -> str:
    """The measure's name as prose, the metric's own where a run states it, with the task and the mark of texts that all
    lack bands of frequency."""
    return _title(measure, list(runs), task)


def full_title(measure: str, task: str, runs: Sequence[Results]) -> str:
    """The measure's name as prose with its task, its variant and, where the texts of all runs lack bands of frequency,
    the mark of that.

    Args:
        measure: The measure's label.
        task: Its task; "": none.
        runs: Results that may state the metric's own title.

    Returns:
        A title for a figure or a row of a table.

    Example:
        >>> full_title("self_similarity", "avg", [])
        'Self similarity, mean over tasks'
    """
    variant = next((r.info.measures[measure].variant for r in runs if measure in r.info.measures), "")
    return _title(measure, runs, task, variant or "")


def _title(measure: str, runs: Sequence[Results], task: str, variant: str = "") -> str:
    name = next((own_title for results in runs if (own_title := one_line(results.info.measure(measure).title))), "")
    name = name or one_line(measure.replace("_", " ")).capitalize()
    name = ", ".join(filter(None, [name, "mean over tasks" if task == AVERAGE else task, variant]))
    marks = _marks(measure, runs)
    return f"{name} ({marks.pop()})" if len(marks) == 1 and marks != {""} else name


def _marks(measure: str, runs: Iterable[Results]) -> set[str]:
    """The marks of the runs that have the measure."""
    return {mix_mark(results, measure) for results in runs if measure in results.info.measures}


def mix_labels(measure: str, runs: Sequence[LabelledResults]) -> list[str]:
    """The runs' labels beside a measure's values; where their texts fill different bands, with what they fill."""
    differ = len(_marks(measure, [results for _, results in runs])) > 1
    return [f"{label} ({mark})" if differ and (mark := mix_mark(r, measure)) else label for label, r in runs]


def direction(runs: Iterable[Results], measure: str) -> str:
    """The meaning of the measure's low values, "lower = more context-specific"; empty where no run states it."""
    return next((f"lower = {one_line(info.lower)}" for r in runs if (info := r.info.measure(measure)).lower), "")


def unit_label(runs: Iterable[Results], measure: str) -> str:
    """The unit of the measure's values in words: `cosine`, `share of variance`; `value` where no run states one."""
    unit = next((u for r in runs if (u := one_line(r.info.measure(measure).unit))), "value")
    return _UNITS.get(unit, unit)


def figure_name(measure: str, runs: Iterable[Results]) -> str:
    """The figure on which a measure has its panel: one for the variants of a metric, one for a measure's tasks."""
    return next((info.name for r in runs if (info := r.info.measure(measure)).variant), measure)


def axis_label(
    measure: str, statistic: str, results: Iterable[Results] = (), task: str = "", baseline: str = ""
) -> str:
    """The axis label of a statistic by one of the baselines, with its unit: "cosine − chance".

    Example:
        >>> axis_label("self_similarity", "share_of_room")
        'share of the room above chance'
    """
    runs = list(results)
    unit = unit_label(runs, measure)
    if unit == "score" and statistic:  # one of several benchmarks: which
        unit = f"score, {Key.of(measure, statistic).label()}"
    alone = not any(Key(measure, "adjusted", task) in r.by_key for r in runs)
    if statistic == "adjusted":  # where runs' baselines differ, the label names it
        key = Key(measure, statistic, task, baseline=baseline)
        baseline = next((name for r in runs if (name := baseline_label(r, key))), "")
    else:
        baseline = baseline.replace("_", "-")
    which = f"{baseline} " if baseline else ""
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
    n = results.values(measure, "n", task=task)
    if n is None or not np.isfinite(n).any():
        return ""
    over = results.info.measure(measure).over or "group"
    over = {"sample": "occurrence", "sense": "word"}.get(over, over)  # what a group of the kind stands for
    low, high = int(np.nanmin(n)), int(np.nanmax(n))
    number = f"{low:,}" if low == high else f"{low:,}–{high:,}"
    return f"{number} {over if high == 1 else _PLURALS.get(over, over + 's')}"
