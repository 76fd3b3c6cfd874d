"""Word sense disambiguation as the probe's task, among the senses of each word, and its training: a linear layer over
one layer, over a learnt mix of layers, or over a network that learns too."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import torch
from ctxexp_measures.senses.probe.metric import majority
from ctxexp_measures.senses.probe.task import folds_of
from torch import Tensor, nn
from torch.nn import functional

from ctxexp import Corpus, Sentence
from ctxexp.errors import DataError, MetricError, UnknownName
from ctxexp.models import ElmoNetwork
from ctxexp_lab.training.elmo_lm import make_trainable

RESAMPLES = 10_000
AT_ONCE = 128  # sentences of one pass without gradient
USES = ("frozen", "mix", "all")
DECAY = 0.01  # AdamW's, of the linear layer's matrix alone

LayerSource = Callable[[Tensor], Tensor]
"""A function of row numbers (b,) that gives their vectors in all layers (n_layers, b, dim)."""


@dataclass(frozen=True)
class SenseTask:
    """Labelled occurrences as rows (n): sentence, position, word, sense, and an id that equal sentences share."""

    sentences: tuple[Sentence, ...]  # one for each row, so repeated where a sentence has several labels
    positions: np.ndarray  # (n,) of the occurrence among its sentence's words
    vocabulary: tuple[str, ...]
    sense_labels: tuple[str, ...]
    word_ids: np.ndarray  # (n,) indices into vocabulary
    sense_ids: np.ndarray  # (n,) indices into sense_labels
    sentence_ids: np.ndarray  # (n,) equal where the sentences have the same words, case aside
    is_sense_of: np.ndarray  # (len(vocabulary), len(sense_labels)) bool: the senses of each word

    @classmethod
    def of(cls, corpus: Corpus) -> SenseTask:
        """The task of `corpus.senses`; a sense belongs to the word, in lower case, that it labels.

        Raises DataError if no word has two senses, if one label is on two words, and if a sense has a single sentence,
        which can't be in both training and test folds.
        """
        words = [tuple(word.lower() for word in sentence.words) for sentence in corpus.sentences]
        labelled = [(s.sentence, s.position, s.label, words[s.sentence][s.position]) for s in corpus.senses]
        rows = pd.DataFrame(labelled, columns=["sentence", "position", "sense", "word"])
        words_of = rows.groupby("sense")["word"].nunique()
        if (words_of > 1).any():
            raise DataError(
                f"{corpus.name}: sense {words_of.idxmax()!r} labels several words; expected one word a sense"
            )
        rows = rows[rows.groupby("word")["sense"].transform("nunique") > 1]
        if rows.empty:
            raise DataError(f"{corpus.name}: no word with two labelled senses; the probe needs dataset polysemy's kind")
        group = pd.factorize(pd.Series([words[i] for i in rows["sentence"]]))[0]
        contexts = rows.assign(group=group).groupby("sense")["group"].nunique()
        if (contexts < 2).any():
            raise DataError(
                f"{corpus.name}: sense {contexts.idxmin()!r} has a single sentence; expected at least 2 a sense"
            )
        word_ids, vocabulary = pd.factorize(rows["word"], sort=True)
        sense_ids, sense_labels = pd.factorize(rows["sense"], sort=True)
        is_sense_of = np.zeros((len(vocabulary), len(sense_labels)), bool)
        is_sense_of[word_ids, sense_ids] = True
        return cls(
            tuple(corpus.sentences[i] for i in rows["sentence"]), rows["position"].to_numpy(), tuple(vocabulary),
            tuple(sense_labels), word_ids, sense_ids, group, is_sense_of,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.sentences)

    def chance(self) -> np.ndarray:
        """(n,) probability that a guess among the word's senses is right."""
        return np.asarray(1 / self.is_sense_of.sum(axis=1)[self.word_ids])

    def majority_of_all(self) -> np.ndarray:
        """(n,) probability that the word's most frequent sense in all rows is right, the tested one included: an upper
        bound; senses that tie share it."""
        counts = np.where(self.is_sense_of, np.bincount(self.sense_ids, minlength=len(self.sense_labels)), -1)
        top = counts == counts.max(axis=1, keepdims=True)  # (n_words, n_senses)
        return np.asarray((top / top.sum(axis=1, keepdims=True))[self.word_ids, self.sense_ids])


def word_bootstrap(task: SenseTask, scores: np.ndarray, seed: int) -> tuple[float, float]:
    """95% percentile interval of the mean of `scores` (n,), from 10,000 draws of whole words with all their rows.

    The draws depend on the task and the seed alone, so that for differences of scores the interval is a paired
    one.
    """
    n, rng = len(task.vocabulary), np.random.default_rng(seed)
    draws = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(np.float64)  # (RESAMPLES, n_words)
    total = np.bincount(task.word_ids, scores.astype(np.float64), minlength=n)
    rows = np.bincount(task.word_ids, minlength=n)
    low, high = np.quantile((draws @ total) / (draws @ rows), [0.025, 0.975])
    return float(low), float(high)


class OccurrenceLayers:
    """ELMo's vectors of the task's rows: called with row numbers (b,), gives (n_layers, b, dim).

    dim is twice the width of a direction: both directions side by side, and in layer 0 the token's vector twice.
    """

    def __init__(self, network: ElmoNetwork, task: SenseTask) -> None:
        self.network, self._task = network, task
        vocabulary = [network.BEGIN, network.END, *sorted({word for s in task.sentences for word in s.words})]
        self._vocabulary_index = {word: i for i, word in enumerate(vocabulary)}
        self._characters = torch.from_numpy(network.character_ids(vocabulary, network.options.word_width))

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

    s = softmax(w) over layers and gamma belong to the task, and learn if `mixed`; they start at w = 0 (all layers
    alike) and gamma = 1, all of the linear layer at 0. Each layer is first brought to mean 0 and variance 1 by two
    numbers taken over `fitted`, the training rows: the layer norm of the original's mix, with its statistics held. So
    layers of different size compete alike.
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
        self.w = nn.Parameter(torch.zeros(len(fitted)), requires_grad=mixed)
        self.gamma = nn.Parameter(torch.ones(()), requires_grad=mixed)
        self.linear = nn.Linear(fitted.shape[-1], own.shape[1])
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.to(fitted.device)

    @property
    def s(self) -> Tensor:
        """The layers' weights (n_layers,): positive, their sum 1."""
        return torch.softmax(self.w, dim=0)

    def forward(self, layers: Tensor, word: Tensor) -> Tensor:
        mix = self.gamma * torch.tensordot(self.s, (layers - self.mean) / self.scale, dims=1)
        logits: Tensor = self.linear(mix)
        return logits.masked_fill(~self.own[word], float("-inf"))

    def groups(self, rate: float) -> list[dict[str, object]]:
        """The optimiser's parameter groups."""
        rest = [p for p in (self.w, self.gamma, self.linear.bias) if p.requires_grad]
        return [
            {"params": [self.linear.weight], "lr": rate, "weight_decay": DECAY},
            {"params": rest, "lr": rate, "weight_decay": 0.0},
        ]


def fit(task: SenseTask, layers: Tensor, train: np.ndarray, settings: Settings, *, mixed: bool) -> SenseProbe:
    """A probe of the frozen `layers` (k, n, dim), learnt from the rows `train`; its mix learns if `mixed`."""
    rows = torch.from_numpy(train)
    model = SenseProbe(layers[:, rows.to(layers.device)], task.is_sense_of, mixed=mixed)
    _descend(model, _table(layers), task, rows, model.groups(settings.rate), settings.epochs, settings)
    return model


def tune(
    task: SenseTask, network: ElmoNetwork, start: SenseProbe, train: np.ndarray, settings: Settings
) -> tuple[SenseProbe, OccurrenceLayers]:
    """Probe and network trained together from `start`, a fitted mix; the given ones stay as they are. Returns the probe
    and the tuned network's vectors.

    First the head, then everything (Kumar et al. 2022): a head that starts at 0 would first spoil the network.
    """
    network, model = make_trainable(copy.deepcopy(network)), copy.deepcopy(start)
    network.requires_grad_(True).train()
    own = {"params": list(network.parameters()), "lr": settings.tune_rate, "weight_decay": 0.0}
    rows_of, groups = OccurrenceLayers(network, task), [*model.groups(settings.rate / 10), own]
    _descend(model, rows_of, task, torch.from_numpy(train), groups, settings.tune_epochs, settings)
    network.requires_grad_(False).eval()
    return model, rows_of


def _descend(
    model: SenseProbe,
    layers_of: LayerSource,
    task: SenseTask,
    rows: Tensor,
    groups: Sequence[dict[str, object]],
    epochs: int,
    settings: Settings,
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
                    f"probe: the loss is {loss.item()} in epoch {epoch}, expected a finite number: "
                    "look for non-finite weights in the model"
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
    fold = folds_of(task.sense_ids, task.sentence_ids, settings.folds, settings.seed)
    scores = [
        ProbeScore("chance", "", task.chance()),
        ProbeScore("majority", "", majority(task.sense_ids, fold, task.word_ids)),
        ProbeScore("majority of all", "", task.majority_of_all()),
    ]
    layers = OccurrenceLayers(network, task).all_rows()
    cases = [("frozen", str(j)) for j in range(len(layers)) if "frozen" in uses]
    cases += [(use, f"0-{len(layers) - 1}") for use in ("mix", "all") if use in uses]
    correct = {case: np.zeros(len(task)) for case in cases}
    mixes: dict[str, list[tuple[np.ndarray, float]]] = {use: [] for use, _ in cases}
    for k in range(settings.folds):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        mix = fit(task, layers, train, settings, mixed=True) if {"mix", "all"} & set(uses) else None
        for use, layer in cases:
            inputs = layers[int(layer)][None] if use == "frozen" else layers
            source: LayerSource = _table(inputs)
            fitted = fit(task, inputs, train, settings, mixed=False) if use == "frozen" or mix is None else mix
            if use == "all":
                fitted, source = tune(task, network, fitted, train, settings)
            correct[use, layer][test] = right(fitted, source, task, test)
            mixes[use].append((fitted.s.detach().cpu().numpy(), float(fitted.gamma.detach())))
    for use, layer in cases:
        s, gamma = zip(*mixes[use], strict=True)
        learnt = (np.stack(s), np.array(gamma)) if use != "frozen" else ()
        scores.append(ProbeScore(use, layer, correct[use, layer], *learnt))
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
