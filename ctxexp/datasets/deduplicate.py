"""A corpus with each text once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ctxexp.dataset import Corpus, Pair, Sense, Sentence, Tags


def deduplicate(corpus: Corpus) -> Corpus:
    """The corpus with each text once, first occurrences in order; pairs, senses and tags follow their sentence.

    Five copies of a sentence are one context, not five: without this a word can look context-independent because its
    sentences are equal. One with a bound holds none twice.
    """
    if corpus.bound is not None:
        return corpus
    first: dict[Sentence, int] = {}
    position = [first.setdefault(s, len(first)) for s in corpus.sentences]
    pairs = tuple(Pair(position[p.first], position[p.second], p.gold, p.subset) for p in corpus.pairs)
    senses = tuple(dict.fromkeys(Sense(position[s.sentence], s.position, s.label) for s in corpus.senses))
    documents = None
    if corpus.documents is not None:
        document_of = dict(zip(reversed(position), reversed(corpus.documents), strict=True))  # where each first stands
        documents = tuple(document_of[i] for i in range(len(first)))
    return replace(
        corpus,
        sentences=tuple(first),
        pairs=pairs,
        senses=senses,
        choices={**corpus.choices, "deduplicate": "true"},
        documents=documents,
        tags={kind: _once(tags, position, len(first)) for kind, tags in corpus.tags.items()},
    )


def _once(tags: Tags, position: Sequence[int], n: int) -> Tags:
    """The tags of n sentences, of which each may be there several times: the first tag of each word."""
    merged_tags: list[tuple[str, ...]] = [()] * n
    for i, of in zip(position, tags, strict=True):
        merged_tags[i] = tuple(a or b for a, b in zip(merged_tags[i], of, strict=True)) if merged_tags[i] else of
    return tuple(merged_tags)
