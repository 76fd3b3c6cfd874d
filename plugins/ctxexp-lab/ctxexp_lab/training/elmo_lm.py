"""ELMo's training objective, the bidirectional language model (Peters et al. 2018, equation in section 3.1), and its
LSTM as autograd can follow it: without gradient the recurrence is the network's own."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from ctxexp.models import ElmoNetwork

Weights = tuple[Tensor, Tensor, Tensor]  # of the four gates, their bias, the projection
CellState = tuple[Tensor, Tensor]  # cells and outputs, to start from


class BiLanguageModel(nn.Module):
    """The loss -sum_k log p(t_k | t_<k; Tx, Tf, Ts) + log p(t_k | t_>k; Tx, Tb, Ts), as means per word.

    The token layer Tx and the softmax Ts serve both directions. The softmax is for training only; `network` alone
    makes the vectors. Word ids are by falling frequency if `samples` is used: its noise is log-uniform over ranks.
    """

    def __init__(self, network: ElmoNetwork, n_words: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.network = make_trainable(network)
        self.weight = nn.Parameter(torch.empty(n_words, network.options.projection))
        self.bias = nn.Parameter(torch.zeros(n_words))
        nn.init.normal_(self.weight, 0.0, 1 / math.sqrt(network.options.projection), generator=generator)

    def forward(
        self,
        characters: Tensor,
        index: Tensor | None,
        targets: Tensor,
        *,
        samples: int | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Mean nats per predicted word (2,), forward and backward; train on their mean.

        `characters` and `index` are those of `ElmoNetwork.forward`, sentence markers included; `targets`
        (n_sentences, n_steps) are the word ids at the same places. The forward direction predicts each step's
        successor, the backward one its predecessor. `samples` noise words (drawn
        with `generator`) replace the full softmax: quick, and its values read lower than the true ones.
        """
        outputs, _ = self.network.contextual(self.network.embed(characters, index))
        top = outputs[-1]  # (2, n_steps, n_sentences, projection)
        steps = targets.t()
        losses = []
        words, shift = (None, None) if samples is None else self._noise(samples, generator)
        for hidden, target in ((top[0, :-1], steps[1:]), (top[1, 1:], steps[:-1])):
            hidden, target = hidden.flatten(0, 1), target.flatten()
            if words is None or shift is None:
                losses.append(functional.cross_entropy(functional.linear(hidden, self.weight, self.bias), target))
            else:
                losses.append(self._sampled(hidden, target, words, shift))
        return torch.stack(losses)

    def _noise(self, samples: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Distinct noise words and the log of count / (samples q) for each: q is log-uniform over ranks."""
        n_words = len(self.weight)
        device = None if generator is None else generator.device
        uniform = torch.rand(samples, generator=generator, device=device, dtype=torch.float64)
        ids = (torch.exp(uniform * math.log(n_words + 1)).long() - 1).clamp_(0, n_words - 1)
        words, counts = torch.unique(ids, return_counts=True)
        rank = words.double()
        q = torch.log((rank + 2) / (rank + 1)) / math.log(n_words + 1)
        shift = torch.log(counts) - torch.log(samples * q)
        return words.to(self.weight.device), shift.to(self.weight)

    def _sampled(self, hidden: Tensor, target: Tensor, words: Tensor, shift: Tensor) -> Tensor:
        """Cross-entropy whose normaliser is e^target plus an unbiased estimate of the other words' sum.

        Noise that hits the target is left out, so that the estimate converges to the full softmax.
        """
        true = (hidden * self.weight[target]).sum(-1) + self.bias[target]
        noise = functional.linear(hidden, self.weight[words], self.bias[words] + shift)
        noise = noise.masked_fill(target[:, None] == words, -torch.inf)
        logits = torch.cat([true.unsqueeze(1), noise], dim=1)
        return functional.cross_entropy(logits, target.new_zeros(len(target)))


def make_trainable(network: ElmoNetwork) -> ElmoNetwork:
    """The same network, whose recurrence has a gradient now."""
    for layer in network.layers:
        layer.scan = scan_with_gradient  # type: ignore[assignment]  # a ModuleList doesn't know its items' type
    return network


def scan_with_gradient(
    x: Tensor, weights: Weights, start: CellState, sizes: Sequence[int], clips: tuple[float, float]
) -> tuple[Tensor, Tensor, Tensor]:
    """`ElmoNetwork.scan`, under autocast too, where cells stay float32; states to start from get no gradient. A clipped
    output or cell passes no gradient, as in TensorFlow's clip_by_value."""
    kind = x.device.type
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        x, *learned = (a.to(dtype) for a in (x, *weights))
        weights = learned[0], learned[1], learned[2]
    if not torch.is_grad_enabled():
        return ElmoNetwork.scan(x, weights, (start[0].to(x.dtype), start[1]), sizes, clips)
    weight, bias, project = weights
    width, n = x.shape[-1], x.shape[2]
    c, m = start[0].detach(), start[1].detach().to(x.dtype)
    c = c.float() if x.dtype in (torch.bfloat16, torch.float16) else c
    outputs = []
    with torch.autocast(kind, enabled=False):
        inputs = torch.einsum("dtnw,dwg->dtng", x, weight[:, :width]) + bias[:, None, None]
        from_output = weight[:, width:]
        for t, k in enumerate(sizes):
            i, j, f, o = torch.baddbmm(inputs[:, t, :k], m[:, :k], from_output).chunk(4, dim=-1)
            cells = (torch.sigmoid(f) * c[:, :k] + torch.sigmoid(i) * torch.tanh(j)).clamp(-clips[0], clips[0])
            hidden = torch.sigmoid(o) * torch.tanh(cells).to(x.dtype)
            output = torch.bmm(hidden, project).clamp(-clips[1], clips[1])
            outputs.append(torch.nn.functional.pad(output, (0, 0, 0, n - k)))
            c, m = torch.cat([cells, c[:, k:]], dim=1), torch.cat([output, m[:, k:]], dim=1)
    return torch.stack(outputs, dim=1), c.detach(), m.detach()
