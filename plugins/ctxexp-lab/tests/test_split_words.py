"""Split words: they are spelled by their parts, recovered where planted, and not where nothing is to be recovered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ctxexp_lab.splits import (
    SplitWord,
    encoders,
    figure,
    find_words,
    is_recovered,
    recovered_shares,
    sentence,
    split_words,
    vectors,
)

from ctxexp import Sentence
from ctxexp.command import registry
from ctxexp.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def gpt2() -> Any:
    return encoders(["gpt2"], untrained=False)["gpt2"]


@pytest.fixture(scope="module")
def sentences() -> Sequence[Sentence]:
    return registry().find("dataset", "polysemy").factory().sentences[:150]


@pytest.fixture(scope="module")
def words(gpt2: Any, sentences: Sequence[Sentence]) -> list[SplitWord]:
    return find_words(gpt2, sentences, 30, 0)


def test_parts_spell_the_word_and_places_hold_it(gpt2: Any, words: list[SplitWord]) -> None:
    backend = gpt2.tokenizer
    assert len({word.word for word in words}) == len(words) == 30
    for word in words:
        assert backend.decode(list(word.parts)).strip() == word.word
        for occurrence in (word.one, word.other):
            assert backend.decode([int(occurrence.ids[occurrence.at])]).strip() == word.word
        assert not np.array_equal(word.one.ids, word.other.ids)


def test_vectors_are_the_model_s_own(gpt2: Any, words: list[SplitWord]) -> None:
    """By transformers itself, on ids that are put together here."""
    import torch

    by_condition = vectors(gpt2, words[:12], 0)
    word = words[3]
    ids = [*word.one.ids[: word.one.at], *word.parts, *word.one.ids[word.one.at + 1 :]]
    with torch.inference_mode():
        hidden = gpt2.model(input_ids=torch.tensor([ids], dtype=torch.long), output_hidden_states=True).hidden_states
    expected = torch.stack([layer[0, word.one.at + 1] for layer in hidden]).numpy()
    np.testing.assert_allclose(by_condition["split"][:, 3], expected, atol=1e-4)
    at = torch.tensor([[word.one.at, word.one.at + 1]])
    with torch.inference_mode():
        alone = gpt2.model(input_ids=torch.tensor([word.parts]), position_ids=at, output_hidden_states=True)
    expected = torch.stack([layer[0, 1] for layer in alone.hidden_states]).numpy()
    np.testing.assert_allclose(by_condition["alone"][:, 3], expected, atol=1e-4)
    assert {x.shape for x in by_condition.values()} == {(5, 12, 192)}


def test_recovery_is_the_naive_search_and_chance_is_one_in_n() -> None:
    rng = np.random.default_rng(0)
    candidates = rng.normal(size=(40, 8))
    x = candidates + rng.normal(size=(40, 8)) * 0.8 + 5
    a, b = x - x.mean(0), candidates - candidates.mean(0)
    naive = [int(np.argmax([u @ v / np.linalg.norm(u) / np.linalg.norm(v) for v in b])) == i for i, u in enumerate(a)]
    assert is_recovered(x, candidates).tolist() == naive
    assert 0.3 < np.mean(naive) < 1
    shares = [is_recovered(rng.normal(size=(40, 8)), rng.normal(size=(40, 8))).mean() for _ in range(400)]
    assert np.mean(shares) == pytest.approx(1 / 40, abs=4 * np.std(shares) / 20)
    assert not is_recovered(np.ones((4, 3)), candidates[:4, :3]).any()


@pytest.mark.nightly
def test_a_gain_is_claimed_where_it_is_planted_and_rarely_elsewhere() -> None:
    rng = np.random.default_rng(2)

    def world(noise: float) -> dict[str, np.ndarray]:
        other = rng.normal(size=(4, 60, 12)).astype(np.float32)
        near = {"whole": 0.1, "split": noise, "alone": 9.0, "mismatched": 9.0}
        return {"other": other} | {
            k: other + rng.normal(size=other.shape).astype(np.float32) * s for k, s in near.items()
        }

    planted = _gains(world(0.5))
    assert (planted.low > 0).all()
    false = sum((_gains(world(9.0)).low > 0).any() for _ in range(60))
    assert false <= 7  # of 60; 5% are 3, and 7 have a chance of 3% to be exceeded


def _gains(by_condition: dict[str, np.ndarray]) -> pd.DataFrame:
    rows = pd.DataFrame(recovered_shares(by_condition, replicates=400, seed=0))
    return rows[rows.condition == "gain"]


def test_the_verb_writes_table_figure_and_a_sentence(tmp_path: Path) -> None:
    made = split_words("gpt2", words=12, untrained=False)
    made.save(tmp_path)
    numbers = pd.read_csv(tmp_path / "split_words.csv")
    assert set(numbers.condition) == {"whole", "split", "alone", "mismatched", "gain"}
    assert numbers.layer.max() == 4
    np.testing.assert_allclose(numbers.chance, 1 / 12, rtol=1e-12)
    assert (tmp_path / "split_words.png").stat().st_size > 5000
    assert made.sentences == [sentence("gpt2", numbers)]
    whole = numbers[numbers.condition == "whole"]
    drawn = figure(numbers).axes[0].lines[0]
    np.testing.assert_array_equal(drawn.get_ydata(), whole.share)


def test_what_has_no_split_words_is_said(gpt2: Any) -> None:
    with pytest.raises(DataError, match="0 words of one piece and 4 letters or more stand in two sentences"):
        find_words(gpt2, [Sentence.of(["a", "bank"])], 10, 0)
    with pytest.raises(ConfigError, match="split-words random_words: expected a transformer"):
        encoders(["random_words"], untrained=False)
    with pytest.raises(ConfigError, match="split-words needs a model: ctxexp split-words gpt2 bert"):
        split_words()
