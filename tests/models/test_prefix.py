"""`model.prefix`: what stands before each text enters the model, and no number comes from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ctxexp import Sentence
from ctxexp.errors import ConfigError, ModelError
from ctxexp.model import TextStart
from ctxexp.models.lazy_encoder import LazyEncoder
from tests import tiny_models
from tests.tiny_models import Folder, encoder

SENTENCES = [
    Sentence.of(text.split())
    for text in ("the bank by the river", "naïve owners , running", "the", "she deposited the money", "the dog")
]
OWN = {"gpt2": 0, "llama": 1, "bert": 1}  # special pieces that the tokenizer puts in front


def ids_of(tokenizer: Any, prefix: str, text: str) -> tuple[list[int], list[tuple[int, int]]]:
    """The ids that transformers is to read, and the characters of each, put together by hand; (0, 0) for what isn't the
    text's."""
    read = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
    special = read["special_tokens_mask"]
    n = special.index(0)
    front, ids = read["input_ids"][:n], read["input_ids"][n:]
    spans = [(0, 0) if s else tuple(span) for span, s in zip(read["offset_mapping"][n:], special[n:], strict=True)]
    if prefix == "none":
        front = []
    elif prefix == "bos":
        start = tokenizer.bos_token_id if tokenizer.bos_token else tokenizer.cls_token_id
        front = front if front[:1] == [start] else [start, *front]
    elif prefix != "as_tokenizer":
        front = front + tokenizer(prefix, add_special_tokens=False)["input_ids"]
    return front + ids, [(0, 0)] * len(front) + spans


@pytest.mark.parametrize("prefix", ["none", "bos", "the dog"])
@pytest.mark.parametrize("kind", OWN)
def test_vectors_equal_those_of_the_joined_ids(tiny_model: Folder, kind: str, prefix: str) -> None:
    tokenizer, model = tiny_models.plain(tiny_model(kind))
    plain, made = encoder(tiny_model(kind)), encoder(tiny_model(kind), prefix=prefix)
    assert made.causal is (kind != "bert")  # of its first word a prefix tells nothing
    moved = 0.0
    for sentence, encoded, before in zip(SENTENCES, made.encode(SENTENCES), plain.encode(SENTENCES), strict=True):
        ids, spans = ids_of(tokenizer, prefix, sentence.text)
        with torch.no_grad():
            out = model(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states
        states = torch.stack(out)[:, 0].numpy()
        assert encoded.units == before.units == sentence.words  # nothing of the prefix has a vector
        for k, (start, end) in enumerate(sentence.spans):
            rows = [
                i for i, (a, b) in enumerate(spans)
                if max(a, start) < min(b, end) and tokenizer.convert_ids_to_tokens(ids[i]) != "▁"  # a space
            ]  # fmt: skip
            expected = states[:, rows].astype(np.float64).mean(1)
            np.testing.assert_allclose(encoded.layers[:, k], expected, atol=2e-6, rtol=2e-6)
        moved = max(moved, float(np.abs(encoded.layers - before.layers).max()))
    same = OWN[kind] == (prefix == "bos") and prefix in ("bos", "none")
    assert (made.name == plain.name) == same  # one name, and so one cache entry, exactly where vectors are the same
    assert (moved < 1e-5) == same


STARTS = [
    ("gpt2", "none", TextStart((), "tokenizer"), "the text's own first piece (the tokenizer adds nothing before it)"),
    ("gpt2", "bos", TextStart(("<s>",), "prefix"), "<s> (model.prefix adds it, not the tokenizer; never measured)"),
    ("llama", "as_tokenizer", TextStart(("<s>",), "tokenizer"), "<s> (the tokenizer adds it)"),
    ("llama", "none", TextStart((), "prefix"), "the text's own first piece (model.prefix=none)"),
    ("bert", ".", TextStart(("[CLS]", "."), "both"), "[CLS] . (the tokenizer's own, then model.prefix; never"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "prefix", "start", "said"), STARTS)
def test_what_stands_first_is_named_with_its_source(
    tiny_model: Folder, kind: str, prefix: str, start: TextStart, said: str
) -> None:
    made = encoder(tiny_model(kind), prefix=prefix)
    assert made.start == start
    assert str(start).startswith(said)
    assert made.details["start"] == str(start)
    again = encoder(tiny_model(kind), prefix=prefix)
    assert isinstance(again, LazyEncoder)  # its description is read back
    assert (again.start, again.causal) == (made.start, made.causal)


def test_counts_are_of_the_text_alone(tiny_model: Folder) -> None:
    plain, made = encoder(tiny_model("gpt2")), encoder(tiny_model("gpt2"), prefix="the dog")
    n = len(made.reader.backend.encode("the dog", add_special_tokens=False).ids)
    assert made.lengths(SENTENCES) == [length + n for length in plain.lengths(SENTENCES)]  # they cost time
    assert made.count_unknown(SENTENCES) == plain.count_unknown(SENTENCES)
    for a, b in zip(made.token_spans(SENTENCES), plain.token_spans(SENTENCES), strict=True):
        assert np.array_equal(a, b + np.array([n, 0]))
    for a, b in zip(made.tables(SENTENCES), plain.tables(SENTENCES), strict=True):
        assert np.array_equal(a.counts, b.counts)


@pytest.mark.parametrize(
    ("kind", "prefix", "poolings"),
    [
        ("gpt2", "bos", "mean mean_text last"),
        ("llama", "as_tokenizer", "mean mean_text cls last"),
        ("llama", ".", "mean mean_text cls last"),
        ("bert", ".", "mean mean_text cls last pooler"),
    ],
)
def test_no_sentence_vector_has_a_part_of_it(tiny_model: Folder, kind: str, prefix: str, poolings: str) -> None:
    made = encoder(tiny_model(kind), prefix=prefix)
    view = made.sentence_encoder()
    assert list(view.poolings) == poolings.split()
    empty = Sentence.of([])
    for sentence, encoded in zip([*SENTENCES, empty], view.encode([*SENTENCES, empty]), strict=True):
        (read,) = made.reader([sentence])
        if len(read.ids) == made.reader.prefix.end - made.reader.prefix.begin:
            assert encoded.units == ()  # nothing but the prefix
            continue
        with torch.no_grad():
            ids = torch.from_numpy(read.ids[None].astype(np.int64))
            states = torch.stack(made.model(input_ids=ids, output_hidden_states=True).hidden_states)[:, 0].numpy()
        own = made.reader.prefix
        kept = [i for i in range(len(read.ids)) if not own.begin <= i < own.end]
        expected = {"mean": states[:, kept].mean(1), "cls": states[:, 0], "last": states[:, -1]}
        if len(read.ids) > read.n_before + read.n_after:
            expected["mean_text"] = states[:, read.n_before : len(read.ids) - read.n_after].mean(1)
        for k, unit in enumerate(encoded.units):
            if unit in expected:
                np.testing.assert_allclose(encoded.layers[:, k], expected[unit], atol=2e-6, rtol=2e-6, err_msg=unit)
        assert set(expected) & set(view.poolings) <= set(encoded.units)


def test_what_can_t_stand_first_is_refused_with_a_reason(tiny_model: Folder) -> None:
    for kind, prefix, message in (
        ("t5", "bos", r"^model\.prefix=bos: the tokenizer of .* has neither a bos_token nor a cls_"),
        ("gpt2", "", r"^model\.prefix is empty: expected as_tokenizer, none, bos, or a text"),
        ("bert", "\u200b", r"model\.prefix='\\u200b': the tokenizer of .* makes no piece of it"),
        ("gpt2", "the " * 40, r"model\.prefix='the the .* \d+ pieces stand around each text, and .* reads 40 at"),
    ):
        with pytest.raises((ConfigError, ModelError), match=message):
            encoder(tiny_model(kind), prefix=prefix)
