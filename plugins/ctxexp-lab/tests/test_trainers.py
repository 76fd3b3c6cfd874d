"""Trainers of transformers and Lightning that measure layers: what they report to gets the values, and a rule stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from ctxexp_lab import LayerCurves

from .tiny_recipes import network, tokenizer

TEXT = [f"The {word} {verb} the bank." for word in ("dog", "man", "cat", "bird") for verb in ("saw", "left", "liked")]
COLLAPSE, STEPS = 3, 8  # the step after which all vectors are one, and the last one


def collapse(model: Any) -> None:
    """The last layer says the same of everything."""
    with torch.no_grad():
        model.transformer.ln_f.weight.fill_(0.0)
        model.transformer.ln_f.bias.fill_(1.0)


def made_curves(**choices: Any) -> LayerCurves:
    return LayerCurves(TEXT, every=2, measures=["anisotropy", "effective_rank"], **choices)


def check(curves: LayerCurves, reported: list[dict[str, float]]) -> None:
    """A training that was stopped at the first measurement behind the collapse, and its reports by step."""
    assert list(curves.results) == [0, 2, 4]
    assert curves.should_stop
    assert curves.reason.startswith("step 4: anisotropy 1.000 [")
    curve = [curves.curve(results, "anisotropy").value for results in curves.results.values()]
    assert [row["layers/anisotropy/02"] for row in reported] == pytest.approx(
        [float(one[2]) for one in curve], abs=1e-6
    )
    assert reported[1]["layers/anisotropy/02"] < 0.9 < reported[2]["layers/anisotropy/02"]
    assert [row.get("layers/stopped") for row in reported] == [None, None, 1.0]
    assert set(curves.frame.step) == {0, 2, 4}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_attached", [True, False])
def test_transformers_trainer_reports_and_stops(tmp_path: Path, is_attached: bool) -> None:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Collapse(TrainerCallback):
        seen: list[dict[str, float]] = []  # noqa: RUF012

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == COLLAPSE:
                collapse(kwargs["model"])

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            self.seen += [logs] if "layers/anisotropy/02" in logs else []

    ids = torch.randint(0, 99, (4, 8)).tolist()
    arguments = TrainingArguments(
        str(tmp_path), max_steps=STEPS, per_device_train_batch_size=2, report_to=[], use_cpu=True, disable_tqdm=True,
        save_strategy="no", logging_strategy="no", learning_rate=1e-9,
    )  # fmt: skip
    data = [{"input_ids": one, "labels": one} for one in ids]
    curves = made_curves(stop_when="anisotropy > .95")
    callbacks = [Collapse] if is_attached else [Collapse, curves]
    trainer = Trainer(network(), arguments, train_dataset=data, processing_class=tokenizer(), callbacks=callbacks)
    if is_attached:
        curves.attach(trainer)
    trainer.train()
    assert trainer.state.global_step == 4
    history = [one for one in trainer.state.log_history if "layers/anisotropy/02" in one]
    assert [one["step"] for one in history] == [0, 2, 4]
    check(curves, history)
    check(curves, Collapse.seen[-3:])
    trainer.train()  # once more: of collapsed weights, to the first step at which they are measured
    assert (list(curves.results), curves.reason[:7]) == ([0], "step 0:")
