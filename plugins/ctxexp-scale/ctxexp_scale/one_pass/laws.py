"""The law of sums (`ctxexp_scale.one_pass.sums`): they add up, and agree with complete groups."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence

import numpy as np

from ctxexp import Group, Metric
from ctxexp.errors import MetricError
from ctxexp.testing.report import Breach, difference, equal, numbers, updated_metric
from ctxexp_scale.one_pass.forms import form_in_sums
from ctxexp_scale.one_pass.sums import Batch, SumForm, Sums

WORDS, SENTENCES, DIM = 7, 40, 12


def check_sums(make: Callable[[], Metric]) -> None:
    """Raise Breach unless sums of a text's sentences, in parts and in other batches, give the statistics of its groups;
    a metric without a form in sums breaks no law."""
    metric = make()
    try:
        form: SumForm = pickle.loads(pickle.dumps(form_in_sums(metric)))
    except MetricError:
        return
    rng = np.random.default_rng(13)
    lengths = rng.integers(1, 8, SENTENCES)
    sentence, word = np.repeat(np.arange(SENTENCES), lengths), rng.integers(0, WORDS, lengths.sum())
    x = (rng.normal(size=(len(word), DIM)) + rng.normal(size=DIM)) * rng.uniform(0.5, 2.0, (len(word), 1))
    of = {"word": word, "sentence": sentence, "corpus": np.zeros_like(word)}.get(metric.over, np.arange(len(word)))
    expected = numbers(updated_metric(make, [Group(i, x[of == i]) for i in range(of.max() + 1)]).compute())
    for cuts in ([SENTENCES], [11, 12, 30, SENTENCES]):
        parts = [(word[at], x[at], sentence[at] - low) for low, at in _cut(sentence, cuts)]
        for order in (parts, parts[::-1]):
            statistics = form.statistics(_sum(form, order)).statistics
            if extra := sorted(statistics.keys() - expected.keys()):
                raise Breach(f"statistics() has statistics that compute() hasn't: {', '.join(extra)}")
            if not equal(statistics, {name: expected[name] for name in statistics}, tolerance=1e-9):
                batches = f"{len(cuts)} batches sum up to"
                raise Breach(f"{batches} {difference(statistics, expected)}, of the same rows in groups")


def _cut(sentence: np.ndarray, cuts: Sequence[int]) -> list[tuple[int, np.ndarray]]:
    """The first sentence of each piece, and its rows."""
    return [(a, (sentence >= a) & (sentence < b)) for a, b in zip([0, *cuts], cuts, strict=False)]


def _sum(form: SumForm, parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Sums:
    """The total over parts, each the words, rows and sentences of a batch."""
    import torch

    total = Sums(np.zeros(WORDS, np.int64))
    for word, x, sentence in parts:
        addends = form.addends(Batch(torch.from_numpy(x), torch.from_numpy(sentence), int(sentence.max()) + 1))
        part = Sums(np.bincount(word, minlength=WORDS), overall={k: v.numpy() for k, v in addends.overall.items()})
        for name, values in addends.by_word.items():
            part.by_word[name] = np.zeros((WORDS, *values.shape[1:]))
            np.add.at(part.by_word[name], word, values.numpy())
        total.merge(part, np.arange(WORDS))
    return total
