"""Laws of the probe: planted answers are found where they are, folds keep sentences apart, only `all` moves ELMo."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from ctxexp_lab.probe import command, train
from ctxexp_lab.probe.train import (
    OccurrenceLayers,
    SenseProbe,
    SenseTask,
    Settings,
    fit,
    probe,
    right,
    table,
    tune,
    word_bootstrap,
)

from ctxexp import Corpus, CtxexpError, Sense, Sentence
from ctxexp.command import Verb
from ctxexp.models import ElmoNetwork
from tests.tiny_models import elmo, elmo_options

TINY = elmo_options(filters=((1, 4), (2, 4)), projection=6)


def network(seed: int = 0) -> ElmoNetwork:
    return ElmoNetwork(TINY, generator=torch.Generator().manual_seed(seed)).requires_grad_(False).eval()


def corpus(rows: Sequence[tuple[str, str]]) -> Corpus:
    """Sentences with the label of their first word that the label begins with."""
    sentences = [Sentence.of(text.split()) for text, _ in rows]
    senses = [
        Sense(i, next(k for k, word in enumerate(s.words) if word.lower() == label.split(".")[0]), label)
        for i, (s, (_, label)) in enumerate(zip(sentences, rows, strict=True))
    ]
    return Corpus("planted", tuple(sentences), senses=tuple(senses))


def planted(n_words: int = 4, contexts: int = 10) -> SenseTask:
    """The word before tells the sense, two a word; sentences differ in their third word."""
    names = ["bank", "bat", "crane", "seal", "pitch", "mole"][:n_words]
    return SenseTask.of(
        corpus([(f"{'ab'[s]} {w} x{i}", f"{w}.{s}") for w in names for s in range(2) for i in range(contexts)])
    )


def vectors(task: SenseTask, layer: int, *, seed: int = 0, n_layers: int = 3, dim: int = 16) -> torch.Tensor:
    """Noise (n_layers, n, dim) whose layer `layer` also holds a direction for each sense."""
    rng = np.random.default_rng(seed)
    layers = rng.normal(size=(n_layers, len(task), dim)).astype(np.float32)
    layers[layer] += 3 * rng.normal(size=(len(task.sense_labels), dim)).astype(np.float32)[task.sense_ids]
    return torch.from_numpy(layers)


def halves(task: SenseTask) -> tuple[np.ndarray, np.ndarray]:
    fold = np.unique(task.sentence_ids, return_inverse=True)[1] % 2
    return np.flatnonzero(fold == 0), np.flatnonzero(fold == 1)


def test_the_mix_weighs_the_layer_with_the_answer() -> None:
    task, layer = planted(4, 40), 2
    layers, (train, test) = vectors(task, layer), halves(task)
    found = fit(task, layers, train, Settings(epochs=60), mixed=True)
    s = found.s.detach().numpy()
    assert s.sum() == pytest.approx(1)
    assert s.argmax() == layer
    assert s[layer] > 0.7
    assert float(found.gamma.detach()) != 1
    assert right(found, lambda part: layers[:, part], task, test).mean() > 0.9


def test_a_layer_without_the_answer_scores_near_chance() -> None:
    task = planted(6, 30)
    layers, (train, test) = vectors(task, 1), halves(task)
    for j in range(3):
        found = fit(task, layers[j : j + 1], train, Settings(epochs=20), mixed=False)
        accuracy = right(found, lambda part, j=j: layers[j : j + 1, part], task, test).mean()  # type: ignore[misc]
        if j == 1:
            assert accuracy > 0.95
        else:
            assert abs(accuracy - 0.5) < 0.12  # three standard errors of 180 guesses
        assert float(found.gamma) == 1
        assert float(found.s) == 1


def test_the_size_of_a_layer_gives_it_no_advantage() -> None:
    task = planted()
    layers, (train, _) = vectors(task, 1), halves(task)
    moved = layers * torch.tensor([1000.0, 0.01, 5.0])[:, None, None] + torch.tensor([3.0, -1.0, 0.0])[:, None, None]
    a, b = (fit(task, x, train, Settings(epochs=10), mixed=True).s for x in (layers, moved))
    torch.testing.assert_close(a, b, atol=2e-3, rtol=0)


def test_only_the_words_own_senses_are_answers() -> None:
    task = planted()
    found = SenseProbe(vectors(task, 0), task.is_sense_of, mixed=False)
    with torch.no_grad():
        found.linear.bias.copy_(torch.randn(len(task.sense_labels), generator=torch.Generator().manual_seed(0)))
    logits = found(vectors(task, 0), torch.from_numpy(task.word_ids))
    assert np.array_equal(torch.isfinite(logits).numpy(), task.is_sense_of[task.word_ids])
    assert task.is_sense_of[task.word_ids, task.sense_ids].all()


def test_the_rows_are_the_encoders_vectors_in_the_order_asked() -> None:
    task = SenseTask.of(
        corpus([("a bank", "bank.0"), ("the bank b c d e", "bank.0"), ("f g h bank", "bank.1"), ("bank", "bank.1")])
    )
    one = elmo(TINY, network().state_dict(), device="cpu")
    expected = [e.layers[:, p] for e, p in zip(one.encode(task.sentences), task.positions, strict=True)]
    order = torch.tensor([3, 1, 0, 2])
    found = OccurrenceLayers(network(), task)(order).numpy()
    np.testing.assert_allclose(found, np.stack([expected[i] for i in order], axis=1), atol=1e-6)
    np.testing.assert_allclose(
        OccurrenceLayers(network(), task).all_rows().numpy(), np.stack(expected, axis=1), atol=1e-6
    )


def test_gradients_reach_the_network_only_with_all() -> None:
    task, one = planted(2, 4), network()
    before = {name: value.clone() for name, value in one.state_dict().items()}
    rows_of, settings = OccurrenceLayers(one, task), Settings(epochs=2, tune_epochs=1, tune_rate=0.01, folds=2)
    train = np.arange(len(task))
    start = fit(task, rows_of.all_rows(), train, settings, mixed=True)
    head = {name: value.clone() for name, value in start.state_dict().items()}
    probe(task, one, ["frozen", "mix"], settings)
    assert all(p.grad is None and not p.requires_grad for p in one.parameters())
    found, tuned = tune(task, one, start, train, settings)
    for name, value in tuned.network.state_dict().items():
        assert not torch.equal(value, before[name]), name
    assert not torch.equal(found.w, start.w)
    # the given ones stay as they are, whatever was trained
    probe(task, one, ["all"], settings)
    assert all(torch.equal(value, before[name]) for name, value in one.state_dict().items())
    assert all(torch.equal(value, head[name]) for name, value in start.state_dict().items())


def test_what_is_asked_for_was_not_learnt() -> None:
    """Labels by lot: the network can learn them by heart, and must not where a row is held out."""
    rng = np.random.default_rng(0)
    task = SenseTask.of(corpus([(f"y{i} bank z{i * i}", f"bank.{rng.integers(2)}") for i in range(16)]))
    settings, everything = Settings(folds=2, epochs=2, tune_epochs=40, tune_rate=0.01, batch=8), np.arange(16)
    start = fit(task, OccurrenceLayers(network(), task).all_rows(), everything, settings, mixed=True)
    found, tuned = tune(task, network(), start, everything, settings)
    assert right(found, tuned, task, everything).mean() > 0.95
    assert probe(task, network(), ["all"], settings)[-1].correct.mean() < 0.75


def test_baselines_by_hand() -> None:
    rows = [(f"the bank n{i}", "bank.0") for i in range(6)] + [(f"the bank n{i}", "bank.1") for i in range(6, 8)]
    rows += [("a bat", "bat.0"), ("b bat", "bat.0"), ("c bat", "bat.1"), ("d bat", "bat.1")]
    task = SenseTask.of(corpus(rows))
    assert task.chance().tolist() == [0.5] * 12
    assert task.majority_of_all().tolist() == [1.0] * 6 + [0.0] * 2 + [0.5] * 4


def test_the_interval_is_that_of_whole_words() -> None:
    task = planted(6, 10)
    same = word_bootstrap(task, np.full(len(task), 0.25), 0)
    assert same == pytest.approx((0.25, 0.25))
    by_word = np.arange(6)[task.word_ids] / 5.0
    low, high = word_bootstrap(task, by_word, 0)
    rng = np.random.default_rng(9)
    draws = [np.concatenate([by_word[task.word_ids == w] for w in rng.integers(6, size=6)]).mean() for _ in range(4000)]
    assert (low, high) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])), abs=0.03)
    narrow = word_bootstrap(task, np.tile([0.0, 1.0], len(task) // 2), 0)  # varies within words alone
    assert narrow == pytest.approx((0.5, 0.5))


def test_the_table_takes_the_mix_as_its_measure() -> None:
    task, settings = planted(2, 4), Settings(folds=2, epochs=3)
    scores = probe(task, network(), ["frozen", "mix"], settings)
    columns = table(task, scores, 0)
    mix = columns["accuracy"].iloc[-1]
    assert list(columns["minus_mix"][:-1]) == pytest.approx([a - mix for a in columns["accuracy"][:-1]])
    assert np.isnan(columns["minus_mix"].iloc[-1])
    assert sum(columns[f"s_{j}"].iloc[-1] for j in range(3)) == pytest.approx(1)
    assert all(
        low <= a <= high
        for low, a, high in zip(columns["ci_low"], columns["accuracy"], columns["ci_high"], strict=True)
    )
    without = table(task, probe(task, network(), ["frozen"], settings), 0)
    assert np.isnan(without["minus_mix"]).all()
    assert "s_0" not in without


def typed(*words: str) -> int:
    """The exit status of `ctxexp probe WORDS`."""
    return Verb("probe", command.probe)(words)


def test_the_command_prints_and_writes_its_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "Settings", partial(Settings, folds=2, epochs=1))
    assert typed("use=frozen", f"out={tmp_path / 'new'}") == 0
    printed = capsys.readouterr().out
    assert "1,493 occurrences of 90 words, 213 senses" in printed
    with (tmp_path / "new" / "probe.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(r["use"], r["layer"]) for r in rows[3:]] == [("frozen", "0"), ("frozen", "1"), ("frozen", "2")]
    assert all(r["n"] == "1493" and r["model"].startswith("elmo sha256:") for r in rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["use=frozne"], "no use 'frozne'; did you mean 'frozen'? (all, frozen, mix)"),
        (["uses=mix"], "ctxexp probe has no argument 'uses'; did you mean 'use'?"),
        (["mix"], "'mix': expected key=value; ctxexp probe --help says which"),
        (["use=mix", "model=bert"], "model='bert': no such choice. (elmo)"),
        (["seed=much"], "seed='much': expected int, got str"),
    ],
    ids=lambda v: v[0] if isinstance(v, list) else "",
)
def test_mistakes_are_answered_in_a_sentence(arguments: list[str], message: str) -> None:
    with pytest.raises(CtxexpError) as caught:
        typed(*arguments)
    assert str(caught.value).startswith(message)


def test_a_model_by_name_is_measured_beside_its_twin() -> None:
    bert = ["-m", "model=bert", "metric.probe.labels=pos", "dataset=semcor", "weights=mini,untrained"]
    bert += ["control=none,alone", "metric=probe"]
    assert command.probe_sweep(["model=bert", "labels=pos", "dataset=semcor"]) == bert
    assert command.probe_sweep(["model=bert,minilm", "folds=3"]) == [
        "-m",
        "model=bert,minilm",
        "metric.probe.folds=3",
        "control=none,alone",
        "metric=probe",
    ]
    assert "control=none,alone" not in command.probe_sweep(["model=bert", "control=shuffled"])
    assert "weights=mini,untrained" not in command.probe_sweep(["model=gpt2", "weights=published"])


def test_the_mix_starts_as_the_mean_and_its_weights_recover_a_layer() -> None:
    layers, word = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0)), torch.zeros(5, dtype=torch.long)
    mix = SenseProbe(layers, np.ones((1, 4), bool), mixed=True)
    scaled = (layers - layers.mean((1, 2), keepdim=True)) / layers.std((1, 2), correction=0, keepdim=True)
    with torch.no_grad():
        mix.linear.weight.copy_(torch.eye(4))
        torch.testing.assert_close(mix(layers, word), scaled.mean(0))
        mix.w.copy_(torch.tensor([0.0, 1000.0, 0.0]))
        mix.gamma.fill_(2.5)
        torch.testing.assert_close(mix(layers, word), 2.5 * scaled[1])
    fixed = SenseProbe(layers, np.ones((1, 4), bool), mixed=False)
    assert not fixed.w.requires_grad
    assert not fixed.gamma.requires_grad
