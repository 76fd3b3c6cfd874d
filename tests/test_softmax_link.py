"""The softmax link: against a language model's own log-probabilities, and in a space made to hold one term only."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr
from test_tables import SENTENCES, with_head

from ctxexp.datasets.polysemy import polysemy
from ctxexp.errors import ModelError
from ctxexp.models.checkpoints import describe
from ctxexp.models.gpt2 import gpt2
from ctxexp.models.transformer import TransformerEncoder
from ctxexp.softmax_link import of_model, softmax_link


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_against_the_models_own_log_probabilities(tmp_path: Path, tied: bool) -> None:
    import transformers as t

    folder = with_head("gpt2", tmp_path, tied=tied)
    encoder = TransformerEncoder(describe(folder, source="tiny"), pooling="pieces")
    got = of_model(encoder, SENTENCES)
    whole, tokenizer = t.GPT2LMHeadModel.from_pretrained(folder).eval(), t.AutoTokenizer.from_pretrained(folder)
    n = len(tokenizer)  # the matrix is padded; the padding is no piece
    ids = [tokenizer(s.text, add_special_tokens=False)["input_ids"] for s in SENTENCES]
    counts = np.bincount(list(itertools.chain(*ids)), minlength=n)
    with torch.no_grad():
        logits = torch.cat([whole(torch.tensor([each])).logits[0, :, :n].double() for each in ids])
    seen = np.flatnonzero(counts)
    log_p = np.log(counts[seen] / counts.sum())
    pmi = logits.log_softmax(-1).numpy()[:, seen] - log_p
    product = logits.numpy()[:, seen]
    wide = np.tile(log_p, (len(product), 1))
    expected = {
        "pmi": pearsonr(product.ravel(), pmi.ravel())[0],
        "log_p": pearsonr(product.ravel(), wide.ravel())[0],
        "pmi_within": np.mean([pearsonr(a, b)[0] for a, b in zip(product, pmi, strict=True)]),
        "log_p_within": np.mean([pearsonr(a, log_p)[0] for a in product]),
        "log_p_mean": pearsonr(product.mean(0), log_p)[0],
        "lambda_sd": logits.logsumexp(-1).std().item(),
    }
    assert {name: got[name] for name in expected} == pytest.approx(expected, abs=1e-4)
    assert got["residual"] < 1e-9
    assert (got["contexts"], got["pieces"]) == (len(product), len(seen))


def test_products_that_are_log_p_alone_and_products_that_know_nothing_of_it() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 1000, 300)
    log_p = np.log(counts / counts.sum())
    output = np.c_[log_p, rng.normal(size=(300, 20))]
    first = np.eye(21)[:1]
    alone = softmax_link(np.repeat(first, 50, axis=0), output, counts, seed=0)
    assert alone["log_p"] == pytest.approx(1)
    assert alone["log_p_within"] == pytest.approx(1)
    assert alone["lambda_sd"] == pytest.approx(0, abs=1e-12)
    others = np.c_[np.zeros(200), rng.normal(size=(200, 20)) * 3]
    free = softmax_link(others, output, counts, seed=0)
    assert abs(free["log_p"]) < 0.05
    assert abs(free["log_p_within"]) < 0.05
    assert free["pmi_within"] > 0.95  # within a context lambda_c is constant; over all contexts it is noise
    assert 0.8 < free["pmi"] < free["pmi_within"]


def test_rotations_change_nothing_and_samples_are_seeded() -> None:
    rng = np.random.default_rng(1)
    hidden, output, counts = rng.normal(size=(90, 8)), rng.normal(size=(70, 8)), rng.integers(0, 5, 70)
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    sizes = {"contexts": 30, "pieces": 20}
    got = softmax_link(hidden, output, counts, **sizes, seed=3)
    assert (got["contexts"], got["pieces"]) == (30, 20)
    turned = softmax_link(hidden @ turn, output @ turn, counts, **sizes, seed=3)
    assert {**turned, "residual": 0} == pytest.approx({**got, "residual": 0})
    assert softmax_link(hidden, output, counts, **sizes, seed=4)["pmi"] != got["pmi"]


def test_nothing_to_correlate_is_nan() -> None:
    got = softmax_link(np.ones((3, 2)), np.ones((4, 2)), np.array([0, 0, 7, 0]), seed=0)
    assert np.isnan(got["pmi"])
    assert got["pieces"] == 1


def test_the_mini_links_products_to_both_terms() -> None:
    got = of_model(gpt2(pooling="pieces", device="cpu"), polysemy().sentences[:200])
    assert got["residual"] < 1e-9
    assert got["log_p_mean"] > 0.2
    assert got["pmi_within"] > 0.2


def test_models_without_such_a_product_are_refused(tmp_path: Path) -> None:
    import tiny_models

    bert = TransformerEncoder(describe(tiny_models.make("bert", tmp_path / "b"), source="tiny"), pooling="pieces")
    with pytest.raises(ModelError, match=r"needs a causal model's single pieces after its final norm; use model=gpt2"):
        of_model(bert, SENTENCES)
    path = tiny_models.make("gpt2", tmp_path / "g")
    with pytest.raises(ModelError, match=r"needs a causal model's single pieces"):
        of_model(TransformerEncoder(describe(path, source="tiny")), SENTENCES)
    bare = TransformerEncoder(describe(path, source="tiny"), pooling="pieces")
    with pytest.raises(ModelError, match=r"its output matrix is not known \(the checkpoint names no language-model"):
        of_model(bare, SENTENCES)
