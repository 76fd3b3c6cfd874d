"""The minis' recipe: streams, losses, schedule, optimiser, resumption, export."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import numpy as np
import pytest
import torch
from ctxexp_lab.training.data import (
    BOUNDARY,
    CLS,
    MASK,
    SEP,
    SPECIAL,
    PieceStreams,
    TextSource,
    windows,
)
from ctxexp_lab.training.optimiser import Optimiser
from ctxexp_lab.training.positions import extrapolate, frequencies, local_attention, sinusoids
from ctxexp_lab.training.train import TrainingRun, train
from ctxexp_lab.training.transformer import build

from .tiny_recipes import config, weights

# --- data -----------------------------------------------------------------------------------------------------------


def test_segments_hold_the_text_once_and_no_document_meets_another(text: Path) -> None:
    chosen = TextSource(text, ("small", "full-1"), "valid", None, seed=0)
    raw = [lzma.decompress((text / f"{name}.txt.xz").read_bytes()).decode() for name in ("small", "full-1")]
    documents = [d.split() for r in raw for d in r.split("\n\n")]
    assert sorted(w for s in chosen.segments() for w in s.split()) == sorted(w for d in documents for w in d)
    joined = [" ".join(d) for d in documents]
    assert all(any(s in d for d in joined) for s in chosen.segments())


def test_skipped_and_remaining_parts_make_the_text_once(text: Path) -> None:
    def words(**bounds: int | None) -> list[str]:
        chosen = TextSource(text, ("small", "full-1"), "valid", seed=0, **{"words": None, **bounds})  # type: ignore[arg-type]
        return [word for segment in chosen.segments() for word in segment.split()]

    first, rest = words(words=1000), words(skip=1000)
    assert 1000 <= len(first) < 1100
    assert len(rest) > 300
    assert sorted(first + rest) == sorted(words())
    assert (
        TextSource(text, ("small",), "valid", None, 0, 5).key() != TextSource(text, ("small",), "valid", None, 0).key()
    )


def test_pieces_decode_to_the_text_and_end_each_segment(text: Path) -> None:
    from tokenizers import Tokenizer

    chosen = TextSource(text, ("small",), "valid", None, seed=0)
    pieces = PieceStreams.of(chosen, vocabulary=300, cache=text / "cache")
    tokenizer = Tokenizer.from_file(str(pieces.tokenizer_file))
    ends = np.flatnonzero(pieces.train == BOUNDARY)
    assert len(ends) == len(chosen.segments())
    assert tokenizer.decode(pieces.train[: ends[0]].tolist()).strip() == chosen.segments()[0]
    assert [tokenizer.id_to_token(i) for i in range(5)] == list(SPECIAL)


def test_windows_predict_each_unit_of_the_stream_once() -> None:
    stream = np.arange(50, dtype=np.uint16)
    batches = [windows(stream, start, 3, 5) for start in (0, 12, 24)]
    predicted = np.concatenate([b[:, 1:].ravel() for b in batches])
    assert predicted.tolist() == list(range(1, 37))
    assert windows(stream, 48, 1, 4).tolist() == [[48, 49, 0, 1]]


# --- optimiser ------------------------------------------------------------------------------------------------------


def test_muon_steps_gpt2s_fused_transposed_attention_as_its_three_matrices() -> None:
    shape = {"vocabulary": 50, "layers": 1, "width": 8, "heads": 2, "inner": 32, "positions": 16}
    network = build("causal", shape)
    fused = network.transformer.h[0].attn.c_attn.weight  # (in, 3 out)
    alone = [torch.nn.Parameter(m.detach().T.clone()) for m in fused.chunk(3, dim=1)]
    optimiser = Optimiser(network, muon_rate=0.1, adamw_rate=0.1, weight_decay=0.01, clip=1e9)
    plain = torch.optim.Muon(alone, lr=0.1, momentum=0.95, weight_decay=0.01)
    draw = torch.Generator().manual_seed(0)
    for _ in range(2):
        gradients = [torch.randn(8, 8, generator=draw) for _ in alone]
        fused.grad = torch.cat([g.T for g in gradients], dim=1)
        for p, g in zip(alone, gradients, strict=True):
            p.grad = g
        optimiser.step(1.0)
        plain.step()
    assert fused.grad is None
    assert torch.allclose(fused, torch.cat([p.T for p in alone], dim=1), atol=1e-3)


def test_every_parameter_is_stepped_by_exactly_one_optimiser() -> None:
    shape = {"vocabulary": 50, "layers": 2, "width": 8, "heads": 2, "inner": 32, "positions": 16}
    network = build("causal", shape)
    optimiser = Optimiser(network, muon_rate=0.1, adamw_rate=0.1, weight_decay=0.0, clip=1.0)
    owned = [id(p) for group in optimiser.parts[0].param_groups for p in group["params"]]
    owned += [id(weight) for weight, _, _ in optimiser.matrices]
    assert sorted(owned) == sorted(id(p) for p in network.parameters())
    assert len(optimiser.matrices) == 2 * 4  # attention in, attention out, inner in, inner out, of two layers
    muon = [p for group in optimiser.parts[1].param_groups for p in group["params"]]
    assert len(muon) == 2 * (3 + 3)  # attention in is three
    assert sum(p.numel() for p in muon) == sum(weight.numel() for weight, _, _ in optimiser.matrices)


# --- initialisation, losses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [-2, 1])
def test_local_attention_looks_at_its_offset(offset: int) -> None:
    dim, positions = 96, 40
    query, key = local_attention([offset, 1, -1, 2], dim, gain=1.0)
    p = sinusoids(positions, dim, 1.0)
    head = slice(0, dim // 4)
    scores = (p @ query.T)[:, head] @ (p @ key.T)[:, head].T  # (positions, positions)
    inside = np.arange(max(0, -offset), positions - max(0, offset))
    assert (scores.argmax(1)[inside] == inside + offset).all()
    assert np.allclose(scores[inside, inside + offset], len(frequencies(dim)[: dim // 8]), atol=1e-3)


def test_positions_go_on_as_they_began() -> None:
    """Whatever lies beyond, and whatever linear map the network made of the sinusoids that a head reads."""
    rng = np.random.default_rng(2)
    waves = sinusoids(128, 96, 1.0)[:, :24]
    whole = (waves @ rng.normal(size=(24, 96)) + rng.normal(size=96)).astype(np.float32)
    cut = whole.copy()
    cut[0], cut[62:] = 9.0, rng.normal(size=(66, 96))
    found = extrapolate(cut, 64, heads=4)
    assert found.dtype == np.float32
    assert np.array_equal(found[:64], cut[:64])
    assert np.abs(found[64:] - whole[64:]).max() < 0.1 * whole.std()
    assert np.abs(found[64:] - whole[64:]).mean() < 0.02 * whole.std()


def test_masked_prediction_reads_boundaries_but_never_asks_for_them(text: Path, tmp_path: Path) -> None:
    learner = TrainingRun(config("bert", text, tmp_path, "steps=1")).learner
    seen = []
    learner.base.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    x = torch.from_numpy(learner.batch(0, None))
    x[:, 3] = BOUNDARY
    _, target, chosen, *_ = learner._predict(x.clone(), torch.Generator().manual_seed(0), 0.3)
    assert (seen[0][:, 0] == CLS).all()
    assert (seen[0][:, 3] == SEP).all()
    assert not chosen[:, [0, 3]].any()
    assert (chosen.sum(1) == round(0.3 * 7)).all()
    assert torch.equal(target, x[chosen])
    read = torch.where(x == BOUNDARY, SEP, x)
    read[:, 0] = CLS
    assert torch.equal(seen[0][~chosen], read[~chosen])
    assert (seen[0][chosen] == MASK).float().mean() > 0.5


def test_causal_loss_is_that_of_the_stock_class(text: Path, tmp_path: Path) -> None:
    learner = TrainingRun(config("gpt2", text, tmp_path, "steps=9", "precision=float32")).learner
    x = torch.from_numpy(learner.batch(4, 9))
    assert learner.loss(4, 9).item() == pytest.approx(learner.network(x, labels=x).loss.item(), rel=1e-5)


# --- the loop -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["bert", "elmo"])  # that of GPT-2 keeps the same checkpoints
def test_a_run_and_a_resumed_one_learn_equal_weights(model: str, text: Path, tmp_path: Path) -> None:
    steps = 12 if model == "elmo" else 8
    run = TrainingRun(config(model, text, tmp_path / "a", f"steps={steps}"))
    before = run.learner.held_out(None)
    run.train()
    TrainingRun(config(model, text, tmp_path / "c", f"steps={steps}", "stop_after=5")).train()
    resumed = TrainingRun(config(model, text, tmp_path / "c", f"steps={steps}"))
    assert resumed.step == 5
    resumed.train()
    assert torch.equal(weights(run), weights(resumed))
    assert run.learner.held_out(None)["loss"] < before["loss"]
    curves = [(tmp_path / n / "curve.csv").read_text().splitlines() for n in "ac"]
    assert [r.split(",")[0] for r in curves[0]] == [r.split(",")[0] for r in curves[1]]
    assert [r.split(",")[0] for r in curves[0]] == ["step", *map(str, range(2, steps + 1, 2))]


def test_what_is_exported_is_the_best_of_the_checks(text: Path, tmp_path: Path) -> None:
    wild = ["model.muon_rate=1", "model.adamw_rate=1", "decay=0.01", "held_out_every=2", "held_out_limit=null"]
    run = TrainingRun(config("gpt2", text, tmp_path, "steps=7", "precision=float32", *wild))
    run.train()
    head, *rows = (tmp_path / "held_out.csv").read_text().splitlines()
    losses = {int(row.split(",")[0]): float(row.split(",")[head.split(",").index("loss")]) for row in rows}
    assert list(losses) == [2, 4, 6, 7]
    best = min(losses, key=losses.__getitem__)
    assert best < 7, "rates that were meant to be too high weren't"
    assert run.finish()["loss"] == pytest.approx(losses[best], abs=1e-12)
    assert json.loads((tmp_path / "export" / "run.json").read_text())["best_step"] == best


# --- export ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["bert", "gpt2"])
def test_an_exported_transformer_loads_as_it_was(model: str, text: Path, tmp_path: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    found = train(config(model, text, tmp_path, "steps=2"))
    record = json.loads((tmp_path / "export" / "run.json").read_text())
    assert record["held_out"] == pytest.approx(found)
    assert record["recipe"]["steps"] == 2
    assert str(tmp_path) not in (tmp_path / "export" / "run.json").read_text()
    extra = {"add_pooling_layer": False} if model == "bert" else {}
    loaded = AutoModel.from_pretrained(tmp_path / "export", dtype=torch.float32, **extra)
    trained = TrainingRun(config(model, text, tmp_path, "steps=2")).learner
    x = torch.arange(5, 15)[None]
    with torch.no_grad():
        expected = trained.base(x).last_hidden_state  # type: ignore[attr-defined]
        assert torch.allclose(loaded(x).last_hidden_state, expected, atol=2e-2)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "export")
    sentence = "Abc ab, fé  gh."
    out = tokenizer(sentence, return_offsets_mapping=True)
    pieces = tokenizer.convert_ids_to_tokens(out["input_ids"])
    assert ([pieces[0], pieces[-1]] == ["[CLS]", "[SEP]"]) == (model == "bert")
    covered = "".join(sentence[a:b] for a, b in sorted(set(out["offset_mapping"])))
    assert covered == sentence.replace(" ", "")
