"""BERT and GPT-2 minis: stock `transformers` networks, their losses over windows of pieces with penalties, their
held-out losses, and the folder that loaders read."""

from __future__ import annotations

import copy
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
from ctxexp_lab.training.positions import extrapolate, local_attention, sinusoids

POSITIONS = ("position_embeddings", "wpe")  # what each class calls them
APART = 4  # windows: so far from each other that they hardly share a paragraph


def build(objective: str, shape: dict[str, Any], *, attention: str = "eager") -> Any:
    """An untrained network: BERT if `objective` is masked, GPT-2 if it is causal. Draws from torch's global generator.

    `attention` is the kernel: torch's fused one (`sdpa`) takes half of a step's time at this size on a CPU.
    """
    import transformers as t

    d, layers, heads, size = (shape[k] for k in ("width", "layers", "heads", "vocabulary"))
    if objective == "masked":
        config = t.BertConfig(
            vocab_size=size, hidden_size=d, num_hidden_layers=layers, num_attention_heads=heads,
            intermediate_size=shape["inner"], hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
            max_position_embeddings=shape["positions"], pad_token_id=PAD, bos_token_id=CLS, eos_token_id=SEP,
            attn_implementation=attention,
        )  # fmt: skip
        return t.BertForMaskedLM(config)
    config = t.GPT2Config(
        vocab_size=size, n_positions=shape["positions"], n_embd=d, n_layer=layers, n_head=heads, n_inner=shape["inner"],
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=BOUNDARY, eos_token_id=BOUNDARY,
        pad_token_id=PAD, attn_implementation=attention,
    )  # fmt: skip
    return t.GPT2LMHeadModel(config)


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
        self.device = resolve_device(cfg.device)
        attention = "eager" if self.device.type == "cpu" else "sdpa"
        self.network = build(self.objective, shape, attention=attention).to(self.device)
        self.base = self.network.base_model
        self.unigram = pieces.unigram(self.size)  # (vocabulary,) float64
        if cfg.model.local is not None:
            self._start_local(list(cfg.model.local), shape["width"])
        self._check_windows()

    def _check_windows(self) -> None:
        """Raise ConfigError for batches without two windows that are far enough apart for the penalty."""
        m = self.cfg.model
        least = min(m.rows, m.rows * m.window // m.long if m.long_share else m.rows)
        if self.cfg.context_penalty and least <= APART:
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
                if name.endswith("predictions.bias"):
                    p.copy_(torch.from_numpy(self.unigram))

    @torch.no_grad()
    def _extend_positions(self) -> None:
        for name, p in self.base.named_parameters():
            if name.removesuffix(".weight").rsplit(".", 1)[-1] in POSITIONS:
                model = self.cfg.model
                p.copy_(torch.from_numpy(extrapolate(p.cpu().numpy(), model.window, model.shape.heads)))

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
            loss = loss + self.cfg.context_penalty * context_penalty(prediction.states, prediction.is_text)
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
        logits = self.network.cls(last.flatten(0, 1).index_select(0, rows))
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
        save_transformer(self.network, self.pieces.tokenizer_file, folder, masked=self.masked is not None)


def mean_cosine(w: Tensor) -> Tensor:
    """Mean cosine over ordered pairs i != j of rows, in [-1, 1]: the regulariser of Gao et al. 2019 (equation 4 with
    its 1/N^2), in O(N) because the sum over pairs is the squared norm of the sum of unit rows, less N."""
    u = functional.normalize(w.float(), dim=1)
    return (u.sum(0).square().sum() - len(u)) / len(u) ** 2


def context_penalty(states: Sequence[Tensor], is_text: Tensor) -> Tensor:
    """Mean over layers of the mean cosine of unrelated contextual vectors, in [-1, 1]: Ethayarajh 2019's future work.

    Args:
        states: vectors of each layer, (windows, width, d).
        is_text: which of them are of a piece of text, (windows, width); the rest (special and masked pieces) don't
            count.
    """
    return torch.stack([unrelated_cosine(x, is_text) for x in states]).mean()


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


def save_transformer(network: Any, tokenizer_file: Path, folder: Path, *, masked: bool) -> None:
    """`transformers` folder with float16 safetensors and a fast tokenizer with offsets.

    The language-model head is kept, so that `AutoModelForMaskedLM` and `AutoModelForCausalLM` load it too. AutoModel
    would give BERT a pooler that was never trained: loaders ask for `add_pooling_layer=False`.
    """
    half = copy.deepcopy(network).to(torch.float16)
    half.config.dtype = torch.float16
    half.save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)
    positions = getattr(network.config, "n_positions", None) or network.config.max_position_embeddings
    fast_tokenizer(tokenizer_file, masked=masked, positions=int(positions)).save_pretrained(folder)


def fast_tokenizer(tokenizer_file: Path, *, masked: bool, positions: int) -> Any:
    """The tokenizer as `transformers` has it; for the masked model it puts [CLS] and [SEP] around a text."""
    from tokenizers import AddedToken, Tokenizer, processors
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer.from_file(str(tokenizer_file))
    end, pad, cls, sep, mask = SPECIAL
    if not masked:
        return PreTrainedTokenizerFast(
            tokenizer_object=inner,
            bos_token=end,
            eos_token=end,
            unk_token=end,
            pad_token=pad,
            model_max_length=positions,
        )
    # A typed mask takes the space before it along, as the pieces that it stands for do.
    gap = AddedToken(mask, lstrip=True, special=True)
    inner.add_special_tokens([gap])
    ids = {piece: inner.token_to_id(piece) for piece in (cls, sep)}
    inner.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=True),
            processors.TemplateProcessing(
                single=f"{cls} $A {sep}", pair=f"{cls} $A {sep} $B:1 {sep}:1", special_tokens=list(ids.items())
            ),
        ]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, cls_token=cls, sep_token=sep, mask_token=gap, pad_token=pad, unk_token=end,
        bos_token=cls, eos_token=sep, model_max_length=positions,
    )  # fmt: skip
