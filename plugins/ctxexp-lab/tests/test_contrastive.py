"""Training by contrast: the loss against a double loop, views, sentences, resumed trainings, exports that load."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from ctxexp_lab.training.contrastive import info_nce
from ctxexp_lab.training.train import TrainingRun, train
from omegaconf import DictConfig

from ctxexp.command import registry

from .tiny_recipes import composed, weights


def config(text: Path, tmp: Path, *overrides: str) -> DictConfig:
    return composed(
        "objective=contrastive", f"text={text}", f"folder={tmp}", "tracking=null", "files=[small]", "words=null",
        "model.rows=4", "steps=4", "log_every=2", "held_out_every=1000", "held_out_limit=8", "precision=float32",
        "contrastive.length=12", "model.adamw_rate=1e-3", *overrides,
    )  # fmt: skip


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained BERT of one layer, with the mini's pieces."""
    import transformers as t

    folder = tmp_path_factory.mktemp("start")
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    without = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    torch.manual_seed(0)
    t.BertForMaskedLM(t.BertConfig(vocab_size=8192, max_position_embeddings=64, **shape, **without)).save_pretrained(
        folder
    )
    mini = registry().find("model", "bert").factory.model_files[0].find()
    t.AutoTokenizer.from_pretrained(mini).save_pretrained(folder)
    return folder


def test_the_loss_is_equation_4() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 7)), rng.normal(size=(5, 7))

    def similarity(x: np.ndarray, y: np.ndarray) -> float:
        return math.exp(float(x @ y) / math.sqrt(float(x @ x) * float(y @ y)) / 0.05)

    expected = [-math.log(similarity(a[i], b[i]) / sum(similarity(a[i], b[j]) for j in range(5))) for i in range(5)]
    loss, cosines = info_nce(torch.from_numpy(a), torch.from_numpy(b), 0.05)
    assert loss.item() == pytest.approx(np.mean(expected))
    assert cosines[1, 2].item() == pytest.approx(a[1] @ b[2] / np.linalg.norm(a[1]) / np.linalg.norm(b[2]))
    equal = torch.ones(5, 7)
    assert info_nce(equal, equal, 0.05)[0].item() == pytest.approx(math.log(5))  # the chance level


def test_views_differ_by_dropout_alone(text: Path, tmp_path: Path, start: Path) -> None:
    learner = TrainingRun(config(text, tmp_path, f"start={start}")).learner
    sentences = learner.batch(0)
    first, second = learner.views(sentences)
    assert not torch.allclose(first, second)
    learner.network.eval()
    first, second = learner.views(sentences)
    torch.testing.assert_close(first, second)
    alone = torch.cat([learner.views([sentence])[0] for sentence in sentences])  # without its batch's padding
    torch.testing.assert_close(first, alone, atol=1e-5, rtol=1e-4)
    read = learner.tokenizer(sentences[0], return_tensors="pt", truncation=True, max_length=12)
    hidden = learner.network(**read).last_hidden_state[0]
    torch.testing.assert_close(first[0], hidden.mean(0), atol=1e-5, rtol=1e-4)
    learner.choices.pooling = "cls"
    torch.testing.assert_close(learner.views(sentences)[0][0], hidden[0], atol=1e-5, rtol=1e-4)
    assert sorted({module.p for module in learner.network.modules() if type(module).__name__ == "Dropout"}) == [0.1]


def test_a_training_learns_resumes_and_loads(text: Path, tmp_path: Path, start: Path) -> None:
    """Stopped and gone on with it has the weights of one run; its export is a model without dropout of its own."""

    where = f"start={start}"
    whole = TrainingRun(config(text, tmp_path / "a", where, "steps=40"))
    before = whole.learner.held_out(8)
    whole.train()
    after = whole.learner.held_out(8)
    assert before["chance"] == pytest.approx(math.log(4))
    assert after["loss"] < before["loss"] - 0.1
    assert after["right"] >= before["right"]
    assert {"alignment", "unrelated"} <= after.keys()
    TrainingRun(config(text, tmp_path / "b", where, "steps=40", "stop_after=15")).train()
    rest = TrainingRun(config(text, tmp_path / "b", where, "steps=40"))
    assert rest.step == 15
    rest.train()
    torch.testing.assert_close(weights(rest), weights(whole), atol=0, rtol=0)
    losses = train(config(text, tmp_path / "a", where, "steps=40"))
    export = tmp_path / "a" / "export"
    record = json.loads((export / "run.json").read_text())
    assert record["went_on_from"] == str(start)
    assert record["held_out"] == losses
    assert json.loads((export / "config.json").read_text())["hidden_dropout_prob"] == 0.0
    encoder = registry().find("model", "huggingface").factory(checkpoint=str(export), device="cpu")
    assert (encoder.n_layers, encoder.dim) == (2, 16)
