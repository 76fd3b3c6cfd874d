"""Bounded contexts: what is chosen is the same however the text lies, and a fair sample of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest
from ctxexp_scale.bounded import BoundOptions, bound_corpus, hash_text
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxexp import Corpus, Sense, Sentence
from ctxexp.dataset import deduplicate
from ctxexp.datasets.text import TextFiles
from ctxexp.errors import DataError
from tests.shipped import text

WORDS = ["the", "a", "cat", "dog", "sat", "ran", "mat", ".", "of"]
SENTENCE = st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join)
DOCUMENTS = st.lists(st.lists(SENTENCE, min_size=1, max_size=6), min_size=1, max_size=8)


def form(unit: str) -> str | None:
    return unit if unit.isalnum() else None


def bounds(m: int = 3, *, whole: int = 4, sample: int | None = None, seed: int = 0) -> BoundOptions:
    return BoundOptions(max_contexts=m, max_sentences=whole, min_contexts=2, form=form, sample=sample, seed=seed)


def written(folder: Path, files: Sequence[Sequence[Sequence[str]]]) -> TextFiles:
    """Files of documents of lines, as they are streamed."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for i, documents in enumerate(files):
        (folder / f"{i}.txt").write_text("\n\n".join("\n".join(lines) for lines in documents) + "\n", encoding="utf-8")
    made = text(path=str(folder), tokenizer="whitespace", documents="blank", stream=True)
    return made


def told(corpus: Corpus) -> object:
    return corpus.content, corpus.sentences, corpus.documents, corpus.bound.text_words, corpus.bound.text_sentences


@settings(max_examples=30, deadline=None)
@given(documents=DOCUMENTS, data=st.data())
def test_the_choice_depends_on_neither_order_nor_cuts(
    tmp_path_factory: pytest.TempPathFactory, documents: list[list[str]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp() / "orders"
    chosen = bounds(sample=data.draw(st.sampled_from([None, 3])), seed=data.draw(st.integers(0, 3)))
    one = bound_corpus(written(folder, [documents]), chosen)
    other = [data.draw(st.permutations(lines)) for lines in data.draw(st.permutations(documents))]
    cut = sorted(data.draw(st.lists(st.integers(0, len(other)), max_size=3)))
    files = [part for a, b in zip([0, *cut], [*cut, len(other)], strict=True) if (part := other[a:b])]
    assert told(bound_corpus(written(folder, files), chosen)) == told(one)


def _naive(corpus: Corpus, limits: BoundOptions) -> tuple[set[tuple[str, int]], set[str]]:
    """The chosen occurrences and whole sentences by the definition, everything in memory."""
    distinct = deduplicate(corpus)
    occurrences = defaultdict(list)
    for sentence in distinct.sentences:
        for i, unit in enumerate(sentence.words):
            if (form := limits.form(unit)) is not None:
                occurrences[form].append((_hash(form, sentence.text, i, limits.seed), sentence.text, i))
    smallest = {form: sorted(every)[: limits.max_contexts] for form, every in occurrences.items()}
    enough = [f for f, some in smallest.items() if len({t for _, t, _ in some}) >= limits.min_contexts]
    enough = sorted(enough, key=lambda form: hash_text(form, limits.seed))[: limits.sample]
    measured = [s.text for s in distinct.sentences if any(limits.form(w) for w in s.words)]
    salt = hash_text("sentence", limits.seed)
    whole = sorted(measured, key=lambda t: _mix(hash_text(t) ^ salt))[: limits.max_sentences]
    return {(t, i) for form in enough for _, t, i in smallest[form]}, set(whole)


def _mix(x: int) -> int:
    mask = 2**64 - 1
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def _hash(form: str, sentence: str, position: int, seed: int) -> int:
    return _mix(hash_text(form, seed) ^ _mix((hash_text(sentence) + position * 0x9E3779B97F4A7C15) % 2**64))


@settings(max_examples=40, deadline=None)
@given(lines=st.lists(SENTENCE, min_size=4, max_size=30), seed=st.integers(0, 5), sample=st.sampled_from([None, 2]))
def test_the_choice_is_its_definition(lines: list[str], seed: int, sample: int | None) -> None:
    corpus = Corpus("lines", tuple(Sentence.of(line.split()) for line in lines))
    limits = bounds(sample=sample, seed=seed)
    occurrences, whole = _naive(corpus, limits)
    if not occurrences:
        return  # the word in most sentences is taken, for a message
    found = bound_corpus(corpus, limits)
    texts = [s.text for s in found.sentences]
    assert {(t, int(p)) for i, t in enumerate(texts) for p in found.bound.of(i)} == occurrences
    assert {t for t, whole in zip(texts, found.bound.is_fully_measured, strict=True) if whole} == whole


def test_senses_follow_their_sentences_and_pairs_stay_in_the_whole() -> None:
    corpus = Corpus.of("senses", [["bank", "a"], ["bank", "b"], ["bank", "c"], ["bank", "d"]])
    corpus = Corpus(corpus.name, corpus.sentences, senses=tuple(Sense(i, 0, f"s{i}") for i in range(4)))
    found = bound_corpus(corpus, bounds(2, whole=2))
    assert {(found.sentences[s.sentence].text, s.label) for s in found.senses} <= {
        (corpus.sentences[i].text, f"s{i}") for i in range(4)
    }
    assert len(found.senses) == len(found.sentences)
    assert found.unbounded is corpus
    assert deduplicate(found) is found


def test_a_text_that_says_nothing_or_changes_is_refused(tmp_path: Path) -> None:
    lines = written(tmp_path, [[["a b", "c d"]]])
    (tmp_path / "0.txt").write_text("\n\n")
    with pytest.raises(DataError, match="has no sentence"):
        bound_corpus(lines, bounds())
    two = Sentence("a b", ("a", "b"), ((0, 1), (2, 3))), Sentence("a b", ("a b",), ((0, 3),))
    with pytest.raises(DataError, match="one text but other words"):
        bound_corpus(Corpus("two", two), bounds())


@pytest.mark.parametrize("choice", ["blank", "none"])
def test_large_files_are_read_in_parts_that_cut_no_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: str
) -> None:
    documents = [[f"line {i} of {j} é" for i in range(1 + j % 4)] for j in range(40)]
    written(tmp_path, [documents])
    whole = text(path=str(tmp_path), documents=choice)
    monkeypatch.setattr("ctxexp.datasets.text.PART_BYTES", 90)
    made = text(path=str(tmp_path), documents=choice, stream=True)
    assert len(made.parts) > 8
    assert made.corpus().sentences == whole.sentences
    assert len(whole.sentences) == sum(map(len, documents))
    assert made.corpus().documents == whole.documents
