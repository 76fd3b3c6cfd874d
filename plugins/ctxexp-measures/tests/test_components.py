"""Variance components: against dense matrices, on planted worlds, on shuffled labels, and on words without context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ctxexp_measures.senses.attributes import Labels, RowAttributes
from ctxexp_measures.senses.components import design as designs
from ctxexp_measures.senses.components.design import Design, ambiguous, population
from ctxexp_measures.senses.components.estimate import components, shares, squares
from ctxexp_measures.senses.components.figure import figure, frame, table
from ctxexp_measures.senses.components.metric import VarianceComponents

from ctxexp import Corpus, Encoder, Group, Results, Sense, Sentence
from ctxexp.command import Experiment
from ctxexp.errors import MetricError
from tests.composed import config_of
from tests.planted import PlantedEncoder, measured_in, vector_of

from .planted_components import World, coverage, estimate_shares


def small(seed: int = 0) -> tuple[Design, np.ndarray]:
    """A design of a few hundred rows, and vectors without any structure."""
    known, x, _ = World(seed=seed, n_words=15).draw_text(60, sentences_per_document=3)
    some = population(known, min_contexts=3)
    return Design.of(some), np.random.default_rng(seed).normal(size=(len(some), 5)) + x[some.rows, :5]


def dense(codes: np.ndarray) -> np.ndarray:
    return (codes[:, None] == np.unique(codes)).astype(np.float64)


def averaging(z: np.ndarray) -> np.ndarray:
    """(n, n): a level's mean in place of each of its rows."""
    return z @ np.diag(1 / z.sum(axis=0)) @ z.T


@pytest.mark.parametrize("limit", [designs.SMALL, 1])
def test_expectations_are_traces_of_dense_matrices(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to the products: dense for few levels, by cells for many."""
    monkeypatch.setattr(designs, "SMALL", limit)
    design, _ = small()
    n, cell = len(design.attributes), design.levels["cell"]
    outside = np.eye(n) - averaging(dense(cell.of_row))
    of_word = dense(design.levels["word"].of_row)
    assert [factor.name for factor in design.factors] == ["sentence", "document"]
    np.testing.assert_allclose(design.place.within, 0, atol=1e-12)
    for i, a in enumerate(design.factors):
        form = outside @ averaging(dense(a.of_row)) @ outside  # the squares of a are tr(form x x')
        np.testing.assert_allclose(a.own, of_word.T @ np.diag(form), atol=1e-9)
        for k, b in enumerate(design.factors):
            z = dense(b.of_row)
            put = (of_word.T @ (outside @ z) ** 2).sum(axis=1)
            np.testing.assert_allclose(b.within, put / design.free, atol=1e-9)
            np.testing.assert_allclose(design.expected[i, k], np.trace(z.T @ form @ z) - a.own @ b.within, atol=1e-8)
    for name, level in design.levels.items():
        means = averaging(dense(level.of_row))
        for factor in (design.place, *design.factors):
            expected = of_word.T @ np.diag(means @ dense(factor.of_row) @ dense(factor.of_row).T @ means)
            np.testing.assert_allclose(factor.of_means[name], expected, atol=1e-9)


def test_squares_and_influences_equal_those_of_dense_matrices() -> None:
    design, x = small()
    found = squares(x.astype(np.float32), design)
    y = x.astype(np.float32).astype(np.float64)
    y -= y.mean(axis=0)
    cells = averaging(dense(design.levels["cell"].of_row))
    rest = y - cells @ y
    np.testing.assert_allclose(found.within, (rest**2).sum(axis=1), rtol=1e-9)
    for name, level in design.levels.items():
        np.testing.assert_allclose(found.means[name].sum(), ((averaging(dense(level.of_row)) @ y) ** 2).sum())
    for factor in design.factors:
        form = averaging(dense(factor.of_row))
        np.testing.assert_allclose(found.by_factor[factor.name].sum(), np.vdot(rest, form @ rest))

    def weighted(weights: np.ndarray) -> float:
        """Sum of squares of the sentences with rows that count so often."""
        of = design.levels["cell"].of_row
        total = np.bincount(of, weights)
        means = np.stack([np.bincount(of, weights * column) / total for column in y.T], axis=1)
        z = dense(design.factors[0].of_row)
        sums = z.T @ (weights[:, None] * (y - means[of]))
        return float(((sums**2).sum(axis=1) / (z.T @ weights)).sum())

    for row in (0, 17, 101):
        step = np.zeros(len(y))
        step[row] = 1e-5
        slope = (weighted(1 + step) - weighted(1 - step)) / 2e-5
        np.testing.assert_allclose(found.by_factor["sentence"][row], slope, rtol=1e-4, atol=1e-6)


@pytest.mark.nightly
def test_planted_components_come_back_with_their_intervals() -> None:
    told = coverage(World(), n_texts=60, n_sentences=150)
    for name, numbers in told.items():
        assert numbers["mean"] == pytest.approx(numbers["true"], abs=0.006), name
        assert numbers["coverage"] >= 0.83, name  # 4 standard errors below .95 are .84
    assert np.mean([numbers["coverage"] for numbers in told.values()]) >= 0.9


def test_shuffled_senses_and_sentences_have_no_share() -> None:
    """Labels that mean nothing, within each form; words in the sentences of others."""
    known, x, clusters = World(seed=3).draw_text(400)
    rng = np.random.default_rng(0)
    senses = known.sense.codes.copy()
    for form in range(len(known.form)):
        mine = np.flatnonzero(known.form.codes == form)
        senses[mine] = rng.permutation(senses[mine])
    plain = estimate_shares(known, x, clusters)
    shuffled = estimate_shares(
        replace(known, sense=Labels(senses, known.sense.names), sentence=rng.permutation(known.sentence)), x, clusters
    )
    for name in ("sense", "sentence"):
        assert plain[name][2] > 0.02
        assert shuffled[name][2] < 0 < shuffled[name][3]
        assert abs(shuffled[name][1]) < 0.005


def test_invariances() -> None:
    design, x = small(1)
    plain = shares(components(design, squares(x, design), 20), ())
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(5, 5)))[0]
    for y in (x @ turn, 7 * x, x + 100):
        for name, share in shares(components(design, squares(y, design), 20), ()).items():
            assert share.value == pytest.approx(plain[name].value, abs=1e-9), name


def test_a_factor_that_nothing_tells_stays_in_the_rest() -> None:
    """A sentence of one row each has no share of its own: it is what this word does in it."""
    world = World(seed=2)
    known, x, clusters = world.draw_text(1500)
    some = population(known.subset(np.flatnonzero(known.position == known.sentence % 5)), min_contexts=2)
    design = Design.of(some)
    assert not design.factors
    parts = components(design, squares(x[some.rows], design), clusters.n_blocks)
    truth = world.truth()
    assert parts["rest"].value == pytest.approx(truth["rest"] + truth["sentence"], rel=0.1)


def test_words_with_labels_count_where_they_are_labelled() -> None:
    known = RowAttributes(
        np.arange(8), Labels.of("aaaabbbb"), Labels.of("aaaabbbb"), Labels.of(["x", "x", "y", "", "", "", "", ""]),
        np.zeros(8, int), np.ones(8, int), np.arange(8), None, np.arange(8),
    )  # fmt: skip
    assert population(known, min_contexts=3).rows.tolist() == [0, 1, 2, 4, 5, 6, 7]
    assert population(known, min_contexts=4).rows.tolist() == [4, 5, 6, 7]
    several = ambiguous(Design.of(population(known, min_contexts=3)))
    assert several.rows.tolist() == [0, 1, 2]
    with pytest.raises(MetricError, match="no word stands in min_contexts=9 sentences, and twice in one"):
        population(known, min_contexts=9)
    with pytest.raises(MetricError, match="rows alone don't say which words they are"):
        VarianceComponents().update(Group("corpus", np.zeros((3, 2))))


class Mixed(PlantedEncoder):
    """Layer 0 knows the spelling alone, layer 1 the sentence too; tokens are half words, so that places are even."""

    name, n_layers, dim = "mixed", 2, 8

    def layers_of(self, sentence: Sentence) -> list[np.ndarray]:
        words = np.stack([vector_of(word, 8) for word in self.spelled(sentence)])
        return [words, words + vector_of(sentence.text, 8)]

    def spelled(self, sentence: Sentence) -> Sequence[str]:
        return sentence.words

    def token_spans(self, sentences: list[Sentence]) -> list[np.ndarray]:  # type: ignore[override]
        return [np.stack([2 * np.arange(len(s)), np.full(len(s), 2)], axis=1) for s in sentences]


def text(n: int = 80) -> Corpus:
    """Sentences of ten words in two cases; the first word is labelled, with a sense that changes nothing."""
    rng = np.random.default_rng(0)
    sentences, senses = [], []
    for i in range(n):
        words = [w.upper() if rng.random() < 0.3 else w for w in rng.choice([*"abcdefghij"], 7).tolist()]
        sentences.append(Sentence.of(["target", *words]))
        senses.append(Sense(i, 0, "xy"[i % 2]))
    return Corpus("made", tuple(sentences), senses=tuple(senses))


def run(model: Encoder, corpus: Corpus, folder: Path) -> Results:
    return measured_in(folder, model, corpus, metrics={"c": VarianceComponents}, min_contexts=3)


def test_a_study_measures_all_and_ambiguous_words(tmp_path: Path) -> None:
    found = run(Mixed(), text(), tmp_path)
    first, second = (
        {name: found.by_name[f"c/{name}"][i] for name in ("word", "form", "sense", "position", "sentence", "rest")}
        for i in (0, 1)
    )
    assert first["word"] + first["form"] == pytest.approx(1, abs=1e-6)
    assert first["form"] > 0.2
    assert second["sentence"] == pytest.approx(0.5, abs=0.08)
    assert abs(second["rest"]) < 0.03
    assert found.by_name["c/ambiguous/n"].tolist() == [80, 80]
    assert found.by_name["c/ambiguous/sense_ci_low"][1] < 0 < found.by_name["c/ambiguous/sense_ci_high"][1]
    assert found.info.measures["c"].main == "context"

    numbers = frame([("mixed", found)])
    assert numbers[["model", "corpus", "words", "layer"]].to_numpy().tolist() == [
        ["mixed", "made", words, i] for words in ("all", "ambiguous") for i in (0, 1)
    ]
    made = table([("mixed", found)])
    assert made.shown[0][:4] == ["mixed", "made", "all", "1"]
    drawn = figure([("mixed", found)])
    assert len(drawn.axes) == 2
    heights = sum(patch.get_height() for patch in drawn.axes[0].patches if patch.get_x() > 0.5)
    assert heights == pytest.approx(1)
    assert figure([]) is table([]) is None


class Placed(Mixed):
    """Layer 0 has a vector for each word at each place, as interactions of the two give; layer 1 the sentence too."""

    def spelled(self, sentence: Sentence) -> list[str]:
        return [f"{w} {i}" for i, w in enumerate(sentence.words)]

    def unit_keys(self, sentences: list[Sentence]) -> list[list[str]]:  # type: ignore[override]
        return [self.spelled(s) if self.told else list(s.words) for s in sentences]


@pytest.mark.parametrize(("told", "component"), [(True, "form"), (False, "position")])
def test_what_a_word_and_its_place_make_together_is_no_context(tmp_path: Path, told: bool, component: str) -> None:
    """Whether the pieces tell the place or not."""
    rng = np.random.default_rng(1)
    corpus = Corpus.of("placed", [rng.choice([*"abcdefgh"], 6).tolist() for _ in range(150)])
    encoder = Placed()
    encoder.told, encoder.name = told, f"placed {told}"
    found = run(encoder, corpus, tmp_path)
    assert abs(found.by_name["c/context"][0]) < 1e-5
    assert found.by_name[f"c/{component}"][0] > 0.5
    assert found.by_name["c/context"][1] == pytest.approx(0.5, abs=0.08)


def test_a_transformers_pieces_are_its_own() -> None:
    """`the` and ` the` are two to these vocabularies, and ` cat` is one wherever it stands."""
    sentence = Sentence(
        "the cat (the cat", ("the", "cat", "(", "the", "cat"), ((0, 3), (4, 7), (8, 9), (9, 12), (13, 16))
    )
    for model in ("gpt2", "bert"):
        encoder = Experiment(config_of([f"model={model}", "device=cpu"])).encoder
        (pieces,) = encoder.unit_keys([sentence])
        assert len(pieces) == 5
        assert pieces[0] != pieces[3]
        assert pieces[1] == pieces[4] != pieces[2]
        (counts,) = encoder.token_spans([sentence])
        assert [len(each) for each in pieces] == counts[:, 1].tolist()  # type: ignore[arg-type]
