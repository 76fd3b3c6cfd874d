"""Simulated texts whose vectors are sums of effects of known variances, to test the estimator of the components."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from ctxexp_measures.senses.attributes import Labels, RowAttributes
from ctxexp_measures.senses.components.design import Design, population
from ctxexp_measures.senses.components.estimate import components, shares, squares

from ctxexp.maths import Curve, Resamples, interval
from ctxexp.maths.resampling import Clusters

VARIANCES = {"word": 1.0, "form": 0.3, "sense": 0.2, "position": 0.1, "sentence": 0.25, "rest": 0.8}
DIM = 12  # over which the variances of effects are sums
LENGTHS = (6, 16)  # words of a sentence: smallest number, and one more than the largest


@dataclass
class World:
    """Words with forms and senses, the true effects of these, and a residual variance for each word; texts are drawn
    from it."""

    seed: int = 0
    n_words: int = 40
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        weights = 1 / (3 + np.arange(self.n_words))
        forms, senses = self.rng.integers(1, 3, self.n_words), self.rng.integers(1, 4, self.n_words)
        cells = [(w, f, s) for w in range(self.n_words) for f in range(forms[w]) for s in range(senses[w])]
        self.cells = np.array(cells)
        probability = weights[self.cells[:, 0]] * self.rng.uniform(0.3, 1, len(cells))
        self.probability = probability / probability.sum()
        self.effect = self._effect("word", self.n_words)[self.cells[:, 0]]
        self.effect = self.effect + self._effect("form", len(cells))[self._form()]
        self.effect = self.effect + self._effect("sense", len(cells))
        self.at_position = self._effect("position", LENGTHS[1])
        self.residual = VARIANCES["rest"] * self.rng.uniform(0.3, 1.7, self.n_words)

    def _form(self) -> np.ndarray:
        return np.unique(self.cells[:, 0] * 10 + self.cells[:, 1], return_inverse=True)[1]

    def _effect(self, name: str, n: int) -> np.ndarray:
        return self.rng.normal(size=(n, DIM)) * np.sqrt(VARIANCES[name] / DIM)

    def draw_text(
        self, n_sentences: int, *, sentences_per_document: int = 1
    ) -> tuple[RowAttributes, np.ndarray, Clusters]:
        """Draw sentences: the attributes of their rows, their vectors (n, DIM), and the clusters behind intervals."""
        lengths = self.rng.integers(*LENGTHS, n_sentences)
        sentence = np.repeat(np.arange(n_sentences), lengths)
        n = len(sentence)
        position = np.arange(n) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        cell = self.rng.choice(len(self.probability), n, p=self.probability)
        word, form, _ = self.cells[cell].T
        document = sentence // sentences_per_document
        noise = self.rng.normal(size=(n, DIM)) * np.sqrt(self.residual[word] / DIM)[:, None]
        x = 3 + self.effect[cell] + self.at_position[position] + noise
        x = x + self._effect("sentence", n_sentences)[sentence]
        n_units = document.max() + 1
        attributes = RowAttributes(
            np.arange(n),
            Labels.of(word.tolist()),
            Labels.of(zip(word.tolist(), form.tolist(), strict=True)),
            Labels.of(cell.tolist()),
            position,
            np.ones(n, np.int64),
            sentence,
            document if sentences_per_document > 1 else None,
            document % 2048,
        )
        clusters = Clusters(
            "document" if sentences_per_document > 1 else "sentence",
            int(n_units),
            np.arange(n_units) % 2048,
            attributes.block,
        )
        return attributes, x.astype(np.float32), clusters

    def truth(self) -> dict[str, float]:
        """The true variance of each component but the position's, weighted as words are drawn (see `coverage`)."""
        p, word, form = self.probability, self.cells[:, 0], self._form()
        means = {name: _means(self.effect, groups, p) for name, groups in (("word", word), ("form", form))}
        spread = {"word": means["word"] - p @ self.effect, "form": means["form"] - means["word"]}
        spread["sense"] = self.effect - means["form"]
        variances = {name: float(p @ (rows**2).sum(axis=1)) for name, rows in spread.items()}
        residual = float(p @ self.residual[word])
        return {**variances, "sentence": VARIANCES["sentence"], "rest": residual}


def _means(x: np.ndarray, groups: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(n, d) the weighted mean of each row's group."""
    total = np.bincount(groups, weights)[groups][:, None]
    sums = np.stack([np.bincount(groups, weights * column)[groups] for column in x.T], axis=1)
    return sums / total


def estimate_shares(
    attributes: RowAttributes, x: np.ndarray, clusters: Clusters
) -> dict[str, tuple[float, float, float, float]]:
    """The components by name: variance, its share of the total, and lower and upper end of the share's interval."""
    selected = population(attributes, min_contexts=2)
    design = Design.of(selected)
    parts = components(design, squares(x[np.searchsorted(attributes.rows, selected.rows)], design), clusters.n_blocks)
    resamples = Resamples(clusters, 400, np.random.default_rng(0))
    estimates = {}
    for name, share in shares(parts, ()).items():
        if name in parts:
            low, high = interval(resamples.of(Curve(np.array([share.value]), share.influence[None])))
            estimates[name] = (parts[name].value, share.value, float(low[0]), float(high[0]))
    return estimates


def coverage(world: World, *, n_texts: int, n_sentences: int) -> dict[str, dict[str, float]]:
    """Coverage by component over `n_texts` texts of one world: the true share, the mean of the estimated shares, and
    the fraction of intervals that hold the true share.

    The effects of the positions are few and fixed, so that their true variance is taken to be the mean of its
    estimates.
    """
    estimates = [estimate_shares(*world.draw_text(n_sentences)) for _ in range(n_texts)]
    truth = world.truth()
    truth["position"] = float(np.mean([one["position"][0] for one in estimates]))
    total = sum(truth[name] for name in estimates[0])
    coverages = {}
    for name in estimates[0]:
        share = truth[name] / total
        covers = np.mean([one[name][2] <= share <= one[name][3] for one in estimates])
        mean = float(np.mean([one[name][1] for one in estimates]))
        coverages[name] = {"true": share, "mean": mean, "coverage": float(covers)}
    return coverages
