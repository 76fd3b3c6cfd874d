"""Models that ship: whole, small, knowing more than counts; a random vector a word knows nothing of contexts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ctxexp import Results, Sentence, measure
from ctxexp.models import minis
from tests.shipped import random_words


@pytest.mark.parametrize("name", minis.FILES)
def test_shipped_models_are_small_and_know_more_than_counts(name: str) -> None:
    folder = minis.folder(name)
    assert max(p.stat().st_size for p in folder.iterdir()) <= 16 * 2**20
    held_out = json.loads((folder / "run.json").read_text())["held_out"]
    assert held_out["loss"] < held_out["unigram"] - 1.0


PAGE = Path(__file__).resolve().parents[2] / "docs/measures/controls.md"


@pytest.fixture(scope="module")
def measured() -> Results:
    metrics = ["self_similarity", "intra_sentence_similarity", "anisotropy", "word_norm"]
    return measure("random_words", metrics=metrics, options=["bootstrap=0"])


def test_a_word_has_one_vector_of_norm_1() -> None:
    """Wherever it stands, as its conformance holds; another one by another seed."""
    sentence = Sentence.of(["the", "bank", "of", "the", "river"])
    (one,), (other,) = (random_words(dim=300, seed=seed).encode([sentence]) for seed in (0, 1))
    assert one.layers.shape == (1, 5, 300)
    assert np.linalg.norm(one.layers[0], axis=1) == pytest.approx(np.ones(5), abs=1e-6)
    assert np.abs((one.layers * other.layers).sum(axis=-1)).max() < 0.3
    assert len({random_words().name, random_words(seed=1).name, random_words(dim=300).name}) == 3


def test_no_measure_finds_context_in_it(measured: Results) -> None:
    raw, corrected = (measured.by_name[f"self_similarity/{name}"] for name in ("raw", "share_of_room"))
    assert raw == pytest.approx([1.0], abs=1e-6)
    assert corrected == pytest.approx([1.0], abs=1e-6)
    assert measured.by_name["word_norm/median"] == pytest.approx([1.0], abs=1e-6)
    assert 0 < measured.by_name["anisotropy/mean_cosine"][0] < 0.03  # of two occurrences that happen to be of one word


def test_the_page_says_what_is_measured(measured: Results) -> None:
    said = PAGE.read_text(encoding="utf-8")
    for words, measure_, statistic in (
        ("intra-sentence similarity, adjusted, is {}", "intra_sentence_similarity", "adjusted"),
        ("`size_matched_adjusted` is {}", "intra_sentence_similarity", "size_matched_adjusted"),
        ("Its mean cosine is {}", "anisotropy", "mean_cosine"),
    ):
        value = measured.by_name[f"{measure_}/{statistic}"]
        assert words.format(f"{value[0]:.3f}") in said
