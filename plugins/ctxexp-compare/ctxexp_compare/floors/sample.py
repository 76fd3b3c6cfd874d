"""The sentences and words of a text whose cosines a floor is of, and their vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ctxexp import Encoder, Sentence
from ctxexp.errors import DataError
from ctxexp_compare.checks.encoding import encode
from ctxexp_compare.light.floor import FEWEST
from ctxexp_compare.light.pairs import WORDS, Rows

PER_SENTENCE = 3  # words
CHUNK = 64  # sentences encoded at a time


def is_word(unit: str) -> bool:
    """Whether it has a letter or a digit."""
    return any(c.isalnum() for c in unit)


def collect(encoder: Encoder, domains: Mapping[str, Sequence[Sentence]], rng: np.random.Generator) -> dict[str, Rows]:
    """The rows of `words`, and of sentences by the model's own pooling, if it has one."""
    view = encoder.sentence_encoder()
    own = view.poolings[0] if view is not None else ""
    parts: dict[str, list[tuple[np.ndarray, int, int, int]]] = {WORDS: [], own: []}
    vocabulary: dict[str, int] = {}
    number = 0
    for at, sentences in enumerate(domains.values()):
        for begin in range(0, len(sentences), CHUNK):
            chunk = sentences[begin : begin + CHUNK]
            if view is not None:
                for i, one in enumerate(encode(view, chunk), number + 1):
                    parts[own].append((one.layers[:, one.units.index(own)].copy(), i, at, -1))
            for one in encode(encoder, chunk):
                number += 1
                spoken = [i for i, unit in enumerate(one.units) if is_word(unit)]
                for i in rng.permutation(spoken)[:PER_SENTENCE].tolist():
                    word = vocabulary.setdefault(one.units[i].casefold(), len(vocabulary))
                    parts[WORDS].append((one.layers[:, i].copy(), number, at, word))
    return {name: _rows(rows) for name, rows in parts.items() if len(rows) > 1}


def _rows(parts: Sequence[tuple[np.ndarray, int, int, int]]) -> Rows:
    vectors, *columns = zip(*parts, strict=True)
    return Rows(np.stack(vectors, axis=1), *(np.array(column) for column in columns))


def sampled(domains: Mapping[str, Sequence[Sentence]], most: int, seed: int) -> dict[str, list[Sentence]]:
    """At most so many distinct sentences, domains alike in number. Raises DataError for a domain of few."""
    result = {}
    for name, sentences in domains.items():
        distinct = [one for one in dict.fromkeys(sentences) if any(map(is_word, one.words))]
        if len(distinct) < FEWEST:
            raise DataError(
                f"{name} has {len(distinct)} distinct sentences: expected {FEWEST} or more, of fewer unrelated pairs "
                "say little"
            )
        order = np.random.default_rng(seed).permutation(len(distinct))[: max(FEWEST, most // len(domains))]
        result[name] = [distinct[i] for i in sorted(order.tolist())]
    return result
