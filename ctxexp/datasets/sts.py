"""The data sets of semantic textual similarity, as SemEval published them: STS 2012-2016, the STS benchmark and SICK,
each alone, or all seven tasks as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from ctxexp.dataset import Corpus, Pair, Sentence
from ctxexp.datasets.downloads import fetch_semeval
from ctxexp.datasets.reading import text_lines
from ctxexp.datasets.tables import read_table
from ctxexp.datasets.words import tokenizer as make_tokenizer
from ctxexp.errors import ConfigError, DataError, UnknownName
from ctxexp.files import user_path

Scored = tuple[str, str, float, str]  # first sentence, second sentence, gold score, subset
YEARS = {
    2012: ("STS2012-test", 5),
    2013: ("STS2013-test", 3),
    2014: ("STS2014-test", 6),
    2015: ("STS2015-test", 5),
    2016: ("STS2016-test", 5),
}
TASKS = (*(f"STS{year - 2000}" for year in YEARS), "STS-B", "SICK-R")
TRAIN_2012 = ("STS2012-train", 3)
BENCHMARK = {"train": "sts-train.csv", "dev": "sts-dev.csv", "test": "sts-test.csv"}
SICK = {"train": "SICK_train.txt", "trial": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}
SICK_COLUMNS = ("sentence_A", "sentence_B", "relatedness_score")


def sts(
    *,
    path: str | None = None,
    tasks: list[str] | None = None,
    split: Literal["test", "train", "all"] = "test",
    sick_split: Literal["test", "all"] = "test",
    tokenizer: str = "english",
    lower: bool = False,
) -> Corpus:
    """The sentence pairs of STS12 to STS16, STS-B and SICK-R, each pair's sub-set named after its task.

    `path` is the folder that holds STS2012-test ... STS2016-test, STSbenchmark and SICK; without it they are
    downloaded to the user's cache. `tasks`: some of the seven only, or single sub-sets such as STS12/MSRpar.
    `split`: test; train, which only STS12, STS-B and SICK-R have (the others are left out); all of it.
    `sick_split`, with `split=test`: SICK-R has 4,927 test pairs (SentEval), and all 9,927 are often evaluated on
    (MTEB). Raises UnknownName (tasks), ConfigError (nothing
    left), DataError (files).

    path: the folder of STS2012-test ... STS2016-test, STSbenchmark and SICK; null: download
    tasks: null: all seven, or a list such as [STS12,STS-B,SICK-R,STS14/images]
    split: test, train (STS12, STS-B, SICK-R), all
    sick_split: of SICK-R the same: test (4,927 pairs), all (9,927)
    """
    names = list(TASKS) if tasks is None else list(dict.fromkeys(tasks))
    if not names:
        raise ConfigError(f"dataset.tasks=[]: expected some of {', '.join(TASKS)}; leave it null for all of them")
    task_names = dict.fromkeys(task.split("/")[0] for task in names)
    for task in task_names:
        if task not in TASKS:
            raise UnknownName("STS task", task, TASKS)
    years = [year for year in YEARS if f"STS{year - 2000}" in task_names]
    if split == "train":
        years = [year for year in years if year == 2012]
    scored: list[Scored] = []
    if years:
        scored += _read_years(path, years, split)
    if "STS-B" in task_names:
        scored += _read_benchmark(path, split)
    if "SICK-R" in task_names:
        scored += _read_sick(path, split if split != "test" else sick_split)
    if not scored:
        raise ConfigError(
            f"dataset.split=train with dataset.tasks=[{', '.join(names)}]: only STS12, STS-B and SICK-R have training "
            "pairs"
        )
    # as users name sub-sets: without the `-train` by which results tell STS12's training pairs apart
    name_of = {subset: subset.replace("-train/", "/") for _, _, _, subset in scored}
    for name in names:
        if "/" in name and name not in name_of.values():
            raise UnknownName("STS sub-set", name, name_of.values())
    wanted = {subset for subset, name in name_of.items() if {name, name.split("/")[0]} & {*names}}
    choices = {"tasks": ",".join(names), "split": split}
    if split == "test":
        choices["sick_split"] = sick_split
    return _corpus("sts", [one for one in scored if one[3] in wanted], tokenizer, lower, choices)


def sts_2012_2016(
    *,
    path: str | None = None,
    split: Literal["test", "train", "all"] = "test",
    tokenizer: str = "english",
    lower: bool = False,
) -> Corpus:
    """STS 2012-2016 (SemEval): the scored pairs of every test set, both sentences; the paper's data.

    `path` is the folder that holds STS2012-test ... STS2016-test; without it the files are downloaded to the user's
    cache. `split` is test, train (2012 alone has training pairs) or all; single years are `sts` with `tasks`. 2013
    lacks its SMT sub-set, which its owners don't redistribute. Raises DataError (a missing or malformed file, named).

    path: the folder of STS2012-test ... STS2016-test; null: download
    split: test, train (the training pairs of 2012), all
    """
    return _corpus("sts_2012_2016", _read_years(path, list(YEARS), split), tokenizer, lower, {"split": split})


def _read_years(path: str | None, years: Sequence[int], split: str) -> list[Scored]:
    train = split == "train" or (split == "all" and 2012 in years)
    tested = [] if split == "train" else years
    parts = [(f"STS{y - 2000}", *YEARS[y]) for y in tested] + [("STS12-train", *TRAIN_2012)] * train
    folder = _folder(path, "sts_2012_2016", [name for _, name, _ in parts])
    return [pair for label, name, n_subsets in parts for pair in _year(folder / name, label, n_subsets)]


def sts_b(
    *,
    path: str | None = None,
    split: Literal["train", "dev", "test", "all"] = "test",
    tokenizer: str = "english",
    lower: bool = False,
) -> Corpus:
    """The STS benchmark: sentence pairs scored 0 to 5; `split` is train, dev, test or all.

    `path` is the folder of sts-train.csv, sts-dev.csv and sts-test.csv (tab-separated, whatever their name says), or
    its parent; without it the files are downloaded to the user's cache.

    path: the folder of the original files; null: download
    split: one split, or all
    """
    return _corpus("sts_b", _read_benchmark(path, split), tokenizer, lower, {"split": split})


def _read_benchmark(path: str | None, split: str) -> list[Scored]:
    folder = _folder(path, "sts_b", ["STSbenchmark"]) / "STSbenchmark"
    pairs: list[Scored] = []
    for name in _splits(split, BENCHMARK):
        file, lines = _lines(folder, name)
        for number, line in lines:
            fields = line.split("\t")
            if len(fields) < 7:
                raise DataError(f"{file}, line {number}: {len(fields)} tab-separated fields; expected at least 7")
            pairs.append((fields[5].strip(), fields[6].strip(), _score(fields[4], f"{file}, line {number}"), "STS-B"))
    return pairs


def sick_r(
    *,
    path: str | None = None,
    split: Literal["train", "trial", "test", "all"] = "test",
    tokenizer: str = "english",
    lower: bool = False,
) -> Corpus:
    """SICK relatedness (SemEval-2014 Task 1 release): pairs scored 1 to 5; `split` is train, trial, test or all.

    `path` is the folder of SICK_train.txt, SICK_trial.txt and SICK_test_annotated.txt, or its parent.

    path: the folder of the original files; null: download
    split: one split, or all
    """
    return _corpus("sick_r", _read_sick(path, split), tokenizer, lower, {"split": split})


def _read_sick(path: str | None, split: str) -> list[Scored]:
    folder = _folder(path, "sick_r", ["SICK"]) / "SICK"
    pairs: list[Scored] = []
    for name in _splits(split, SICK):
        for where, (first, second, score) in read_table(_existing(folder, name), SICK_COLUMNS, "text", ".tsv"):
            pairs.append((first.strip(), second.strip(), _score(score, where), "SICK-R"))
    return pairs


def _year(folder: Path, label: str, n_subsets: int) -> Iterator[Scored]:
    inputs = sorted(p for p in folder.glob("*.input.*") if p.name.removesuffix(".gz").endswith(".txt"))
    if len(inputs) != n_subsets:
        names = ", ".join(p.name for p in inputs) or "none"
        raise DataError(f"{folder}: expected {n_subsets} files named *.input.<subset>.txt (or .gz), found {names}")
    for path in inputs:
        name = path.name.removesuffix(".gz")
        subset = name.split(".input.")[1].removesuffix(".txt")
        file, sentences = _lines(folder, name)
        gold_file, golds = _lines(folder, name.replace(".input.", ".gs."), keep_empty=True)
        sentence_lines, gold_lines = list(sentences), list(golds)
        if len(sentence_lines) != len(gold_lines):
            raise DataError(f"{file} has {len(sentence_lines)} lines but {gold_file} has {len(gold_lines)}")
        for (number, line), (_, gold) in zip(sentence_lines, gold_lines, strict=True):
            if not gold.strip():
                continue
            fields = line.split("\t")
            if len(fields) < 2:
                raise DataError(f"{file}, line {number}: no tab; expected two sentences separated by one")
            yield fields[0].strip(), fields[1].strip(), _score(gold, f"{gold_file}, line {number}"), f"{label}/{subset}"


def _existing(folder: Path, name: str) -> Path:
    """The file that exists, NAME or NAME.gz."""
    for file in (folder / name, folder / f"{name}.gz"):
        if file.is_file():
            return file
    raise DataError(f"no {name} or {name}.gz in {folder}; dataset.path should name the folder above it")


def _lines(folder: Path, name: str, keep_empty: bool = False) -> tuple[Path, Iterable[tuple[int, str]]]:
    """The file that exists, and its numbered lines."""
    file = _existing(folder, name)
    return file, [(number, line) for number, line in text_lines(file) if line or keep_empty]


def _score(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f"{where}: gold score {text!r} is not a number") from None


def _splits(split: str, files: dict[str, str]) -> list[str]:
    return list(files.values()) if split == "all" else [files[split]]


def _folder(path: str | None, dataset: str, parts: list[str]) -> Path:
    """The folder that holds `parts`: the user's, its `sts` folder or its parent, or the download cache."""
    if path is None:
        return fetch_semeval(dataset)
    root = user_path(path)
    if not root.is_dir():
        raise DataError(f"no folder {root} (dataset.path)")
    for folder in (root, root / "sts", root.parent):
        if all((folder / part).is_dir() for part in parts):
            return folder
    raise DataError(f"{root} (dataset.path) should hold the folders {', '.join(dict.fromkeys(parts))}")


def _corpus(name: str, scored: list[Scored], tokenizer: str, lower: bool, choices: dict[str, str]) -> Corpus:
    """Both sentences of each pair, flattened; an equal sentence elsewhere stays a sentence of its own here."""
    tokenize = make_tokenizer(tokenizer, lower=lower)
    sentence_by_text: dict[str, Sentence] = {}
    sentences: list[Sentence] = []
    pairs: list[Pair] = []
    for first, second, gold, subset in scored:
        pairs.append(Pair(len(sentences), len(sentences) + 1, gold, subset))
        for text in (first, second):
            if text not in sentence_by_text:
                sentence_by_text[text] = tokenize(text)
            sentences.append(sentence_by_text[text])
    named = {**choices, "tokenizer": tokenizer, "lower": str(lower).lower()}
    return Corpus(name, tuple(sentences), tuple(pairs), choices=named)
