"""What a run would fail at is said before torch or MLflow is loaded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ctxexp_frequency.degeneration import Degeneration

from ctxexp.command import compose
from ctxexp.command.config import Component
from ctxexp.errors import ConfigError, MetricError
from ctxexp.models import choices
from ctxexp.plugins import Offer, Registry


@pytest.fixture(autouse=True, scope="module")
def _prepared() -> None:
    compose.prepare()


def problems(*overrides: str, multirun: bool = False) -> list[str]:
    return compose.check_command(overrides, multirun=multirun)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("baseline.size=-5", "baseline size=-5: expected at least 2 occurrences, since one has no pair"),
        (
            "metric.self_similarity.sample=-1",
            "metric 'self_similarity': sample=-1: expected a positive number of",
        ),
        ("metric=degeneration metric.degeneration.rows=-1", "metric 'degeneration': rows=-1: expected at least 1 row"),
        ("metric=static_vectors", "the word benchmarks need a folder of their files: data=<folder>"),
        ("sentence.pooling=frist", "sentence.pooling='frist': no such pooling. (cls, last, mean, "),
        ("transform=whitening transform.shrinkage=7", "transform 'whitening': shrinkage=7: expected a number from 0"),
        ("transform=flow transform.epochs=-1", "transform.epochs=-1: expected 0 (actnorms only) or more"),
        ("dataset=text dataset.path=/nowhere", "no such file or folder: /nowhere (dataset.path)"),
        ("dataset=text dataset.path=LICENSE dataset.limit=-3", "dataset.limit=-3: expected a positive number of"),
        ("dataset=sts dataset.path=/nowhere", "no such file or folder: /nowhere (dataset.path)"),
        ("model=huggingface model.checkpoint=/nowhere", "no folder /nowhere (checkpoint=/nowhere); expected a folder"),
        ("model=huggingface model.checkpoint=a+b", "checkpoint='a+b' is neither a folder nor a hub id"),
        ("model.revision=x", "revision=x names a commit of the hub, but weights=mini ships with ctxexp"),
        ("model.stride=0", "model.stride=0: expected at least 1 piece; leave it null for half a window"),
        ("model=elmo model.weight_file=x", "weight_file=x needs its options_file, and weights other than untrained"),
        ("model=elmo model.weight_file=x model.options_file=/y", "options_file=/y: no file at /y; expected a path or"),
        ("model=elmo model.slots=0", "slots=0: expected a positive number of sentences a batch"),
        ("model=elmo model.slots=2", "slots=2 has no meaning with state=reset"),
        ("model=word_vectors model.path=/nowhere", "no file of word vectors at /nowhere (model.path); expected GloVe"),
        ("transform=center fit_on=train", "fit_on=train: dataset 'polysemy' has no splits; use fit_on=target"),
        ("transform=center fit_on=nli:/nowhere", "no such file or folder: /nowhere (fit_on=nli:/nowhere)"),
    ],
)
def test_what_a_run_would_fail_at_is_said_first(words: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    (problem,) = problems(*words.split())
    assert problem.startswith(message)
    assert "\n" not in problem


def test_what_can_run_has_no_problem() -> None:
    assert problems() == []
    assert problems("fit_on=train") == []  # nothing is fitted
    assert problems("model=huggingface", "model.checkpoint=owner/name") == []  # a hub id: not asked for here


def test_every_job_of_a_sweep_has_its_own() -> None:
    assert [p[:16] for p in problems("baseline.size=-5,100,-6", multirun=True)] == [
        "baseline size=-5",
        "baseline size=-6",
    ]


def test_a_sample_of_a_strangers_metric_is_checked() -> None:
    class Sampled(Degeneration):
        sample = -1

    registry = compose.registry()
    registry.add(Offer("metric", "sampled", Sampled, "tests"))
    try:
        assert problems("metric=degeneration", "metric.degeneration.name=sampled") == [
            "metric.degeneration.sample=-1: expected at least 1, or null for all"
        ]
    finally:
        del registry.offers["metric", "sampled"]


def test_a_metrics_own_error_names_it() -> None:
    registry = Registry()
    registry.add(Offer("metric", "cone", Degeneration, "tests"))
    with pytest.raises(MetricError, match=r"^metric 'cone': rows=-1"):
        Component("metric", "cone", {"rows": -1}, registry).make()


def test_a_device_that_cannot_be_is_refused_without_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def why(name: str) -> str:
        with pytest.raises(
            ConfigError, match=f"device={name}: this machine has none .*; use device=auto or device=cpu"
        ) as e:
            choices.check_device(name)
        return str(e.value)

    monkeypatch.setattr(choices, "version", lambda name: "2.13.0")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(choices, "DEV", tmp_path)
    assert "there is no /dev/nvidia0 or its like" in why("cuda")
    assert "it is no Mac" in why("mps")
    (tmp_path / "nvidia0").touch()
    choices.check_device("cuda:1")  # how many there are, torch says
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES hides them all" in why("cuda")
    monkeypatch.setattr(choices, "version", lambda name: "2.13.0+cpu")
    assert "torch 2.13.0+cpu is built without CUDA" in why("cuda:1")
    monkeypatch.setattr(sys, "platform", "darwin")
    for name in ("mps", "cpu", "auto"):
        choices.check_device(name)


def test_choices_that_no_model_takes_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    assert problems("model=bert,random_words", "weights=mini,untrained", "dtype=bfloat16", multirun=True) == []
    end = "= changes nothing for model 'random_words', which doesn't take it: jobs that differ in it alone are the same"
    assert sorted(caplog.messages) == [f"dtype{end}", f"weights{end}"]
    caplog.clear()
    assert problems("model=random_words", "device=cpu", "dtype=float32") == []
    assert caplog.messages == []


def test_a_missing_key_names_the_option_that_lacks_it() -> None:
    with pytest.raises(ConfigError, match=r"no config key 'model\.dim'.* \(model=bert: name, weights"):
        problems("model=random_words,bert", "model.dim=8", multirun=True)
