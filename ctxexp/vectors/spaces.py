"""The vectors that a study needs: word rows and sentence vectors, of the measured text and of the fitted one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ctxexp.control import Control
from ctxexp.dataset import Corpus
from ctxexp.errors import ConfigError, MetricError, blamed
from ctxexp.measuring.occurrences import Occurrences
from ctxexp.model import Encoder, TextStart
from ctxexp.progress import Progress
from ctxexp.results.run_info import PoolingInfo
from ctxexp.vectors.batches import warn_unknown
from ctxexp.vectors.encode import open_store
from ctxexp.vectors.mixes import Mix, layer_mixes
from ctxexp.vectors.pool import POOLINGS, WORDS, Pooled, SentenceVectors, WordMeans, sentence_view
from ctxexp.vectors.shards import Crew
from ctxexp.vectors.store import Store

if TYPE_CHECKING:
    from ctxexp.study import Study, Vectors

log = logging.getLogger("ctxexp")


class Spaces:
    """Opens each store when it is first asked for, once: encodes a corpus, or finds it in the cache.

    `mixes` are the study's mixes of layers. Raises ConfigError for a pooling, mix or control that the model's sentences
    can't have, before anything is encoded. Without `sentences` none of these matters.
    """

    def __init__(self, study: Study, vectors: Vectors, progress: Progress, *, sentences: bool) -> None:
        self.study, self.vectors, self.progress = study, vectors, progress
        self.pooling = study.pooling.name
        encoder, mixes = study.encoder, list(study.pooling.mixes)
        model = study.model or encoder.name
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
        if self.view is not None and study.control.leaves_out:
            raise ConfigError(
                f"control={study.control.name} leaves word rows out, but sentence.pooling={self.pooling} pools "
                "inside the encoder, where nothing is left out; use sentence.pooling=mean_words"
            )
        self.held: dict[tuple[str, str], Store] = {}
        self._indexed: dict[str, Occurrences] = {}
        self.left_out: dict[str, int] = {}  # by fingerprint: occurrences that the control doesn't measure

    def words(self, corpus: Corpus) -> tuple[Store, Occurrences]:
        """The word rows of a corpus, and which belong together."""
        store = self._store(corpus, self.study.encoder)
        if corpus.fingerprint not in self._indexed:
            words = self.study.words
            index = partial(
                Occurrences.of,
                store,
                corpus,
                min_contexts=words.min_contexts,
                keep=lambda unit: words.form(unit) is not None,
                key=str.casefold if words.fold_case else str,
            )
            with blamed("control"):
                start = self.study.encoder.start
                self._indexed[corpus.fingerprint], n = controlled(
                    store, index, self.study.control, corpus=corpus.name, start=start
                )
            self.left_out[corpus.fingerprint] = n
        return store, self._indexed[corpus.fingerprint]

    def sentences(self, corpus: Corpus) -> SentenceVectors:
        """The sentence vectors of a corpus by the study's pooling."""
        if self.view is None:
            return WordMeans(*self.words(corpus), len(corpus.sentences))
        return Pooled(self._store(corpus, self.view), self.pooling)

    def skipped(self, corpus: Corpus) -> tuple[int, float]:
        """How many words of the corpus' distinct sentences have no vector, and their share; 0 where none was asked
        for."""
        store = self.held.get((self.study.encoder.name, corpus.fingerprint))
        n = store.skipped if store is not None else 0
        return n, n / (store.n_rows + n) if store is not None and n else 0.0

    def made(self, corpus: Corpus) -> dict[str, str]:
        """What the encoder said of how the corpus' vectors were made, by this run or an earlier one."""
        stores = (store for (_, fingerprint), store in self.held.items() if fingerprint == corpus.fingerprint)
        return next((store.made for store in stores), {})

    def unknown(self, corpus: Corpus) -> tuple[int, int]:
        """How many pieces of the corpus' distinct sentences the model's tokenizer doesn't know, and of how many."""
        stores = [store for (_, fingerprint), store in self.held.items() if fingerprint == corpus.fingerprint]
        return max(((s.unknown, s.pieces) for s in stores), key=lambda said: said[1], default=(0, 0))

    @property
    def encoded(self) -> int:
        """Sentences that had to be encoded."""
        return sum(store.encoded for store in self.held.values())

    @property
    def pooling_info(self) -> PoolingInfo:
        """Which pooling and mixes of layers the run has, and what the encoder's view of sentences says of itself."""
        if self.view is None:
            told: dict[str, object] = {"what": POOLINGS[WORDS]}
        else:
            told = {"what": POOLINGS.get(self.pooling, ""), "name": self.view.name, **self.view.details}
        return PoolingInfo(name=self.pooling, details=told, mixes={mix.name: str(mix) for mix in self.mixes})

    def _crew(self, encoder: Encoder) -> Crew | None:
        """Who encodes: its workers make the model, and of that its view of sentences where this is one."""
        crew = self.vectors.crew
        if crew is None or crew.make is None or encoder is self.study.encoder:
            return crew
        return Crew(crew.engine, partial(_view, crew.make))

    def _store(self, corpus: Corpus, encoder: Encoder) -> Store:
        key = (encoder.name, corpus.fingerprint)
        if key not in self.held:
            with blamed("model"):
                self.held[key] = open_store(
                    corpus,
                    encoder,
                    cache=self.vectors.cache,
                    batch_tokens=self.vectors.batch_tokens,
                    limit_bytes=self.vectors.limit_bytes,
                    progress=self.progress,
                    version=self.vectors.version,
                    crew=self._crew(encoder),
                    sweep=self.vectors.sweep,
                )
            store = self.held[key]
            warn_unknown(store.unknown, store.pieces, corpus.name)
        return self.held[key]


def _view(make: Callable[[], Encoder]) -> Encoder:
    view = make().sentences()
    assert view is not None  # the driver's has one
    return view


def _check_layers(mixes: Sequence[Mix], encoder: Encoder, *, pooler: bool) -> None:
    """Raise ConfigError for a mix of layers of which the encoder gives only some, or a pooler without the last."""
    needed = {str(mix): mix.layers for mix in mixes}
    if pooler:
        needed["sentence.pooling=pooler, the last layer's"] = (encoder.n_layers - 1,)
    for what, layers in needed.items():
        if missing := [str(i) for i in layers if i not in encoder.given]:
            raise ConfigError(
                f"{what}: layer{'s' * (len(missing) > 1)} {', '.join(missing)} of the model's 0 to "
                f"{encoder.n_layers - 1} isn't encoded; add it to model.layers, or leave the mix out"
            )


def controlled(
    store: Store,
    index: Callable[..., Occurrences],
    chosen: Control,
    *,
    corpus: str,
    start: TextStart | None = None,
) -> tuple[Occurrences, int]:
    """The occurrences under the control, and how many it left out; `index` is `Occurrences.of` but for `measured`,
    `start` what stands before each text.

    Raises MetricError if nothing is left, or if the control doesn't say it of every row.
    """
    whole = index()
    out = chosen.left_out(store, whole)
    if out is None:
        return whole, 0
    if out.dtype != bool or out.shape != whole.places.shape:
        raise MetricError(
            f"control {chosen.words!r}: left_out gave {out.dtype} of shape {out.shape}; expected bool of shape "
            f"{whole.places.shape}, True for a row that is not measured"
        )
    n = int(out[whole.by_sentence.rows].sum())
    if n == whole.n_occurrences:
        raise MetricError(
            f"control {chosen.words!r} leaves nothing of corpus {corpus!r} to measure: all {n:,} occurrences are left "
            "out; choose a milder one"
        )
    rest, note = index(measured=~out), chosen.note(start)
    log.info(
        f"control {chosen.words!r}: {n:,} of {whole.n_occurrences:,} occurrences are not measured{note and '; '}{note}"
    )
    return rest, n
