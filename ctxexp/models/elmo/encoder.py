"""ELMo as an `Encoder`: sentences in, three layers of word vectors out, with states reset or carried."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ctxexp.dataset import Sentence
from ctxexp.model import EmbeddingTable, EncodedSentence, Encoder
from ctxexp.models.choices import check_slots, layer_selection, resolve_device, resolve_dtype
from ctxexp.models.elmo.files import ElmoOptions
from ctxexp.models.elmo.network import BEGIN, END, ElmoNetwork, State, character_ids

MOST_WORDS = 50_000  # token vectors kept from call to call
AT_ONCE = 8192  # words of one pass, sentence markers included, where the caller gives more
BLOCK = 4096  # about the sentences whose unique words are embedded together


class ElmoEncoder(Encoder):
    """The layers of a biLM for each word: layer 0 is the token vector twice, layer l both directions' outputs joined.

    `weights` is the state of an `ElmoNetwork`. Words are cut after 48 bytes; "<S>" and "</S>" are the sentence markers,
    as in the original. An empty sentence has no vectors (with state=carry its markers still move the state).
    `network` is for what inspects it, not to be changed.
    """

    positional = False

    def __init__(
        self,
        options: ElmoOptions,
        weights: Mapping[str, Tensor],
        *,
        source: str,
        identity: str,
        state: str = "reset",
        slots: int = 1,
        device: str = "auto",
        dtype: str = "float32",
        layers: Sequence[int] | None = None,
    ) -> None:
        check_slots(state, slots)
        self.options, self.sequential, self.slots, self.dtype = options, state == "carry", slots, dtype
        self.n_layers, self.dim = options.n_layers + 1, 2 * options.projection
        self.layers = layer_selection(layers, self.n_layers, source)
        self._type, self._device = resolve_dtype(dtype), resolve_device(device)
        self._out = torch.float32 if dtype == "float32" else torch.float16
        with torch.device("meta"):
            self.network = ElmoNetwork(options)
        self.network.load_state_dict(dict(weights), assign=True)
        self.network.requires_grad_(False).eval().to(self._device, self._type)
        self._row_of: dict[str, int] = {}
        self._table = torch.empty(0, options.projection)
        how = f"state=carry slots={slots}" if self.sequential else "state=reset"
        few = f" layers={','.join(map(str, self.layers))}" if self.layers is not None else ""
        self.name = f"elmo {identity} {how}{few} dtype={dtype}"
        self.details = {
            "checkpoint": source,
            "revision": "-",
            "weights_hash": identity.split(":")[1],
            "content_hash": identity.split(":")[-1],
            "architecture": "ELMo biLM",
            "layers": options.n_layers,
            "width": self.dim,
            "cells": options.cells,
            "parameters": sum(p.numel() for p in self.network.parameters()),
            "state": state,
            "slots": slots,
            "dtype": dtype,
        }
        del self.network.layers[max(self.layer_numbers) :]  # no layer depends on those above it

    @classmethod
    def untrained(cls, options: ElmoOptions, *, seed: int, source: str, **choices: Any) -> ElmoEncoder:
        """The same shape with the original's initialisation, drawn from `seed`; `choices` as an encoder takes them."""
        weights = ElmoNetwork(options, generator=torch.Generator().manual_seed(seed)).state_dict()
        digest = hashlib.sha256(repr(options).encode())
        for value in weights.values():
            digest.update(value.numpy().tobytes())
        identity = f"untrained:{digest.hexdigest()[:16]}"
        return cls(options, weights, source=source, identity=identity, **choices)

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        """The vectors of each sentence, in order; with state=carry the states start at zero with the call."""
        state: State | None = None
        step = self.slots * max(1, BLOCK // self.slots)  # whole batches, so that each goes on at slot 0
        for first in range(0, len(batch), step):
            block = batch[first : first + step]
            self._embed(word for sentence in block for word in sentence.words)
            if self.sequential:
                for start in range(0, len(block), self.slots):
                    sentences = block[start : start + self.slots]
                    arrays, state = self._carry(sentences, state)
                    yield from map(EncodedSentence, (s.words for s in sentences), arrays)
            else:
                yield from map(EncodedSentence, (s.words for s in block), self._reset(block))

    @torch.inference_mode()
    def tables(self, sentences: Sequence[Sentence]) -> list[EmbeddingTable]:
        """`token_layer`: the character CNN's vector of each distinct word of `sentences`, half as wide as layer 0."""
        count_by_word = Counter(word for sentence in sentences for word in sentence.words)
        words = sorted(count_by_word)
        parts = [np.empty((0, self.options.projection), np.float32)]
        for start in range(0, len(words), 2048):
            ids = character_ids(words[start : start + 2048], self.options.word_width)
            parts.append(self.network.tokens(torch.from_numpy(ids).to(self._device)).float().cpu().numpy())
        counts = np.array([count_by_word[word] for word in words], np.int64)
        note = "the words of the measured text; the output matrix is no part of the encoder"
        return [EmbeddingTable("token_layer", words, np.concatenate(parts), counts, note=note)]

    def _reset(self, sentences: Sequence[Sentence]) -> list[np.ndarray]:
        """Each sentence's layers from zero states, sentences of equal length together."""
        layers: list[np.ndarray] = [np.empty(0)] * len(sentences)
        groups: dict[int, list[int]] = {}
        for number, sentence in enumerate(sentences):
            groups.setdefault(len(sentence), []).append(number)
        for length, numbers in groups.items():
            size = max(1, AT_ONCE // (length + 2))
            for start in range(0, len(numbers), size):
                part = numbers[start : start + size]
                arrays, _ = self._run([sentences[i] for i in part], None, None)
                for number, array in zip(part, arrays, strict=True):
                    layers[number] = array
        return layers

    def _carry(self, sentences: Sequence[Sentence], state: State | None) -> tuple[list[np.ndarray], State]:
        """One batch of slots: sentence k goes on from slot k's state, and leaves it its own."""
        if state is None:
            options, n = self.options, self.slots
            c = torch.zeros(2, n, options.cells, device=self._device)
            state = [(c, c.new_zeros(2, n, options.projection))] * len(self.network.layers)
        order = sorted(range(len(sentences)), key=lambda k: -len(sentences[k]))
        lengths = [len(sentences[k]) + 2 for k in order]
        start = [(c[:, order], m[:, order]) for c, m in state]
        arrays, after = self._run([sentences[k] for k in order], lengths if len(set(lengths)) > 1 else None, start)
        for slot, ends in zip((state := [(c.clone(), m.clone()) for c, m in state]), after, strict=True):
            for old, new in zip(slot, ends, strict=True):
                old[:, order] = new.to(old.dtype)
        back = sorted(range(len(order)), key=order.__getitem__)
        return [arrays[i] for i in back], state

    @torch.inference_mode()
    def _run(
        self, sentences: Sequence[Sentence], lengths: Sequence[int] | None, state: State | None
    ) -> tuple[list[np.ndarray], State]:
        """Each sentence's given layers (n, n_words, dim), and the states after them; longest first if `lengths`
        differ."""
        longest = max(len(sentence) for sentence in sentences)
        begin, end, row_of = self._row_of[BEGIN], self._row_of[END], self._row_of
        rows = np.full((longest + 2, len(sentences)), end)
        rows[0] = begin
        for number, sentence in enumerate(sentences):
            rows[1 : len(sentence) + 1, number] = [row_of[word] for word in sentence.words]
        x = self._table[torch.from_numpy(rows).to(self._device)]
        outputs, state = self.network.contextual(x, lengths, state)
        shape = len(sentences), len(self.layer_numbers), longest, 2, self.options.projection
        layers = torch.empty(shape, dtype=self._out, device=self._device)
        for at, number in enumerate(self.layer_numbers):
            y = outputs[number - 1].permute(2, 1, 0, 3) if number else x.transpose(0, 1).unsqueeze(2)
            layers[:, at] = y[:, 1:-1]
        whole = layers.flatten(3).cpu().numpy()
        return [array[:, : len(s)] for array, s in zip(whole, sentences, strict=True)], state

    def forget_words(self) -> None:
        """Drop the kept token vectors (they change nothing but the time)."""
        self._row_of = {}

    @torch.inference_mode()
    def _embed(self, words: Iterable[str]) -> None:
        """Make the token table hold these words and the markers; it starts anew when it has grown too large.

        A word goes through the network once, beside the other new words of its block. So its vector hangs by rounding
        (1.3e-7 of its length at most on the embedded sentences) on what this encoder met before: worker processes
        meet other blocks and repeat a single one's vectors to that, not to the last bit.
        """
        vocabulary = dict.fromkeys((BEGIN, END, *words))
        new = [word for word in vocabulary if word not in self._row_of]
        if len(self._row_of) + len(new) > MOST_WORDS:
            self._row_of, new = {}, list(vocabulary)
        if not new:
            return
        parts = [self._table] if self._row_of else []
        for start in range(0, len(new), 2048):
            ids = character_ids(new[start : start + 2048], self.options.word_width)
            parts.append(self.network.tokens(torch.from_numpy(ids).to(self._device)))
        self._table = torch.cat(parts)
        self._row_of.update((word, row) for row, word in enumerate(new, start=len(self._row_of)))
