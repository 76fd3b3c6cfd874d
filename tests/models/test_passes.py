"""Words and sentence vectors of a batch by one pass of the model: the same to the bit, and nothing stays behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ctxexp import Encoder, Sentence
from tests import tiny_models

TEXT = [
    Sentence.of(words.split())
    for words in ("the quick brown fox jumps", "over the lazy dog again", "the dog", "the quick", "over a fox")
]


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of the pieces that models read."""
    from ctxexp.models.transformer.facts import ForwardPass

    shapes: list[tuple[int, ...]] = []
    plain: Callable[..., Any] = ForwardPass.__call__

    def counted(self: ForwardPass, ids: Any) -> Any:
        shapes.append(tuple(ids.shape))
        return plain(self, ids)

    monkeypatch.setattr(ForwardPass, "__call__", counted)
    return shapes


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("bert", {}),
        ("gpt2", {"final_norm": False}),
        ("llama", {"layers": (1, 2)}),
        ("gpt2", {"point": "mlp"}),
    ],
)
def test_a_batch_is_read_once_for_both(
    kind: str, options: dict[str, Any], folder: Any, passes: list[tuple[int, ...]]
) -> None:
    encoder = tiny_models.encoder(folder(kind), **options)
    view = encoder.sentence_encoder()
    passes.clear()
    plain = vectors(encoder), vectors(view)
    twice = sorted(passes)
    passes.clear()
    with encoder.shared_passes():
        words, pooled = vectors(encoder), vectors(view)
    assert twice == sorted(passes * 2)
    for one, other in zip(plain, (words, pooled), strict=True):
        assert all(map(np.array_equal, one, other))
    passes.clear()
    vectors(encoder)
    vectors(view)
    assert sorted(passes) == twice  # nothing is shared any more


def vectors(encoder: Encoder, sentences: Any = TEXT) -> list[np.ndarray]:
    return [one.layers for one in encoder.encode(sentences)]
