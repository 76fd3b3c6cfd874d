"""The seven sets of sentence similarity at once: STS 2012-2016, the STS benchmark, SICK, each a task of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ctxexp.dataset import Corpus, Pair, Sentence
from ctxexp.datasets.semeval import YEARS, sick_r, sts_2012_2016, sts_b
from ctxexp.errors import ConfigError, UnknownName

TASKS = (*(f"STS{year - 2000}" for year in YEARS), "STS-B", "SICK-R")


def sts(
    *,
    path: str | None = None,
    tasks: list[str] | None = None,
    split: Literal["test", "train", "all"] = "test",
    stsb_split: Literal["test", "dev", "train", "all"] = "test",
    sick_split: Literal["test", "all"] = "test",
    tokenizer: str = "english",
    lower: bool = False,
) -> Corpus:
    """The sentence pairs of STS12 to STS16, STS-B and SICK-R, each pair's sub-set named after its task.

    `path` is the folder that holds STS2012-test ... STS2016-test, STSbenchmark and SICK; without it they are
    downloaded to the user's cache. `tasks`: some of the seven only, or single sub-sets such as STS12/MSRpar.
    `split`: test; train, which only STS12, STS-B and SICK-R have (the others are left out); all of it. For the test
    pairs `stsb_split` and `sick_split` say which count as such: SICK-R has 4,927 test pairs (SentEval), and all 9,927
    are often evaluated on (MTEB). Raises UnknownName (tasks), ConfigError (nothing left), DataError (files).
    """
    wanted = list(TASKS) if tasks is None else list(dict.fromkeys(tasks))
    if not wanted:
        raise ConfigError(f"dataset.tasks=[]: expected some of {', '.join(TASKS)}; leave it null for all of them")
    named = dict.fromkeys(task.split("/")[0] for task in wanted)
    for task in named:
        if task not in TASKS:
            raise UnknownName("STS task", task, TASKS)
    if split != "train" and split != "all" and split != "test":
        raise ConfigError(f"dataset.split={split!r}: expected one of test, train, all")
    years = [year for year in YEARS if f"STS{year - 2000}" in named]
    if split == "train":
        years = [year for year in years if year == 2012]
    parts: list[Corpus] = []
    if years:
        parts.append(sts_2012_2016(path=path, years=years, split=split, tokenizer=tokenizer, lower=lower))
    if "STS-B" in named:
        chosen = split if split != "test" else stsb_split
        parts.append(sts_b(path=path, split=chosen, tokenizer=tokenizer, lower=lower))
    if "SICK-R" in named:
        chosen = split if split != "test" else sick_split
        parts.append(sick_r(path=path, split=chosen, tokenizer=tokenizer, lower=lower))
    if not parts:
        raise ConfigError(
            f"dataset.split=train with dataset.tasks=[{', '.join(wanted)}]: only STS12, STS-B and SICK-R have training "
            "pairs"
        )
    choices = {
        "tasks": ",".join(wanted),
        "split": split,
        **({"stsb_split": stsb_split, "sick_split": sick_split} if split == "test" else {}),
        "tokenizer": tokenizer,
        "lower": str(lower).lower(),
    }
    return _joined(parts, wanted, choices)


def _joined(parts: Sequence[Corpus], wanted: Sequence[str], choices: dict[str, str]) -> Corpus:
    """One corpus of the parts' pairs that are wanted; sentences of no such pair are left out."""
    found = dict.fromkeys(_public(pair) for part in parts for pair in part.pairs)
    for name in wanted:
        if "/" in name and name not in found:
            raise UnknownName("STS sub-set", name, found)
    sentences: list[Sentence] = []
    pairs: list[Pair] = []
    for part in parts:
        for pair in part.pairs:
            if _public(pair) in wanted or _public(pair).split("/")[0] in wanted:
                pairs.append(Pair(len(sentences), len(sentences) + 1, pair.gold, pair.subset))
                sentences += [part.sentences[pair.first], part.sentences[pair.second]]
    return Corpus("sts", tuple(sentences), tuple(pairs), choices=choices)


def _public(pair: Pair) -> str:
    """The sub-set as users name it: the training pairs of STS12 are a task of their own in results only."""
    return pair.subset.replace("-train/", "/")
