"""Vectors that hold an artefact and nothing else, as offered models have them, and which claims it passes.

A word's vector is a table's row and noise, in every layer alike, so that no claim on depth, on context or on training
is true; each world adds one artefact. An untrained twin has none. A claim that passes there is fooled: its file lists
the artefact (`passed_by`), so that it never *holds*.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from ctxexp_compare import Space
from ctxexp_papers.claims.evidence import UNTRAINED, Inputs
from ctxexp_papers.claims.paper import Paper
from ctxexp_papers.claims.verdict import try_paper

SENTENCES, WORDS, WIDTH, LAYERS, VOCABULARY = 400, 10, 24, 7, 400
MODELS = ("smollm2", "gpt2 weights=published", "minilm")  # two decoders and an encoder
Artefact = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]
"""From vectors (layers, sentences, words, d), the words' numbers (sentences, words) and a generator to vectors."""


def sink(x: np.ndarray, words: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The first position takes one long vector in the layers between."""
    direction = rng.normal(size=WIDTH)
    x[1:-1, :, 0] = 200 * direction / np.linalg.norm(direction) + rng.normal(size=x[1:-1, :, 0].shape)
    return x


def ramp(x: np.ndarray, words: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each position adds its own place on a line, the same in every model."""
    line = np.random.default_rng(0).normal(size=WIDTH)
    return np.asarray(x + 0.3 * np.arange(WORDS)[:, None] * line)


def averaged(x: np.ndarray, words: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each layer takes the mean with the words before, once more than the layer below."""
    for layer in range(1, LAYERS):
        x[layer, :, 1:] = (x[layer - 1, :, 1:] + x[layer - 1, :, :-1]) / 2
        x[layer, :, 0] = x[layer - 1, :, 0]
    return x


def isotropic(x: np.ndarray, words: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A Gaussian cloud: no words at all."""
    return rng.normal(size=x.shape)


def repeated(x: np.ndarray, words: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Ten sentences again and again."""
    return np.asarray(x[:, np.arange(SENTENCES) % 10] + 0.01 * rng.normal(size=x.shape))


def frequent(x: np.ndarray, words: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A word's length goes with its frequency."""
    counts = np.bincount(words.ravel(), minlength=VOCABULARY)
    return np.asarray(x * np.log2(2 + counts)[words][None, :, :, None])


ARTEFACTS: dict[str, Artefact] = {
    "a sink": sink,
    "a position ramp": ramp,
    "averaging of neighbours": averaged,
    "an isotropic cloud": isotropic,
    "repeated sentences": repeated,
    "frequency alone": frequent,
}
OF_TABLES = ("an isotropic cloud", "frequency alone")
"""Those that vectors without a context can hold."""


@dataclass
class PlantedInputs(Inputs):
    """Models whose vectors hold the artefact, each its own; untrained ones don't."""

    artefact: Artefact = isotropic
    seed: int = 0
    made: dict[tuple[str, bool], Space] = field(default_factory=dict)

    def space(self, model: str, *options: str, sentences: int | None = None) -> Space:
        key = (model, UNTRAINED not in options)
        if key not in self.made:
            number = MODELS.index(model) if model in MODELS else len(MODELS)
            self.made[key] = self.planted(np.random.default_rng([self.seed, number, key[1]]), trained=key[1])
        return self.made[key]

    def tied_table(self, model: str) -> np.ndarray:
        """Each word's vector where it first occurs."""
        space = self.space(model)
        every = space.rows
        _, first = np.unique(space.words(every), return_index=True)
        return np.asarray(space.layers.layer(0)[every[first]])

    def planted(self, rng: np.random.Generator, *, trained: bool) -> Space:
        """A text of words by Zipf's law, and its vectors."""
        text = np.random.default_rng([self.seed, 99])
        p = 1 / np.arange(1, VOCABULARY + 1)
        words = text.choice(VOCABULARY, (SENTENCES, WORDS), p=p / p.sum())
        x = rng.normal(size=(VOCABULARY, WIDTH))[words] + 0.5 * rng.normal(size=(LAYERS, SENTENCES, WORDS, WIDTH))
        x = self.artefact(x, words, rng) if trained else x
        names = [[f"w{word:03d}" for word in sentence] for sentence in words]
        rows = np.arange(words.size)
        start = rows % WORDS * 5
        layers = Space.of_arrays("", x.reshape(LAYERS, -1, WIDTH).astype(np.float32)).layers
        texts = [" ".join(sentence) for sentence in names]
        return Space("", layers, rows, texts, rows // WORDS, np.stack([start, start + 4], axis=1), rows // WORDS)


def of_tables(paper: Paper) -> bool:
    """Whether a paper speaks of vectors without a context."""
    return paper.evidence.get("of") == "tables" or bool(paper.evidence.get("by_word"))


def fooled(paper: Paper, artefact: str, n: int, seed: int) -> dict[str, float]:
    """The share of n worlds in which each of a paper's claims on offered models passes its tests, by claim."""
    found = dict.fromkeys((claim.id for claim in paper.claims), 0.0)
    models = ("glove",) if paper.evidence.get("by_word") else MODELS
    for i in range(n):
        inputs = PlantedInputs(models=models, artefact=ARTEFACTS[artefact], seed=1000 * seed + i)
        for verdict in try_paper(paper, inputs).verdicts:
            finding = verdict.finding or next(iter(verdict.others), None)
            passed = finding is not None and len(finding.holding) == len(verdict.claim.readings)
            found[verdict.claim.id] += passed / n
    return found


def artefacts_table(papers: list[Paper], n: int, seed: int) -> list[str]:
    """A row a claim on vectors that an artefact passes, a column an artefact; then the claims that none passes."""
    lines = [f"| claim that passes where there is nothing but | {' | '.join(ARTEFACTS)} |", "|---" * 7 + "|"]
    none: list[str] = []
    for paper in papers:
        if not paper.claims or {"released", "runs"} & set(paper.evidence):
            continue
        names = OF_TABLES if of_tables(paper) else tuple(ARTEFACTS)
        shares = {name: fooled(paper, name, n, seed) for name in names}
        for claim in paper.claims:
            cells = [f"{shares[name][claim.id]:.0%}" if name in shares else "–" for name in ARTEFACTS]
            line = f"| {paper.name}: `{claim.id}` | " + " | ".join(cells) + " |"
            print(line, flush=True)
            if set(cells) <= {"0%", "–"}:
                none.append(f"{paper.name}: `{claim.id}`")
            else:
                lines.append(line)
    return [*lines, "", f"Passed by none: {', '.join(none) or '-'}."]
