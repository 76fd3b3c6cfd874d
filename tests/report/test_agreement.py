"""One run's numbers are the same, and go the same ways, wherever they are shown; without training none goes anywhere.

That MLflow has the results' numbers is held by tests/sinks/test_tracking.py.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertModel

import ctxexp
from ctxexp.report.findings import finding_of
from ctxexp.results import Key
from ctxexp.results.finding import Finding
from tests.composed import run_command_line
from tests.shipped import mini

LEAST = 0.02


def signs(curve: np.ndarray) -> np.ndarray:
    """Of each step: 1, -1, or 0 for one that isn't spoken of."""
    steps = np.diff(curve)
    return np.where(np.abs(steps) >= LEAST, np.sign(steps), 0)


def test_terminal_page_and_sentence_agree_on_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    words = ["model=bert", "metric=self_similarity", f"tracking.folder={tmp_path}", "figures.explorer=0", "sink=none"]
    computed = Counter[Key]()

    def counted(results: ctxexp.Results, key: Key) -> Finding:
        computed[key] += 1
        return finding_of(results, key)

    monkeypatch.setattr("ctxexp.report.findings.finding_of", counted)
    assert run_command_line(words) == 0
    assert computed == {Key("self_similarity", "raw"): 1}  # for all that show it
    printed = capsys.readouterr().out
    results = ctxexp.Results.load(next(tmp_path.rglob("results.json")).parent)
    raw = results["self_similarity", "raw"].to_numpy()
    options = ["bootstrap=0", "figures.explorer=0"]
    centred = ctxexp.measure("bert", metrics="self_similarity", transform="center_unit_norm", options=options)
    # the share is of what is left without the direction that all words share
    np.testing.assert_allclose(results["self_similarity", "share_of_room"], centred["self_similarity"], atol=0.03)

    rows = re.findall(r"^(\d) +(-?[\d.]+) ", printed, re.MULTILINE)
    assert [int(layer) for layer, _ in rows] == list(range(len(raw)))
    np.testing.assert_allclose([float(value) for _, value in rows], raw, atol=5.1e-4)

    page = Path(re.findall(r"^report: +(.*)$", printed, re.MULTILINE)[0]).read_text(encoding="utf-8")
    data = json.loads(re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)[0])
    [panel] = data["charts"][0]["panels"]
    np.testing.assert_allclose(panel["views"][""]["lines"][0]["y"], raw, rtol=1e-6)

    [sentence] = panel["findings"].values()
    assert sentence in " ".join(printed.split())
    assert sentence in page
    start, spoken = 0, 0
    for verb, value, end in re.findall(r"(falls|grows) .*?to ([\d.]+) at (?:the last layer, |layer )(\d)", sentence):
        sign = -1 if verb == "falls" else 1
        assert float(value) == pytest.approx(raw[int(end)], abs=5.1e-3)
        assert (signs(raw)[start : int(end)] * sign >= 0).all()
        spoken += abs(signs(raw)[start : int(end)]).sum()
        start = int(end)
    assert spoken == abs(signs(raw)[:start]).sum() > 0


@pytest.fixture
def random_bert() -> ctxexp.Encoder:
    """A BERT whose weights are drawn, with a mini's tokenizer: nothing tells the program that it is untrained."""
    tokenizer = AutoTokenizer.from_pretrained(mini("bert"))
    torch.manual_seed(0)
    sizes = {"hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 384}
    model = BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=512, **sizes)).eval()
    return ctxexp.from_transformers(model, tokenizer, name="random")


def test_without_training_no_direction_is_spoken_of(random_bert: ctxexp.Encoder, tmp_path: Path) -> None:
    _, *sentences = ctxexp.measure(random_bert, folder=tmp_path).findings()
    assert len(sentences) == 4  # contextuality aside: attention mixes contexts whatever its weights are
    for sentence in sentences:
        assert re.search(": (flat over|no change over|a negative control|without an interval)", sentence), sentence
