"""Random streams of one seed: named, and none drawn from by two."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
from ctxexp_compare.measure import ComparisonStream

import ctxexp
from ctxexp.maths import Stream

SOURCES = Path(ctxexp.__file__).parent


def test_streams_are_told_apart() -> None:
    drawn = [np.random.default_rng([3, stream]).random(4) for stream in Stream]
    assert all(not np.isclose(a, b).any() for a, b in combinations(drawn, 2))
    assert 0 not in list(Stream)
    assert not {int(stream) for stream in Stream} & {int(stream) for stream in ComparisonStream}


def test_streams_are_named_wherever_a_seed_is_split() -> None:
    """No bare numbers: two files once drew from `[seed, 5]` without knowing of each other."""
    files = [*SOURCES.rglob("*.py"), *SOURCES.parent.glob("plugins/*/ctxexp_*/**/*.py")]
    split = re.compile(r"default_rng\(\[([^,\]]+),([^\]]*)\]")
    found = [(f.name, m[2].strip()) for f in files for m in split.finditer(f.read_text(encoding="utf-8"))]
    assert len(found) > 5
    assert [pair for pair in found if not pair[1].startswith(("Stream.", "ComparisonStream."))] == []
    named = [re.match(r"(Comparison)?Stream\.\w+", names) for _, names in found]
    ours = {f"Stream.{stream.name}" for stream in Stream}
    theirs = {f"ComparisonStream.{stream.name}" for stream in ComparisonStream}
    assert ours <= {m[0] for m in named if m} <= ours | theirs
