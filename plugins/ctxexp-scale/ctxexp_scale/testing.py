"""The law of forms in sums: what sentences add up to, in whatever batches, gives the statistics of their groups."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from ctxexp import Estimate, Group, Metric
from ctxexp_scale.forms import sum_form
from ctxexp_scale.sums import Batch, SumForm, Sums

DIM, SENTENCES, WORDS = 12, 40, 7


def check_sum_form(make: Callable[[], Metric]) -> None:
    """Hold a metric's form in sums to its groups.

    Args:
        make: Makes the metric; words weigh the same in it.

    Raises:
        AssertionError: The form gives other numbers, too many or too few.
    """
    metric = make()
    form: SumForm = pickle.loads(pickle.dumps(sum_form(metric)))
    rng = np.random.default_rng(13)
    lengths = rng.integers(1, 8, SENTENCES)
    sentence, word = np.repeat(np.arange(SENTENCES), lengths), rng.integers(0, WORDS, lengths.sum())
    x = (rng.normal(size=(len(word), DIM)) + rng.normal(size=DIM)) * rng.uniform(0.5, 2.0, (len(word), 1))
    of = {"word": word, "sentence": sentence, "corpus": np.zeros_like(word)}.get(metric.over, np.arange(len(word)))
    for i in range(of.max() + 1):
        metric.update(Group(i, x[of == i]))
    statistics = {k: v.value if isinstance(v, Estimate) else float(v) for k, v in metric.compute().items()}
    main = metric.reading.main or "raw"
    for cuts in ([0, SENTENCES], [0, 11, 12, 30, SENTENCES]):
        batches = [(at, low) for low, high in pairwise(cuts) for at in [(sentence >= low) & (sentence < high)]]
        for order in (batches, batches[::-1]):
            total = Sums(np.zeros(WORDS, np.int64))
            for at, low in order:
                total.merge(_sums_of(form, word[at], x[at], sentence[at] - low), np.arange(WORDS))
            found, scores = form.statistics(total), form.scores(total)
            if scores is not None:
                defined = np.isfinite(scores)
                found |= {"raw": float(scores[defined].mean()), "undefined": float((~defined).sum())}
            extra = sorted(found.keys() - statistics.keys())
            assert not extra, f"statistics() has statistics that compute() hasn't: {', '.join(extra)}"
            given = main in found or main == metric.cosine_statistic
            assert given, f"the form gives no {main!r}: expected it of statistics(), or scores()"
            some = {name: statistics[name] for name in found}
            close = all(np.isclose(found[name], some[name], rtol=1e-6, atol=1e-9, equal_nan=True) for name in found)
            assert close, f"{len(batches)} batches sum up to {found}, the same rows in groups to {some}"


def _sums_of(form: SumForm, word: np.ndarray, x: np.ndarray, sentence: np.ndarray) -> Sums:
    """The sums of a batch."""
    import torch

    batch = Batch(torch.from_numpy(x), torch.from_numpy(sentence), int(sentence.max()) + 1)
    sums = Sums(np.bincount(word, minlength=WORDS), overall={k: v.numpy() for k, v in form.addends(batch).items()})
    for name, values in form.word_addends(batch).items():
        sums.by_word[name] = np.zeros((WORDS, *values.shape[1:]))
        np.add.at(sums.by_word[name], word, values.numpy())
    return sums
