"""The softmax link: against a language model's own log-probabilities, and in a space made to hold one term only."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from ctxexp_isotropy.softmax_link import of_model, softmax_link
from scipy.stats import pearsonr
from test_tables import SENTENCES, TEXTS, tiny, with_head

from ctxexp.dataset import Sentence
from ctxexp.datasets.polysemy import polysemy
from ctxexp.errors import ModelError
from ctxexp.models.gpt2 import gpt2


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_against_the_models_own_log_probabilities(tmp_path: Path, tied: bool) -> None:
    import transformers as t

    folder = with_head("gpt2", tmp_path, tied=tied)
    encoder = tiny(folder, pooling="pieces")
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
        "own_pmi": pearsonr(product.ravel(), pmi.ravel())[0],
        "log_p": pearsonr(product.ravel(), wide.ravel())[0],
        "own_pmi_within": np.mean([pearsonr(a, b)[0] for a, b in zip(product, pmi, strict=True)]),
        "log_p_within": np.mean([pearsonr(a, log_p)[0] for a in product]),
        "log_p_mean": pearsonr(product.mean(0), log_p)[0],
        "lambda_sd": logits.logsumexp(-1).std().item(),
    }
    assert {name: got[name] for name in expected} == pytest.approx(expected, abs=1e-4)
    assert got["residual"] < 1e-9
    assert (got["contexts"], got["pieces"]) == (len(product), len(seen))


def test_the_counted_pmi_against_a_naive_count(tmp_path: Path) -> None:
    import transformers as t

    folder = with_head("gpt2", tmp_path, tied=True)
    whole, tokenizer = t.GPT2LMHeadModel.from_pretrained(folder).eval(), t.AutoTokenizer.from_pretrained(folder)
    lines = [
        "the quick dog by the bank",
        "The bank by the river agreed. The quick fox jumps",
        "the quick fox jumps over",
    ]
    text = [Sentence.of(line.split()) for line in (*lines, *lines[:2], "by the dog by the quick bank", *TEXTS)]
    got = of_model(tiny(folder, pooling="pieces"), SENTENCES, text=text, least=2)

    pairs, firsts, seconds = Counter[tuple[int, int]](), Counter[int](), Counter[int]()
    for sentence in text:
        ids = tokenizer(sentence.text)["input_ids"]
        for y, x in itertools.pairwise(ids):
            pairs[y, x] += 1
            firsts[y] += 1
            seconds[x] += 1
    products: dict[tuple[int, int], list[float]] = defaultdict(list)
    for sentence in SENTENCES:
        ids = tokenizer(sentence.text)["input_ids"]
        with torch.no_grad():
            logits = whole(torch.tensor([ids])).logits[0].double()
        for i, y in enumerate(ids):
            for pair, n in pairs.items():
                if pair[0] == y and n >= 2:
                    products[pair].append(logits[i, pair[1]].item())
    total = sum(pairs.values())
    product = [np.mean(each) for each in products.values()]
    log_p = [math.log(seconds[x] / total) for _, x in products]
    pmi = [math.log(pairs[y, x] * total / (firsts[y] * seconds[x])) for y, x in products]

    assert got["counted_pairs"] == len(products) > 5
    assert got["counted_pmi"] == pytest.approx(pearsonr(product, pmi)[0])
    assert got["counted_log_p"] == pytest.approx(pearsonr(product, log_p)[0])
    assert got["counted_sum"] == pytest.approx(pearsonr(product, np.add(pmi, log_p))[0])
    left = [np.array(v) - np.polyval(np.polyfit(log_p, v, 1), log_p) for v in (product, pmi)]
    assert got["counted_pmi_given_log_p"] == pytest.approx(pearsonr(*left)[0])
    about = [np.array(v, float) for v in (product, pmi, log_p)]
    for y in {y for y, _ in products}:
        own = np.array([pair[0] == y for pair in products])
        for values in about:
            values[own] -= values[own].mean()
    left = [v - about[2] * (v @ about[2]) / (about[2] @ about[2]) for v in about[:2]]
    assert got["counted_pmi_given_log_p_within"] == pytest.approx(pearsonr(*left)[0])


def test_products_may_depend_on_log_p_alone_or_not() -> None:
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
    assert free["own_pmi_within"] > 0.95  # within a context lambda_c is constant; over all contexts it is noise
    assert 0.8 < free["own_pmi"] < free["own_pmi_within"]


def test_rotations_change_nothing_and_samples_are_seeded() -> None:
    rng = np.random.default_rng(1)
    hidden, output, counts = rng.normal(size=(90, 8)), rng.normal(size=(70, 8)), rng.integers(0, 5, 70)
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    sizes = {"contexts": 30, "pieces": 20}
    got = softmax_link(hidden, output, counts, **sizes, seed=3)
    assert (got["contexts"], got["pieces"]) == (30, 20)
    turned = softmax_link(hidden @ turn, output @ turn, counts, **sizes, seed=3)
    assert {**turned, "residual": 0} == pytest.approx({**got, "residual": 0})
    assert softmax_link(hidden, output, counts, **sizes, seed=4)["own_pmi"] != got["own_pmi"]


def test_nothing_to_correlate_is_nan() -> None:
    got = softmax_link(np.ones((3, 2)), np.ones((4, 2)), np.array([0, 0, 7, 0]), seed=0)
    assert np.isnan(got["own_pmi"])
    assert got["pieces"] == 1


def test_the_mini_links_products_to_both_terms() -> None:
    sentences, sizes = polysemy().sentences[:150], {"contexts": 300, "pieces": 500}
    got = of_model(gpt2(pooling="pieces", device="cpu"), sentences, **sizes)
    assert got["residual"] < 1e-9
    assert got["log_p_mean"] > 0.2
    assert got["own_pmi_within"] > 0.2
    assert got["counted_pmi_given_log_p"] > 0.5
    drawn = of_model(gpt2(weights="untrained", pooling="pieces", device="cpu"), sentences, **sizes)
    assert drawn["counted_pmi_given_log_p"] < 0.3  # nothing learnt, nothing counted: the own PMI doesn't show that


def test_models_without_such_a_product_are_refused(tmp_path: Path) -> None:
    import tiny_models

    bert = tiny(tiny_models.make("bert", tmp_path / "b"), pooling="pieces")
    with pytest.raises(ModelError, match=r"needs a causal model's single pieces after its final norm; use model=gpt2"):
        of_model(bert, SENTENCES)
    path = tiny_models.make("gpt2", tmp_path / "g")
    with pytest.raises(ModelError, match=r"needs a causal model's single pieces"):
        of_model(tiny(path), SENTENCES)
    bare = tiny(path, pooling="pieces")
    with pytest.raises(ModelError, match=r"its output matrix is not known \(the checkpoint names no language-model"):
        of_model(bare, SENTENCES)
