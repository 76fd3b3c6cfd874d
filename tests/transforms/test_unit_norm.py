"""`transform=unit_norm`: every row at norm 1, before any measure, so that one long row counts as any other."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from ctxexp import Occurrences
from ctxexp.command import Built
from ctxexp.testing import check
from tests.composed import composed
from tests.engine import Space, calibrated, measure, place
from tests.shipped import Anisotropy, IntraSentenceSimilarity, OnePerSentence, UnitNorm

ISS = "intra_sentence_similarity"


@pytest.mark.parametrize("centred", [False, True])
def test_rows_have_norm_1_by_hand(centred: bool) -> None:
    check("transform", lambda: UnitNorm(centred=centred))
    x = np.random.default_rng(0).normal(size=(9000, 4)).astype(np.float32) + 2
    x[3] *= 1e4
    y = UnitNorm(centred=centred).fit(x).apply(x)
    expected = x.astype(np.float64) - (x.mean(0, dtype=np.float64) if centred else 0)
    np.testing.assert_allclose(y, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
    assert not UnitNorm().fit(x).apply(np.zeros((2, 4), np.float32)).any()
    assert UnitNorm(centred=centred).needs_fit == centred  # nothing to fit on another text otherwise


def planted() -> tuple[Space, Occurrences, Space]:
    """Sentences whose words are alike, the same with the first row of each 100 times as long and one for all."""
    space, occurrences = place()
    layers = space.layers.copy()
    firsts = [rows[0] for _, block, _ in occurrences.by_sentence.blocks(10**6) for rows in block]
    layers[:, firsts] = 100 * np.eye(6, dtype=np.float32)[0]
    return space, occurrences, Space(layers)


def adjusted(space: Any, occurrences: Occurrences) -> dict[str, np.ndarray]:
    found = measure(
        space,
        occurrences,
        {ISS: partial(IntraSentenceSimilarity, baselines=("run", "size_matched")), "anisotropy": Anisotropy},
        OnePerSentence(exact=True),
        seed=1,
        bootstrap=20,
    )
    return {str(key): held.value for key, held in found.by_key.items()}


def test_measures_and_exact_baselines_see_rows_of_norm_1() -> None:
    _, occurrences, sunk = planted()
    through = adjusted(calibrated(sunk, occurrences, UnitNorm), occurrences)
    norms = np.linalg.norm(sunk.layers, axis=2, keepdims=True)
    by_hand = adjusted(Space(sunk.layers / norms), occurrences)
    assert through.keys() == by_hand.keys()
    for key, value in through.items():
        np.testing.assert_allclose(value, by_hand[key], atol=2e-6, err_msg=key)
    assert any(key.startswith(f"{ISS}/size_matched") for key in through)
    plain = adjusted(sunk, occurrences)
    np.testing.assert_allclose(through[f"{ISS}/baseline"], plain[f"{ISS}/baseline"], atol=1e-6)  # cosines see no length


@pytest.mark.parametrize(
    ("option", "arguments", "said"),
    [
        ("unit_norm", {"centred": False}, "unit_norm"),
        ("center_unit_norm", {"centred": True}, "unit_norm (centred=True)"),
    ],
)
def test_it_is_ctxexp_s_own_choice_on_the_command_line(option: str, arguments: dict[str, bool], said: str) -> None:
    config = composed(f"transform={option}")
    assert (config.transform.name, config.transform.arguments) == ("unit_norm", arguments)
    assert config.transform.offer.builtin
    assert Built(config).title == f"bert + {said}"
