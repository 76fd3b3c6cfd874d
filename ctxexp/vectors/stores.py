"""The stores that a study needs: word rows and sentence vectors, of the measured text and of the fitted one; sentence
vectors by mixes of layers (virtual layers), and the poolings that give one vector per sentence.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from ctxexp.controls import Control
from ctxexp.dataset import Corpus, Sentence, is_punctuation
from ctxexp.engines import Engine, Local
from ctxexp.errors import ConfigError, MetricError, StoreError, near, plugin_call, short
from ctxexp.files import digest
from ctxexp.files.code_version import class_digest, package_digest
from ctxexp.maths.word_mix import WordMix
from ctxexp.model import Encoder, TextStart
from ctxexp.occurrences import Layers, Occurrences
from ctxexp.progress import Progress
from ctxexp.results.run_info import PoolingInfo
from ctxexp.transforms import chunk_rows, chunks
from ctxexp.vectors import Store
from ctxexp.vectors.cache import Limit, entry_lock, make_room
from ctxexp.vectors.encoding import CODE, BatchedText, open_store, warn_unknown

log = logging.getLogger("ctxexp")
WORDS = "mean_words"
POOLINGS = {  # what each means; an encoder's own view may offer others
    WORDS: "mean of the sentence's measured word vectors",
    "mean": "mean over all pieces, special tokens included",
    "mean_text": "mean over the text's pieces, without special tokens",
    "cls": "first piece: the first special token where there is one",
    "last": "last piece: the closing special token where there is one",
    "pooler": "the model's own pooler, last layer only",
    "pipeline": "by the modules of sentence-transformers behind the model",
}
WHY = {  # why an encoder that has a view of sentences may lack these
    "cls": "a causal model's first piece has seen nothing but itself, unless it is a special token",
    "pooler": "its checkpoint has no weights of a pooler",
}
CHUNK_BYTES = 16 << 20  # word vectors that are averaged at a time
MIXES = {  # of a model with layers 0..L, 0 the input layer
    "last2": "the last two layers, L-1 and L",
    "first_last": "layers 1 and L, the outputs of the first and the last block",
    "flow_paper_last2": "layers 1 and L: what BERT-flow's code averages under the name of last-2",
    "scalar_mix": "all layers alike (Peters et al. 2018, equation 1, untrained)",
}


class WordMeans:
    """Pooling `mean_words`: the mean of each sentence's measured words, as the word measures see them: punctuation
    counts where it is measured. NaN for a sentence without any."""

    def __init__(self, store: Layers, occurrences: Occurrences, n_sentences: int) -> None:
        self.store, self.n_sentences = store, n_sentences
        self.n_layers, self.layer_numbers, self.dim = store.n_layers, store.layer_numbers, store.dim
        self.groups = occurrences.by_sentence

    def layer(self, i: int) -> np.ndarray:
        vectors = self.store.layer(i)
        out = np.full((self.n_sentences, self.dim), np.nan, np.float32)
        for sentences, rows, _ in self.groups.blocks(max(1, CHUNK_BYTES // (8 * self.dim))):
            out[np.asarray(sentences, np.int64)] = vectors[rows].mean(axis=1, dtype=np.float64)
        return out


class PooledSentences:
    """Sentence vectors by a pooling of the encoder's own: each sentence's row of that name. NaN for a sentence
    without one (no piece to pool), and for `pooler` in all layers but the last."""

    def __init__(self, store: Store, pooling: str) -> None:
        self.store, self.pooling = store, pooling
        self.n_layers, self.layer_numbers, self.dim = store.n_layers, store.layer_numbers, store.dim
        code = store.vocabulary.index(pooling) if pooling in store.vocabulary else -1
        rows = np.flatnonzero(store.unit_codes == code)
        of_stored = np.full(len(store.offsets) - 1, -1, np.int64)
        of_stored[np.searchsorted(store.offsets, rows, side="right") - 1] = rows
        self.rows = of_stored[store.stored_of]  # (n_sentences,) its row, -1 without one

    def layer(self, i: int) -> np.ndarray:
        out = np.full((len(self.rows), self.dim), np.nan, np.float32)
        if self.pooling != "pooler" or i == self.n_layers - 1:
            vectors = self.store.layer(i)
            has = np.flatnonzero(self.rows >= 0)
            for a, b in chunks(len(has), chunk_rows(self.dim)):
                out[has[a:b]] = vectors[self.rows[has[a:b]]]
        return out


def mix_layers(vectors: Layers, mix: Mix) -> np.ndarray:  # (n_sentences, dim) float32
    """The mix of the layers' sentence vectors, added in float64."""
    total: np.ndarray | None = None
    for i, weight in zip(mix.layers, mix.weights, strict=True):
        part = vectors.layer(i)
        total = np.zeros(part.shape) if total is None else total
        for a, b in chunks(len(part), chunk_rows(vectors.dim)):
            total[a:b] += part[a:b].astype(np.float64) * weight
    assert total is not None  # a mix has a layer
    return total.astype(np.float32)


def finite_rows(x: np.ndarray) -> np.ndarray:
    """Which rows of x (n, d) are finite throughout, that is, which sentences have a vector: (n,) bool."""
    is_finite = np.empty(len(x), bool)
    for a, b in chunks(len(x), chunk_rows(x.shape[1])):
        is_finite[a:b] = np.isfinite(x[a:b]).all(axis=1)
    return is_finite


def own_pooling(encoder: Encoder) -> str:
    """The pooling of an encoder whose model makes sentence vectors in a way of its own; `mean_words` for others."""
    own = str(encoder.details.get("sentence_pooling", WORDS))
    view = encoder.sentence_encoder() if own != WORDS else None  # None, too, where a control reads the words
    return WORDS if view is None else own


def sentence_view(encoder: Encoder, pooling: str, *, model: str) -> Encoder | None:
    """The encoder's view of sentences that gives the pooling; None for `mean_words`, which needs none.

    Raises ConfigError naming the poolings that this model has.
    """
    if pooling == WORDS:
        return None
    view = encoder.sentence_encoder()
    offered = [WORDS, *(view.poolings if view else ())]
    if view and pooling in offered:
        return view
    if pooling not in POOLINGS:
        raise ConfigError(f"sentence.pooling={short(pooling)}: no such pooling{near(pooling, offered)}")
    why = f" ({WHY[pooling]})" if view and pooling in WHY else ""
    raise ConfigError(f"model {model!r} has no sentence.pooling={pooling}{why}; it has {', '.join(offered)}")


@dataclass(frozen=True)
class Mix:
    """A virtual layer: the weighted mean of some layers' sentence vectors; the weights' sum is 1."""

    name: str
    layers: tuple[int, ...]
    weights: tuple[float, ...]

    def __str__(self) -> str:
        alike = len(set(self.weights)) == 1
        shares = "" if alike else " weighted " + ", ".join(f"{w:.3g}" for w in self.weights)
        return f"{self.name}: layer{'s' * (len(self.layers) > 1)} {', '.join(map(str, self.layers))}{shares}"


def check_mixes(mixes: Sequence[object]) -> None:
    """Raise ConfigError for a mix that no model could have; `layer_mixes` refuses layers out of a model's range."""
    for one in mixes:
        _parse(one, None)


def layer_mixes(names: Sequence[object], n_layers: int) -> list[Mix]:
    """The mixes of the config (names, or lists of layers) for a model with `n_layers` layers, the input layer 0
    counted: 13 of BERT-base.

    Raises ConfigError for a layer that the model doesn't have, naming those that it has, and for a mix named twice.

    Example:
        >>> [str(mix) for mix in layer_mixes(["last2", [0, 3]], 13)]
        ['last2: layers 11, 12', 'layers_0_3: layers 0, 3']
    """
    mixes = [mix for name in names if (mix := _parse(name, n_layers))]
    counts = Counter(mix.name for mix in mixes)
    if twice := next((name for name, n in counts.items() if n > 1), None):
        raise ConfigError(f"sentence.mixes: {twice} is there twice")
    return mixes


def _parse(one: object, n_layers: int | None) -> Mix | None:
    """The mix; None while the model's number of layers isn't known."""
    if isinstance(one, str):
        if one not in MIXES:
            raise ConfigError(f"sentence.mixes: no mix {one!r}{near(one, MIXES)}; or a list of layers, as in [[1,12]]")
        return None if n_layers is None else _named_mix(one, n_layers)
    if not isinstance(one, list) or not one or not all(isinstance(i, int) and not isinstance(i, bool) for i in one):
        hint = "; a mix is a list of its own, as in sentence.mixes=[[1,4]]" if isinstance(one, int) else ""
        raise ConfigError(f"sentence.mixes: {one!r}: expected a name ({', '.join(MIXES)}) or a list of layers{hint}")
    if len(set(one)) < len(one):
        raise ConfigError(f"sentence.mixes: {one}: a layer is there twice")
    for i in one:
        if i < 0 or (n_layers is not None and i >= n_layers):
            raise ConfigError(
                f"sentence.mixes: no layer {i} (in {one}): "
                + (f"the model has layers 0 to {n_layers - 1}" if n_layers else "layers count from 0, the input layer")
                + (f"; its last is {n_layers - 1}" if n_layers and i < 0 else "")
            )
    return Mix("layers_" + "_".join(map(str, one)), tuple(one), (1 / len(one),) * len(one))


def _named_mix(name: str, n_layers: int) -> Mix:
    last = n_layers - 1
    if name != "scalar_mix" and last < 1:
        raise ConfigError(f"sentence.mixes: {name} needs layers above the input layer; the model has layer 0 only")
    other = (last - 1, last) if name == "last2" else tuple(dict.fromkeys((1, last)))
    layers = tuple(range(n_layers)) if name == "scalar_mix" else other
    return Mix(name, layers, (1 / len(layers),) * len(layers))


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """Options of computing and keeping vectors; none moves a number but by rounding."""

    cache: Path  # the folder that holds them
    limit_bytes: Limit = None  # of the whole cache: the least recently used go first
    batch_tokens: int = 2048
    version: str = ""  # of the code that made the encoder, where its name doesn't tell
    engine: Engine = field(default_factory=Local)  # who encodes
    make: Callable[[], Encoder] | None = None  # gives the engine's workers their encoder; None: it is pickled

    def read(self, encoder: Encoder, sentences: Sequence[Sentence]) -> BatchedText:
        """Sentences in the batches in which the encoder gets them."""
        return BatchedText(encoder, sentences, self.batch_tokens)

    @contextmanager
    def kept(self, kind: str, choices: Sequence[object], classes: Sequence[type]) -> Iterator[Path]:
        """A folder of the cache for what is made of vectors that aren't stored, named by its kind, all choices behind
        it and the code of these classes. In the block no other process writes or removes it."""
        cache, code = self.cache.absolute(), [CODE, package_digest(), *map(class_digest, classes)]
        key = digest(repr([self.version, *code, *choices]).encode())
        folder = cache / f"{kind}-{key}"
        try:
            with entry_lock(cache, key):
                folder.mkdir(exist_ok=True)
                yield folder
                os.utime(folder)
            if self.limit_bytes is not None:
                make_room(cache, 0, limit=self.limit_bytes, keep=key)
        except OSError as error:
            raise StoreError(f"{folder} can't be used: {error}; make room or choose another cache folder") from error


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
    """The way to one vector a sentence, for metrics over sentence pairs."""

    name: str | None = WORDS  # of POOLINGS, or of the encoder's own view of sentences; None: the model's own
    mixes: tuple[object, ...] = ()  # of layers, as `ctxexp.vectors.stores.layer_mixes` reads them


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
        self.pooling = pooling.name or (own_pooling(encoder) if sentences else WORDS)
        model = model or encoder.name
        self.view = sentence_view(encoder, self.pooling, model=model) if sentences else None
        self.mixes = layer_mixes(pooling.mixes, encoder.n_layers) if sentences else []
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

    def half(self, corpus: Corpus, rows: np.ndarray) -> Occurrences:
        """The occurrences among some rows (n_rows,) bool of the store of a corpus whose words were asked for."""
        _, occurrences = self.words(corpus)
        return self._indices[corpus.fingerprint](measured=rows & (occurrences.forms >= 0))

    def sentences(self, corpus: Corpus) -> Layers:
        """The sentence vectors of a corpus by the study's pooling."""
        if self.view is None:
            return WordMeans(*self.words(corpus), len(corpus.sentences))
        return PooledSentences(self._store(corpus, self.view), self.pooling)

    def counts(self, corpus: Corpus) -> dict[str, float]:
        """What a run records of the corpus's encoding (`CorpusInfo`): occurrences that a control leaves out; words in
        distinct sentences without a vector (0 if its words were never needed), and their share; pieces that the
        tokenizer doesn't know, and all."""
        store = self.stores.get((self.encoder.name, corpus.fingerprint))
        skipped = store.n_skipped if store is not None else 0
        stores = [store for (_, fingerprint), store in self.stores.items() if fingerprint == corpus.fingerprint]
        unknown, pieces = max(
            ((s.n_unknown_pieces, s.n_pieces) for s in stores), key=lambda counts: counts[1], default=(0, 0)
        )
        return {
            "left_out": self.left_out.get(corpus.fingerprint, 0),
            "skipped": skipped,
            "skipped_share": skipped / (store.n_rows + skipped) if store is not None and skipped else 0.0,
            "unknown": unknown,
            "pieces": pieces,
        }

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

    def _store(self, corpus: Corpus, encoder: Encoder) -> Store:
        key, make = (encoder.name, corpus.fingerprint), self.vectors.make
        if make is not None and encoder is not self.encoder:
            make = partial(_view, make)
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
                    engine=self.vectors.engine,
                    make=make,
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
    every = index()
    out = control.left_out(store, every)
    if out is None:
        return every, 0
    if out.dtype != bool or out.shape != every.places.shape:
        raise MetricError(
            f"control {control.label!r}: left_out gave {out.dtype} of shape {out.shape}; expected bool of shape "
            f"{every.places.shape}, True for a row that is not measured"
        )
    n = int(out[every.by_sentence.rows].sum())
    if n == every.n_occurrences:
        raise MetricError(
            f"control {control.label!r} leaves nothing of corpus {corpus!r} to measure: all {n:,} occurrences are left "
            "out; choose a milder one"
        )
    rest, note = index(measured=~out), control.note(start)
    log.info(
        f"control {control.label!r}: {n:,} of {every.n_occurrences:,} occurrences are not measured{note and '; '}{note}"
    )
    return rest, n
