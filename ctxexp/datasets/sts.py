"""The seven data sets of semantic textual similarity as one: STS 2012-2016, the STS benchmark, SICK, each a task."""

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
    `split`: test; train, which only STS12, STS-B and SICK-R have (the others are left out); all of it. With
    `split=test`, `stsb_split` and `sick_split` say which pairs of STS-B and SICK-R are taken: SICK-R has 4,927 test
    pairs (SentEval), and all 9,927 are often evaluated on (MTEB). Raises UnknownName (tasks), ConfigError (nothing
    left), DataError (files).
    """
    names = list(TASKS) if tasks is None else list(dict.fromkeys(tasks))
    if not names:
        raise ConfigError(f"dataset.tasks=[]: expected some of {', '.join(TASKS)}; leave it null for all of them")
    task_names = dict.fromkeys(task.split("/")[0] for task in names)
    for task in task_names:
        if task not in TASKS:
            raise UnknownName("STS task", task, TASKS)
    if split != "train" and split != "all" and split != "test":
        raise ConfigError(f"dataset.split={split!r}: expected one of test, train, all")
    years = [year for year in YEARS if f"STS{year - 2000}" in task_names]
    if split == "train":
        years = [year for year in years if year == 2012]
    parts: list[Corpus] = []
    if years:
        parts.append(sts_2012_2016(path=path, years=years, split=split, tokenizer=tokenizer, lower=lower))
    if "STS-B" in task_names:
        own_split = split if split != "test" else stsb_split
        parts.append(sts_b(path=path, split=own_split, tokenizer=tokenizer, lower=lower))
    if "SICK-R" in task_names:
        own_split = split if split != "test" else sick_split
        parts.append(sick_r(path=path, split=own_split, tokenizer=tokenizer, lower=lower))
    if not parts:
        raise ConfigError(
            f"dataset.split=train with dataset.tasks=[{', '.join(names)}]: only STS12, STS-B and SICK-R have training "
            "pairs"
        )
    choices = {
        "tasks": ",".join(names),
        "split": split,
        **({"stsb_split": stsb_split, "sick_split": sick_split} if split == "test" else {}),
        "tokenizer": tokenizer,
        "lower": str(lower).lower(),
    }
    return _join(parts, names, choices)


def _join(parts: Sequence[Corpus], names: Sequence[str], choices: dict[str, str]) -> Corpus:
    """One corpus of the parts' pairs in these tasks or sub-sets; sentences of other pairs are left out."""
    subsets = dict.fromkeys(_name_for_users(pair) for part in parts for pair in part.pairs)
    for name in names:
        if "/" in name and name not in subsets:
            raise UnknownName("STS sub-set", name, subsets)
    sentences: list[Sentence] = []
    pairs: list[Pair] = []
    for part in parts:
        for pair in part.pairs:
            if _name_for_users(pair) in names or _name_for_users(pair).split("/")[0] in names:
                pairs.append(Pair(len(sentences), len(sentences) + 1, pair.gold, pair.subset))
                sentences += [part.sentences[pair.first], part.sentences[pair.second]]
    return Corpus("sts", tuple(sentences), tuple(pairs), choices=choices)


def _name_for_users(pair: Pair) -> str:
    """The sub-set's name as users give it, without the `-train` by which results tell STS12's training pairs apart."""
    return pair.subset.replace("-train/", "/")
