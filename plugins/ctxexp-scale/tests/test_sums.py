"""Measures from sums over batches against those of complete groups: values, what parts move, and where undefined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from ctxexp_scale.forms import BaselineSums, sum_form
from ctxexp_scale.sums import Batch, SumForm, Sums, mean_and_spread

from ctxexp.maths import mean_cosine, resampling
from ctxexp.maths.geometry import mean_cosine_to_mean
from ctxexp.maths.statistics import summary
from tests.shipped import IntraSentenceSimilarity, SelfSimilarity

RNG = np.random.default_rng(0)
SENTENCES = [RNG.normal(0.4, 1, (n, 6)) * RNG.uniform(0.5, 2, (n, 1)) for n in (1, 2, 3, 4, 5, 2, 7, 3)]
A = RNG.normal(size=6)
SENTENCES += [
    1e6 * SENTENCES[4],
    1e-6 * SENTENCES[4] + 1e-7,
    np.stack([A, -A * (1 + 1e-7)]),  # a mean of rounding
    1e6 * np.stack([A, -A * (1 + 1e-7)]),
    1e-6 * np.stack([A, -A * (1 + 1e-5)]),  # a short mean
    np.stack([A, 0 * A, -2 * A]),  # a row without direction
    np.zeros((1, 6)),
]
ROWS = np.concatenate(SENTENCES)
OF_SENTENCE = np.repeat(np.arange(len(SENTENCES)), [len(x) for x in SENTENCES])
WORDS = 7  # the first of one row, the second of two, the third of three
OF_WORD = np.concatenate([[0, 1, 1, 2, 2, 2], RNG.integers(3, WORDS, len(ROWS) - 6)])
PARTS = [range(4), range(4, 9), range(9, len(SENTENCES))]


def sums_of(form: SumForm, sentences: range) -> Sums:
    """What the sentences add up to, as one batch."""
    at = np.isin(OF_SENTENCE, sentences)
    x, word = torch.tensor(ROWS[at]), torch.tensor(OF_WORD[at])
    batch = Batch(x, torch.tensor(OF_SENTENCE[at] - sentences[0]), len(sentences))
    by_word = {
        name: torch.zeros(WORDS, *values.shape[1:], dtype=values.dtype).index_add_(0, word, values).numpy()
        for name, values in form.word_addends(batch).items()
    }
    overall = {name: value.numpy() for name, value in form.addends(batch).items()}
    return Sums(np.bincount(OF_WORD[at], minlength=WORDS), by_word, overall)


def merge_parts(form: SumForm) -> tuple[Sums, list[Sums]]:
    """The sums of all parts, and the parts'."""
    parts = [sums_of(form, sentences) for sentences in PARTS]
    whole = Sums(np.zeros(WORDS, np.int64))
    for part in parts:
        some = np.flatnonzero(part.n)  # a part has sums of its own words alone
        whole.merge(part.subset(some), some)
    return whole, parts


def test_self_similarity_of_words() -> None:
    form = sum_form(SelfSimilarity())
    assert form is not None
    whole, parts = merge_parts(form)
    groups = [ROWS[word == OF_WORD] for word in range(WORDS)]
    expected = np.array([float(mean_cosine(x)) for x in groups])
    scores = form.scores(whole)
    assert scores is not None
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    undefined = np.count_nonzero(np.isnan(expected))
    assert 0 < undefined < WORDS / 2
    influences = np.zeros((len(PARTS), WORDS))
    for word, x in enumerate(groups):
        part_of_row = np.searchsorted([p.stop for p in PARTS], OF_SENTENCE[word == OF_WORD], side="right")
        for i, share in enumerate(resampling.mean_cosine_influence(x[None])[0]):
            influences[part_of_row[i], word] += share
    got = np.stack([form.influence(part, whole) for part in parts])  # type: ignore[arg-type]
    assert np.isfinite(got[:, 2]).all()
    np.testing.assert_allclose(
        got, np.where(np.isnan(expected) | np.isnan(influences).any(0), np.nan, influences), atol=1e-12
    )


@pytest.mark.parametrize("unit_norm", [False, True])
def test_intra_sentence_similarity(unit_norm: bool) -> None:
    form = sum_form(IntraSentenceSimilarity(unit_norm=unit_norm))
    assert form is not None
    whole, parts = merge_parts(form)
    scores = [float(mean_cosine_to_mean(x.astype(np.float32), unit_norm=unit_norm)) for x in SENTENCES]
    known = np.isfinite(scores)
    exact = [
        float(mean_cosine_to_mean(x, unit_norm=unit_norm)) if k else np.nan
        for x, k in zip(SENTENCES, known, strict=True)
    ]
    expected = {**summary(np.array(exact)[known]), "undefined": np.count_nonzero(~known)}
    del expected["median"]
    assert expected["undefined"] == (6 if unit_norm else 5)
    assert form.statistics(whole) == pytest.approx(expected, abs=1e-12)
    for sentences, part in zip(PARTS, parts, strict=True):
        mine = np.array(exact)[list(sentences)]
        influences = np.nansum(mine - expected["raw"]) / expected["n"]
        assert form.influence(part, whole) == pytest.approx(influences, abs=1e-12)
    assert np.isnan(form.influence(none := sums_of(form, range(1)), none))  # type: ignore[arg-type]


@pytest.mark.parametrize("over", ["sentence", "row"])
def test_levels(over: Any) -> None:
    """Against the cosines of each thing with every other one; rows without direction are none."""
    form = BaselineSums(over)
    whole, parts = merge_parts(form)
    long = [x[np.linalg.norm(x, axis=1) > 0] for x in SENTENCES]
    units = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in long]
    things = np.stack([u.mean(0) for u in units if len(u)]) if over == "sentence" else np.concatenate(units)
    part_of = np.searchsorted([p.stop for p in PARTS], range(len(SENTENCES)), side="right")
    part_of = np.repeat(part_of, [len(u) > 0 if over == "sentence" else len(u) for u in units])
    n = len(things)
    cosines = things @ things.T
    with_others = (cosines.sum(axis=1) - np.diag(cosines)) / (n - 1)
    level = with_others.mean()
    assert form.statistics(whole) == pytest.approx({"level": level, "n": n}, abs=1e-12)
    for i, part in enumerate(parts):
        influences = (2 * (with_others - level) / n)[part_of == i].sum()
        assert form.influence(part, whole) == pytest.approx(influences, abs=1e-12)
    one, two = sums_of(form, range(1)), sums_of(form, range(2))
    assert np.isnan(form.statistics(one)["level"])
    assert np.isnan(form.influence(one, one))
    if over == "sentence":
        assert form.statistics(two)["level"] == pytest.approx(things[0] @ things[1])
        assert form.influence(two, two) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("values", [[], [3.0], [3.0, 5.0], [1.0, 2.0, 2.0, 7.0], [0.1, 0.1, 0.1]])
def test_means_and_spreads_of_few(values: list[float]) -> None:
    expected = summary(np.array(values))
    del expected["median"]
    got = mean_and_spread(len(values), sum(values), sum(v**2 for v in values))
    assert got == pytest.approx(expected, abs=1e-8, nan_ok=True)
