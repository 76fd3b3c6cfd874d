"""The text that a transform is fitted on: the measured one, another split of its data set, or any sentences."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from ctxexp.command.config import Node, build
from ctxexp.dataset import Corpus, Sentence, deduplicated
from ctxexp.datasets.words import tokenizer as make_tokenizer
from ctxexp.errors import ConfigError, DataError
from ctxexp.files.paths import user_path
from ctxexp.files.text_lines import text_lines
from ctxexp.plugins import Registry, arguments

FIELDS = (("sentence1", "sentence2"), ("premise", "hypothesis"))  # of .jsonl objects and .tsv headers
SUFFIXES = (".jsonl", ".tsv", ".txt")  # of a folder's files those of the first kind that is there are read


def fits(config: Node, registry: Registry) -> bool:
    """Whether the run's transform is fitted at all: `none` and `rank` aren't."""
    with registry.credit("transform", config["transform"]["name"]):
        transform = build("transform", config["transform"], registry)
        return not getattr(transform, "identity", False) and bool(getattr(transform, "fitted", True))


def check_text(config: Node, registry: Registry) -> None:
    """Raise ConfigError or DataError for a `fit_on` that the run can't have: a data set without splits, no file."""
    fit_on, node = config["fit_on"], config["dataset"]
    if fit_on == "target" or not fits(config, registry):
        return
    if fit_on.startswith("nli:"):
        files_of(fit_on.removeprefix("nli:"))
        return
    known = arguments(registry.find("dataset", node["name"]).factory)
    if known is None or "split" not in known:
        raise ConfigError(
            f"fit_on={fit_on}: dataset {node['name']!r} has no splits; use fit_on=target (the measured text itself), "
            "or fit_on=nli:<path> with a file of sentences"
        )


def load_text(config: Node, registry: Registry, load: Callable[[Node, Registry], Corpus]) -> Corpus | None:
    """The text that the transform is fitted on, each sentence once; None where that is the measured text itself or
    nothing is fitted.

    `load` loads a config's data set. Raises ConfigError for a data set without splits, DataError for a file that isn't
    there or is of no known form.
    """
    check_text(config, registry)
    fit_on, node = config["fit_on"], config["dataset"]
    if fit_on == "target" or not fits(config, registry):
        return None
    if fit_on.startswith("nli:"):
        words = config["words"]
        return deduplicated(sentences_of(fit_on.removeprefix("nli:"), words["tokenizer"], lower=words["lower"]))
    known = arguments(registry.find("dataset", node["name"]).factory) or {}
    if node.get("split", known["split"][1]) == fit_on:
        return None
    return deduplicated(load({**config, "dataset": {**node, "split": fit_on}}, registry))


def overlap(text: Corpus, corpus: Corpus) -> float:
    """The share of the corpus's distinct sentences that are in the text, in [0, 1]."""
    measured = {sentence.text for sentence in corpus.sentences}
    return len(measured & {sentence.text for sentence in text.sentences}) / len(measured)


def sentences_of(path: str, tokenizer: str, *, lower: bool = False) -> Corpus:
    """The sentences of a file or folder: a sentence a line (.txt), or pairs as SNLI and MultiNLI have them (.jsonl;
    .tsv or .txt with their header), first and second sentence of each, labels unused; any of them .gz.

    Of a folder the .jsonl files are read if it has any, else .tsv, else .txt. Raises DataError naming file and line.
    """
    place, files = user_path(path), files_of(path)
    tokenize = make_tokenizer(tokenizer, lower=lower)
    known: dict[str, Sentence] = {}
    for file in files:
        for text in _read(file):
            if text and text not in known:
                known[text] = tokenize(text)
    if not known:
        raise DataError(f"{place} has no sentence (fit_on=nli:{path})")
    return Corpus(place.name, tuple(known.values()), choices={"tokenizer": tokenizer, "lower": str(lower).lower()})


def files_of(path: str) -> list[Path]:
    """The file, or of a folder those of its first kind that is there. Raises DataError if there is none."""
    place = user_path(path)
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise DataError(f"no such file or folder: {place} (fit_on=nli:{path})")
    kinds = [[f for f in sorted(place.iterdir()) if f.name.removesuffix(".gz").endswith(s)] for s in SUFFIXES]
    files = next((found for found in kinds if found), [])
    if not files:
        raise DataError(f"no {', '.join(SUFFIXES)} file in {place} (fit_on=nli:{path})")
    return files


def _read(file: Path) -> Iterator[str]:
    lines = [line for _, line in text_lines(file)]
    if file.name.removesuffix(".gz").endswith(".jsonl"):
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield from _object(file, number, line)
        return
    head = lines[0].split("\t") if lines else []
    fields = next((pair for pair in FIELDS if set(pair) <= set(head)), None)
    if fields is None:
        if file.name.removesuffix(".gz").endswith(".tsv"):
            raise DataError(
                f"{file}: its first line names no columns sentence1 and sentence2 (or premise and hypothesis); rename "
                "it to .txt if it holds a sentence a line"
            )
        yield from (line.strip() for line in lines)
        return
    columns = [head.index(name) for name in fields]
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split("\t")
        if not line.strip():
            continue
        if len(cells) <= max(columns):
            raise DataError(f"{file}, line {number}: {len(cells)} tab-separated fields; expected {max(columns) + 1}")
        yield from (cells[column].strip() for column in columns)


def _object(file: Path, number: int, line: str) -> Iterator[str]:
    try:
        held = json.loads(line)
        pair = next(fields for fields in FIELDS if all(isinstance(held.get(name), str) for name in fields))
    except (ValueError, AttributeError, StopIteration):
        raise DataError(
            f"{file}, line {number}: expected an object with texts sentence1 and sentence2 (or premise and hypothesis)"
        ) from None
    yield from (held[name].strip() for name in pair)
