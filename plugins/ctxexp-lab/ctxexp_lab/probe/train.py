"""Training the probe: a linear layer over one layer, over a learnt mix of layers, or over a network that learns too."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional

from ctxexp.errors import ConfigError, MetricError, UnknownName
from ctxexp.models import ElmoNetwork
from ctxexp_lab.probe.task import SenseTask, folds_of, word_bootstrap
from ctxexp_lab.training.recurrence import make_trainable


class ScalarMix(nn.Module):
    """One vector per word from its layers 0..L: gamma sum_{j=0}^{L} s_j h_j, with s = softmax(w) over layers.

    `w` (n_layers,) and `gamma` belong to the task: they are the same for every word. They start at w = 0 (all layers
    alike) and gamma = 1.
    """

    def __init__(self, n_layers: int, *, trainable: bool) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(n_layers), requires_grad=trainable)
        self.gamma = nn.Parameter(torch.ones(()), requires_grad=trainable)

    @property
    def s(self) -> Tensor:
        """The layers' weights (n_layers,): positive, their sum 1."""
        return torch.softmax(self.w, dim=0)

    def forward(self, layers: Tensor) -> Tensor:
        """(..., dim) from `layers` (n_layers, ..., dim)."""
        mix: Tensor = torch.tensordot(self.s, layers, dims=1)
        return self.gamma * mix


AT_ONCE = 128  # sentences of one pass without gradient

LayerSource = Callable[[Tensor], Tensor]
"""A function of row numbers (b,) that gives their vectors in all layers (n_layers, b, dim)."""


class OccurrenceLayers:
    """ELMo's vectors of the task's rows: called with row numbers (b,), gives (n_layers, b, dim).

    dim is twice the width of a direction: both directions side by side, and in layer 0 the token's vector twice.
    """

    def __init__(self, network: ElmoNetwork, task: SenseTask) -> None:
        self.network, self._task = network, task
        vocabulary = [network.BEGIN, network.END, *sorted({word for s in task.sentences for word in s.words})]
        self._vocabulary_index = {word: i for i, word in enumerate(vocabulary)}
        self._characters = torch.from_numpy(network.character_ids(vocabulary, network.options.word_width))

    def with_network(self, network: ElmoNetwork) -> OccurrenceLayers:
        """A copy that passes the same rows through another network of the same shape."""
        other = copy.copy(self)
        other.network = network
        return other

    def __call__(self, rows: Tensor) -> Tensor:
        device = self.network.tokens.characters.device
        sentences = [self._task.sentences[i] for i in rows.tolist()]
        order = sorted(range(len(rows)), key=lambda k: -len(sentences[k]))  # the network wants the longest first
        lengths = [len(sentences[k]) + 2 for k in order]
        index = np.full((lengths[0], len(order)), self._vocabulary_index[self.network.END])
        index[0] = self._vocabulary_index[self.network.BEGIN]
        for i, k in enumerate(order):
            index[1 : lengths[i] - 1, i] = [self._vocabulary_index[word] for word in sentences[k].words]
        unique, inverse = np.unique(index, return_inverse=True)
        x = functional.embedding(
            torch.from_numpy(inverse.reshape(index.shape)).to(device),
            self.network.tokens(self._characters[torch.from_numpy(unique)].to(device)),
        )
        outputs, _ = self.network.contextual(x, lengths)
        at = torch.from_numpy(self._task.positions[rows.numpy()][order] + 1).to(device)  # + 1: begin of sentence
        column = torch.arange(len(order), device=device)
        token = x[at, column]
        layers = [
            torch.cat([token, token], -1),
            *(torch.cat([y[0, at, column], y[1, at, column]], -1) for y in outputs),
        ]
        inverse_order = torch.tensor(sorted(range(len(order)), key=order.__getitem__), device=device)
        return torch.stack(layers)[:, inverse_order]

    @torch.no_grad()
    def all_rows(self) -> Tensor:
        """Every row's layers (n_layers, n, dim), without gradient."""
        return torch.cat([self(part) for part in torch.split(torch.arange(len(self._task)), AT_ONCE)], dim=1)


USES = ("frozen", "mix", "all")
DECAY = 0.01  # AdamW's, of the linear layer's matrix alone


@dataclass(frozen=True)
class Settings:
    """Settings of the probe's training; fixed beforehand, not chosen by the scores."""

    folds: int = 5
    epochs: int = 40  # of the linear layer and the mix
    rate: float = 0.01
    tune_epochs: int = 2  # of use=all: of everything, after those epochs
    tune_rate: float = 1e-4  # of use=all: the network's
    batch: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        for key, least in {"epochs": 1, "tune_epochs": 1, "batch": 1, "seed": 0}.items():
            if getattr(self, key) < least:
                raise ConfigError(f"{key}={getattr(self, key)}: expected at least {least}")
        for key in ("rate", "tune_rate"):
            if not 0 < getattr(self, key) < float("inf"):
                raise ConfigError(f"{key}={getattr(self, key)}: expected a positive number")


@dataclass(frozen=True)
class ProbeScore:
    """One row of the result: a use, its layer where it has one, and its correct answers."""

    use: str
    layer: str
    correct: np.ndarray  # (n,) 0 or 1; of a baseline the probability to be right
    s: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))  # (folds, n_layers), of a learnt mix
    gamma: np.ndarray = field(default_factory=lambda: np.empty(0))  # (folds,)


class SenseProbe(nn.Module):
    """Logits (b, n_senses) of layers (n_layers, b, dim): a linear layer over gamma sum_j s_j h_j, others' senses -inf.

    Each layer is first brought to mean 0 and variance 1 by two numbers taken over `fitted`, the training rows: the
    layer norm of the original's mix, with its statistics held. So layers of different size compete alike. All of the
    linear layer starts at 0.
    """

    mean: Tensor
    scale: Tensor
    own: Tensor

    def __init__(self, fitted: Tensor, own: np.ndarray, *, mixed: bool) -> None:
        super().__init__()
        wide = fitted.cpu().double()  # mps has no float64
        scale = wide.std((1, 2), correction=0, keepdim=True)
        self.register_buffer("mean", wide.mean((1, 2), keepdim=True).to(fitted.dtype))
        self.register_buffer("scale", torch.where(scale > 0, scale, 1.0).to(fitted.dtype))
        self.register_buffer("own", torch.from_numpy(own))
        self.mix = ScalarMix(len(fitted), trainable=mixed)
        self.linear = nn.Linear(fitted.shape[-1], own.shape[1])
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.to(fitted.device)

    def forward(self, layers: Tensor, word: Tensor) -> Tensor:
        logits: Tensor = self.linear(self.mix((layers - self.mean) / self.scale))
        return logits.masked_fill(~self.own[word], float("-inf"))

    def groups(self, rate: float) -> list[dict[str, object]]:
        """The optimiser's parameter groups."""
        rest = [*self.mix.parameters(), self.linear.bias]
        return [
            {"params": [self.linear.weight], "lr": rate, "weight_decay": DECAY},
            {"params": [p for p in rest if p.requires_grad], "lr": rate, "weight_decay": 0.0},
        ]


def fit(
    task: SenseTask, layers: Tensor, train: np.ndarray, settings: Settings, *, mixed: bool, place: str = "probe"
) -> SenseProbe:
    """A probe of the frozen `layers` (k, n, dim), learnt from the rows `train`; its mix learns if `mixed`."""
    rows = torch.from_numpy(train)
    model = SenseProbe(layers[:, rows.to(layers.device)], task.is_sense_of, mixed=mixed)
    _descend(model, lambda part: layers[:, part.to(layers.device)], task, rows, model.groups(settings.rate),
             settings.epochs, settings, place)  # fmt: skip
    return model


def tune(
    task: SenseTask,
    rows_of: OccurrenceLayers,
    start: SenseProbe,
    train: np.ndarray,
    settings: Settings,
    *,
    place: str = "probe",
) -> tuple[SenseProbe, ElmoNetwork]:
    """Probe and network trained together from `start`, a fitted mix; the given ones stay as they are.

    First the head, then everything (Kumar et al. 2022): a head that starts at 0 would first spoil the network.
    """
    network, model = make_trainable(copy.deepcopy(rows_of.network)), copy.deepcopy(start)
    network.requires_grad_(True).train()
    groups = [*model.groups(settings.rate / 10), {"params": list(network.parameters()), "lr": settings.tune_rate,
              "weight_decay": 0.0}]  # fmt: skip
    _descend(
        model,
        rows_of.with_network(network),
        task,
        torch.from_numpy(train),
        groups,
        settings.tune_epochs,
        settings,
        place,
    )
    return model, network.requires_grad_(False).eval()


def _descend(
    model: SenseProbe,
    layers_of: LayerSource,
    task: SenseTask,
    rows: Tensor,
    groups: Sequence[dict[str, object]],
    epochs: int,
    settings: Settings,
    place: str,
) -> None:
    device = model.own.device
    word, sense = (torch.from_numpy(a).to(device) for a in (task.word_ids, task.sense_ids))
    generator = torch.Generator().manual_seed(settings.seed)
    optimiser = torch.optim.AdamW(list(groups))
    for epoch in range(1, epochs + 1):
        for part in torch.split(rows[torch.randperm(len(rows), generator=generator)], settings.batch):
            there = part.to(device)
            loss = functional.cross_entropy(model(layers_of(part), word[there]), sense[there])
            if not torch.isfinite(loss):
                raise MetricError(
                    f"{place}: the loss is {loss.item()} in epoch {epoch}, expected a finite number; lower rate="
                    f"{settings.rate} or tune_rate={settings.tune_rate}, or look for non-finite weights in the model"
                )
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            optimiser.step()


@torch.no_grad()
def right(model: SenseProbe, layers_of: LayerSource, task: SenseTask, rows: np.ndarray) -> np.ndarray:
    """(len(rows),) whether the likeliest sense is the labelled one."""
    device, guesses = model.own.device, []
    for part in torch.split(torch.from_numpy(rows), AT_ONCE):
        guesses.append(model(layers_of(part), torch.from_numpy(task.word_ids)[part].to(device)).argmax(1).cpu().numpy())
    return np.asarray(np.concatenate(guesses) == task.sense_ids[rows])


def probe(task: SenseTask, network: ElmoNetwork, uses: Sequence[str], settings: Settings) -> list[ProbeScore]:
    """Cross-validated scores: chance, majority, each frozen layer, the mix, everything; `network` isn't changed."""
    for use in uses:
        if use not in USES:
            raise UnknownName("use", use, USES)
    fold = folds_of(task, settings.folds, settings.seed)
    scores = [
        ProbeScore("chance", "", task.chance()),
        ProbeScore("majority", "", task.majority(fold)),
        ProbeScore("majority of all", "", task.majority(None)),
    ]
    rows_of = OccurrenceLayers(network, task)
    layers = rows_of.all_rows()
    cases = [(use, str(j)) for use in ("frozen",) if use in uses for j in range(len(layers))]
    cases += [(use, "0-" + str(len(layers) - 1)) for use in ("mix", "all") if use in uses]
    correct = {key: np.zeros(len(task)) for key in cases}
    weights: dict[str, list[tuple[np.ndarray, float]]] = {"frozen": [], "mix": [], "all": []}
    for k in range(settings.folds):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        place = f"probe, fold {k + 1} of {settings.folds}"
        start: SenseProbe | None = None
        for use, layer in cases:
            inputs = layers[int(layer)][None] if use == "frozen" else layers
            source: LayerSource = _table(inputs)
            if use == "frozen":
                fitted_probe = fit(task, inputs, train, settings, mixed=False, place=f"{place}, layer {layer}")
            else:
                start = start or fit(task, inputs, train, settings, mixed=True, place=f"{place}, mix")
                fitted_probe = start
            if use == "all" and start is not None:
                fitted_probe, tuned = tune(task, rows_of, start, train, settings, place=f"{place}, all")
                source = rows_of.with_network(tuned)
            correct[use, layer][test] = right(fitted_probe, source, task, test)
            weights[use].append((fitted_probe.mix.s.detach().cpu().numpy(), float(fitted_probe.mix.gamma.detach())))
    for use, layer in cases:
        if use == "frozen":
            scores.append(ProbeScore(use, layer, correct[use, layer]))
        else:
            s, gamma = zip(*weights[use], strict=True)
            scores.append(ProbeScore(use, layer, correct[use, layer], np.stack(s), np.array(gamma)))
    return scores


def _table(layers: Tensor) -> LayerSource:
    return lambda part: layers[:, part.to(layers.device)]


def table(task: SenseTask, scores: Sequence[ProbeScore], seed: int) -> pd.DataFrame:
    """A row a score: accuracy in [0, 1] and its interval, the same less the mix's, s and gamma averaged over folds."""
    mix = next((score for score in scores if score.use == "mix"), None)
    n_layers = max(score.s.shape[1] for score in scores)
    nan = float("nan")
    lines: list[dict[str, object]] = []
    for score in scores:
        low, high = word_bootstrap(task, score.correct, seed)
        line: dict[str, object] = {"use": score.use, "layer": score.layer, "n": len(task)}
        line |= {"accuracy": float(score.correct.mean()), "ci_low": low, "ci_high": high}
        gain, low, high = nan, nan, nan
        if mix is not None and score is not mix:
            gap = score.correct - mix.correct
            gain, (low, high) = float(gap.mean()), word_bootstrap(task, gap, seed)
        line |= {"minus_mix": gain, "minus_mix_ci_low": low, "minus_mix_ci_high": high}
        for j in range(n_layers):
            own = score.s[:, j].astype(np.float64) if score.s.size else np.array([nan])
            line |= {f"s_{j}": float(own.mean()), f"s_{j}_sd": float(own.std())}
        line["gamma"] = float(score.gamma.mean()) if score.gamma.size else nan
        lines.append(line)
    return pd.DataFrame(lines)
