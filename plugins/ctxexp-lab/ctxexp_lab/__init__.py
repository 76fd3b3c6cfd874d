"""Experiments around the measures, as verbs of ctxexp's command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import ctxexp
from ctxexp import Register
from ctxexp.errors import ConfigError

PROBE_OPTIONS = ("labels", "classifier", "folds", "most")  # of metric=probe, in ctxexp-measures
TWINS = ("bert", "gpt2", "elmo")  # models that the group `weights` is of


def _train(*words: str) -> int:
    """Train a small model, or go on where one was stopped: model=bert|gpt2|elmo text=FOLDER minutes=45 (or steps=)."""
    from ctxexp_lab.training.command import main

    return main(list(words))


def _steps(*words: str) -> int:
    """Measure a training's checkpoints, layers by training steps: steps outputs/minis/gpt2/checkpoints."""
    from ctxexp_lab.steps.command import main

    return main(words)


def _probe(*words: str) -> int:
    """Probe a model's layers for labels: model=bert labels=pos dataset=semcor; or ELMo's ways: use=frozen,mix,all."""
    from ctxexp.command import Verb, registry

    if any(word.startswith("use=") for word in words) or not any(word.startswith("model=") for word in words):
        return Verb("probe", _uses)(words)
    return int(registry().find("command", "run").factory(*probe_sweep(words)))


def probe_sweep(words: Sequence[str]) -> list[str]:
    """The sweep that measures `metric=probe` of the models that the words name, each beside its untrained twin where it
    has one."""
    values = {word.partition("=")[0]: word.partition("=")[2] for word in words}
    options = [f"metric.probe.{word}" if word.partition("=")[0] in PROBE_OPTIONS else word for word in words]
    has_twin = all(name in TWINS for name in values["model"].split(","))
    twin = ["weights=mini,untrained"] if has_twin and "weights" not in values else []
    return ["-m", *options, *twin, *(["metric=probe"] if "metric" not in values else [])]


def _uses(
    *,
    use: str = "frozen,mix,all",
    model: Literal["elmo"] = "elmo",
    weights: Literal["mini", "published", "untrained"] = "mini",
    options_file: str | None = None,
    weight_file: str | None = None,
    folds: int = 5,
    epochs: int = 40,
    rate: float = 0.01,
    tune_epochs: int = 2,
    tune_rate: float = 1e-4,
    batch: int = 32,
    seed: int = 0,
    device: str = "cpu",
    out: Path | None = None,
) -> None:
    """Tell word senses from ELMo's frozen layers, a learnt mix of them, or the trained network. With model=NAME in
    place of use=, the linear probe of that model's layers for any labels of words: metric=probe, with labels=,
    classifier=, folds=, most= and all that ctxexp takes.

    use: frozen: each layer alone; mix: gamma sum_j s_j h_j, learnt; all: the network too; several with commas
    model: the only one with a mix of its own
    weights: the checkpoint
    options_file: an options.json, with weight_file instead of weights
    weight_file: its HDF5 weights
    folds: of the cross-validation; a sentence is in one fold
    epochs: of the linear layer and the mix
    rate: their AdamW rate; a tenth of it once the network learns too
    tune_epochs: of use=all: further epochs in which everything learns
    tune_rate: of use=all: the network's rate
    batch: occurrences a step
    seed: of folds, order, resamples and untrained weights
    device: cpu, cuda, mps, auto; to the last bit the same on cpu only
    out: a folder for probe.csv
    """
    from ctxexp_lab.probe import Settings
    from ctxexp_lab.probe.command import run

    settings = Settings(folds, epochs, rate, tune_epochs, tune_rate, batch, seed)
    options = {"weights": weights, "options_file": options_file, "weight_file": weight_file, "device": device}
    try:
        run(use.split(","), settings, out, seed=seed, **options)
    except OSError as error:
        raise ConfigError(f"{error}; choose another out=") from error


@ctxexp.hookimpl
def register_commands(register: Register) -> None:
    register("train", _train)
    register("probe", _probe)
    register("steps", _steps)
    register("link", "ctxexp_lab.link.command:softmax_link")
    register("distil", "ctxexp_lab.distil_command:distil")
    register("split-words", "ctxexp_lab.splits.command:split_words")


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    register("first_word_length", "ctxexp_lab.steps.first_word_length:FirstWordLength")


@ctxexp.hookimpl
def register_reports(register: Register) -> None:
    register("table_training_steps", "ctxexp_lab.steps.figure:table")
    register("training_steps", "ctxexp_lab.steps.figure:figure")
