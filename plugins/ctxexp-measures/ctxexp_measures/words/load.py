"""The benchmarks' files in their publishers' formats, plain or .gz."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from ctxexp.datasets import read_table, text_lines, user_path
from ctxexp.errors import ConfigError, DataError, UnknownName
from ctxexp_measures.words.suite import Analogy, Benchmark, Categorisation, Relation, RelationalSimilarity, Similarity

T = TypeVar("T")
Lines = Iterator[tuple[int, str]]


@dataclass(frozen=True)
class BenchmarkFile:
    """File of a benchmark in the data folder, its publisher, and its reader."""

    title: str
    folder: str
    file: str
    origin: str
    read: Callable[[str, Path], Benchmark]


def load(data: str | Path | None, names: Sequence[str] | None = None) -> list[Benchmark]:
    """The named benchmarks (None: all nine) from the folder `data`, in the order of the table.

    Each lies in its own sub-folder or in `data` itself, under its publisher's name, plain or .gz. Raises ConfigError
    without a folder, UnknownName, and DataError where a file is missing (naming where it comes from) or malformed
    (naming the line).
    """
    for name in names or ():
        if name not in SOURCES:
            raise UnknownName("word benchmark", str(name), SOURCES)
    selection = [name for name in SOURCES if names is None or name in names]
    if not selection:
        return []
    if data is None:
        raise ConfigError(
            "the word benchmarks need a folder of their files: data=<folder>, in a run "
            "metric.static_vectors.data=<folder>; it holds "
            + ", ".join(f"{SOURCES[name].folder}/{SOURCES[name].file}" for name in selection)
            + "; or choose some with benchmarks=[...], [] for none"
        )
    return [_load(user_path(data).resolve(), name) for name in selection]


@cache
def _load(data: Path, name: str) -> Benchmark:
    """The benchmark, read once in each process although every layer of a run needs it."""
    source = SOURCES[name]
    return source.read(name, _find(data, source))


def _find(data: Path, source: BenchmarkFile) -> Path:
    for folder in (data / source.folder, data):
        for name in (source.file, source.file + ".gz"):
            if (folder / name).exists():
                return folder / name
    raise DataError(
        f"{source.title}: neither {source.folder}/{source.file} nor {source.file} in {data} (nor .gz); "
        f"it comes from {source.origin}"
    )


def _lines(path: Path) -> Lines:
    """(number from 1, line) of a UTF-8 file, line ends and blanks at the end stripped, empty lines left out."""
    for number, line in text_lines(path):
        if line := line.rstrip():
            yield number, line


def _columns(a: int, b: int, gold: int, *, header: bool, separator: str | None) -> Callable[[str, Path], Similarity]:
    """A reader of word pairs and ratings in these columns of lines split at `separator` (None: white space).

    With `header` the first line is one, unless it has a rating: then a copy without header is read, whole.
    """

    def read(name: str, path: Path) -> Similarity:
        pairs, ratings = [], []
        for number, line in _lines(path):
            fields = line.split(separator)
            if header and number == 1 and not (len(fields) > gold and _is_number(fields[gold])):
                continue
            if len(fields) <= max(a, b, gold):
                raise _malformed(path, number, f"at least {max(a, b, gold) + 1} fields", line)
            pairs.append((fields[a].strip(), fields[b].strip()))
            ratings.append(_rating(path, number, fields[gold], line))
        return Similarity(name, tuple(_some(path, pairs)), tuple(ratings))

    return read


def _google(name: str, path: Path) -> Analogy:
    """Lines `: section`, then four words each."""
    section, questions, sections = "", [], []
    for number, line in _lines(path):
        if line.startswith(":"):
            section = line[1:].strip()
            continue
        words = line.split()
        if len(words) != 4:
            raise _malformed(path, number, "four words or `: section`", line)
        questions.append((words[0], words[1], words[2], words[3]))
        sections.append(section)
    return Analogy(name, tuple(_some(path, questions)), tuple(sections))


def _msr(name: str, path: Path) -> Analogy:
    questions, sections = [], []
    for _, cells in read_table(path, ("word1", "word2", "word3", "target", "type"), kind=".csv"):
        a, b, c, d, section = (cell.strip() for cell in cells)
        questions.append((a, b, c, d))
        sections.append(section)
    return Analogy(name, tuple(_some(path, questions)), tuple(sections))


def _classes(name: str, path: Path) -> Categorisation:
    """Word and class; rows without a word, which the files have after each class, are no items."""
    rows = [cells for _, cells in read_table(path, ("word", "category"), kind=".csv") if cells[0].strip()]
    words, classes = zip(*([cell.strip() for cell in row] for row in _some(path, rows)), strict=True)
    return Categorisation(name, words, classes)


def _semeval(name: str, path: Path) -> RelationalSimilarity:
    """The relations that have a file of ratings in GoldRatings/Testing; their prototypes are in `path`."""
    ratings = path.parent / "GoldRatings" / "Testing"
    files = {p.name.split("-")[-1].split(".")[0]: p for p in ratings.glob("GoldRatings-*.txt*")}
    relations = []
    for number, line in _lines(path):
        fields = line.split(",", 4)
        if len(fields) < 5:
            raise _malformed(path, number, "number, letter, class, subclass, a:b, c:d ...", line)
        key = fields[0].strip() + fields[1].strip()
        # The prototypes are not cleanly separated, and some have a blank after the colon.
        prototypes = tuple(re.findall(r"([\w'-]+):\s?([\w'-]+)", fields[4]))
        if not prototypes:
            raise _malformed(path, number, "prototype pairs a:b", line)
        if key in files:
            relations.append(_relation(f"{key} {fields[3].strip()}", files.pop(key), prototypes))
    if files:
        raise DataError(f"{path} has no prototypes of the rated relations {', '.join(sorted(files))}")
    if not relations:
        raise DataError(f"no GoldRatings-*.txt in {ratings}; expected the task's test relations")
    return RelationalSimilarity(name, tuple(relations))


def _relation(name: str, path: Path, prototypes: tuple[tuple[str, str], ...]) -> Relation:
    pairs, gold = [], []
    for number, line in _lines(path):
        if line.lstrip().startswith("#"):
            continue
        match = re.fullmatch(r'\s*(\S+)\s+"([^":]+):([^":]+)"', line)
        if match is None:
            raise _malformed(path, number, 'score "word1:word2"', line)
        gold.append(_rating(path, number, match[1], line))
        pairs.append((match[2].strip(), match[3].strip()))
    return Relation(name, prototypes, tuple(_some(path, pairs)), tuple(gold))


def _rating(path: Path, number: int, text: str, line: str) -> float:
    if not _is_number(text):
        raise _malformed(path, number, f"a number in place of {text!r}", line)
    return float(text)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _some(path: Path, items: list[T]) -> list[T]:
    if not items:
        raise DataError(f"{path} has no item of the benchmark")
    return items


def _malformed(path: Path, number: int, expected: str, line: str) -> DataError:
    return DataError(f"{path}, line {number}: expected {expected}, got {line[:60]!r}")


_WORD_BENCHMARKS = "github.com/vecto-ai/word-benchmarks (the CSV version)"
SOURCES: dict[str, BenchmarkFile] = {
    "simlex999": BenchmarkFile(
        "SimLex-999 (Hill et al. 2015)", "simlex999", "SimLex-999.txt", "fh295.github.io/simlex.html",
        _columns(0, 1, 3, header=True, separator="\t"),
    ),
    "men": BenchmarkFile(
        "MEN (Bruni et al. 2014)", "men", "MEN_dataset_natural_form_full", "staff.fnwi.uva.nl/e.bruni/MEN",
        _columns(0, 1, 2, header=False, separator=None),
    ),
    "ws353": BenchmarkFile(
        "WordSim-353 (Finkelstein et al. 2002)", "wordsim353", "combined.tab",
        "gabrilovich.com/resources/data/wordsim353", _columns(0, 1, 2, header=True, separator="\t"),
    ),
    "rw": BenchmarkFile(
        "Rare Words (Luong et al. 2013)", "rw", "rw.txt", "nlp.stanford.edu/~lmthang/morphoNLM",
        _columns(0, 1, 2, header=False, separator="\t"),
    ),
    "google": BenchmarkFile(
        "Google analogies (Mikolov et al. 2013)", "google-analogies", "questions-words.txt",
        "word2vec's distribution, code.google.com/archive/p/word2vec", _google,
    ),
    "msr": BenchmarkFile(
        "MSR analogies (Mikolov, Yih and Zweig 2013)", "msr-analogies", "msr.csv", _WORD_BENCHMARKS, _msr,
    ),
    "semeval2012": BenchmarkFile(
        "SemEval-2012 Task 2 (Jurgens et al. 2012)", "semeval2012-task2", "subcategories-paradigms.txt",
        "sites.google.com/site/semeval2012task2 (with its folder GoldRatings)", _semeval,
    ),
    "bless": BenchmarkFile("BLESS (Baroni and Lenci 2011)", "bless", "bless.csv", _WORD_BENCHMARKS, _classes),
    "ap": BenchmarkFile("AP (Almuhareb 2006)", "ap", "ap.csv", _WORD_BENCHMARKS, _classes),
}  # fmt: skip
"""Name -> source, in the order of Ethayarajh 2019's Table 1."""
