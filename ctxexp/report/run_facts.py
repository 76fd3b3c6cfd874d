"""Facts of runs in words, for below a title: weights, text, encoders, what intervals resample; and runs that belong
together: those that differ in their seed alone, as their mean with its spread, and one model's checkpoints, in the
order of their training steps.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ctxexp.models.transformer import Checkpoint, training_of
from ctxexp.report.wording import LabelledResults, baseline_phrase, one_line, seeds_suffix, unique_labels
from ctxexp.results import Results
from ctxexp.results.frame import OVER_WORDS
from ctxexp.results.run_info import CLUSTERS
from ctxexp.results.values import Estimates, Key, Values
from ctxexp.vectors.encoding import MANY

_LONGEST_NAME, _LONGEST_WORD = 200, 80  # characters of an encoder's name: two lines of a foot, and less than one


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
    phrases = []
    chance = [baseline_phrase(r, measure) for _, r in runs if measure is None or _has_baseline(r, measure)]
    transform_names = [one_line(r.info.transform.name) for _, r in runs]
    fits = [one_line(fit.text if (fit := r.info.transform.fit) else "target") for _, r in runs]
    if set(fits) == {"target"}:
        fits = []
    if set(transform_names) == {"none"}:
        fits = []
    if set(transform_names) == {"none"} or not transforms:
        transform_names = []
    with_intervals = [r for _, r in runs if intervals and (measure is None or _has_interval(r, measure))]
    interval_sources = [interval_source(r) for r in with_intervals]
    controls = [one_line(r.info.control) for _, r in runs]
    if set(controls) == {"none"}:
        controls = []
    texts = [r.info.corpus for _, r in runs]
    contexts = [text.contexts for text in texts]
    if set(contexts) == {"all contexts"}:
        contexts = []
    poolings = [one_line(r.info.pooling.name).replace("_", " ") for _, r in runs if _of_pairs(r, measure)]
    weights = [one_line(r.info.model.weights) for _, r in runs]
    if "" in weights:  # beside others there is a model that hasn't that choice
        weights = []
    for kind, plural, words in (
        ("weights", "kinds of weights", weights),
        ("corpus", "corpora", [one_line(r.info.corpus.name) for _, r in runs]),
        ("", "bounds of contexts", contexts),
        ("sentence vectors:", "poolings of sentences", poolings),
        ("control:", "controls", controls),
        ("transform", "transforms", transform_names),
        ("fitted on", "fitted texts", fits),
        ("chance:", "levels of chance", chance),
        ("intervals over:", "units of intervals", interval_sources),
    ):
        distinct = sorted(set(words) - {""})
        if distinct:
            phrases.append(f"{kind} {distinct[0]}".strip() if len(distinct) == 1 else f"{len(distinct)} {plural}")
    mixes = [(label, r.info.mix.phrase) for label, r in runs if measure is None or _over_words(r, measure)]
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
    for label, results in unique_labels(runs):
        name = one_line(results.info.model.details.get("architecture") or results.info.model.encoder)
        if len(name) > _LONGEST_NAME or any(len(word) > _LONGEST_WORD for word in name.split()):
            name = ""
        size = (
            f"{results.n_layers} layer{'s' * (results.n_layers != 1)} of {results.info.model.dim}"
            if results.info.model.dim
            else ""
        )
        first = f"first: {first}" if (first := text_start(results)) else ""
        if name or size:
            line = ", ".join(part for part in (name, size, first) if part)
            labels_by_line.setdefault((results.info.model.encoder, line), []).append(label)
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


def _has_baseline(results: Results, measure: str) -> bool:
    """Whether the measure has a baseline, or is itself measured on the baseline's sample."""
    return results.info.measure(measure).over == "sample" or Key(measure, "baseline") in results.by_key


def _over_words(results: Results, measure: str) -> bool:
    return results.info.measure(measure).over in OVER_WORDS


def _of_pairs(results: Results, measure: str | None) -> bool:
    """Whether the measure, or any of the run, is of pairs of sentence vectors."""
    measures = results.info.measures
    return any(one.over == "pair" for label, one in measures.items() if measure in (None, label))


def _has_interval(results: Results, measure: str) -> bool:
    return any(np.isfinite(estimates.low).any() for key, estimates in results.by_key.items() if key.measure == measure)


def average_seeds(runs: Sequence[LabelledResults]) -> list[LabelledResults]:
    """The runs; in the place of several that share every choice but the seed one stands, their mean.

    Its curves are means over seeds, and the ends of its intervals a standard deviation (ddof 1) below and above, NaN
    where one of the runs has no value. A curve that not all of them have is left out. Tables are those of the first
    seed. The spread is that of the seeds' choices alone: the text is the same, so that it is no confidence interval.
    """
    families: dict[str, list[LabelledResults]] = {}
    for number, (label, results) in enumerate(runs):
        families.setdefault(results.info.protocol or f"run {number}", []).append((label, results))
    runs_and_means: list[LabelledResults] = []
    for family in families.values():
        seeds = [results.info.seed for _, results in family]
        alone = len(family) == 1 or len(set(seeds)) < len(seeds)
        runs_and_means += family if alone else [_mean(family)]
    return runs_and_means


def _mean(family: Sequence[LabelledResults]) -> LabelledResults:
    """The labels without what tells the seeds apart, and the mean."""
    every = [results for _, results in family]
    first = every[0]
    label = min((_label_without_seed(label, results.info.seed) for label, results in family), key=len)
    values = Values()
    for key in first.by_key:
        curves = [results.by_key[key].value for results in every if key in results.by_key]
        if len(curves) == len(every) and len({len(curve) for curve in curves}) == 1:
            values.by_key[key] = _mean_and_sd(np.stack(curves))
    encoders = {results.info.model.encoder for results in every}
    model = first.info.model if len(encoders) == 1 else replace(first.info.model, encoder="")
    info = replace(first.info, model=model, seeds=tuple(results.info.seed for results in every))
    mean = Results.of(values, tables=first.tables, info=info)
    return label + seeds_suffix(mean), mean


def _mean_and_sd(curves: np.ndarray) -> Estimates:
    """Mean and standard deviation over the first axis of (seeds, n)."""
    mean, sd = curves.mean(axis=0), curves.std(axis=0, ddof=1)
    return Estimates(mean, mean - sd, mean + sd)


def _label_without_seed(label: str, seed: int) -> str:
    """The label that a sweep gave a job, without what tells it from its other seeds."""
    name, _, overrides = label.removesuffix(")").rpartition(" (") if label.endswith(")") else (label, "", "")
    others = [part for part in overrides.split(", ") if part not in ("", f"seed {seed}")]
    return f"{name} ({', '.join(others)})" if others else name


class RunAtStep(NamedTuple):
    """A run of a checkpoint, and the training step of that."""

    step: int
    label: str
    results: Results


class Training(list[RunAtStep]):
    """The runs of one training's checkpoints, steps ascending.

    Example:
        >>> Training.of([("bert", Results())])  # no run says its step
        {}
    """

    @classmethod
    def of(cls, runs: Sequence[LabelledResults]) -> dict[str, Training]:
        """The runs of each training that has several checkpoints among them, by its name, steps ascending.

        Runs that differ in more than the step are trainings of their own: text, control, transform, dtype.
        """
        by_training: dict[tuple[Hashable, ...], tuple[str, list[RunAtStep]]] = {}
        for label, results in unique_labels(runs):
            info, details = results.info, results.info.model.details
            source, revision = str(details.get("checkpoint", "")), str(details.get("revision_name", ""))
            step = Checkpoint.training_step(revision or Path(source).name)
            if step is None:
                continue
            name, home = (source, source) if revision else (training_of(Path(source)), str(Path(source).parent))
            state = info.corpus.fingerprint, info.control, info.transform.name, info.model.dtype
            others = [part for part in (info.control, info.transform.name) if part != "none"]
            title = one_line(" ".join([Path(name).name, *others]))
            by_training.setdefault((home, *state), (title, []))[1].append(RunAtStep(step, label, results))
        titled = unique_labels([(title, at) for title, at in by_training.values() if len({run.step for run in at}) > 1])
        return {title: cls(sorted(at, key=lambda run: run.step)) for title, at in titled}

    def equal_weights(self) -> list[str]:
        """A line for each two steps whose checkpoints have the same weights, which no training makes."""
        first: dict[str, RunAtStep] = {}
        lines = []
        for run in self:
            weights = str(run.results.info.model.details.get("weights_hash", run.label))
            other = first.setdefault(weights, run)
            if other.step != run.step:
                lines.append(
                    f"{other.label} and {run.label} have the same weights: one of them isn't what it is called"
                )
        return lines
