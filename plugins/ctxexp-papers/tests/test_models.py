"""Measures on planted vectors: samples of a text, and that every paper's models can be tried from end to end."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from ctxexp_compare import Sample, Space
from ctxexp_papers.claims.evidence import Inputs
from ctxexp_papers.claims.models import (
    NULLS,
    TextSample,
    comparison,
    similarity_beyond_chance,
    statistic_of,
    text_samples,
)
from ctxexp_papers.claims.paper import Paper, papers
from ctxexp_papers.claims.verdict import try_paper
from ctxexp_papers.metrics import LinearFit

SENTENCES, WORDS, WIDTH, LAYERS = 150, 8, 12, 5
OF_MODELS = [p for p in papers([]) if p.claims and not {"released", "runs"} & set(p.evidence)]


def space(seed: int, *, massive: float) -> Space:
    """A text of 8-word sentences from 300 words; each layer the word, a common vector and noise; in the middle layer
    the first word's second entry is massive."""
    rng = np.random.default_rng(seed)
    n = SENTENCES * WORDS
    words = np.random.default_rng(0).integers(0, 300, n)
    table = rng.normal(size=(300, WIDTH))
    x = table[words] + rng.normal(size=(LAYERS, n, WIDTH)) + 0.5
    x[LAYERS // 2, ::WORDS, 1] = massive
    names = [f"w{word:03d}" for word in words]
    texts = [" ".join(names[i * WORDS : (i + 1) * WORDS]) for i in range(SENTENCES)]
    at = np.arange(n)
    start = at % WORDS * 5
    planted = Space.of_arrays("planted", x.astype(np.float32), blocks=at // WORDS, words=names)
    spans = np.stack([start, start + 4], axis=1)
    return Space("planted", planted.layers, at, texts, at // WORDS, spans, at // WORDS)


@dataclass
class PlantedInputs(Inputs):
    """Models whose vectors are planted: the untrained ones have nothing massive."""

    made: dict[bool, Space] = field(default_factory=dict)

    def space(self, model: str, *options: str, sentences: int | None = None) -> Space:
        trained = "weights=untrained" not in options
        if trained not in self.made:
            self.made[trained] = space(1 + trained, massive=5e4 if trained else 0.0)
        return self.made[trained]


@pytest.fixture(scope="module")
def inputs() -> PlantedInputs:
    return PlantedInputs(models=("smollm2", "minilm", "glove"))


def test_samples_are_whole_sentences_and_disjoint() -> None:
    planted = space(0, massive=0.0)
    parts = text_samples(planted, samples=20, rows=50)
    rows = np.concatenate([part.rows for part in parts])
    assert len(np.unique(rows)) == len(rows)
    for part in parts:
        assert len(part.rows) == 48  # six sentences of eight words: a seventh would make it more than 50 rows
        assert part.is_first.sum() == 6
        assert (np.diff(planted.spans[part.rows, 0])[~part.is_first[1:]] > 0).all()
    by_word = text_samples(planted, samples=20, rows=50, by_word=True)
    every = np.concatenate([part.word for part in by_word])
    assert len(np.unique(every)) == len(every) == len(set(" ".join(planted.texts).split()))


@pytest.mark.parametrize(
    "paper",
    [pytest.param(p, marks=[pytest.mark.nightly] * (p.name == "cai_2021"), id=p.name) for p in OF_MODELS],
)
def test_every_claim_is_decided_on_offered_models_alone(paper: Paper, inputs: PlantedInputs) -> None:
    if paper.evidence.get("of") == "tables":
        inputs = PlantedInputs(models=("gpt2",))  # whose own table it is
    trial = try_paper(paper, inputs)
    for verdict in trial.verdicts:
        assert verdict.own is None
        found = verdict.finding or verdict.others[0]  # of a claim on the paper's own models alone
        assert all(check.is_measured or check.text for check in found.checks)
        assert any(check.is_measured for check in found.checks)
        assert found.source.departures


def test_planted_massive_activations_are_found(inputs: PlantedInputs) -> None:
    (paper,) = papers(["sun_2024"])
    checks = {v.claim.id: v.finding.checks[0] for v in try_paper(paper, inputs).verdicts if v.finding}
    assert [checks[name].passed for name in ("exist", "few", "constant")] == [True] * 3
    assert checks["exist"].effect == pytest.approx(np.log10(5e4), abs=0.3)
    without = PlantedInputs(models=("smollm2",), made={True: space(0, massive=0.0)})
    assert [v.ruling for v in try_paper(paper, without).verdicts] == ["fails", "not run", "not run"]


def test_a_test_says_which_rows_are_measured_and_what_is_taken_off() -> None:
    rng = np.random.default_rng(0)
    part = TextSample(np.arange(60), np.arange(60) // 6, np.arange(60), np.arange(60) % 6 == 0)
    x = rng.normal(size=(60, 5)) + 3.0 * part.is_first[:, None]
    test = {"metric": "anisotropy/mean_cosine"}
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    later = u[~part.is_first]
    expected = ((later.sum(axis=0) ** 2).sum() - 50) / (50 * 49)
    assert statistic_of(x, part, test | {"rows": "later"}, {}) == pytest.approx(expected)
    whole = statistic_of(x, part, test, {})
    shuffled = statistic_of(NULLS["columns shuffled"](x), part, test, {})
    assert statistic_of(x, part, test | {"less": "columns shuffled"}, {}) == pytest.approx(whole - shuffled)
    assert np.isnan(statistic_of(x, part, test | {"given": {"mean_cosine": 2.0}}, {}))
    silhouette = {"metric": "cluster_adjusted_similarity/silhouette", "undefined": 0}
    assert statistic_of(rng.normal(size=(60, 30)), part, silhouette, {}) == 0  # one cluster


def test_similarity_beyond_the_words_is_0_of_random_vectors_a_word_and_1_of_a_space_with_itself() -> None:
    rng, words = np.random.default_rng(1), np.repeat(np.arange(40), 5)
    sample = Sample(np.arange(200) // 5, words=words, strata=words)
    x, y = (rng.normal(size=(40, 10))[words] + 0.5 * rng.normal(size=(200, 10)) for _ in range(2))
    for name in ("mutual_knn", "cka"):
        assert similarity_beyond_chance(comparison(f"{name}/adjusted"), x, x, sample) == pytest.approx(1)
        assert abs(similarity_beyond_chance(comparison(f"{name}/adjusted"), x, y, sample)) < 0.1


def test_a_linear_fit_is_least_squares_in_its_own_rows() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(50, 6)), rng.normal(size=(50, 4))
    measure, sample = LinearFit(), Sample(np.arange(50))
    found = measure.score(*(measure.prepare_side(rows, sample) for rows in (x, y))).value
    design = np.column_stack([np.ones(50), x])
    rest = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert found == pytest.approx(1 - (rest**2).sum() / ((y - y.mean(axis=0)) ** 2).sum())
    wide = [measure.prepare_side(rows, sample) for rows in (rng.normal(size=(50, 60)), y)]
    assert measure.score(*wide).value == pytest.approx(1)  # of any two spaces
