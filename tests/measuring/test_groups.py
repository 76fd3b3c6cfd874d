"""Blocks of groups: parts of them, their rows one by one, and what groups of pairs must hold."""

from __future__ import annotations

import numpy as np

from ctxexp import Block

X = np.arange(24.0).reshape(3, 2, 4)
ROWS = np.array([[4, 5], [0, 9], [7, 2]])
LABELS = [("p", "q"), ("r", "s"), ("t", "u")]


def test_some_groups_of_a_block_keep_all_they_have() -> None:
    block = Block(["a", "b", "c"], X, ROWS, LABELS, eps=0.5)
    some = block.subset(np.array([0, 2]))
    np.testing.assert_array_equal(some.x, X[[0, 2]])
    assert some.rows is not None
    assert (some.keys, some.rows.tolist(), some.eps) == (["a", "c"], [[4, 5], [7, 2]], 0.5)
    assert [(group.key, group.labels) for group in some] == [("a", ("p", "q")), ("c", ("t", "u"))]
    bare = Block(["a", "b", "c"], X).subset(np.array([1]))
    assert (bare.rows, [group.labels for group in bare]) == (None, [()])
