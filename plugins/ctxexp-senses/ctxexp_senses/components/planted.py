"""Planted worlds: sentences of words whose vectors are sums of effects of known sizes, to hold the estimator to.

`python -m ctxexp_senses.components.planted 400` simulates the coverage of the 95% intervals.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import numpy as np

from ctxexp.measuring.bootstrap import MOST, Curve, Resamples, Units, interval
from ctxexp_senses.attributes import Labels, RowAttributes
from ctxexp_senses.components.design import Design, population
from ctxexp_senses.components.estimate import components, shares
from ctxexp_senses.components.squares import squares

DIM = 12
LENGTHS = (6, 16)  # words of a sentence, the first and one more than the last


@dataclass
class World:
    """Words with forms, senses and a variance of the rest of their own; sentences are drawn anew from it."""

    sizes: dict[str, float]  # the effects' variances, summed over dimensions
    seed: int = 0
    n_words: int = 40
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        weights = 1 / (3 + np.arange(self.n_words))
        forms, senses = self.rng.integers(1, 3, self.n_words), self.rng.integers(1, 4, self.n_words)
        cells = [(w, f, s) for w in range(self.n_words) for f in range(forms[w]) for s in range(senses[w])]
        self.cells = np.array(cells)
        chance = weights[self.cells[:, 0]] * self.rng.uniform(0.3, 1, len(cells))
        self.chance = chance / chance.sum()
        self.effect = self._effect("word", self.n_words)[self.cells[:, 0]]
        self.effect = self.effect + self._effect("form", len(cells))[self._form()]
        self.effect = self.effect + self._effect("sense", len(cells))
        self.at_position = self._effect("position", LENGTHS[1])
        self.rest = self.sizes.get("rest", 0) * self.rng.uniform(0.3, 1.7, self.n_words)

    def _form(self) -> np.ndarray:
        result: np.ndarray = np.unique(self.cells[:, 0] * 10 + self.cells[:, 1], return_inverse=True)[1]
        return result

    def _effect(self, name: str, n: int) -> np.ndarray:
        result: np.ndarray = self.rng.normal(size=(n, DIM)) * np.sqrt(self.sizes.get(name, 0) / DIM)
        return result

    def draw_text(self, n_sentences: int, *, of_document: int = 1) -> tuple[RowAttributes, np.ndarray, Units]:
        """Draw sentences: the attributes of their rows, their vectors (n, DIM), and the units behind intervals."""
        lengths = self.rng.integers(*LENGTHS, n_sentences)
        sentence = np.repeat(np.arange(n_sentences), lengths)
        n = len(sentence)
        position = np.arange(n) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        cell = self.rng.choice(len(self.chance), n, p=self.chance)
        word, form, _ = self.cells[cell].T
        document = sentence // of_document
        noise = self.rng.normal(size=(n, DIM)) * np.sqrt(self.rest[word] / DIM)[:, None]
        x = 3 + self.effect[cell] + self.at_position[position] + noise
        x = x + self._effect("sentence", n_sentences)[sentence] + self._effect("document", n_sentences)[document]
        n_units = document.max() + 1
        attributes = RowAttributes(
            np.arange(n),
            Labels.of(word.tolist()),
            Labels.of(zip(word.tolist(), form.tolist(), strict=True)),
            Labels.of(cell.tolist()),
            position,
            np.ones(n, np.int64),
            sentence,
            document if of_document > 1 else None,
            document % MOST,
        )
        units = Units(
            "document" if of_document > 1 else "sentence", int(n_units), np.arange(n_units) % MOST, attributes.block
        )
        return attributes, x.astype(np.float32), units

    def truth(self) -> dict[str, float]:
        """The components of these words, weighted as they are drawn, and the variances of sentences and documents."""
        p, word, form = self.chance, self.cells[:, 0], self._form()
        means = {name: _means(self.effect, of, p) for name, of in (("word", word), ("form", form))}
        spread = {"word": means["word"] - p @ self.effect, "form": means["form"] - means["word"]}
        spread["sense"] = self.effect - means["form"]
        variances = {name: float(p @ (rows**2).sum(axis=1)) for name, rows in spread.items()}
        rest = float(p @ self.rest[word])
        return {**variances, **{k: self.sizes.get(k, 0) for k in ("sentence", "document")}, "rest": rest}


def _means(x: np.ndarray, of: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(n, d) the weighted mean of each row's kind."""
    total = np.bincount(of, weights)[of][:, None]
    sums = np.stack([np.bincount(of, weights * column)[of] for column in x.T], axis=1)
    result: np.ndarray = sums / total
    return result


def estimate_shares(
    attributes: RowAttributes, x: np.ndarray, units: Units, *, replicates: int = 400
) -> dict[str, tuple[float, float, float, float]]:
    """The components by name: value, share, and the ends of the share's interval."""
    some = population(attributes, min_contexts=2)
    design = Design.of(some)
    parts = components(design, squares(x[np.searchsorted(attributes.rows, some.rows)], design), units.n_blocks)
    resamples = Resamples(units, replicates, np.random.default_rng(0))
    estimates = {}
    for name, share in shares(parts, ()).items():
        if name in parts:
            low, high = interval(resamples.of(Curve(np.array([share.value]), share.influence[None])))
            estimates[name] = (parts[name].value, share.value, float(low[0]), float(high[0]))
    return estimates


def coverage(world: World, *, worlds: int, n_sentences: int, of_document: int = 1) -> dict[str, dict[str, float]]:
    """Coverage by component over many texts: the share of intervals that hold the true share, and the mean share.

    The positions' effects are fixed and few, so that theirs is the mean share that their estimates come to.
    """
    runs = [estimate_shares(*world.draw_text(n_sentences, of_document=of_document)) for _ in range(worlds)]
    truth = world.truth()
    truth["position"] = float(np.mean([run["position"][0] for run in runs]))
    whole = sum(truth[name] for name in runs[0])
    coverages = {}
    for name in runs[0]:
        aim = truth[name] / whole
        share = np.mean([run[name][2] <= aim <= run[name][3] for run in runs])
        coverages[name] = {"true": aim, "mean": float(np.mean([r[name][1] for r in runs])), "coverage": float(share)}
    return coverages


SIZES = {"word": 1.0, "form": 0.3, "sense": 0.2, "position": 0.1, "sentence": 0.25, "rest": 0.8}

if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    for label, sizes, documents in (
        ("sentences", SIZES, 1),
        ("documents of 8", {**SIZES, "document": 0.15}, 8),
        ("no context", {"word": 1.0, "form": 0.3, "rest": 0.5}, 1),
    ):
        print(label)
        for name, numbers in coverage(World(sizes), worlds=n, n_sentences=400, of_document=documents).items():
            print(f"  {name:9}" + "".join(f" {key} {value:7.4f}" for key, value in numbers.items()))
