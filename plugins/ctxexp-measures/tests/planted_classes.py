"""Simulated texts with two classes of words in the same sentences, each with components of its own.

`python plugins/ctxexp-measures/tests/planted_classes.py 400` simulates, with 400 texts, the coverage of the 95%
intervals by class, and how often those of sense separation hold 0 where labels mean nothing.
"""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
from ctxexp_measures.senses.attributes import Labels, RowAttributes
from ctxexp_measures.senses.by_class.components import VarianceComponentsByClass
from ctxexp_measures.senses.by_class.metric import SenseSeparationByClass

from ctxexp import Block, Estimate, Text
from ctxexp.maths.resampling import Units
from ctxexp.occurrences import EQUAL

from .planted_components import VARIANCES, World

CLASSES = {  # by tokens of a word: the variances of its effects
    "pieces 1": VARIANCES,
    "pieces 3+": {"word": 1.0, "form": 0.1, "sense": 0.6, "position": 0.1, "sentence": 0.1, "rest": 0.4},
}
PlantedText = tuple[RowAttributes, np.ndarray, Units]


def draw_text(worlds: dict[str, World], n_sentences: int) -> PlantedText:
    """Draw sentences with words of all worlds: attributes of their rows, vectors, and resampling units; words of the
    first world are one token, those of the second three."""
    parts = [world.draw_text(n_sentences) for world in worlds.values()]
    attributes, x = parts[0][0], np.concatenate([x for _, x, _ in parts])
    for i, (more, _, _) in enumerate(parts[1:], 1):
        attributes = _together(attributes, replace(more, pieces=np.full(len(more), 2 * i + 1)))
    return attributes, x, replace(parts[0][2], of_row=attributes.block)


def estimate_shares(
    attributes: RowAttributes, x: np.ndarray, units: Units, *, replicates: int = 400
) -> dict[str, Estimate]:
    """The metric's shares of each class, by name."""
    occurrences = SimpleNamespace(min_contexts=2, units=units)
    tokens = np.stack([attributes.position, attributes.pieces], axis=1)
    derived: dict[object, object] = {
        "ctxexp_measures.senses.attributes": attributes,
        "ctxexp_measures.senses.tokens": tokens,
    }
    metric = VarianceComponentsByClass(by=["pieces"])
    metric.bind_text(Text(None, None, occurrences, None, derived))  # type: ignore[arg-type]
    metric.update_block(Block(["corpus"], x[None], attributes.rows[None]))
    metric.resampling = np.random.default_rng(0), replicates
    return {name: value for name, value in metric.compute().items() if isinstance(value, Estimate)}


def coverage(*, n_texts: int, n_sentences: int) -> dict[str, dict[str, float]]:
    """Coverage by class and component over `n_texts` texts: the true share, the mean of the estimated shares, and the
    fraction of intervals that hold the true share.

    Positions are few and their effects fixed, so that the others' true shares are of what is left without theirs.
    """
    world_of = {name: World(variances, seed=i) for i, (name, variances) in enumerate(CLASSES.items())}
    runs = [estimate_shares(*draw_text(world_of, n_sentences)) for _ in range(n_texts)]
    coverages: dict[str, dict[str, float]] = {}
    for name, world in world_of.items():
        truth = world.truth()
        position = np.mean([run[f"{name}/position"].value for run in runs])
        whole = sum(truth.values()) / (1 - position)
        for part in ("word", "form", "sense", "sentence", "rest"):
            estimates, aim = [run[f"{name}/{part}"] for run in runs], float(truth[part] / whole)
            share = float(np.mean([each.low <= aim <= each.high for each in estimates]))
            coverages[f"{name}/{part}"] = {
                "true": aim,
                "mean": float(np.mean([e.value for e in estimates])),
                "coverage": share,
            }
    return coverages


def simulate_separation(
    seed: int, dim: int, *, cues: bool, n_words: int = 12, rows: int = 53
) -> tuple[Estimate, Estimate]:
    """Separation of a class of words whose labels mean nothing, and that of permuted labels: each word in `rows` of 160
    sentences, with noise alone, or also with one of two effects of the sentences (`cues`)."""
    rng, metric = np.random.default_rng(seed), SenseSeparationByClass(by=["frequency"])
    effects, cue = rng.normal(size=(n_words, dim)), cues * rng.normal(size=(2, dim))
    forms, sentences = np.repeat(np.arange(n_words), rows), []
    for _ in range(n_words):
        sentences.append(np.sort(rng.choice(160, rows, replace=False)))
    sentence = np.concatenate(sentences)
    units = Units("sentence", 160, np.arange(160), sentence)
    groups = SimpleNamespace(rows=np.arange(len(forms)))
    counts = dict.fromkeys((f"word{i}" for i in range(n_words)), rows)
    words = {"mix": EQUAL, "text_counts": counts, "text_total": len(forms)}
    occurrences = SimpleNamespace(forms=forms, by_sentence=groups, units=units, **words)
    metric.bind_text(Text(SimpleNamespace(bound=None, tags={}), None, occurrences, None, {}))  # type: ignore[arg-type]
    for i in range(n_words):
        mine = np.flatnonzero(forms == i)
        x = effects[i] + cue[sentence[mine] % 2] + 0.5 * rng.normal(size=(rows, dim))
        labels = tuple(map(str, rng.permutation(sentence[mine] % 2)))
        metric.update_block(Block([f"word{i}"], x[None], mine[None], [labels]))
    metric.resampling = np.random.default_rng(0), 400
    statistics = metric.compute()
    value, level = (statistics[f"frequency 30-99/{name}"] for name in ("raw", "permuted"))
    assert isinstance(value, Estimate)
    assert isinstance(level, Estimate)
    return value, level


def _together(a: RowAttributes, b: RowAttributes) -> RowAttributes:
    """The rows of both texts, whose words all differ."""
    n = len(a)
    columns: dict[str, object] = {"rows": np.concatenate([a.rows, n + b.rows]), "document": None}
    for name in (field.name for field in fields(RowAttributes) if field.name not in columns):
        one, other = getattr(a, name), getattr(b, name)
        if isinstance(one, Labels):
            names = tuple(map(str, range(len(one) + len(other))))
            columns[name] = Labels(np.concatenate([one.codes, len(one) + other.codes]), names)
        else:
            columns[name] = np.concatenate([one, other])
    return RowAttributes(**columns)  # type: ignore[arg-type]


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    for name, numbers in coverage(n_texts=n, n_sentences=1000).items():
        print(f"  {name:18}" + "".join(f" {key} {value:7.4f}" for key, value in numbers.items()))
    for dim, cues in ((3, False), (24, False), (200, False), (24, True), (200, True)):
        pairs = [simulate_separation(seed, dim, cues=cues) for seed in range(n)]
        zero = np.mean([value.low <= 0 <= value.high for value, _ in pairs])
        inside = np.mean([level.low <= value.value <= level.high for value, level in pairs])
        print(
            f"  {dim:3} dimensions, cues {cues!s:5}: intervals hold 0 {zero:.3f}, permuted ones the value {inside:.3f}"
        )
