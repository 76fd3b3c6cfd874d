"""The stores that a study needs: word rows and sentence vectors, of the measured text and of the fitted one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ctxexp.controls import Control
from ctxexp.dataset import Corpus
from ctxexp.datasets.checks import is_punctuation
from ctxexp.errors import ConfigError, MetricError, plugin_call
from ctxexp.maths.mix import WordMix
from ctxexp.model import Encoder, TextStart
from ctxexp.occurrences import Occurrences
from ctxexp.progress import Progress
from ctxexp.results.run_info import PoolingInfo
from ctxexp.vectors.encode import open_store
from ctxexp.vectors.encoding import EncodingWorkers, warn_unknown
from ctxexp.vectors.pool import (
    POOLINGS,
    WORDS,
    Mix,
    PooledSentences,
    SentenceVectors,
    WordMeans,
    layer_mixes,
    sentence_view,
)
from ctxexp.vectors.store import Store


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """How vectors are computed and kept; nothing here moves a number but by rounding."""

    cache: Path  # the folder that holds them
    limit_bytes: int | None = None  # of the whole cache: the least recently used go first
    batch_tokens: int = 2048
    version: str = ""  # of the code that made the encoder, where its name doesn't tell
    workers: EncodingWorkers | None = None  # who encodes; None: this process
    sweep: str = ""  # whose run this is: what its runs read stays in the cache, if anything can, while it lasts


@dataclass(frozen=True, kw_only=True)
class WordFilter:
    """Which of a sentence's words are measured, and which are one word."""

    min_contexts: int = 5  # distinct sentences that a word needs
    punctuation: bool = False  # whether marks are measured (they are always encoded)
    fold_case: bool = False  # whether "The" and "the" are one word

    def form(self, unit: str) -> str | None:
        """The word that a unit counts for; None where it isn't measured."""
        if not self.punctuation and is_punctuation(unit):
            return None
        return unit.casefold() if self.fold_case else unit


@dataclass(frozen=True, kw_only=True)
class SentencePooling:
    """How a sentence gets one vector, for metrics over sentence pairs."""

    name: str = WORDS  # of `ctxexp.vectors.pool.POOLINGS`, or of the encoder's own view of sentences
    mixes: tuple[object, ...] = ()  # of layers, as `ctxexp.vectors.pool.layer_mixes` reads them


log = logging.getLogger("ctxexp")


class Stores:
    """Opens each store once, when it is first needed: from the cache, or by encoding the corpus.

    `words` tells which words are measured, `mix` how they are weighed; `model` is what messages call the encoder.
    Raises ConfigError for a pooling, mix of layers or control that the model's sentences can't have, before anything is
    encoded. Without `sentences` none of these matters.
    """

    def __init__(
        self,
        encoder: Encoder,
        vectors: Vectors,
        progress: Progress,
        *,
        control: Control,
        words: WordFilter,
        mix: WordMix,
        pooling: SentencePooling,
        model: str = "",
        sentences: bool,
    ) -> None:
        self.encoder, self.vectors, self.progress = encoder, vectors, progress
        self.control, self.filter, self.mix = control, words, mix
        self.pooling, mixes = pooling.name, list(pooling.mixes)
        model = model or encoder.name
        self.view = sentence_view(encoder, self.pooling, model=model) if sentences else None
        self.mixes = layer_mixes(mixes, encoder.n_layers) if sentences else []
        _check_layers(self.mixes, encoder, pooler=self.view is not None and self.pooling == "pooler")
        if self.view is not None and self.pooling == "pooler":
            last = encoder.n_layers - 1
            if empty := [mix for mix in self.mixes if mix.layers != (last,)]:
                raise ConfigError(
                    f"sentence.pooling=pooler gives vectors in the last layer ({last}) only, so there is no mix "
                    f"{empty[0]}; use another pooling, or sentence.mixes=[]"
                )
        if self.view is not None and control.leaves_out:
            raise ConfigError(
                f"control={control.name} leaves word rows out, but sentence.pooling={self.pooling} pools "
                "inside the encoder, where nothing is left out; use sentence.pooling=mean_words"
            )
        self.stores: dict[tuple[str, str], Store] = {}
        self._occurrences: dict[str, Occurrences] = {}
        self._indices: dict[str, Callable[..., Occurrences]] = {}
        self.left_out: dict[str, int] = {}  # by fingerprint: occurrences that the control doesn't measure

    def words(self, corpus: Corpus) -> tuple[Store, Occurrences]:
        """The store of a corpus's word rows, and its occurrences grouped by word and sentence."""
        store = self._store(corpus, self.encoder)
        if corpus.fingerprint not in self._occurrences:
            words = self.filter
            index = partial(
                Occurrences.of,
                store,
                corpus,
                min_contexts=words.min_contexts,
                keep=lambda unit: words.form(unit) is not None,
                key=str.casefold if words.fold_case else str,
                mix=self.mix,
            )
            self._indices[corpus.fingerprint] = index
            with plugin_call("control"):
                start = self.encoder.start
                self._occurrences[corpus.fingerprint], n = apply_control(
                    store, index, self.control, corpus=corpus.name, start=start
                )
            self.left_out[corpus.fingerprint] = n
        return store, self._occurrences[corpus.fingerprint]

    def part(self, corpus: Corpus, rows: np.ndarray) -> Occurrences:
        """The occurrences among some rows (n_rows,) bool of the store of a corpus whose words were asked for."""
        _, occurrences = self.words(corpus)
        return self._indices[corpus.fingerprint](measured=rows & (occurrences.forms >= 0))

    def sentences(self, corpus: Corpus) -> SentenceVectors:
        """The sentence vectors of a corpus by the study's pooling."""
        if self.view is None:
            return WordMeans(*self.words(corpus), len(corpus.sentences))
        return PooledSentences(self._store(corpus, self.view), self.pooling)

    def skipped_words(self, corpus: Corpus) -> tuple[int, float]:
        """The number of words in the corpus's distinct sentences that have no vector, and their share in [0, 1]; 0 if
        its words were never needed."""
        store = self.stores.get((self.encoder.name, corpus.fingerprint))
        n = store.n_skipped if store is not None else 0
        return n, n / (store.n_rows + n) if store is not None and n else 0.0

    def count_unknown(self, corpus: Corpus) -> tuple[int, int]:
        """The number of pieces in the corpus's distinct sentences that are unknown to the tokenizer, and of all
        pieces."""
        stores = [store for (_, fingerprint), store in self.stores.items() if fingerprint == corpus.fingerprint]
        return max(((s.n_unknown_pieces, s.n_pieces) for s in stores), key=lambda counts: counts[1], default=(0, 0))

    @property
    def n_encoded(self) -> int:
        """The number of sentences that had to be encoded."""
        return sum(store.n_encoded for store in self.stores.values())

    @property
    def pooling_info(self) -> PoolingInfo:
        """The run's pooling and mixes of layers, with the metadata of the encoder's view of sentences."""
        if self.view is None:
            details: dict[str, object] = {"what": POOLINGS[WORDS]}
        else:
            details = {"what": POOLINGS.get(self.pooling, ""), "name": self.view.name, **self.view.details}
        return PoolingInfo(name=self.pooling, details=details, mixes={mix.name: str(mix) for mix in self.mixes})

    def _workers(self, encoder: Encoder) -> EncodingWorkers | None:
        """The workers for this encoder; for a view of sentences they make the model and take the view from it."""
        workers = self.vectors.workers
        if workers is None or workers.make is None or encoder is self.encoder:
            return workers
        return EncodingWorkers(workers.engine, partial(_view, workers.make))

    def _store(self, corpus: Corpus, encoder: Encoder) -> Store:
        key = (encoder.name, corpus.fingerprint)
        if key not in self.stores:
            with plugin_call("model"):
                self.stores[key] = open_store(
                    corpus,
                    encoder,
                    cache=self.vectors.cache,
                    batch_tokens=self.vectors.batch_tokens,
                    limit_bytes=self.vectors.limit_bytes,
                    progress=self.progress,
                    version=self.vectors.version,
                    workers=self._workers(encoder),
                    sweep=self.vectors.sweep,
                )
            store = self.stores[key]
            warn_unknown(store.n_unknown_pieces, store.n_pieces, corpus.name)
        return self.stores[key]


def _view(make: Callable[[], Encoder]) -> Encoder:
    view = make().sentence_encoder()
    assert view is not None  # the driver's has one
    return view


def _check_layers(mixes: Sequence[Mix], encoder: Encoder, *, pooler: bool) -> None:
    """Raise ConfigError for a mix of layers of which the encoder gives only some, or a pooler without the last."""
    needed = {str(mix): mix.layers for mix in mixes}
    if pooler:
        needed["sentence.pooling=pooler, the last layer's"] = (encoder.n_layers - 1,)
    for what, layers in needed.items():
        if missing := [str(i) for i in layers if i not in encoder.layer_numbers]:
            raise ConfigError(
                f"{what}: layer{'s' * (len(missing) > 1)} {', '.join(missing)} of the model's 0 to "
                f"{encoder.n_layers - 1} isn't encoded; add it to model.layers, or leave the mix out"
            )


def apply_control(
    store: Store,
    index: Callable[..., Occurrences],
    control: Control,
    *,
    corpus: str,
    start: TextStart | None = None,
) -> tuple[Occurrences, int]:
    """The occurrences under the control, and how many it left out; `index` is `Occurrences.of` but for `measured`,
    `start` what stands before each text.

    Raises MetricError if nothing is left, or if the control doesn't give a truth value for every row.
    """
    whole = index()
    out = control.left_out(store, whole)
    if out is None:
        return whole, 0
    if out.dtype != bool or out.shape != whole.places.shape:
        raise MetricError(
            f"control {control.label!r}: left_out gave {out.dtype} of shape {out.shape}; expected bool of shape "
            f"{whole.places.shape}, True for a row that is not measured"
        )
    n = int(out[whole.by_sentence.rows].sum())
    if n == whole.n_occurrences:
        raise MetricError(
            f"control {control.label!r} leaves nothing of corpus {corpus!r} to measure: all {n:,} occurrences are left "
            "out; choose a milder one"
        )
    rest, note = index(measured=~out), control.note(start)
    log.info(
        f"control {control.label!r}: {n:,} of {whole.n_occurrences:,} occurrences are not measured{note and '; '}{note}"
    )
    return rest, n
