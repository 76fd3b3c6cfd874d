"""A transformer's sentence vectors: one pass gives every pooling of every layer."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from ctxexp.dataset import Sentence
from ctxexp.errors import EncodingError, ModelError
from ctxexp.model import EncodedSentence, Encoder
from ctxexp.models.transformer.leftovers import sentence_settings
from ctxexp.models.transformer.pieces import PieceCache, Pieces

if TYPE_CHECKING:
    from ctxexp.models.transformer.encoder import TransformerEncoder

log = logging.getLogger("ctxexp")


class TransformerSentences(Encoder):
    """View of a transformer whose units are poolings of the whole sentence instead of its words.

    `mean` over all pieces, special tokens included (as sentence-transformers does), but without what `model.prefix`
    added; `mean_text` without special tokens; `cls`, the first piece: only where it is a special token or the model
    reads both ways; `last`, the last piece; `pooler`, the model's own pooled output: only where the checkpoint has its
    weights, and meant for the last layer only (zeros in the others). A sentence without pieces to pool has no such
    unit.

    A sentence that is too long is cut, its closing special tokens kept, as sentence-transformers does; the limit is
    the model's window, or the checkpoint's own `max_seq_length` where that is shorter. With `long=refuse` it is an
    EncodingError. Pooling is done in float64 (float32 on mps), whatever the model computes in; vectors are float32.
    """

    def __init__(self, base: TransformerEncoder) -> None:
        self.base, self.n_layers, self.layers, self.dim = base, base.n_layers, base.layers, base.dim
        (sample,) = base._read([Sentence.of(["a"])])
        self.poolings = ("mean", "mean_text")
        prefix = base._read.prefix
        is_added = prefix.begin == 0 < prefix.end  # the first piece is what model.prefix added, and no part of a vector
        if not is_added and (sample.n_before or not base.causal):
            self.poolings += ("cls",)
        self.poolings += ("last",)
        if base.has_pooler and self._pooler_fits(sample):
            self.poolings += ("pooler",)
        self.limit = _limit(base)
        self._type = torch.float32 if base._device.type == "mps" else torch.float64
        self._waiting = PieceCache(self._read)
        self.name = f"{base.name} sentences={','.join(self.poolings)} longest={self.limit}"
        self.details = {
            **base.details,
            "pooling": "sentences",
            "poolings": ",".join(self.poolings),
            "long": "refuse" if base.options.long == "refuse" else "truncate",
            "window": self.limit or 0,
        }

    def _pooler_fits(self, sample: Pieces) -> bool:
        with torch.inference_mode():
            self.base.hidden_states(sample.ids[None])
        pooled = self.base._pooled
        return pooled is not None and pooled.shape == (1, self.dim)

    def lengths(self, sentences: Sequence[Sentence]) -> list[int]:
        """Pieces of each sentence after cutting, special ones included; `encode` won't read these sentences again."""
        return [len(pieces.ids) for pieces in self._waiting.peek(sentences)]

    def count_unknown(self, sentences: Sequence[Sentence]) -> tuple[int, int]:
        """How many pieces of what is read are unknown to the tokenizer, and how many pieces there are."""
        return self.base._read.count_unknown(self._waiting.peek(sentences))

    def _read(self, sentences: Sequence[Sentence]) -> list[Pieces]:
        read = self.base._read(sentences)
        long = [i for i, p in enumerate(read) if self.limit is not None and len(p.ids) > self.limit]
        if long and self.base.options.long == "refuse":
            raise EncodingError(
                f"the sentence {sentences[long[0]].text[:60]!r}... has {len(read[long[0]].ids):,} pieces, but "
                f"{self.base.checkpoint.source} takes {self.limit}; long=window cuts it there, or split or drop it"
            )
        for i in long:
            read[i] = self._cut(read[i])
        if long:
            log.warning(
                f"{len(long):,} of {len(sentences):,} sentences have more than {self.limit} pieces: their sentence "
                f"vectors are of what fits (sentence.pooling=mean_words reads all of a sentence)"
            )
        return read

    def _cut(self, pieces: Pieces) -> Pieces:
        assert self.limit is not None
        end = len(pieces.ids) - pieces.n_after
        ids = np.concatenate([pieces.ids[: self.limit - pieces.n_after], pieces.ids[end:]])
        return Pieces(ids, pieces.units, pieces.at, pieces.counts, pieces.n_before, pieces.n_after)

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        """One `EncodedSentence` per sentence, in order, its units the poolings; no padding enters the model."""
        read = self._waiting.take(batch)
        groups: dict[tuple[int, int, int], list[int]] = {}
        for i, pieces in enumerate(read):
            groups.setdefault((len(pieces.ids), pieces.n_before, pieces.n_after), []).append(i)
        empty = EncodedSentence((), np.empty((len(self.layer_numbers), 0, self.dim), np.float32))
        done = [empty] * len(batch)
        with torch.inference_mode():
            for (length, before, after), members in groups.items():
                if length <= self.base._read.prefix.end - self.base._read.prefix.begin:
                    continue
                units = tuple(u for u in self.poolings if u != "mean_text" or before + after < length)
                ids = np.stack([read[i].ids for i in members])
                pooled = self._pool(self.base.hidden_states(ids), len(members), before, length - after, units)
                for k, i in enumerate(members):
                    done[i] = EncodedSentence(units, pooled[:, k * len(units) : (k + 1) * len(units)])
        yield from done

    def _pool(
        self, layers: Sequence[torch.Tensor], n: int, first: int, end: int, units: Sequence[str]
    ) -> np.ndarray:  # (n_layers, n * len(units), dim)
        out = torch.zeros((len(layers), n, len(units), self.dim), dtype=torch.float32, device=self.base._device)
        for number, layer, rows in zip(self.layer_numbers, layers, out, strict=True):
            pieces = layer.view(n, -1, self.dim).to(self._type)
            for k, unit in enumerate(units):
                if unit == "mean":
                    rows[:, k] = self._without_prefix(pieces).mean(1)
                elif unit == "mean_text":
                    rows[:, k] = pieces[:, first:end].mean(1)
                elif unit == "cls":
                    rows[:, k] = pieces[:, 0]
                elif unit == "last":
                    rows[:, k] = pieces[:, -1]
                elif number == self.n_layers - 1:
                    assert self.base._pooled is not None
                    rows[:, k] = self.base._pooled
        return out.reshape(len(layers), n * len(units), self.dim).cpu().numpy()

    def _without_prefix(self, pieces: torch.Tensor) -> torch.Tensor:
        """Pieces (n, length, dim) less those that `model.prefix` added."""
        prefix = self.base._read.prefix
        if prefix.begin == prefix.end:
            return pieces
        return torch.cat([pieces[:, : prefix.begin], pieces[:, prefix.end :]], dim=1)


def _limit(base: TransformerEncoder) -> int | None:
    """Pieces of a sentence that are read, special ones included; None without a limit."""
    own = sentence_settings(base.checkpoint.folder).get("max_seq_length")
    if own is not None and (type(own) is not int or own <= base._read.n_special):
        raise ModelError(
            f"{base.checkpoint.source} says max_seq_length={own!r} for sentence-transformers; expected a number of "
            "pieces, such as 256, or null"
        )
    limits = [size for size in (own, base.window) if isinstance(size, int)]
    return min(limits, default=None)
