"""The ELMo mini: the text as streams of words, and the bidirectional language model's loss over windows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock
from torch import Tensor

from ctxexp.datasets import tokenizer
from ctxexp.errors import ConfigError
from ctxexp.models import ElmoNetwork, resolve_device
from ctxexp_lab.training.data import TextSource, log_unigram, windows
from ctxexp_lab.training.elmo_lm import BiLanguageModel

UNKNOWN = 0  # the softmax's class for words beyond its list; characters still tell such words apart as input


@dataclass(frozen=True)
class WordStreams:
    """Streams of word codes, (n,) int32, each segment as BEGIN words END; codes index `forms`.

    Codes fall with frequency in the training text, markers among them, so that the softmax's `size` commonest words are
    codes below `size - 1` and class = code + 1.
    """

    forms: Sequence[str]
    characters: np.ndarray  # (len(forms), 50) uint16
    train: np.ndarray
    held_out: np.ndarray
    size: int

    @classmethod
    def of(cls, text: TextSource, *, vocabulary: int, cache: Path) -> WordStreams:
        """Splits into words once; later calls map the files."""
        folder = cache / f"words-{text.key()}"
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):  # trainings that begin together split the text once
            if not (folder / "characters.npy").is_file():
                _split(text, folder)
        forms = (folder / "forms.txt").read_text("utf-8").split("\n")
        characters, train, held_out = (
            np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("characters", "train", "held_out")
        )
        return cls(forms, characters, train, held_out, vocabulary)

    def classes(self, codes: np.ndarray) -> np.ndarray:
        """Softmax classes of codes: 0 for words beyond the list."""
        return np.where(codes < self.size - 1, codes + 1, UNKNOWN)


def _split(text: TextSource, folder: Path) -> None:
    """Writes the streams' files; the one that is looked for is the last."""
    index: dict[str, int] = {}
    streams = [_codes(text.segments(), index), _codes(text.held_out_segments(), index)]
    counts = np.bincount(streams[0], minlength=len(index))
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(index), dtype=np.int32)
    rank[order] = np.arange(len(index), dtype=np.int32)
    forms = list(index)
    (folder / "forms.txt").write_text("\n".join(forms[i] for i in order), "utf-8")
    np.save(folder / "train.npy", rank[streams[0]])
    np.save(folder / "held_out.npy", rank[streams[1]])
    np.save(folder / "characters.npy", ElmoNetwork.character_ids([forms[i] for i in order]).astype(np.uint16))


def _codes(segments: Sequence[str], index: dict[str, int]) -> np.ndarray:
    split = tokenizer("english")
    parts = []
    for segment in segments:
        words = (ElmoNetwork.BEGIN, *split(segment).words, ElmoNetwork.END)
        parts.append(np.array([index.setdefault(word, len(index)) for word in words], dtype=np.int32))
    return np.concatenate(parts)


class Bilm:
    """The bidirectional language model with its training loss and held-out loss; every window starts from state 0."""

    unit = "word"

    def __init__(self, cfg: Any, words: WordStreams) -> None:
        from omegaconf import OmegaConf

        options: Any = OmegaConf.to_container(cfg.model.options)
        self.cfg, self.words = cfg, words
        draw = torch.Generator().manual_seed(cfg.seed)
        elmo = ElmoNetwork(options, generator=draw)
        self.device = resolve_device(cfg.device)
        self.network = BiLanguageModel(elmo, words.size, generator=draw).to(self.device)
        self.unigram = log_unigram(words.classes(words.train), words.size)  # (size,) float64
        with torch.no_grad():
            self.network.bias.copy_(torch.from_numpy(self.unigram))

    def units(self, step: int, steps: int | None) -> int:
        """New words of the step's batch."""
        return int(self.cfg.model.rows * (self.cfg.model.window - 1))

    def _inputs(self, codes: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        """Characters of the unique words (n, 50), which of them stands where and its class, both (rows, width)."""
        unique, index = np.unique(codes, return_inverse=True)
        arrays = self.words.characters[unique].astype(np.int64), index.reshape(codes.shape), self.words.classes(codes)
        characters, places, classes = (torch.from_numpy(array).to(self.device) for array in arrays)
        return characters, places, classes

    def loss(self, step: int, steps: int | None) -> Tensor:
        """Mean nats a predicted word, both directions together, by the sampled softmax: it reads low."""
        m = self.cfg.model
        codes = windows(self.words.train, step * m.rows * (m.window - 1), m.rows, m.window)
        draw = torch.Generator().manual_seed(self.cfg.seed * 1_000_003 + step)
        return self.network(*self._inputs(codes), samples=m.samples, generator=draw).mean()

    @torch.no_grad()
    def held_out(self, limit: int | None) -> dict[str, float]:
        """Mean nats per word by the full softmax over the first `limit` held-out words, of both directions and of each;
        and the unigram's on the same words. Words beyond the list are one class of their own."""
        m, stream = self.cfg.model, self.words.held_out
        n = min(len(stream), limit or len(stream)) - 1
        total, baseline, count = np.zeros(2), np.zeros(2), 0
        self.network.eval()
        for start in range(0, n - m.window, m.rows * (m.window - 1)):
            rows = min(m.rows, (n - start) // (m.window - 1))
            codes = windows(stream, start, rows, m.window)
            inputs = self._inputs(codes)
            predicted = rows * (m.window - 1)
            total += predicted * self.network(*inputs).double().cpu().numpy()
            nats = -self.unigram[inputs[2].cpu().numpy()]
            baseline += [nats[:, 1:].sum(), nats[:, :-1].sum()]
            count += predicted
        self.network.train()
        if not count:
            raise ConfigError(
                f"the held-out text has {n + 1} words, fewer than one window of {m.window}: give more text"
            )
        forward, backward = (float(nats) for nats in total / count)
        return {
            "loss": (forward + backward) / 2,
            "unigram": float(baseline.mean()) / count,
            "forward": forward,
            "backward": backward,
            "predicted": float(count),
        }

    def begin_from(self, folder: Path) -> None:
        """Takes the weights, float16, of an exported folder of the same shape; the softmax, which no export holds, is
        new."""
        self.network.network.load(folder)

    def export(self, folder: Path) -> None:
        """Writes options.json and weights.hdf5 (float16, the original's layout), without the softmax."""
        self.network.network.save(folder, dtype="float16")
