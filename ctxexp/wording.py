"""The words on figures and pages: titles, definitions, units, and what the runs were. Numbers are formatted here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ctxexp.results import Results

Run = tuple[str, Results]
"""A chart label (usually the model) and what was measured."""

LAYER_AXIS = "layer (0 = input layer)"
VARIANCE = "max_explainable_variance"

_TITLES = {
    "anisotropy": "Anisotropy",
    "self_similarity": "Self-similarity of words",
    "intra_sentence_similarity": "Intra-sentence similarity",
    VARIANCE: "Maximum explainable variance",
    "sense_separation": "Separation of word senses",
    "word_norm": "Length of word vectors",
    "sts": "Semantic textual similarity",
    "edit_distance": "Similarity against edit distance",
    "qnli": "Question against answer",
    "sentence_geometry": "Geometry of sentence vectors",
}
_DEFINITIONS = {
    "anisotropy": "mean cosine of random occurrences",
    "self_similarity": "mean cosine among a word's occurrences (Definition 1)",
    "intra_sentence_similarity": "mean cosine of a sentence's words to their mean (Definition 2)",
    VARIANCE: "uncentred, as printed (Definition 3)",
    f"{VARIANCE}_centred": "centred: principal component analysis",
    f"{VARIANCE}_released": "as the released code computed it",
    "word_norm": "mean over occurrences",
}
_VARIANTS = {  # what tells the definitions apart in a run's own words
    "Definition 3": VARIANCE,
    "principal component": f"{VARIANCE}_centred",
    "released code": f"{VARIANCE}_released",
}
_LONGEST_NAME, _LONGEST_WORD = 200, 80  # characters of an encoder's name: two lines of a foot, and less than one
_PLURALS = {"corpus": "corpora"}
_UNITS = {
    "anisotropy": "cosine",
    "self_similarity": "cosine",
    "intra_sentence_similarity": "cosine",
    "word_norm": "l2 norm",
}


def unique_labels(runs: Sequence[Run]) -> list[Run]:
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


def title(measure: str) -> str:
    """The measure's name as prose; of a task's measure (`sts/STS12`) with the task."""
    known = _TITLES.get(VARIANCE if is_variance(measure) else measure)
    if known is None and "/" in measure and measure.split("/")[0] in _TITLES:
        known = f"{_TITLES[measure.split('/')[0]]}, {task(measure)}"
    return known or one_line(measure.replace("_", " ").replace("/", ", ")).capitalize()


def task(measure: str) -> str:
    """The task of a task's measure (`sts/STS12`), as prose; empty if it has none."""
    name = measure.partition("/")[2]
    return "mean over tasks" if name == "avg" else name


def stated(results: Results, measure: str, key: str) -> str:
    """What the run says about a measure (definition, unit, over, main); a task's measure is the metric's own."""
    measures = results.info.get("measures") or {}
    return one_line((measures.get(measure) or measures.get(measure.split("/")[0]) or {}).get(key) or "")


def mains(results: Results, measure: str) -> tuple[str, ...]:
    """The statistics that may stand for the measure, the first first: the one that its metric names, if it names one,
    adjusted, mean cosine, raw."""
    own = stated(results, measure, "main")
    return (*([own] if own else []), "adjusted", "mean_cosine", "raw")


def define(measure: str, results: Results) -> str:
    """The definition the run states, else what ctxexp means by the measure, else an empty text."""
    said = stated(results, measure, "definition")
    if is_variance(measure):  # short enough for a panel's heading, and named as in the config
        for sign, key in _VARIANTS.items():
            if sign in said:
                return _DEFINITIONS[key]
    if said and task(measure) and measure not in (results.info.get("measures") or {}):
        said = f"{task(measure)}: {said}"
    return said or _DEFINITIONS.get(measure, "")


def definition_order(measure: str) -> int:
    """Where a measure stands among its definitions: the paper's own first."""
    return list(_DEFINITIONS).index(measure) if measure in _DEFINITIONS else len(_DEFINITIONS)


def axis_label(measure: str, statistic: str, results: Iterable[Results] = ()) -> str:
    """What the number is: "cosine − baseline"."""
    units = (stated(r, measure, "unit") for r in results)
    unit = _UNITS.get(measure) or ("share of variance" if is_variance(measure) else "")
    unit = unit or next((u for u in units if u), "value")
    if unit == "score" and statistic:  # one of several benchmarks: which
        unit = f"score, {readable(statistic)}"
    forms = {
        "adjusted": "{} − baseline",
        "size_matched_adjusted": "{} − size-matched baseline",
        "baseline": "{} of the baseline",
        "raw": "{}, raw",
    }
    return forms.get(statistic, "{}").format(unit) if measure != "word_norm" else unit


def readable(statistic: str) -> str:
    """A statistic's name for a legend."""
    names = {
        "size_matched_adjusted": "adjusted, size-matched",
        "size_matched_baseline": "baseline, size-matched",
        "mean_cosine": "mean",
    }
    return names.get(statistic, statistic.replace("_", " "))


def is_variance(measure: str) -> bool:
    """One of the definitions of maximum explainable variance."""
    return measure == VARIANCE or measure.startswith(VARIANCE + "_")


def facts(runs: Sequence[Run], measure: str | None = None) -> list[str]:
    """What the runs have in common, for under a title: weights, corpus, control, transform, baseline; how many where
    runs differ."""
    said = []
    chance = [baseline_words(r, measure) for _, r in runs if measure is None or _has_baseline(r, measure)]
    transforms = [one_line(r.info.get("transform") or "none") for _, r in runs]
    fits = [one_line(r.info.get("fit_on") or "target") for _, r in runs]
    if set(fits) == {"target"}:
        fits = []
    if set(transforms) == {"none"}:
        transforms = fits = []
    controls = [one_line(r.info.get("control") or "none") for _, r in runs]
    if set(controls) == {"none"}:
        controls = []
    for kind, plural, words in (
        ("weights", "kinds of weights", [one_line(r.info.get("weights") or "") for _, r in runs]),
        ("corpus", "corpora", [one_line(r.info.get("corpus") or "") for _, r in runs]),
        ("control:", "controls", controls),
        ("transform", "transforms", transforms),
        ("fitted on", "fitted texts", fits),
        ("baseline:", "baselines", chance),
    ):
        known = sorted(set(words) - {""})
        if known:
            said.append(f"{kind} {known[0]}" if len(known) == 1 else f"{len(known)} {plural}")
    return said


def identities(runs: Sequence[Run]) -> list[str]:
    """What each label stands for: "bert: <encoder>, 5 layers of 128"; runs that don't say are left out.

    An encoder's name is whole, so that it can be looked for, or left out where it would fill the foot.
    """
    said = []
    for label, results in unique_labels(runs):
        name = one_line(results.info.get("encoder") or "")
        if len(name) > _LONGEST_NAME or any(len(word) > _LONGEST_WORD for word in name.split()):
            name = ""
        size = (
            f"{results.n_layers} layer{'s' * (results.n_layers != 1)} of {results.info['dim']}"
            if results.info.get("dim")
            else ""
        )
        if name or size:
            said.append(f"{label}: " + ", ".join(part for part in (name, size) if part))
    return said


def _has_baseline(results: Results, measure: str) -> bool:
    """Anisotropy is the baseline of the others: the same sample."""
    return measure == "anisotropy" or results.get(f"{measure}/baseline") is not None


def baseline_words(results: Results, measure: str | None = None) -> str:
    """ "1,000 occurrences, one per sentence": the chance level in a few words; empty if the run doesn't say.

    Matched groups have the size of what they are compared with: only anisotropy's sample has one to name.
    """
    name, size = results.info.get("baseline"), results.info.get("baseline_size")
    if str(name).endswith("_matched") and measure != "anisotropy":
        size = None
    parts = [f"{size:,} occurrences" if isinstance(size, int) else "", one_line(name or "").replace("_", " ")]
    return ", ".join(part for part in parts if part)


def count_words(results: Results, measure: str) -> str:
    """ "812 words": how many groups the mean is over, a range where layers differ; empty if unknown."""
    n = results.get(f"{measure}/n")
    if n is None or not np.isfinite(n).any():
        return ""
    over = stated(results, measure, "over") or "group"
    over = {"sample": "occurrence", "sense": "word"}.get(over, over)  # what a group of the kind stands for
    low, high = int(np.nanmin(n)), int(np.nanmax(n))
    number = f"{low:,}" if low == high else f"{low:,}–{high:,}"
    return f"{number} {over if high == 1 else _PLURALS.get(over, over + 's')}"
