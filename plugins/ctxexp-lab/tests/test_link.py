"""`ctxexp link`: states of both kinds of heads against logits, correlations against loops, chance and intervals."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ctxexp_lab.link.head import ContextStates, context_states
from ctxexp_lab.link.statistics import link, second_order_pairs
from scipy.stats import pearsonr

from ctxexp.errors import ConfigError, ModelError
from ctxexp.models.transformer.checkpoint import folder_checkpoint
from tests import naive
from tests.tiny_models import SHORT_TEXTS, with_head

LINES = [*SHORT_TEXTS, "the quick dog by the bank", "the quick fox jumps over the dog", "by the bank by the river"]


def with_mask(kind: str, folder: Path) -> Path:
    """A tiny checkpoint with its head, whose tokenizer has a mask."""
    import transformers as t

    with_head(kind, folder, tied=kind == "gpt2")
    if kind == "bert":
        tokenizer = t.AutoTokenizer.from_pretrained(folder)
        tokenizer.add_special_tokens({"mask_token": "[MASK]"})
        tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_states_give_the_logits_of_the_predicted_pieces(tmp_path: Path, kind: str) -> None:
    """Each masked piece is read in a text of its own; a causal state is that of the piece before."""
    import transformers as t

    folder = with_mask(kind, tmp_path)
    got = context_states(folder_checkpoint(folder, source="tiny"), LINES, contexts=10_000)
    auto = t.BertForMaskedLM if kind == "bert" else t.GPT2LMHeadModel
    whole, tokenizer = auto.from_pretrained(folder).eval(), t.AutoTokenizer.from_pretrained(folder)
    n, expected, ends = len(tokenizer), [], []
    for line in LINES:
        ids = torch.tensor(tokenizer(line)["input_ids"])
        first, last = (1, len(ids) - 1) if kind == "bert" else (0, len(ids))
        for i in range(first + 1, last):
            read = ids.clone()
            if kind == "bert":
                read[i] = tokenizer.mask_token_id
            with torch.no_grad():
                logits = whole(read[None]).logits[0]
            expected.append(logits[i if kind == "bert" else i - 1, :n])
            ends.append(int(ids[i - 1]))
    np.testing.assert_allclose(got.hidden @ got.output.T, torch.stack(expected).numpy(), atol=1e-4)
    assert got.ends.tolist() == ends
    own = [tokenizer(line, add_special_tokens=False)["input_ids"] for line in LINES]
    assert got.counts.tolist() == np.bincount(list(itertools.chain(*own)), minlength=n).tolist()
    assert Counter(map(tuple, got.following.tolist())) == Counter(p for ids in own for p in itertools.pairwise(ids))
    assert (got.kind, len(set(got.texts.tolist()))) == ("masked" if kind == "bert" else "causal", len(LINES))
    some = context_states(folder_checkpoint(folder, source="tiny"), LINES, contexts=5, untrained=1)
    assert len(some.hidden) == 5
    assert not np.allclose(some.output, got.output)


def made(n: int = 120, size: int = 40, d: int = 6, *, seed: int = 0, bias: bool = True) -> ContextStates:
    """States and a text that have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    common = rng.dirichlet(np.full(size, 0.3))
    stream = rng.choice(size, 4000, p=common)
    following = np.stack([stream[:-1], stream[1:]], axis=1)
    output = np.c_[rng.normal(size=(size, d)), rng.normal(size=size) * bias]
    hidden = np.c_[rng.normal(size=(n, d)), np.ones(n)]
    ends, counts = rng.choice(size, n, p=common), np.bincount(stream, minlength=size)
    return ContextStates("masked", hidden, ends, np.arange(n) // 3, output, counts, following, bias)


def met(states: ContextStates) -> np.ndarray:
    """How often each piece is followed by each."""
    joint = np.zeros((len(states.counts),) * 2)
    np.add.at(joint, tuple(states.following.T), 1)
    return joint


def test_correlations_are_those_of_their_definitions() -> None:
    states = made()
    got = link(states, pieces=1000, least=5, replicates=0)

    def correlation(a: np.ndarray, b: np.ndarray) -> Any:
        return pytest.approx(pearsonr(np.ravel(a), np.ravel(b)).statistic)

    occurring = states.counts > 0
    log_p = np.log(states.counts[occurring] / states.counts.sum())
    logits = states.hidden @ states.output.T
    products = logits[:, occurring]
    pmi = products - np.log(np.exp(logits).sum(axis=1, keepdims=True)) - log_p
    assert got["own_pmi"].value == correlation(products, pmi)
    assert got["log_p"].value == correlation(products, np.broadcast_to(log_p, pmi.shape))
    within = [(pearsonr(*own).statistic, pearsonr(own[0], log_p).statistic) for own in zip(products, pmi, strict=True)]
    assert [got["own_pmi_within"].value, got["log_p_within"].value] == pytest.approx(np.mean(within, axis=0))
    assert got["bias_log_p"].value == correlation(states.output[occurring, -1], log_p)

    joint, rows = met(states), []
    firsts, seconds, total = joint.sum(axis=1), joint.sum(axis=0), joint.sum()
    for y, x in np.argwhere(joint >= 5):
        own = states.hidden[states.ends == y]
        if len(own):
            counted = math.log(joint[y, x] * total / (firsts[y] * seconds[x]))
            rows.append((own.mean(axis=0) @ states.output[x], counted, math.log(seconds[x] / total)))
    product, counted, frequency = np.array(rows).T
    assert got["counted_pmi"].value == correlation(product, counted)
    assert got["counted_log_p"].value == correlation(product, frequency)
    left = [v - np.polyval(np.polyfit(frequency, v, 1), frequency) for v in (product, counted)]
    assert got["counted_pmi_given_log_p"].value == correlation(*left)


def test_the_second_order_leaves_out_pieces_that_meet() -> None:
    states = made(d=4)
    last, of_states, of_next = second_order_pairs(states, 30)
    joint, k = met(states), len(last)
    assert 15 < k <= 30
    with np.errstate(divide="ignore", invalid="ignore"):
        pmi = np.log(joint * joint.sum() / np.outer(joint.sum(axis=1), joint.sum(axis=0)))
    positive = np.where(pmi > 0, pmi, 0)
    for i, j in itertools.combinations(range(k), 2):
        y, z = last[i], last[j]
        if joint[y, z] or joint[z, y]:
            assert math.isnan(of_next[i, j])
            continue
        assert of_next[i, j] == pytest.approx(naive.cosine(positive[y], positive[z]))
        means = (states.hidden[states.ends == end].mean(axis=0)[:-1] for end in (y, z))
        assert of_states[i, j] == pytest.approx(naive.cosine(*means))
    assert 0 < np.isnan(of_next[np.triu_indices(k, 1)]).sum() < k * (k - 1) / 2


def test_a_planted_link_is_beyond_chance_and_none_within() -> None:
    none = link(made(400, 60, seed=1), replicates=60)
    outside = [k for k, v in none.items() if math.isfinite(v.chance_low) and not v.chance_low < v.value < v.chance_high]
    assert len(outside) <= 2  # of nine levels that hold 95% each
    states = made(400, 60, seed=1, bias=False)
    planted = np.log(met(states) + 0.1)  # products that are log p(x, y)
    own = np.c_[np.eye(60)[states.ends], np.ones(400)]
    linked = ContextStates("causal", own, states.ends, states.texts, np.c_[planted.T, np.zeros(60)], states.counts,
                           states.following, False)  # fmt: skip
    got = link(linked, replicates=60)
    assert got["counted_pmi_given_log_p_within"].value > 0.99
    assert got["counted_pmi_given_log_p_within"].low > got["counted_pmi_given_log_p_within"].chance_high
    assert got["log_p_within"].low > got["log_p_within"].chance_high
    assert "bias_log_p" not in got


def test_the_command_writes_every_correlation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pandas as pd
    from ctxexp_lab.link.command import softmax_link

    from ctxexp.command.verb import Verb

    folder = with_mask("bert", tmp_path / "model")
    text = tmp_path / "lines.txt"
    text.write_text("\n".join(LINES * 3), encoding="utf-8")
    words = [str(folder), f"options=dataset={text}", "bootstrap=5", "least=2", f"out={tmp_path / 'link'}"]
    assert Verb("link", softmax_link)(words) == 0
    assert "model, untrained (masked)" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "link" / "link.csv")
    assert set(table["model"]) == {"model (masked)", "model, untrained (masked)"}
    assert {"own_pmi", "counted_pmi_given_log_p", "second_order"} <= set(table["statistic"])
    with pytest.raises(ConfigError, match="contexts=1: expected a whole number from 2 on"):
        softmax_link("gpt2", contexts=1)
    with pytest.raises(ModelError, match="the softmax link is of models that transformers loads"):
        softmax_link("elmo")
