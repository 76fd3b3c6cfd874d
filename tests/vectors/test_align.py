"""Pieces and words: spans cover what they should, whatever the text; windows cover and choose by context."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxexp import Sentence
from ctxexp.models.transformer.pieces import PieceReader, best_window, overlapping_pieces, piece_units, windows
from tests import tiny_models

spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), max_size=12)
odd = st.sampled_from(
    ["👍🏽", "👨‍👩‍👧", "e\u0301", "naïve", "日本語", "\u200b", "\x00", "don't", "▁", "Ġthe",
     "[CLS]", "ﬁ", "İ", "a\u0301\u0302"]
)  # fmt: skip
words = st.lists(odd | st.text(min_size=1, max_size=6).filter(lambda w: not any(c.isspace() for c in w)), max_size=8)


@settings(max_examples=40)
@given(spans, spans)
def test_overlaps_are_those_of_the_double_loop(gaps: list[tuple[int, int]], pieces: list[tuple[int, int]]) -> None:
    made, at = [], 0
    for gap, length in gaps:
        made.append((at + gap, at + gap + length))
        at += gap + length
    ends = [(s, s + n) for s, n in pieces]
    naive = [[j for j, (t, u) in enumerate(ends) if {*range(s, e)} & {*range(t, u)}] for s, e in made]
    assert overlapping_pieces(made, dict(enumerate(ends))) == naive


@pytest.fixture(scope="module", params=["wordpiece", "byte_level", "sentencepiece", "unigram"])
def tokenizer(request: pytest.FixtureRequest):
    backend, special = getattr(tiny_models, request.param)()
    made = tiny_models.fast(backend, special)
    made.name_or_path = request.param
    return made


@settings(max_examples=20)
@given(words, st.sampled_from([" ", "", "  "]))
def test_pieces_cover_their_words(tokenizer, texts: list[str], space: str) -> None:
    at, placed = 0, []
    for word in texts:
        placed.append((at, at + len(word)))
        at += len(word) + len(space)
    sentence = Sentence(space.join(texts), tuple(texts), tuple(placed))
    (read,) = PieceReader(tokenizer, pooling="mean", source="tiny")([sentence])
    encoding = tokenizer.backend_tokenizer.encode(sentence.text)
    assert read.ids.tolist() == encoding.ids
    ends = np.cumsum(read.counts)
    kept = iter(zip(read.units, np.split(read.at, ends[:-1]) if len(ends) else [], strict=True))
    follows, unit = True, next(kept, None)
    for word, (start, end) in zip(sentence.words, sentence.spans, strict=True):
        touching = {
            i for i, (a, b) in enumerate(encoding.offsets)
            if max(a, start) < min(b, end) and not encoding.special_tokens_mask[i]
            and not (encoding.tokens[i] == "▁" and sentence.text[a:b] != "▁")
        }  # fmt: skip
        if not touching:  # the tokenizer drops the whole word: it has no unit
            continue
        follows &= unit[0] == word and set(unit[1].tolist()) == touching
        covered = {c for i in touching for c in range(*encoding.offsets[i])}
        if tokenizer.name_or_path == "byte_level":
            assert covered >= set(range(start, end)), "byte-level pieces cover every character"
        unit = next(kept, None)
    assert follows
    assert unit is None


def test_a_lone_marker_at_the_start_belongs_to_no_word() -> None:
    reader = PieceReader(tiny_models.fast(*tiny_models.sentencepiece()), pooling="mean", source="tiny")
    first, later, marker = reader([Sentence.of([w]) for w in ("👍", "x👍", "▁")])
    assert reader.backend.encode("👍").tokens[1] == "▁"
    assert first.counts.tolist() == [4]  # its four bytes
    assert later.counts.tolist() == [len(later.ids) - 2] or later.counts.tolist() == [len(later.ids) - 1]
    assert marker.units == ("▁",)


def test_a_piece_is_called_by_the_text_it_covers() -> None:
    sentence = Sentence("A — don't 👍", ("A", "—", "do", "n't", "👍"), ((0, 1), (2, 3), (4, 6), (6, 9), (10, 11)))
    pieces = [(0, 0), (0, 1), (1, 3), (2, 3), (3, 4), (3, 7), (7, 9), (9, 11), (10, 11), (10, 11)]
    units = ("▁", "A", "—", "##—", "▁", "don", "##'t", "👍", "##👍", "##👍")
    assert piece_units(sentence, pieces) == units
    assert [unit for unit in units if any(map(str.isalnum, unit))] == ["A", "don", "##'t"]


@given(st.integers(1, 60), st.integers(1, 20), st.data(), st.booleans())
def test_windows_cover_and_give_the_most_context(over: int, size: int, data: st.DataObject, causal: bool) -> None:
    n = size + over
    starts = windows(n, size, data.draw(st.integers(1, size)))
    assert starts[0] == 0
    assert starts[-1] == n - size
    chosen = best_window(n, starts, size, causal=causal)

    def context(piece: int, start: int) -> int:
        left = n if start == 0 else piece - start
        right = n if start + size == n else start + size - 1 - piece
        return left if causal else min(left, right)

    for piece, window in enumerate(chosen.tolist()):
        holding = [w for w, s in enumerate(starts.tolist()) if s <= piece < s + size]
        assert window == max(holding, key=lambda w: (context(piece, int(starts[w])), -w))
