"""`ctxexp link`: states of both kinds of heads against logits, correlations against loops, chance and intervals."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from ctxexp_lab.link.head import ContextStates, context_states
from ctxexp_lab.link.statistics import link, second_order_pairs
from scipy.stats import pearsonr

from ctxexp.errors import ConfigError, ModelError
from ctxexp.models.transformer.checkpoint import folder_checkpoint
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


def test_correlations_are_those_of_naive_loops() -> None:
    states = made()
    got = link(states, pieces=1000, least=5, replicates=0)
    products, pmi, log_p, within = [], [], [], []
    occurring = [x for x in range(40) if states.counts[x]]
    p = states.counts / states.counts.sum()
    for h in states.hidden:
        logits = [math.fsum(a * b for a, b in zip(h, w, strict=True)) for w in states.output]
        z = math.log(math.fsum(math.exp(v) for v in logits))
        mine = [(logits[x], logits[x] - z - math.log(p[x]), math.log(p[x])) for x in occurring]
        within.append([pearsonr(*np.array(mine).T[[0, k]])[0] for k in (1, 2)])
        for a, b, c in mine:
            products.append(a), pmi.append(b), log_p.append(c)
    assert got["own_pmi"].value == pytest.approx(pearsonr(products, pmi)[0])
    assert got["log_p"].value == pytest.approx(pearsonr(products, log_p)[0])
    assert [got["own_pmi_within"].value, got["log_p_within"].value] == pytest.approx(np.mean(within, axis=0))
    bias = [states.output[x, -1] for x in occurring]
    assert got["bias_log_p"].value == pytest.approx(pearsonr(bias, [math.log(p[x]) for x in occurring])[0])

    pairs = Counter(map(tuple, states.following.tolist()))
    firsts, seconds, total = Counter(states.following[:, 0]), Counter(states.following[:, 1]), len(states.following)
    rows = []
    for (y, x), n in pairs.items():
        mine = [h for h, end in zip(states.hidden, states.ends, strict=True) if end == y]
        if n >= 5 and mine:
            value = math.log(n * total / (firsts[y] * seconds[x]))
            rows.append((np.mean(mine, axis=0) @ states.output[x], value, math.log(seconds[x] / total)))
    product, counted, frequency = np.array(rows).T
    assert got["counted_pmi"].value == pytest.approx(pearsonr(product, counted)[0])
    assert got["counted_log_p"].value == pytest.approx(pearsonr(product, frequency)[0])
    left = [v - np.polyval(np.polyfit(frequency, v, 1), frequency) for v in (product, counted)]
    assert got["counted_pmi_given_log_p"].value == pytest.approx(pearsonr(*left)[0])


def test_the_second_order_leaves_out_pieces_that_meet() -> None:
    states = made(d=4)
    last, of_states, of_next = second_order_pairs(states, 30)
    pairs, total = Counter(map(tuple, states.following.tolist())), len(states.following)
    firsts, seconds = Counter(states.following[:, 0]), Counter(states.following[:, 1])
    k = len(last)
    assert 15 < k <= 30
    met = 0
    for i, j in itertools.combinations(range(k), 2):
        y, z = last[i], last[j]
        if pairs[y, z] or pairs[z, y]:
            assert math.isnan(of_next[i, j])
            met += 1
            continue
        one, other = (
            [
                max(0, math.log(pairs[end, x] * total / (firsts[end] * seconds[x]))) if pairs[end, x] else 0
                for x in range(40)
            ]
            for end in (y, z)
        )
        assert of_next[i, j] == pytest.approx(np.dot(one, other) / np.linalg.norm(one) / np.linalg.norm(other))
        a, b = (states.hidden[states.ends == end].mean(axis=0)[:-1] for end in (y, z))
        assert of_states[i, j] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    assert 0 < met < k * (k - 1) / 2


def test_a_planted_link_is_beyond_chance_and_none_within() -> None:
    none = link(made(400, 60, seed=1), replicates=60)
    outside = [k for k, v in none.items() if math.isfinite(v.chance_low) and not v.chance_low < v.value < v.chance_high]
    assert len(outside) <= 2  # of nine levels that hold 95% each
    states = made(400, 60, seed=1, bias=False)
    joint = np.zeros((60, 60))
    np.add.at(joint, tuple(states.following.T), 1)
    planted = np.log(joint + 0.1)  # products that are log p(x, y)
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
