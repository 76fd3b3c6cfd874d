"""What holds for the sums of `ctxexp.measuring.one_pass.additive`: they tell what complete groups do, and add up."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence

import numpy as np

from ctxexp.errors import MetricError
from ctxexp.measuring.one_pass.additive import Additive, Batch, OnePass, Sums
from ctxexp.metric import Group, Metric
from ctxexp.testing.report import Broken, difference, equal, fed, numbers

WORDS, SENTENCES, DIM = 7, 40, 12


def one_pass_law(make: Callable[[], Metric]) -> None:
    """Sums of a text's sentences, in parts and in other batches, give the statistics that its groups give."""
    metric = make()
    if not isinstance(metric, OnePass):
        return
    try:
        additive: Additive = pickle.loads(pickle.dumps(metric.additive()))
    except MetricError:
        return  # its options need rows
    rng = np.random.default_rng(13)
    lengths = rng.integers(1, 8, SENTENCES)
    sentence, word = np.repeat(np.arange(SENTENCES), lengths), rng.integers(0, WORDS, lengths.sum())
    x = (rng.normal(size=(len(word), DIM)) + rng.normal(size=DIM)) * rng.uniform(0.5, 2.0, (len(word), 1))
    of = {"word": word, "sentence": sentence, "corpus": np.zeros_like(word)}.get(metric.over, np.arange(len(word)))
    expected = numbers(fed(make, [Group(i, x[of == i]) for i in range(of.max() + 1)]).compute())
    for cuts in ([SENTENCES], [11, 12, 30, SENTENCES]):
        parts = [(word[at], x[at], sentence[at] - low) for low, at in _cut(sentence, cuts)]
        for order in (parts, parts[::-1]):
            found = additive.found(_summed(additive, order)).statistics
            if unknown := sorted(found.keys() - expected.keys()):
                raise Broken(f"found() has statistics that compute() hasn't: {', '.join(unknown)}")
            if not equal(found, {name: expected[name] for name in found}, tolerance=1e-9):
                raise Broken(f"{len(cuts)} batches sum up to {difference(found, expected)}, of the same rows in groups")


def _cut(sentence: np.ndarray, cuts: Sequence[int]) -> list[tuple[int, np.ndarray]]:
    """The first sentence of each piece, and its rows."""
    return [(a, (sentence >= a) & (sentence < b)) for a, b in zip([0, *cuts], cuts, strict=False)]


def _summed(additive: Additive, parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Sums:
    """What the batches of these words, rows and sentences add up to, a part each."""
    import torch

    total = Sums(np.zeros(WORDS, np.int64))
    for word, x, sentence in parts:
        addends = additive.addends(Batch(torch.from_numpy(x), torch.from_numpy(sentence), int(sentence.max()) + 1))
        part = Sums(np.bincount(word, minlength=WORDS), whole={k: v.numpy() for k, v in addends.whole.items()})
        for name, values in addends.by_word.items():
            part.by_word[name] = np.zeros((WORDS, *values.shape[1:]))
            np.add.at(part.by_word[name], word, values.numpy())
        total.merge(part, np.arange(WORDS))
    return total
