"""The bench of peers: what is installed has a ratio, what isn't says why."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks import peers
from ctxexp import Sentence
from tests.shipped import mini

SENTENCES = [Sentence.of(text.split()) for text in ("a bank of the river", "the bank lent money", "the river was wet")]


def rows_of(name: str, make: Callable[[], peers.Task], own: peers.Task) -> list[str]:
    return peers.row("work", name, "what", make, own, 3)


def test_a_ratio_is_theirs_over_ours() -> None:
    def loop(n: int) -> peers.Task:
        return lambda: sum(i * i for i in range(n))

    _, _, _, ratio, spread = rows_of("slower", lambda: loop(400_000), loop(100_000))
    assert 2 < float(ratio) < 8
    low, high = map(float, spread.split(" to "))
    assert low <= float(ratio) <= high


def test_a_peer_that_fails_is_skipped_with_its_reason() -> None:
    def missing() -> peers.Task:
        raise ImportError("no such name in 'transformers' (/home/me/transformers/__init__.py)")

    expected = ["skipped: ImportError: no such name in 'transformers'", ""]
    assert rows_of("flair", missing, lambda: None)[3:] == expected


@pytest.mark.parametrize("name", ["transformers pipeline", "kawine/contextual's way", "faiss-cpu"])
def test_each_peer_that_is_here_runs(name: str) -> None:
    if name == "faiss-cpu" and find_spec("faiss") is None:
        pytest.skip("needs faiss-cpu")
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(n, 8)).astype(np.float32) for n in (5, 9, 12)]
    found = {peer: make for _, peer, _, make in peers.peers(str(mini("bert")), SENTENCES, rows)}
    result = found[name]()()
    if name == "transformers pipeline":
        assert [np.shape(one)[-1] for one in result] == [192] * 3  # type: ignore[attr-defined]
    elif name == "faiss-cpu":
        assert result[1].shape == (26, 11)  # type: ignore[index]
        assert (result[1][:, 0] == np.arange(26)).all()  # type: ignore[index]  # itself first
    else:
        assert len(result) == 3  # type: ignore[arg-type]
        assert all(-1 <= value <= 1 for value in result)  # type: ignore[attr-defined]


def test_ours_is_measured_on_the_same_rows() -> None:
    encoder = peers.our_encoder(str(mini("bert")))
    rows = [np.random.default_rng(0).normal(size=(n, 8)).astype(np.float32) for n in (5, 9, 12)]
    ours = peers.our_tasks(encoder, SENTENCES, rows)
    assert set(ours) == {"sentence vectors", "word vectors", "self-similarity", "neighbours"}
    assert [one.layers.shape[0] for one in ours["word vectors"]()] == [5] * 3  # type: ignore[attr-defined]
    direct = [np.mean([peers.naive.cosine(x[i], x[j]) for i in range(len(x)) for j in range(i)]) for x in rows]
    assert ours["self-similarity"]() == pytest.approx(direct, abs=1e-6)
