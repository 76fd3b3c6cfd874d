"""A transformer's sentence vectors: each pooling of every layer, as `SentenceTransformer.encode` makes its one of the
last layer where the model is one of sentence-transformers.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ctxexp.dataset import Sentence
from ctxexp.errors import EncodingError, ModelError, error_text, plugin_call
from ctxexp.files import digest
from ctxexp.model import EncodedSentence, Encoder
from ctxexp.models.options import TransformerOptions
from ctxexp.models.transformer.identity import state_hash
from ctxexp.models.transformer.loading import library_warnings
from ctxexp.models.transformer.pieces import PieceCache, Pieces
from ctxexp.models.transformer.pipeline import Pipeline
from ctxexp.models.transformer.unused import is_own_code

log = logging.getLogger("ctxexp")
TransformerEncoder = Any  # of `encoder`, which imports this file


class TransformerSentences(Encoder):
    """View of a transformer whose units are poolings of the whole sentence instead of its words; its own comes first.

    `mean` over all pieces, special tokens included (as sentence-transformers does), but without what `model.prefix`
    added; `mean_text` without special tokens; `cls`, the first piece: only where it is a special token or the model
    reads both ways; `last`, the last piece; `pooler`, the model's own pooled output: only where the checkpoint has its
    weights, and meant for the last layer only (zeros in the others). A sentence without pieces to pool has no such
    unit.

    Of a model of sentence-transformers each layer's states take the way of the last one's: the prompt stands before the
    text, counted or not as its pooling says, and vectors are normalised and cut as its own are.

    A sentence that is too long is cut, its closing special tokens kept, as sentence-transformers does; the limit is
    the model's window, or the checkpoint's own `max_seq_length` where that is shorter. With `long=refuse` it is an
    EncodingError. Pooling is done in float64 (float32 on mps), whatever the model computes in; vectors are float32.
    """

    def __init__(self, base: TransformerEncoder) -> None:
        self.base, self.n_layers, self.layers, self.dim = base, base.n_layers, base.layers, base.dim
        self.pipeline: Pipeline = base.pipeline
        self.limit = _limit(base)
        self.n_skipped = 0  # pieces at the beginning that aren't pooled
        if self.pipeline.prompt and not self.pipeline.include_prompt:
            (prompt,) = self._pieces([""])
            self.n_skipped = len(prompt.ids) - (prompt.n_after > 0)
        self._type = torch.float32 if base.device.type == "mps" else torch.float64
        self._waiting = PieceCache(self._read)
        self.poolings, weights = self._open()
        side = " left" * base.reader.cuts_left
        self.name = f"{base.name} sentences={','.join(self.poolings)} longest={self.limit}{side}"
        if self.pipeline.modules:
            self.name += f" pipeline={digest(repr((self.pipeline.facts, self.dim, weights)).encode())}"
        self.details = {
            **base.details,
            **self.pipeline.facts,
            "pooling": "sentences",
            "poolings": ",".join(self.poolings),
            "long": "refuse" if base.options.long == "refuse" else "truncate",
            "window": self.limit or 0,
            "width": self.dim,
        }

    def _open(self) -> tuple[tuple[str, ...], str]:
        """The poolings, and a digest of weights behind the network."""
        base, own = self.base, self.pipeline.pooling
        (sample,) = base.reader([Sentence.of(["a"])])
        poolings = [own, "mean", "mean_text"]
        prefix = base.reader.prefix
        is_added = prefix.begin == 0 < prefix.end  # the first piece is what model.prefix added, and no part of a vector
        if not is_added and (sample.n_before or not base.causal):
            poolings.append("cls")
        poolings.append("last")
        if base.has_pooler:
            with torch.inference_mode():
                base.hidden_states(sample.ids[None])
            if base.pooled is not None and base.pooled.shape == (1, self.dim):
                poolings.append("pooler")
        self.dim = min(self.pipeline.truncate_dim or self.dim, self.dim)
        return tuple(dict.fromkeys(poolings)), ""

    def lengths(self, sentences: Sequence[Sentence]) -> list[int]:
        """Pieces of each sentence after cutting, special ones included; `encode` won't read these sentences again."""
        return [len(pieces.ids) for pieces in self._waiting.peek(sentences)]

    def count_unknown(self, sentences: Sequence[Sentence]) -> tuple[int, int]:
        """How many pieces of what is read are unknown to the tokenizer, and how many pieces there are."""
        return self.base.reader.count_unknown(self._waiting.peek(sentences))

    def _read(self, sentences: Sequence[Sentence]) -> list[Pieces]:
        whole = self._pieces([one.text for one in sentences])
        read = [self._cut(pieces) for pieces in whole]
        long = [i for i, pieces in enumerate(whole) if pieces is not read[i]]
        if long and self.base.options.long == "refuse":
            raise EncodingError(
                f"the sentence {sentences[long[0]].text[:60]!r}... has {len(whole[long[0]].ids):,} pieces, but "
                f"{self.base.checkpoint.source} takes {self.limit}; long=window cuts it there, or split or drop it"
            )
        if long:
            log.warning(
                f"{len(long):,} of {len(sentences):,} sentences have more than {self.limit} pieces: their sentence "
                f"vectors are of what fits (sentence.pooling=mean_words reads all of a sentence)"
            )
        return read

    def _pieces(self, texts: Sequence[str]) -> list[Pieces]:
        """The pieces of texts, which the prompt precedes."""
        whole = [self.pipeline.prompt + text for text in texts]
        return self.base.reader([Sentence(text.lower() if self.pipeline.lower else text, (), ()) for text in whole])

    def _cut(self, pieces: Pieces) -> Pieces:
        if self.limit is None or len(pieces.ids) <= self.limit:
            return pieces
        more = len(pieces.ids) - self.limit
        start = pieces.n_before if self.base.reader.cuts_left else self.limit - pieces.n_after
        return replace(pieces, ids=np.delete(pieces.ids, np.s_[start : start + more]))

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
                if length <= max(self.n_skipped, self.base.reader.prefix.end - self.base.reader.prefix.begin):
                    continue
                first, end = max(before, self.n_skipped), length - after
                units = tuple(u for u in self.poolings if u != "mean_text" or first < end)
                ids = np.stack([read[i].ids for i in members])
                pooled = self._pool(ids, first, end, units).cpu().numpy()
                for k, i in enumerate(members):
                    done[i] = EncodedSentence(units, pooled[:, k])
        yield from done

    def _pool(self, ids: np.ndarray, first: int, end: int, units: Sequence[str]) -> torch.Tensor:
        """(layers, n, units, dim) float32 of `ids` (n, length), whose text is from `first` to before `end`."""
        (n, length), prefix, skipped = ids.shape, self.base.reader.prefix, self.n_skipped
        layers = self.base.hidden_states(ids)
        counted = [i for i in range(skipped, length) if not prefix.begin <= i < prefix.end]
        places = {"mean": counted, "mean_text": slice(first, end), "cls": skipped, "last": -1}
        out = torch.zeros((len(layers), n, len(units), self.base.dim), dtype=self._type, device=self.base.device)
        for number, layer, rows in zip(self.layer_numbers, layers, out, strict=True):
            pieces = layer.view(n, length, self.base.dim).to(self._type)
            for k, unit in enumerate(units):
                if unit in places:
                    own = pieces[:, places[unit]]
                    rows[:, k] = own.mean(1) if own.ndim == 3 else own
                elif number == self.n_layers - 1:
                    assert self.base.pooled is not None
                    rows[:, k] = self.base.pooled
        if self.pipeline.normalizes:
            out = torch.nn.functional.normalize(out, dim=-1)
        return out[..., : self.dim].float()


class LibrarySentences(TransformerSentences):
    """The sentence vectors of a model of sentence-transformers with modules beyond pooling and normalising: these are
    the library's, and turn each layer's hidden states into the one vector that the last layer's become."""

    def _open(self) -> tuple[tuple[str, ...], str]:
        base, source = self.base, self.pipeline.source
        model: Any = _library_model(base) if isinstance(source, Path) else source
        names = [f"{i}_{name}" for i, name in enumerate(self.pipeline.modules)]
        behind = dict(zip(names[1:], copy.deepcopy([*model][1:]), strict=True))
        self.behind = torch.nn.ModuleDict(behind).to(base.device, torch.float32).eval()
        self._check(model)
        if isinstance(source, Path):
            model[0].to("meta")  # the network is the encoder's own
        return (self.pipeline.pooling,), state_hash(self.behind.state_dict())

    def _check(self, model: Any) -> None:
        """Set the width. Raise ModelError where vectors aren't the model's own, as when a module takes more of the
        network than its hidden states; options of the encoder's own that change them are no fault."""
        options, texts = self.base.options, ["Yes.", "The bank by the river was closed.", "bank " * 300]
        with torch.inference_mode(), plugin_call("model", failure=partial(_failure, self.base)):
            self.dim = -1  # all columns, while their number isn't known
            read = map(self._cut, self._pieces(texts))
            rows = [self._pool(one.ids[None], 0, 0, ())[-1, 0, 0].cpu().numpy() for one in read]
            self.dim = len(rows[0])
            own = replace(options, device="auto", pooling="mean", long="window", unused="warn")
            if own != TransformerOptions() or self.base.loaded.untrained:
                return
            expected = model.encode(texts, batch_size=1, show_progress_bar=False)
        far = np.abs(np.stack(rows) - expected).max() / np.abs(expected).max()
        if not far < 1e-4:
            raise ModelError(
                f"{self.base.checkpoint.source}: SentenceTransformer.encode gives sentence vectors that differ by "
                f"{far:.2g} from those of its modules ({', '.join(self.pipeline.modules)}) behind the network as it "
                "is read here, so neither can be measured; sentence.pooling=mean_words measures the words"
            )

    def _pool(self, ids: np.ndarray, first: int, end: int, units: Sequence[str]) -> torch.Tensor:
        pieces = torch.from_numpy(ids).to(self.base.device, torch.long)
        features: dict[str, Any] = {"input_ids": pieces, "attention_mask": torch.ones_like(pieces)}
        features |= {"prompt_length": self.n_skipped} if self.n_skipped else {}
        rows = []
        for layer in self.base.hidden_states(ids):
            out = features | {"token_embeddings": layer.view(*ids.shape, -1).float()}
            for module in self.behind.values():
                out = module(out)
            rows.append(out["sentence_embedding"][:, None, : self.pipeline.truncate_dim].float())
        return torch.stack(rows)


def _library_model(base: TransformerEncoder) -> Any:
    """The model by the library. Raises ModelError where that isn't installed, or refuses the files."""
    try:
        from sentence_transformers import SentenceTransformer
    except ModuleNotFoundError:
        raise ModelError(
            f"{base.checkpoint.source}: its sentence vectors are made by {', '.join(base.pipeline.modules[1:])} behind "
            "the network, modules of the library sentence-transformers: pip install sentence-transformers; vectors of "
            "words don't need it"
        ) from None
    own = is_own_code(base.model)
    with library_warnings(), plugin_call("model", failure=partial(_failure, base)):
        return SentenceTransformer(
            str(base.pipeline.source), device=str(base.device), local_files_only=True, trust_remote_code=own
        ).float()


def _failure(base: TransformerEncoder, error: BaseException) -> str:
    """The message of an error that the library or a module of its raises."""
    return f"{base.checkpoint.source}: its modules of sentence-transformers can't be used: {error_text(error)}"


def _limit(base: TransformerEncoder) -> int | None:
    """Pieces of a sentence that are read, special ones included; None without a limit."""
    own = base.pipeline.longest
    if own is not None and (type(own) is not int or own <= base.reader.n_special):
        raise ModelError(
            f"{base.checkpoint.source} says max_seq_length={own!r} for sentence-transformers; expected a number of "
            "pieces, such as 256, or null"
        )
    limits = [size for size in (own, base.window) if isinstance(size, int)]
    return min(limits, default=None)
