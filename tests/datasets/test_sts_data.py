"""Data sets of gold pairs: the seven of sentence similarity at once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ctxexp.errors import ConfigError, UnknownName
from tests.shipped import sts


def test_the_seven_sets_are_tasks_with_the_published_pair_counts(shared: Path) -> None:
    folder = str(shared / "data" / "sts")
    corpus = sts(path=folder, tokenizer="whitespace")
    counts = Counter(p.subset.split("/")[0] for p in corpus.pairs)
    years = {"STS12": 3108, "STS13": 1500, "STS14": 3750, "STS15": 3000, "STS16": 1186}
    assert counts == {**years, "STS-B": 1379, "SICK-R": 4927}
    # an independent count of the same pairs (MTEB's statistics)
    assert sum(p.gold for p in corpus.pairs if p.subset.startswith("STS15")) / 3000 == pytest.approx(2.40591, abs=1e-5)
    assert not any("\t" in s.text for s in corpus.sentences)
    sick = sts(path=folder, tasks=["SICK-R"], sick_split="all", tokenizer="whitespace").pairs
    assert (len(sick), sum(p.gold for p in sick) / 9927) == (9927, pytest.approx(3.52915, abs=1e-5))
    assert len(sts(path=folder, tasks=["STS-B"], split="train", tokenizer="whitespace").pairs) == 5749
    assert len(sts(path=folder, tasks=["STS12"], split="all", tokenizer="whitespace").pairs) == 3108 + 2234
    train = sts(path=folder, split="train", sick_split="all", tokenizer="whitespace")
    counts = Counter(p.subset.split("/")[0] for p in train.pairs)
    assert counts == {"STS12-train": 2234, "STS-B": 5749, "SICK-R": 4500}
    assert {p.subset for p in sts(path=folder, split="train", tasks=["STS12/MSRvid"]).pairs} == {"STS12-train/MSRvid"}


def test_unknown_tasks_and_sub_sets_are_refused_with_their_neighbours(shared: Path) -> None:
    folder = str(shared / "data" / "sts")
    for tasks, split, message in (
        (["STSB"], "test", r"no STS task 'STSB'; did you mean 'STS-B'.*\?"),
        (["STS14/image", "STS-B"], "test", r"no STS sub-set 'STS14/image'; did you mean 'STS14/images'"),
        ([], "test", r"dataset\.tasks=\[\]: expected some of STS12, .*leave it null for all"),
        (["STS13"], "train", "only STS12, STS-B and SICK-R have training pairs"),
    ):
        with pytest.raises((ConfigError, UnknownName), match=message):
            sts(path=folder, tasks=tasks, split=split)
