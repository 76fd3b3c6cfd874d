"""Static vectors beside their model: model2vec's recipe, tables of words and pieces, scores, the command."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from ctxexp_lab.distil import (
    PARTS,
    StaticTable,
    _network,
    distil,
    occurrence_table,
    pair_cosines,
    parts_of_pairs,
    post_process,
    save_static,
    scores,
    static_table,
    zipf_weights,
)

from ctxexp import Sentence
from ctxexp.command import Experiment, configured
from tests.seeds import daily_seed


def test_model2vecs_recipe_is_pca_then_zipfs_inverse_frequency() -> None:
    stats = pytest.importorskip("sklearn.decomposition")
    x = np.random.default_rng(0).normal(size=(50, 6)) * np.arange(1, 7) + 3
    reduced = stats.PCA(4, svd_solver="full").fit_transform(x)
    share = [1 / (r + 2) for r in range(50)]
    weights = [1e-4 / (1e-4 + p / sum(share)) for p in share]
    assert zipf_weights(50) == pytest.approx(weights)
    assert (np.diff(zipf_weights(50)) > 0).all()  # frequent pieces count least
    made = post_process(x, 4)
    np.testing.assert_allclose(np.abs(made), np.abs(reduced * np.array(weights)[:, None]), rtol=1e-5)
    assert post_process(x, 9).shape == (50, 6)


def test_words_have_the_mean_or_first_direction_of_their_rows() -> None:
    rng = np.random.default_rng(1)
    encoded = [
        (["a", "b"], rng.normal(size=(2, 5)) + 1),
        (["b", "a"], rng.normal(size=(2, 5)) + 1),
        (["c"], np.zeros((1, 5))),
    ]
    rows = np.stack([encoded[0][1][0], encoded[1][1][1]])
    mean = occurrence_table(encoded, first_pc=False)
    np.testing.assert_allclose(mean["a"], rows.mean(axis=0))
    direction = occurrence_table(encoded, first_pc=True)
    _, _, v = np.linalg.svd(rows)
    np.testing.assert_allclose(np.abs(direction["a"]), np.abs(v[0]), atol=1e-8)
    assert set(direction) == {"a", "b"}  # a word of zero rows has no direction


def test_sentences_are_scored_by_tables_of_others() -> None:
    """Equal sentences and those of a pair are in one part; all parts are there."""
    rng = np.random.default_rng(daily_seed())
    sentences = [Sentence.of([f"w{i}"]) for i in rng.integers(0, 150, 400)]
    pairs = rng.integers(0, 400, (60, 2))
    parts = parts_of_pairs(sentences, pairs, rng)
    assert (parts[pairs[:, 0]] == parts[pairs[:, 1]]).all()
    assert all(len({parts[i] for i, s in enumerate(sentences) if s == one}) == 1 for one in set(sentences))
    assert set(parts.tolist()) == set(range(PARTS))


def test_a_sentence_is_the_mean_of_its_tokens_that_have_a_vector() -> None:
    table = StaticTable(
        {"a": 0, "b": 1}, np.array([[1.0, 0], [0, 3]], np.float32), lambda some: [list(s.words) for s in some]
    )
    got = table.sentences([Sentence.of(["a", "b", "x"]), Sentence.of(["x"])])
    np.testing.assert_allclose(got[0], [0.5, 1.5])
    assert np.isnan(got[1]).all()
    cosines = pair_cosines(np.array([[1.0, 0], [1, 1], [0, 0]]), np.array([[0, 1], [0, 2]]))
    assert cosines[0] == pytest.approx(math.sqrt(0.5))
    assert math.isnan(cosines[1])


def test_scores_are_spearmans_over_the_covered_pairs_and_shares_are_paired() -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(2)
    gold = rng.normal(size=60)
    own, other = gold + rng.normal(size=60), gold + 2 * rng.normal(size=60)
    other[:10] = np.nan
    first, second, same = scores(
        {"the model": (own, 8, 1.0), "x": (other, 4, 2.0), "same": (own, 4, 2.0)}, gold, replicates=50, seed=0
    )
    assert first.spearman == pytest.approx(100 * spearmanr(own, gold).statistic)
    assert second.spearman == pytest.approx(100 * spearmanr(other[10:], gold[10:]).statistic)
    assert second.kept == pytest.approx(second.spearman / first.spearman)
    assert (first.covered, second.covered) == (1, pytest.approx(50 / 60))
    assert first.low < first.spearman < first.high
    assert (same.kept, same.kept_low, same.kept_high) == (1, 1, 1)
    assert math.isnan(scores({"the model": (own, 8, 1.0)}, gold, replicates=0, seed=0)[0].low)


def test_the_command_sets_each_way_beside_the_model(tmp_path: Path) -> None:
    folder = tmp_path / "STSbenchmark"
    folder.mkdir()
    for part in ("train", "dev", "test"):
        rows = [
            f"main\tx\t2012\t{i}\t{score}\tThe {a} saw the bank.\tA {b} saw the river bank."
            for i, (score, a, b) in enumerate(
                [(5.0, "dog", "dog"), (1.0, "dog", "tree"), (3.0, "cat", "dog"), (0.5, "boat", "cat")] * 2
            )
        ]
        (folder / f"sts-{part}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    made = distil("bert", data=tmp_path, bootstrap=10, out=tmp_path / "out")
    table = made.tables["distil"].numbers.set_index("way")
    assert list(table.index) == ["the model", "singly", "mean", "first_pc", "input", "random"]
    assert table.bytes_kept["singly"] == (8192 - 5) * 192 * 4
    assert table.bytes_kept["input"] == (8192 - 5) * 192 * 4
    assert table.kept["the model"] == 1
    assert (table.covered == 1).all()
    assert (table.words_per_second > 0).all()
    assert table.spearman.nunique() >= 3
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    pieces = Tokenizer.from_file(str(tmp_path / "out" / "singly" / "tokenizer.json"))
    rows = load_file(tmp_path / "out" / "singly" / "model.safetensors")["embeddings"]
    assert rows.shape == (8192, 192)
    assert rows[pieces.encode("The boat", add_special_tokens=False).ids].any(axis=1).all()
    assert not rows[pieces.token_to_id("[CLS]")].any()


def test_the_static_model_loads_elsewhere(tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    encoder = Experiment(configured("bert", metrics="anisotropy")).encoder
    network = _network(encoder)
    sentences = [Sentence.of(text.split()) for text in ("the boat saw a bank", "a cat saw the river bank")]
    table = static_table("input", encoder, network, sentences, seed=0)
    save_static(table, network.tokenizer, tmp_path / "input")
    loaded = sentence_transformers.SentenceTransformer(str(tmp_path / "input"), device="cpu")
    assert loaded.encode([one.text for one in sentences]) == pytest.approx(table.sentences(sentences), abs=1e-6)
