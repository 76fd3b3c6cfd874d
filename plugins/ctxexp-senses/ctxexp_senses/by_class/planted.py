"""Planted worlds of two classes of words in the same sentences, each with components of its own.

`python -m ctxexp_senses.by_class.planted 400` simulates the coverage of the 95% intervals by class, and how often those
of sense separation hold 0 where labels mean nothing.
"""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np

from ctxexp.measuring.bootstrap import Units
from ctxexp.measuring.occurrences import Text
from ctxexp.metric import Block, Estimate
from ctxexp_senses.by_class.components import VarianceComponentsByClass
from ctxexp_senses.by_class.metric import SenseSeparationByClass
from ctxexp_senses.components.planted import SIZES, World
from ctxexp_senses.known import Known, Labels

CLASSES = {  # by tokens of a word: the variances of its effects
    "pieces 1": SIZES,
    "pieces 3+": {"word": 1.0, "form": 0.1, "sense": 0.6, "position": 0.1, "sentence": 0.1, "rest": 0.4},
}
Drawn = tuple[Known, np.ndarray, Units]


def drawn(worlds: dict[str, World], n_sentences: int) -> Drawn:
    """What is known of the rows of sentences that hold words of all worlds; words of the first are one token, those of
    the second three."""
    parts = [world.drawn(n_sentences) for world in worlds.values()]
    known, x = parts[0][0], np.concatenate([x for _, x, _ in parts])
    for i, (more, _, _) in enumerate(parts[1:], 1):
        known = _together(known, replace(more, pieces=np.full(len(more), 2 * i + 1)))
    return known, x, replace(parts[0][2], of_row=known.block)


def estimated(known: Known, x: np.ndarray, units: Units, *, replicates: int = 400) -> dict[str, Estimate]:
    """The shares of each class as the metric tells them."""
    occurrences = SimpleNamespace(min_contexts=2, units=units)
    tokens = np.stack([known.position, known.pieces], axis=1)
    derived: dict[object, object] = {"ctxexp_senses.known": known, "ctxexp_senses.tokens": tokens}
    metric = VarianceComponentsByClass(by=["pieces"])
    metric.meet(Text(None, None, occurrences, None, derived))  # type: ignore[arg-type]
    metric.update_block(Block(["corpus"], x[None], known.rows[None]))
    metric.resample(np.random.default_rng(0), replicates)
    return {name: value for name, value in metric.compute().items() if isinstance(value, Estimate)}


def coverage(*, worlds: int, n_sentences: int) -> dict[str, dict[str, float]]:
    """Of many texts: the share of intervals that hold the true share of each class, and the mean share beside it.

    Positions are few and their effects fixed, so that the others' true shares are of what is left without theirs.
    """
    made = {name: World(sizes, seed=i) for i, (name, sizes) in enumerate(CLASSES.items())}
    runs = [estimated(*drawn(made, n_sentences)) for _ in range(worlds)]
    told: dict[str, dict[str, float]] = {}
    for name, world in made.items():
        truth = world.truth()
        position = np.mean([run[f"{name}/position"].value for run in runs])
        whole = sum(truth.values()) / (1 - position)
        for part in ("word", "form", "sense", "sentence", "rest"):
            found, aim = [run[f"{name}/{part}"] for run in runs], float(truth[part] / whole)
            held = float(np.mean([each.low <= aim <= each.high for each in found]))
            told[f"{name}/{part}"] = {"true": aim, "mean": float(np.mean([e.value for e in found])), "coverage": held}
    return told


def separated(seed: int, dim: int, *, cues: bool, n_words: int = 12, rows: int = 53) -> tuple[Estimate, Estimate]:
    """The separation of a class of words whose labels are shuffled, and that of permuted ones: words in so many of 160
    sentences each, with noise alone or with one of two effects of their sentences too (`cues`)."""
    rng, metric = np.random.default_rng(seed), SenseSeparationByClass(by=["frequency"])
    effects, cue = rng.normal(size=(n_words, dim)), cues * rng.normal(size=(2, dim))
    forms, sentences = np.repeat(np.arange(n_words), rows), []
    for _ in range(n_words):
        sentences.append(np.sort(rng.choice(160, rows, replace=False)))
    sentence = np.concatenate(sentences)
    units = Units("sentence", 160, np.arange(160), sentence)
    groups = SimpleNamespace(rows=np.arange(len(forms)))
    occurrences = SimpleNamespace(forms=forms, by_sentence=groups, units=units)
    metric.meet(Text(SimpleNamespace(bound=None, tags={}), None, occurrences, None, {}))  # type: ignore[arg-type]
    for i in range(n_words):
        mine = np.flatnonzero(forms == i)
        x = effects[i] + cue[sentence[mine] % 2] + 0.5 * rng.normal(size=(rows, dim))
        labels = tuple(map(str, rng.permutation(sentence[mine] % 2)))
        metric.update_block(Block([f"word{i}"], x[None], mine[None], [labels]))
    metric.resample(np.random.default_rng(0), 400)
    found = metric.compute()
    value, level = (found[f"frequency 30-99/{name}"] for name in ("raw", "permuted"))
    assert isinstance(value, Estimate)
    assert isinstance(level, Estimate)
    return value, level


def _together(a: Known, b: Known) -> Known:
    """Rows of both; the words of one are none of the other's."""
    n = len(a)
    held: dict[str, object] = {"rows": np.concatenate([a.rows, n + b.rows]), "document": None}
    for name in (field.name for field in fields(Known) if field.name not in held):
        one, other = getattr(a, name), getattr(b, name)
        if isinstance(one, Labels):
            names = tuple(map(str, range(len(one) + len(other))))
            held[name] = Labels(np.concatenate([one.codes, len(one) + other.codes]), names)
        else:
            held[name] = np.concatenate([one, other])
    return Known(**held)  # type: ignore[arg-type]


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    for name, numbers in coverage(worlds=n, n_sentences=1000).items():
        print(f"  {name:18}" + "".join(f" {key} {value:7.4f}" for key, value in numbers.items()))
    for dim, cues in ((3, False), (24, False), (200, False), (24, True), (200, True)):
        pairs = [separated(seed, dim, cues=cues) for seed in range(n)]
        zero = np.mean([value.low <= 0 <= value.high for value, _ in pairs])
        inside = np.mean([level.low <= value.value <= level.high for value, level in pairs])
        print(
            f"  {dim:3} dimensions, cues {cues!s:5}: intervals hold 0 {zero:.3f}, permuted ones the value {inside:.3f}"
        )
