"""The chance-corrected cosine: its ends, its freedom from a shared direction, and where it is undefined."""

from __future__ import annotations

import numpy as np
import pytest

from ctxexp.maths import mean_cosine
from ctxexp.maths.geometry import chance_corrected


def test_the_value_is_0_at_chance_and_1_when_collapsed() -> None:
    level = np.array([-0.2, 0.0, 0.5, 0.978])
    np.testing.assert_allclose(chance_corrected(0 * level, level), 0)
    np.testing.assert_allclose(chance_corrected(1 - level, level), 1)
    # GPT-2's last layer as released: adjusted .007 seems nothing, of the .022 that there is room for it is a third.
    assert chance_corrected(np.array(0.007), np.array(0.978)) == pytest.approx(0.318, abs=0.001)


def test_a_shared_direction_changes_adjusted_but_not_corrected() -> None:
    rng = np.random.default_rng(0)
    d, words = 4000, 60
    word, noise = rng.normal(size=(words, 1, d)), rng.normal(size=(words, 6, d))
    found = []
    for shared in (0.0, 2.0, 8.0):
        x = word + noise + shared
        level = float(mean_cosine(x[:, 0]))
        raw = float(mean_cosine(x).mean())
        found.append((raw - level, float(chance_corrected(np.array(raw - level), np.array(level)))))
    adjusted, corrected = np.array(found).T
    np.testing.assert_allclose(corrected, 0.5, atol=0.02)  # the word's half of the variance
    assert adjusted[0] > 0.45
    assert adjusted[2] < 0.02


def test_without_room_above_chance_it_is_undefined() -> None:
    level = np.array([1 - 2 * 1e-4, 1 - 1e-4 / 2, 1.0, 1 + 1e-9, np.nan])
    np.testing.assert_array_equal(np.isfinite(chance_corrected(np.zeros(5), level)), [True, False, False, False, False])
