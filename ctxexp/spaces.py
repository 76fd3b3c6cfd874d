"""The vectors that a run needs: word rows and sentence vectors, of the measured text and of the fitted one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ctxexp.config import Node
from ctxexp.controls import Nothing, control, controlled
from ctxexp.corpus import Corpus
from ctxexp.encoder import Encoder, details
from ctxexp.errors import ConfigError
from ctxexp.mixes import layer_mixes
from ctxexp.occurrences import Occurrences
from ctxexp.sentences import POOLINGS, WORDS, Pooled, SentenceVectors, WordMeans, sentence_view
from ctxexp.store import Store
from ctxexp.unknown import warn_unknown
from ctxexp.words import is_punctuation


class Spaces:
    """Opens each store when it is first asked for, once: `open_store` encodes a corpus, or finds it in the cache.

    `mixes` are the run's mixes of layers. Raises ConfigError for a pooling, mix or control that the model's sentences
    can't have, before anything is encoded. Without `sentences` none of these matters.
    """

    def __init__(
        self, config: Node, encoder: Encoder, open_store: Callable[[Corpus, Encoder], Store], *, sentences: bool
    ) -> None:
        self.config, self.encoder, self._open = config, encoder, open_store
        self.pooling = config["sentence"]["pooling"]
        self.view = sentence_view(encoder, self.pooling, model=config["model"]["name"]) if sentences else None
        self.mixes = layer_mixes(config["sentence"]["mixes"], encoder.n_layers) if sentences else []
        if self.view is not None and self.pooling == "pooler":
            last = encoder.n_layers - 1
            if empty := [mix for mix in self.mixes if mix.layers != (last,)]:
                raise ConfigError(
                    f"sentence.pooling=pooler gives vectors in the last layer ({last}) only, so there is no mix "
                    f"{empty[0]}; use another pooling, or sentence.mixes=[]"
                )
        chosen = control(config["control"])
        if self.view is not None and type(chosen).left_out is not Nothing.left_out:
            raise ConfigError(
                f"control={config['control']['name']} leaves word rows out, but sentence.pooling={self.pooling} pools "
                "inside the encoder, where nothing is left out; use sentence.pooling=mean_words"
            )
        self.held: dict[tuple[str, str], Store] = {}
        self._indexed: dict[str, Occurrences] = {}
        self.left_out: dict[str, int] = {}  # by fingerprint: occurrences that the control doesn't measure

    def words(self, corpus: Corpus) -> tuple[Store, Occurrences]:
        """The word rows of a corpus, and which belong together."""
        store = self._store(corpus, self.encoder)
        if corpus.fingerprint not in self._indexed:
            words = self.config["words"]
            index = partial(
                Occurrences.of,
                store,
                corpus,
                min_contexts=self.config["min_contexts"],
                keep=(lambda unit: not is_punctuation(unit)) if words["punctuation"] == "drop" else (lambda unit: True),
                key=str.casefold if words["fold_case"] else str,
            )
            chosen = control(self.config["control"])
            self._indexed[corpus.fingerprint], n = controlled(store, index, chosen, corpus=corpus.name)
            self.left_out[corpus.fingerprint] = n
        return store, self._indexed[corpus.fingerprint]

    def sentences(self, corpus: Corpus) -> SentenceVectors:
        """The sentence vectors of a corpus by the run's pooling."""
        if self.view is None:
            return WordMeans(*self.words(corpus), len(corpus.sentences))
        return Pooled(self._store(corpus, self.view), self.pooling)

    def skipped(self, corpus: Corpus) -> tuple[int, float]:
        """How many words of the corpus' distinct sentences have no vector, and their share; 0 where none was asked
        for."""
        store = self.held.get((self.encoder.name, corpus.fingerprint))
        n = store.skipped if store is not None else 0
        return n, n / (store.n_rows + n) if store is not None and n else 0.0

    def unknown(self, corpus: Corpus) -> tuple[int, int]:
        """How many pieces of the corpus' distinct sentences the model's tokenizer doesn't know, and of how many."""
        stores = [store for (_, fingerprint), store in self.held.items() if fingerprint == corpus.fingerprint]
        return max(((s.unknown, s.pieces) for s in stores), key=lambda said: said[1], default=(0, 0))

    @property
    def encoded(self) -> int:
        """Sentences that had to be encoded."""
        return sum(store.encoded for store in self.held.values())

    @property
    def pooling_details(self) -> Node:
        """What the pooling is, and what the encoder's view of sentences says of itself where it needs one."""
        if self.view is None:
            return {"what": POOLINGS[WORDS]}
        return {"what": POOLINGS.get(self.pooling, ""), "name": self.view.name, **details(self.view)}

    def _store(self, corpus: Corpus, encoder: Encoder) -> Store:
        key = (encoder.name, corpus.fingerprint)
        if key not in self.held:
            self.held[key] = store = self._open(corpus, encoder)
            warn_unknown(store.unknown, store.pieces, corpus.name)
        return self.held[key]
