"""BERT and GPT-2 minis: stock `transformers` networks, their losses over windows of pieces, their held-out losses."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ctxexp.errors import ConfigError
from ctxexp.models import resolve_device
from ctxexp_lab.training.data import BOUNDARY, CLS, MASK, PAD, SEP, SPECIAL, PieceStreams, windows

RIDGE = 0.01  # of extrapolated positions: of .003, .01 and .03 the one whose positions were predicted best


def sinusoids(positions: int, dim: int, amplitude: float) -> np.ndarray:
    """(positions, dim) float32 of amplitude * (cos wp, sin wp), frequencies falling geometrically from pi."""
    w = frequencies(dim)
    angle = np.arange(positions)[:, None] * w[None, :]
    out = np.empty((positions, dim), dtype=np.float32)
    out[:, 0::2], out[:, 1::2] = amplitude * np.cos(angle), amplitude * np.sin(angle)
    return out


def frequencies(dim: int) -> np.ndarray:
    """(dim / 2,) angles per position, from pi (period 2) down to pi / 128 (period 256)."""
    return np.pi * np.geomspace(1.0, 1.0 / 128.0, dim // 2)


def local_attention(offsets: Sequence[int], dim: int, gain: float) -> tuple[np.ndarray, np.ndarray]:
    """Query and key matrices, each (dim, dim) float32 as (out, in): head h attends to offsets[h] at first.

    A language model first has to find out that neighbours matter; until then it sits on a plateau at the unigram loss,
    most of the training time on a CPU. Sinusoids in the position embeddings let two matrices express "the position
    `offset` away": with p = (cos wp, sin wp) per frequency w, q = R(w offset) p and k = p give q.k = sum cos(w (i +
    offset - j)), largest at j = i + offset. Initial values only: every parameter stays learned. A head of width d reads
    the d / 2 highest frequencies; `gain` sharpens its attention quadratically.
    """
    width = dim // len(offsets)
    query, key = np.zeros((dim, dim), dtype=np.float32), np.zeros((dim, dim), dtype=np.float32)
    for head, offset in enumerate(offsets):
        for f, w in enumerate(frequencies(dim)[: width // 2]):
            row, column = head * width + 2 * f, 2 * f
            cos, sin = gain * np.cos(w * offset), gain * np.sin(w * offset)
            query[row : row + 2, column : column + 2] = [[cos, -sin], [sin, cos]]
            key[row : row + 2, column : column + 2] = [[gain, 0.0], [0.0, gain]]
    return query, key


def extrapolated(learned: np.ndarray, known: int, heads: int) -> np.ndarray:
    """Position embeddings (positions, dim) float32 whose rows from `known` on go on from those before.

    Windows of `known` pieces leave the later rows as they were drawn, which the network has meanwhile forgotten how to
    read. What it learnt still turns with the position as the sinusoids do: a ridge regression of the rows on those of
    the highest frequencies, which a head of the first layer was made to read, tells how they go on. The first row and
    the last two, which stand at a window's ends, are left out of it.
    """
    positions, dim = learned.shape
    waves = sinusoids(positions, dim, 1.0)[:, : 2 * (dim // heads // 2)].astype(np.float64) / math.sqrt(dim / 2)
    x = np.concatenate([waves, np.ones((positions, 1))], axis=1)
    waves_of_known, rows = x[1 : known - 2], learned[1 : known - 2].astype(np.float64)
    weights = np.linalg.solve(waves_of_known.T @ waves_of_known + RIDGE * np.eye(x.shape[1]), waves_of_known.T @ rows)
    return np.concatenate([learned[:known], (x @ weights)[known:]]).astype(np.float32)


APART = 4  # windows: so far from each other that they hardly share a paragraph
MEASURES = ("cosine", "isoscore")


def mean_cosine(w: Tensor) -> Tensor:
    """Mean cosine over ordered pairs i != j of rows, in [-1, 1]: the regulariser of Gao et al. 2019 (equation 4 with
    its 1/N^2), in O(N) because the sum over pairs is the squared norm of the sum of unit rows, less N."""
    u = functional.normalize(w.float(), dim=1)
    return (u.sum(0).square().sum() - len(u)) / len(u) ** 2


def context_penalty(states: Sequence[Tensor], is_text: Tensor, measure: str) -> Tensor:
    """Mean over layers of what a training is fined for: the mean cosine of unrelated contextual vectors, in [-1, 1]
    (`cosine`: Ethayarajh 2019's future work), or 1 - IsoScore, in [0, 1] (`isoscore`: Rudman & Eickhoff 2024).

    Args:
        states: vectors of each layer, (windows, width, d).
        is_text: which of them are of a piece of text, (windows, width); the rest (special and masked pieces) don't
            count.
        measure: one of `MEASURES`.
    """
    of_layer = unrelated_cosine if measure == "cosine" else lambda x, mask: 1 - isoscore(x, mask)
    return torch.stack([of_layer(x, is_text) for x in states]).mean()


def unrelated_cosine(x: Tensor, is_text: Tensor) -> Tensor:
    """Mean cosine of the pairs of vectors that stand APART or more windows from each other, in [-1, 1]; NaN for fewer
    than APART + 1 windows. x (windows, width, d), is_text (windows, width).

    The sum over all pairs is the squared norm of the sum of unit vectors; that over nearer windows is taken off.
    """
    sums = (functional.normalize(x.float(), dim=-1) * is_text[..., None]).sum(1)  # (windows, d)
    counts = is_text.sum(1, dtype=torch.float32)[:, None]  # (windows, 1)
    return _over_apart(sums) / _over_apart(counts)


def _over_apart(sums: Tensor) -> Tensor:
    """Sum of the inner products of rows that are APART or more from each other; rows (windows, d)."""
    near = [(sums[: len(sums) - k] * sums[k:]).sum() for k in range(1, APART)]
    return sums.sum(0).square().sum() - sums.square().sum() - 2 * torch.stack(near).sum()


def isoscore(x: Tensor, is_text: Tensor) -> Tensor:
    """IsoScore of the marked vectors, in [0, 1]: (k - 1) / (d - 1) with k = tr(S)^2 / tr(S S) of their covariance S.

    This is IsoScore* of Rudman & Eickhoff 2024 with zeta = 0: no shrinkage towards another sample's covariance, as a
    batch has many more vectors than dimensions, and a step is to depend on its own batch alone. In float64, which
    autocast leaves as it is. x (windows, width, d), is_text (windows, width).
    """
    mask = is_text[..., None].double()
    rows = x.double() * mask
    mean = rows.sum((0, 1)) / mask.sum()
    centred = ((rows - mean) * mask).flatten(0, 1)
    covariance = centred.T @ centred / (mask.sum() - 1)
    dimensions = covariance.trace().square() / covariance.square().sum()
    return ((dimensions - 1) / (x.shape[-1] - 1)).float()


# Where each stock class keeps its parts. Pre-norm BERT is RobertaPreLayerNorm, post-norm GPT is GPT-1's.
_BASE = {
    "bert": "bert",
    "roberta-prelayernorm": "roberta_prelayernorm",
    "gpt2": "transformer",
    "openai-gpt": "transformer",
}

POSITIONS = ("position_embeddings", "wpe", "positions_embed")  # what each class calls them


def build(objective: str, shape: dict[str, Any], *, norm: str, tied: bool, attention: str = "eager") -> Any:
    """An untrained network: `objective` masked or causal, `norm` post or pre. Draws from torch's global generator.

    `attention` is the kernel: torch's fused one (`sdpa`) takes half of a step's time at this size on a CPU.
    """
    import transformers as t

    if norm not in ("post", "pre"):
        raise ConfigError(f"norm={norm!r}: choose post or pre")
    d, layers, heads, size = (shape[k] for k in ("width", "layers", "heads", "vocabulary"))
    if objective == "masked":
        config = {
            "vocab_size": size, "hidden_size": d, "num_hidden_layers": layers, "num_attention_heads": heads,
            "intermediate_size": shape["inner"], "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
            "pad_token_id": PAD, "bos_token_id": CLS, "eos_token_id": SEP, "tie_word_embeddings": tied,
        }  # fmt: skip
        if norm == "post":
            c = t.BertConfig(**config, max_position_embeddings=shape["positions"])
            c._attn_implementation = attention
            return t.BertForMaskedLM(c)
        # This class numbers positions from the padding id on.
        c = t.RobertaPreLayerNormConfig(
            **config, type_vocab_size=2, max_position_embeddings=shape["positions"] + PAD + 1
        )
        c._attn_implementation = attention
        return t.RobertaPreLayerNormForMaskedLM(c)
    config = {
        "vocab_size": size, "n_positions": shape["positions"], "n_embd": d, "n_layer": layers, "n_head": heads,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "tie_word_embeddings": tied,
        "bos_token_id": BOUNDARY, "eos_token_id": BOUNDARY, "pad_token_id": PAD,
    }  # fmt: skip
    if norm == "pre":
        c = t.GPT2Config(**config, n_inner=shape["inner"])
        c._attn_implementation = attention
        return t.GPT2LMHeadModel(c)
    inner = shape["inner"]
    if inner != 4 * d:
        raise ConfigError(f"norm=post for gpt2 is GPT-1's class, whose inner width is 4 x width = {4 * d}, not {inner}")
    c = t.OpenAIGPTConfig(**config)
    c._attn_implementation = attention
    return t.OpenAIGPTLMHeadModel(c)


class Prediction(NamedTuple):
    """A network's output for windows x (rows, width): logits (n, vocabulary) and targets (n,) of the n predicted pieces
    on its device, and a mask of x that marks these; in a training with a penalty also the vectors of layers 1 to L,
    (rows, width, d) each, and a mask of those that are of a piece of text."""

    logits: Tensor
    target: Tensor
    is_predicted: Tensor
    states: tuple[Tensor, ...]
    is_text: Tensor


class Transformer:
    """A network with its training loss and held-out loss; `masked` share of pieces, or None for a causal model."""

    unit = "piece"

    def __init__(self, cfg: Any, pieces: PieceStreams) -> None:
        torch.manual_seed(cfg.seed)
        shape = dict(cfg.model.shape)
        self.cfg, self.pieces, self.size = cfg, pieces, shape["vocabulary"]
        self.masked: float | None = cfg.model.get("mask")
        self.objective = "causal" if self.masked is None else "masked"
        norm = cfg.norm or ("pre" if self.masked is None else "post")
        self.device = resolve_device(cfg.device)
        attention = "eager" if self.device.type == "cpu" else "sdpa"
        self.network = build(self.objective, shape, norm=norm, tied=cfg.tied, attention=attention).to(self.device)
        self.base = getattr(self.network, _BASE[self.network.config.model_type])
        self.unigram = pieces.unigram(self.size)  # (vocabulary,) float64
        if cfg.model.local is not None:
            self._start_local(list(cfg.model.local), shape["width"])
        self._check_windows()

    def _check_windows(self) -> None:
        """Raise ConfigError for batches without two windows that are far enough apart for the penalty."""
        m = self.cfg.model
        least = min(m.rows, m.rows * m.window // m.long if m.long_share else m.rows)
        if self.cfg.context_penalty and self.cfg.context_measure == "cosine" and least <= APART:
            raise ConfigError(
                f"context_penalty={self.cfg.context_penalty} compares windows that are {APART} or more apart, but a "
                f"batch has {least}: raise model.rows={m.rows}"
            )

    def _start_local(self, offsets: list[int], d: int) -> None:
        if len(offsets) != self.cfg.model.shape.heads:
            heads = self.cfg.model.shape.heads
            raise ConfigError(f"local={offsets} must have one offset for each of {heads} heads, or be null")
        query, key = (torch.from_numpy(m) for m in local_attention(offsets, d, gain=math.sqrt(2.0)))
        with torch.no_grad():
            for name, p in self.base.named_parameters():
                leaf = name.removesuffix(".weight").rsplit(".", 1)[-1]
                if leaf in POSITIONS:
                    # The amplitude gives positions and pieces (sd 0.02) equal shares of the normalised sum.
                    p.copy_(torch.from_numpy(sinusoids(len(p), d, 0.02 * math.sqrt(2.0))))
                elif leaf == "query" and "layer.0." in name and p.ndim == 2:
                    p.copy_(query)
                elif leaf == "key" and "layer.0." in name and p.ndim == 2:
                    p.copy_(key)
                elif leaf == "c_attn" and name.startswith("h.0.") and p.ndim == 2:
                    p[:, :d], p[:, d : 2 * d] = query.T, key.T
            for name, p in self.network.named_parameters():
                if name.endswith(("predictions.bias", "lm_head.bias")):
                    p.copy_(torch.from_numpy(self.unigram))

    @torch.no_grad()
    def _extend_positions(self) -> None:
        for name, p in self.base.named_parameters():
            if name.removesuffix(".weight").rsplit(".", 1)[-1] in POSITIONS:
                model = self.cfg.model
                p.copy_(torch.from_numpy(extrapolated(p.cpu().numpy(), model.window, model.shape.heads)))

    def in_block(self, name: str) -> bool:
        """Whether a parameter is a matrix of a block, for Muon."""
        return ".layer." in name or ".h." in name

    def _windows(self, step: int, steps: int | None) -> tuple[int, int, int]:
        """First piece, rows and width of the windows of `step`."""
        m = self.cfg.model
        switch = math.ceil(steps * (1 - m.long_share)) if steps is not None else step
        rows, width = (m.rows, m.window) if step < switch or steps is None else (m.rows * m.window // m.long, m.long)
        before = min(step, switch) * m.rows * (m.window - 1)
        after = max(0, step - switch) * (m.rows * m.window // m.long) * (m.long - 1)
        return before + after, rows, width

    def batch(self, step: int, steps: int | None) -> np.ndarray:
        """(rows, width) windows of `step`; the last share of the run has long windows, so that late positions learn."""
        return windows(self.pieces.train, *self._windows(step, steps))

    def units(self, step: int, steps: int | None) -> int:
        """New pieces of the step's batch."""
        _, rows, width = self._windows(step, steps)
        return int(rows * (width - 1))

    def loss(self, step: int, steps: int | None) -> Tensor:
        """Mean nats a predicted piece in the batch of `step`, a function of the weights, the seed and `step` alone."""
        if step == self.cfg.model.extend:
            self._extend_positions()
        x = torch.from_numpy(self.batch(step, steps))
        if self.masked is None:
            prediction = self._predict(x, None, 0.0)
        else:
            draw = torch.Generator().manual_seed(self.cfg.seed * 1_000_003 + step)
            prediction = self._predict(x, draw, self.masked)
        loss = functional.cross_entropy(prediction.logits.float(), prediction.target)
        if self.cfg.cosine_penalty:
            loss = loss + self.cfg.cosine_penalty * mean_cosine(self.network.get_output_embeddings().weight)
        if self.cfg.context_penalty:
            fine = context_penalty(prediction.states, prediction.is_text, self.cfg.context_measure)
            loss = loss + self.cfg.context_penalty * fine
        return loss

    def _read(self, ids: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The last layer's vectors, and those of layers 1 to L where a penalty wants them."""
        out = self.base(ids, output_hidden_states=bool(self.cfg.context_penalty))
        return out.last_hidden_state, (out.get("hidden_states") or ())[1:]

    def _predict(self, x: Tensor, draw: torch.Generator | None, share: float) -> Prediction:
        """Predictions in windows x; of all but their first pieces without `draw`, else of a `share` drawn on the CPU,
        which makes draws the same for every device."""
        if draw is None:
            there = x.to(self.device)
            last, states = self._read(there)
            is_predicted = torch.zeros_like(x, dtype=torch.bool)
            is_predicted[:, 1:] = True
            logits = self.network.lm_head(last[:, :-1]).flatten(0, 1)
            return Prediction(logits, there[:, 1:].flatten(), is_predicted, states, there >= len(SPECIAL))
        x = torch.where(x == BOUNDARY, SEP, x)
        x[:, 0] = CLS
        score = torch.rand(x.shape, generator=draw).masked_fill(x < len(SPECIAL), -1.0)
        n = max(1, round(share * (x.shape[1] - 1)))
        is_predicted = torch.zeros_like(x, dtype=torch.bool).scatter_(1, score.topk(n, dim=1).indices, True)
        is_predicted &= score >= 0
        # BERT's 80 / 10 / 10: mask, a random piece, the piece itself.
        how = torch.rand(x.shape, generator=draw)
        random = torch.randint(len(SPECIAL), self.size, x.shape, generator=draw)
        replacement = torch.where(how < 0.8, MASK, torch.where(how < 0.9, random, x))
        read = torch.where(is_predicted, replacement, x).to(self.device)
        rows = is_predicted.flatten().nonzero().squeeze(1).to(self.device)  # found on the CPU: a GPU isn't waited for
        last, states = self._read(read)
        head = self.network.cls if hasattr(self.network, "cls") else self.network.lm_head
        logits = head(last.flatten(0, 1).index_select(0, rows))
        target = x[is_predicted].to(self.device)
        return Prediction(logits, target, is_predicted, states, read >= len(SPECIAL))

    @torch.no_grad()
    def held_out(self, limit: int | None) -> dict[str, float]:
        """Mean nats a predicted piece over the first `limit` held-out pieces, the unigram's on the same pieces, the
        share of pieces whose best guess is right, and how many were predicted. Masked: 15% of pieces. Without a limit
        also `late`: the loss at the positions beyond `window` in windows of `long`."""
        m = self.cfg.model
        n = min(len(self.pieces.held_out), limit or len(self.pieces.held_out)) - 1
        self.network.eval()
        scores = list(self._scores(n, m.rows, m.window))
        late = [] if limit or m.long <= m.window else list(self._scores(n, m.rows, m.long))
        self.network.train()
        if not scores:
            raise ConfigError(
                f"the held-out text has {n + 1} pieces, fewer than one window of {m.window}: give more text"
            )
        nats, right, target, _ = map(torch.cat, zip(*scores, strict=True))
        scores_by_name = {
            "loss": nats.mean().item(),
            "unigram": -float(self.unigram[target.numpy()].mean()),
            "right": right.double().mean().item(),
            "predicted": float(len(target)),
        }
        if late:
            nats, _, _, position = map(torch.cat, zip(*late, strict=True))
            scores_by_name["late"] = nats[position >= m.window].mean().item()
        return scores_by_name

    def _scores(self, n: int, rows: int, width: int) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Of the first n held-out pieces in windows of `width`, a batch at a time: nats (float64), whether the best
        guess is right, target and position in the window, each (predicted,)."""
        for i, start in enumerate(range(0, n - width, rows * (width - 1))):
            some = min(rows, (n - start) // (width - 1))
            x = torch.from_numpy(windows(self.pieces.held_out, start, some, width))
            draw = None if self.masked is None else torch.Generator().manual_seed(i)
            logits, target, is_predicted, *_ = self._predict(x, draw, 0.15)
            nats = functional.cross_entropy(logits.float(), target, reduction="none").double()
            yield nats.cpu(), (logits.argmax(1) == target).cpu(), target.cpu(), is_predicted.nonzero()[:, 1]

    def begin_from(self, folder: Path) -> None:
        """Takes the weights, float16, of an exported folder of the same shape and pieces."""
        theirs, ours = (
            json.loads(f.read_text())["model"] for f in (folder / "tokenizer.json", self.pieces.tokenizer_file)
        )
        if theirs != ours:
            raise ConfigError(f"start={folder} has other pieces than this text gives: begin files= with the same file")
        network = type(self.network).from_pretrained(folder, dtype=torch.float32)
        self.network.load_state_dict(network.state_dict())

    def export(self, folder: Path) -> None:
        """Writes the `transformers` folder: float16 weights and the fast tokenizer."""
        from ctxexp_lab.training.export import save_transformer

        save_transformer(self.network, self.pieces.tokenizer_file, folder, masked=self.masked is not None)
