"""Curves and tables: against plain loops, planted truths and laws of the whole measuring."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import ctxexp
from ctxexp import (
    Baseline,
    Block,
    Corpus,
    Group,
    GroupMean,
    Metric,
    Occurrences,
    Results,
    Text,
)
from ctxexp.errors import DataError, MetricError
from ctxexp.metrics import GroupScores
from ctxexp.results import Key
from ctxexp.testing import check
from tests.measuring_helpers import (
    ALL,
    DIM,
    Hashed,
    Lengths,
    MemoryStore,
    contextual,
    measure,
    row_index_of,
    rows_by_key,
    sentences,
    world,
)
from tests.shipped import (
    IntraSentenceSimilarity,
    MaxExplainableVariance,
    OnePerSentence,
    SelfSimilarity,
    SizeMatched,
    Uniform,
)

Measured = tuple[MemoryStore, Occurrences, Corpus, Results]


@pytest.fixture(scope="module")
def measured() -> Measured:
    store, occurrences, corpus = world()
    baseline = OnePerSentence(size=100, redraws=5)
    return store, occurrences, corpus, measure(store, occurrences, ALL, baseline, seed=3, bootstrap=200)


def test_curves_equal_plain_loops(measured: Measured) -> None:
    store, occurrences, corpus, results = measured
    sample = next(OnePerSentence(size=100, redraws=5).groups(occurrences, np.random.default_rng([3, 1])))
    for layer, rows in enumerate(store.layers):
        rows = rows.astype(np.float64)
        u = rows / np.linalg.norm(rows, axis=1, keepdims=True)

        def cosines(at: np.ndarray, u: np.ndarray = u) -> float:
            pairs = u[at] @ u[at].T
            return float((pairs.sum() - np.trace(pairs)) / (len(at) ** 2 - len(at)))

        words = rows_by_key(occurrences.by_word).values()
        shares = [np.linalg.svd(rows[at], compute_uv=False) ** 2 for at in words]
        centred = [np.linalg.svd(rows[at] - rows[at].mean(0), compute_uv=False) ** 2 for at in words]
        released = [(x @ np.linalg.svd(x)[2][0]).var() / x.var(0).sum() for x in (rows[at] for at in words)]
        within = []
        for i, s in enumerate(corpus.sentences):
            first = store.row_index.offsets[store.row_index.stored_of[i]]
            x = rows[first : first + len(s)]
            mean = x.mean(0)
            within.append(np.mean(x @ mean / np.linalg.norm(mean) / np.linalg.norm(x, axis=1)))
        expected = {
            "self_similarity/raw": np.mean([cosines(at) for at in words]),
            "self_similarity/median": np.median([cosines(at) for at in words]),
            "self_similarity/sd": np.std([cosines(at) for at in words], ddof=1),
            "self_similarity/n": len(words),
            "self_similarity/baseline": cosines(sample),
            "self_similarity/adjusted": np.mean([cosines(at) for at in words]) - cosines(sample),
            "intra_sentence_similarity/raw": np.mean(within),
            "intra_sentence_similarity/baseline": cosines(sample),
            "mev/raw": np.mean([s[0] / s.sum() for s in shares]),
            "mev_centred/raw": np.mean([s[0] / s.sum() for s in centred]),
            "mev_released/raw": np.mean(released),
            "mev/baseline": (lambda s: s[0] / s.sum())(np.linalg.svd(rows[sample], compute_uv=False) ** 2),
            "anisotropy/mean_cosine": cosines(sample),
            "anisotropy/n": 100,
            "word_norm/raw": np.linalg.norm(rows, axis=1).mean(),
            "word_norm/sd": np.linalg.norm(rows, axis=1).std(ddof=1),
        }
        for key, value in expected.items():
            assert results.by_name[key][layer] == pytest.approx(value, abs=1e-6), key
    assert "word_norm/baseline" not in results.by_name
    assert all(len(curve) == 2 for curve in results.by_name.values())


def test_five_noisy_rows_are_at_baseline_by_default() -> None:
    """Words of 5 rows of 768 dimensions: one level from 1,000 rows calls them structured, the default doesn't."""
    corpus = Corpus.of("five", [[f"w{i % 200}", f"only{i}"] for i in range(1000)])
    index = row_index_of(corpus)
    occurrences = Occurrences.of(index, corpus)
    x = np.random.default_rng(3).normal(size=(len(index.unit_codes), 768)).astype(np.float32)
    metrics = {
        f"{definition}/{baselines[0]}": partial(MaxExplainableVariance, definition=definition, baselines=baselines)
        for definition in ("uncentred", "centred", "released")
        for baselines in (("run", "size_matched"), ("size_matched",))
    } | {"default": MaxExplainableVariance}
    results = measure(MemoryStore([x], index), occurrences, metrics, OnePerSentence(size=1000))
    assert {*occurrences.counts.tolist()} == {5}
    for label in ("default", *(label for label in metrics if label.endswith("size_matched"))):
        (value,), (low,), (high,) = (results.by_name[f"{label}/adjusted{end}"] for end in ("", "_ci_low", "_ci_high"))
        assert abs(value) < 0.01, label
        assert low < 0.003, label
        assert high > -0.003, label
        assert results.info.measures[label].level == "size-matched"
        assert f"{label}/size_matched_adjusted" not in results.by_name
    assert results.by_name["default/adjusted"] == results.by_name["uncentred/size_matched/adjusted"]
    for definition, least in (("uncentred", 0.19), ("centred", 0.24), ("released", 0.1)):
        assert results.by_name[f"{definition}/run/adjusted"][0] > least, definition
        assert results.info.measures[f"{definition}/run"].level == "drawn"
        beside = results.by_name[f"{definition}/run/size_matched_adjusted"]
        np.testing.assert_array_equal(beside, results.by_name[f"{definition}/size_matched/adjusted"])


def test_weights_of_words_reach_values_intervals_and_baselines() -> None:
    store, occurrences, _ = world(mix=ctxexp.command.configured("bert", ["a"], "words.mean=occurrences").words.mix)
    metrics = {"tokens": SelfSimilarity, "sized": partial(SelfSimilarity, baselines=("size_matched",))}
    results = measure(store, occurrences, metrics, OnePerSentence(size=60), bootstrap=200)
    equal = measure(store, world()[1], metrics, OnePerSentence(size=60), bootstrap=200).by_name
    curves, count = results.by_name, results.tables["sized"]["count"]
    assert not np.allclose(curves["tokens/raw"], equal["tokens/raw"], rtol=1e-4)
    for layer in range(len(store.layers)):
        for statistic in ("raw", "adjusted"):
            by_word = results.tables["sized"][f"{statistic}_{layer}"]
            assert curves[f"sized/{statistic}"][layer] == pytest.approx(np.average(by_word, weights=count))
    low, high = curves["tokens/raw_ci_low"], curves["tokens/raw_ci_high"]
    assert ((low < curves["tokens/raw"]) & (curves["tokens/raw"] < high)).all()
    assert not np.allclose(high - low, equal["tokens/raw_ci_high"] - equal["tokens/raw_ci_low"], rtol=1e-4)


class FewDraws(SizeMatched):
    name = "few_draws"

    def __init__(self) -> None:
        super().__init__(draws=4)


def test_any_named_baseline_stands_beside_the_first() -> None:
    store, occurrences, _ = world()
    named = {"few_draws": FewDraws, "size_matched": SizeMatched}

    def by_name(baseline: Baseline, *names: str, bootstrap: int = 0) -> dict[str, np.ndarray]:
        metrics = {"s": partial(SelfSimilarity, baselines=names)}
        found = measure(
            store, occurrences, metrics, baseline, named_baseline=lambda name: named[name](), bootstrap=bootstrap
        )
        return found.by_name

    curves = by_name(OnePerSentence(size=60), "run", "few_draws", "size_matched", bootstrap=50)
    for name in ("", "few_draws_", "size_matched_"):
        np.testing.assert_allclose(curves[f"s/{name}adjusted"], curves["s/raw"] - curves[f"s/{name}baseline"])
        assert np.isfinite(curves[f"s/{name}adjusted_ci_low"]).all()
    assert not np.array_equal(curves["s/few_draws_baseline"], curves["s/size_matched_baseline"])
    beside = by_name(FewDraws(), "size_matched")
    np.testing.assert_array_equal(beside["s/baseline"], curves["s/few_draws_baseline"])  # the run's, where it has any
    np.testing.assert_array_equal(beside["s/size_matched_baseline"], curves["s/size_matched_baseline"])


def test_block_size_does_not_show() -> None:
    store, occurrences, _ = world()
    whole, other = (
        measure(store, occurrences, ALL, Uniform(size=100, redraws=3), bootstrap=20, block_bytes=n)
        for n in (1 << 20, 1)
    )
    assert whole.by_name.keys() == other.by_name.keys()
    for key, curve in whole.by_name.items():
        np.testing.assert_allclose(other.by_name[key], curve, rtol=0, atol=2e-7, err_msg=key)


def test_the_seed_decides_everything() -> None:
    store, occurrences, _ = world()
    first, again, other = (
        measure(store, occurrences, ALL, OnePerSentence(size=50, redraws=3), seed=seed, bootstrap=20).by_name
        for seed in (1, 1, 2)
    )
    for key in first:
        np.testing.assert_array_equal(first[key], again[key], err_msg=key)
    assert not np.array_equal(first["anisotropy/mean_cosine"], other["anisotropy/mean_cosine"])
    np.testing.assert_array_equal(first["mev/raw"], other["mev/raw"])


def test_equal_layers_have_equal_curves() -> None:
    """Random groups, sampled sentences and resamples are the same in every layer."""
    store, occurrences, _ = world((0.5, 0.5))
    metrics = {**ALL, "some": partial(IntraSentenceSimilarity, sample=30)}
    for key, curve in measure(store, occurrences, metrics, OnePerSentence(size=50), bootstrap=30).by_name.items():
        assert curve[0] == curve[1], key


def test_a_sample_of_sentences() -> None:
    store, occurrences, _ = world()
    some, all_of_them, too_many = (partial(IntraSentenceSimilarity, sample=n) for n in (40, None, 10**6))
    metrics = {"some": some, "all": all_of_them, "many": too_many}
    results = measure(store, occurrences, metrics, OnePerSentence(size=50), bootstrap=30)
    assert results.by_name["some/n"].tolist() == [40, 40]
    np.testing.assert_array_equal(results.by_name["many/raw"], results.by_name["all/raw"])
    every = dict(zip(results.tables["all"]["sentence"], results.tables["all"]["raw_1"], strict=True))
    table = results.tables["some"]
    assert [every[s] for s in table["sentence"]] == pytest.approx(table["raw_1"], abs=1e-6)
    assert len(set(table["sentence"])) == 40


def test_undefined_groups_are_counted_and_left_out() -> None:
    store, occurrences, _ = world()
    zero = int(occurrences.by_word.rows[occurrences.by_word.starts[7]])
    store.layers[1][zero] = 0
    results = measure(store, occurrences, ALL, OnePerSentence(size=50, redraws=5), bootstrap=40)
    assert results.by_name["self_similarity/undefined"].tolist() == [0, 1]
    assert results.by_name["self_similarity/n"].tolist() == [len(occurrences.words), len(occurrences.words) - 1]
    table = results.tables["self_similarity"]
    assert np.isnan(table["raw_1"][7])
    assert not np.isnan(table["raw_0"][7])
    assert table["mean"][7] == table["raw_0"][7]
    assert np.nanmean(table["raw_1"]) == pytest.approx(results.by_name["self_similarity/raw"][1], abs=1e-12)
    for key in ("self_similarity/raw_ci_low", "self_similarity/adjusted_ci_high", "mev/size_matched_adjusted_ci_low"):
        assert np.isfinite(results.by_name[key]).all(), key


def test_a_layer_whose_sentences_tell_nothing_has_no_interval() -> None:
    """One word is enough, since its sentences are what is drawn; one sentence isn't."""
    store, occurrences, _ = world()
    starts, rows = occurrences.by_word.starts, occurrences.by_word.rows
    for g in range(len(occurrences.words) - 1):
        store.layers[1][rows[starts[g]]] = np.nan
    everywhere = occurrences.by_sentence
    metrics = {k: ALL[k] for k in ("self_similarity", "mev", "intra_sentence_similarity")}
    curves = measure(store, occurrences, metrics, OnePerSentence(size=50), bootstrap=30).by_name
    assert curves["self_similarity/n"].tolist() == [len(occurrences.words), 1]
    for key in ("self_similarity/raw_ci_low", "mev/raw_ci_high"):
        assert np.isfinite(curves[key]).all(), key
    lone = everywhere.rows[everywhere.starts[-2] :]
    store.layers[1][np.setdiff1d(everywhere.rows, lone)] = np.nan
    curves = measure(store, occurrences, metrics, OnePerSentence(size=50), bootstrap=30).by_name
    for label in metrics:
        for key in (f"{label}/raw_ci_low", f"{label}/adjusted_ci_high"):
            assert np.isfinite(curves[key]).tolist() == [True, False], key


class Large(GroupMean):
    """Undefined for random groups of 7 rows or fewer, as for a metric that needs more."""

    over = "word"

    def score(self, x: np.ndarray) -> np.ndarray:
        return np.where(x.shape[-2] > 7, 1.0, np.nan) * np.abs(x).mean((-1, -2))

    def update_block(self, block: Block) -> None:
        self._keep(block, np.abs(block.x).mean((-1, -2), dtype=np.float64))


def test_a_word_without_a_chance_level_has_no_adjusted_score() -> None:
    store, occurrences, _ = world()
    table = measure(store, occurrences, {"large": Large}, SizeMatched(size=50), bootstrap=5).tables["large"]
    raw, adjusted = (np.array(table[f"{name}_0"]) for name in ("raw", "adjusted"))
    small = np.array(table["count"]) <= 7
    assert 0 < small.sum() < len(small)
    assert np.isfinite(raw).all()
    np.testing.assert_array_equal(np.isnan(adjusted), small)


def test_measures_without_any_group_are_said_and_undefined(caplog: pytest.LogCaptureFixture) -> None:
    corpus = Corpus.of("rare", [[w] for w in ("a", "b", "c")] + [["the"]] * 2 + [["a", "!"]])
    index = row_index_of(corpus)
    store = MemoryStore([contextual(index, 1.0)], index)
    occurrences = Occurrences.of(index, corpus, min_contexts=5, keep=str.isalnum)
    with caplog.at_level(logging.WARNING, logger="ctxexp"):
        results = measure(store, occurrences, ALL, OnePerSentence(size=3), bootstrap=5)
    assert np.isnan(results.by_name["self_similarity/raw"]).all()
    assert np.isnan(results.by_name["intra_sentence_similarity/raw"]).all()
    assert [r.getMessage() for r in caplog.records] == [
        "self_similarity, mev, mev_centred, mev_released: undefined (NaN) in every layer, since no word reaches "
        "min_contexts=5 distinct sentences; the most frequent, 'a', has 2",
        "intra_sentence_similarity: undefined (NaN) in every layer, since no sentence has 2 measured words",
    ]


@pytest.mark.parametrize(("dtype", "eps"), [(np.float16, None), (np.float32, 2.0**-8)])
def test_rounding_of_the_vectors_precision_is_no_spread(dtype: type, eps: float | None) -> None:
    """Layer 0: equal words up to a rounding of one step; layer 1: words that do differ."""
    corpus = Corpus.of("world", sentences())
    index = row_index_of(corpus)
    rng = np.random.default_rng(0)
    equal = 1 + rng.random((len(index.vocabulary), DIM))[index.unit_codes]
    step = eps or float(np.finfo(dtype).eps)
    rounded = equal + step * rng.integers(-1, 2, equal.shape)
    store = MemoryStore([rounded.astype(dtype), contextual(index, 0.3).astype(dtype)], index)
    metrics = {k: ALL[k] for k in ("mev", "mev_centred", "mev_released", "self_similarity")}
    occurrences = Occurrences.of(index, corpus)
    curves = measure(store, occurrences, metrics, OnePerSentence(size=50), bootstrap=5, eps=eps).by_name
    for label in ("mev_centred", "mev_released"):
        assert curves[f"{label}/undefined"].tolist() == [len(occurrences.words), 0], label
    assert (curves["mev/undefined"] == 0).all()
    assert curves["mev/raw"][0] == pytest.approx(1, abs=1e-3)


def test_tables_list_words_and_their_extremes(measured: Measured) -> None:
    _, occurrences, _, results = measured
    table = results.tables["self_similarity"]
    described = ["word", "count", "contexts", "first_share", "mean"]
    assert list(table) == [*described, "raw_0", "raw_1", "adjusted_0", "adjusted_1"]
    assert list(table["word"]) == occurrences.words
    gap = np.array(table["raw_1"]) - np.array(table["adjusted_1"])
    np.testing.assert_allclose(gap, results.by_name["self_similarity/baseline"][1])
    order = sorted(range(len(table["word"])), key=lambda i: table["mean"][i])
    assert list(results.tables["least_self_similar"]["word"]) == [table["word"][i] for i in order[:10]]
    assert list(results.tables["most_self_similar"]["word"]) == [table["word"][i] for i in order[:-11:-1]]
    assert set(results.tables) == {
        "self_similarity", "self_similarity_errors", "most_self_similar", "least_self_similar",
        "intra_sentence_similarity", "mev", "mev_centred", "mev_released",
    }  # fmt: skip


class Centres(Lengths):
    """Changes what it is lent, which the metrics after it measure too."""

    def score(self, x: np.ndarray) -> np.ndarray:
        x -= x.mean(-2, keepdims=True)
        return np.linalg.norm(x, axis=(-1, -2))


class Misshapen(Lengths):
    def score(self, x: np.ndarray) -> np.ndarray:
        return np.zeros((*x.shape[:-2], 2))


class Forgets(Lengths):
    def _group_scores(self) -> GroupScores:
        keys, scores, _ = super()._group_scores()
        return GroupScores(keys[1:], scores[1:])


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (Forgets, r"metric 'mine' kept \d+ scores of \d+ groups; expected one score per group"),
        (Centres, r"metric 'mine' \(Centres\) failed at layer 0, .*: ValueError: .*read-only"),
        (Misshapen, r"metric 'mine' at layer 0, word .*: Misshapen.score gave shape \(\d+, 2\) for \d+ groups; expect"),
    ],
)
def test_a_broken_metric_is_named_with_layer_and_group(factory: Callable[[], Metric], message: str) -> None:
    store, occurrences, _ = world()
    with pytest.raises(MetricError, match=message):
        measure(store, occurrences, {"mine": factory}, OnePerSentence(size=50, redraws=1), bootstrap=10)


def test_one_layer_is_in_memory_at_a_time() -> None:
    """A store that makes its layers as they are asked for, as a transform does: the one before is let go first."""
    store, occurrences, _ = world()
    alive = []
    most = 0

    class Made:
        n_layers, layer_numbers, dim = 4, range(4), store.dim

        def layer(self, i: int) -> np.ndarray:
            nonlocal most
            most = max(most, sum(ref() is not None for ref in alive))
            made = store.layer(0).copy()
            alive.append(weakref.ref(made))
            return made

    measure(Made(), occurrences, {"self_similarity": SelfSimilarity}, bootstrap=5)
    assert (len(alive), most) == (4, 0)


class LengthsOfSample(Lengths):
    """Over the baseline's random groups, which lie in no unit of their own."""

    over = "sample"


def test_random_groups_alone_give_no_interval() -> None:
    store, occurrences, _ = world()
    results = measure(store, occurrences, {"length": LengthsOfSample}, OnePerSentence(size=20, redraws=4))
    assert set(results.by_name["length/n"]) == {5.0}
    assert not [name for name in results.by_name if "_ci_" in name]


def test_a_metric_meets_what_is_measured_before_its_groups(tmp_path: Path) -> None:
    """And may refuse a corpus before anything is encoded."""

    class Places(Metric):
        over = "occurrence"

        def require(self, corpus: Corpus) -> None:
            if "s" not in corpus.tags:
                raise DataError("no tags")

        def bind_text(self, text: Text) -> None:
            self.text, self.seen = text, 0

        def update_block(self, block: Block) -> None:
            assert block.rows is not None
            self.seen += int(self.text.occurrences.places[block.rows].sum())

        def update(self, group: Group) -> None: ...

        def compute(self) -> dict[str, float]:
            return {"raw": float(self.seen)}

    words = sentences(20)
    plain = Corpus.of("x", words)
    run = partial(
        ctxexp.measure, Hashed(), metrics={"places": Places}, min_contexts=2, bootstrap=0,
        options=[f"cache.folder={tmp_path / 'none'}"],
    )  # fmt: skip
    with pytest.raises(DataError, match="no tags"):
        run(plain)
    assert not (tmp_path / "none").exists()
    found = run(replace(plain, tags={"s": tuple(map(tuple, words))}))
    assert found.by_name["places/raw"].tolist() == [sum(sum(range(len(s))) for s in words)] * 2
    said = check("metric", Places)
    assert said.notes == ["it meets a text, which random groups have none of: its interface alone was checked"]


def test_the_corrected_cosine_is_the_curves_ratio_by_resample(measured: Measured) -> None:
    *_, results = measured
    curves = results.by_name
    for label, prefix in (
        ("self_similarity", ""),
        ("intra_sentence_similarity", ""),
        ("intra_sentence_similarity", "size_matched_"),
    ):
        raw, level = curves[f"{label}/raw"], curves[f"{label}/{prefix}baseline"]
        np.testing.assert_allclose(curves[f"{label}/{prefix}share_of_room"], (raw - level) / (1 - level))
        drawn = {s: results.replicates[Key.of(label, f"{prefix}{s}")] for s in ("adjusted", "share_of_room")}
        levels = 1 - drawn["adjusted"] / drawn["share_of_room"]  # what each resample's level must have been
        assert np.abs(levels.mean(axis=1) - level).max() < 0.01
        low, high = (curves[f"{label}/{prefix}share_of_room_ci_{end}"] for end in ("low", "high"))
        np.testing.assert_allclose([low, high], np.percentile(drawn["share_of_room"], [2.5, 97.5], axis=1), atol=1e-6)
        assert f"{label}/{prefix}share_of_room_undefined" not in curves
    assert {key.measure for key in results.by_key if key.statistic == "share_of_room"} == {
        label for label, metric in ALL.items() if metric().reading.maximum == 1
    }


def test_where_all_vectors_are_equal_nothing_is_corrected() -> None:
    store, occurrences, _ = world()
    store.layers[1][:] = store.layers[1][0]
    curves = measure(store, occurrences, ALL, OnePerSentence(size=60), bootstrap=50).by_name
    corrected = curves["self_similarity/share_of_room"]
    assert np.isfinite(corrected[0])
    assert np.isnan([corrected[1], curves["self_similarity/share_of_room_ci_low"][1]]).all()
    np.testing.assert_array_equal(
        curves["self_similarity/share_of_room_undefined"], [0, curves["self_similarity/n"][1]]
    )
    assert curves["self_similarity/adjusted"][1] == pytest.approx(0, abs=1e-6)  # which seems to say something
