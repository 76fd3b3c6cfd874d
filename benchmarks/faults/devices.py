"""A pipe, a device, a socket, a folder or a link in a circle where a file should be: refused at once, never waited for,
or left aside where the file isn't needed."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from bounded import bounded

from ctxexp import CtxexpError, Results
from ctxexp.datasets import sts
from ctxexp.files import MANIFEST, seal_folder
from ctxexp.files.process import RUN, STATE, job_folder
from ctxexp.jobs import Sinks, finished_results, job, new_run
from ctxexp.models.vector_files import read_vectors
from ctxexp.models.word_vectors import word_vectors
from ctxexp.results.files import FRAME, REPLICATES, RESULTS_FILE

from . import Silent, weights
from .inputs import (
    Maker,
    Reader,
    Values,
    copy_of,
    differences,
    make_checkpoint,
    make_gguf,
    make_results,
    make_text,
    read_checkpoint,
    read_gguf,
    read_results,
    read_text,
)


class ReplaceableInput(NamedTuple):
    """A kind of input: what makes an intact one in a folder, what reads it, and its files; those in `spare` may be left
    aside, the values being the same."""

    make: Maker
    read: Reader
    files: tuple[str, ...]
    spare: tuple[str, ...] = ()


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every file of every kind of input in turn, replaced by each thing in turn of an order that is drawn."""
    files = [(kind, name) for kind, one in INPUTS.items() for name in (*one.files, *one.spare)]
    rng = np.random.default_rng(seed)
    order = [files[i] for i in rng.permutation(len(files))]
    for place in range(count):
        kind, name = order[place % len(order)]
        how = list(THINGS)[(place // len(order) + int(np.random.default_rng([seed, place]).integers(9))) % len(THINGS)]
        yield (
            f"{kind}: {name} is {how}",
            lambda kind=kind, name=name, how=how, own=folder / str(place): tried(kind, name, how, own),
        )


def tried(kind: str, name: str, how: str, own: Path) -> None:
    """Put the thing in the file's place and read."""
    make, read, _, spare = INPUTS[kind]
    with copy_of(kind, make, read, own) as expected:
        path = own / name
        if not path.exists():  # named by an order of places to look in, the first of which is here
            path.parent.mkdir(exist_ok=True)
        else:
            path.unlink()
        THINGS[how](path)

        def attempt() -> None:
            found = read(own)
            if name not in spare:
                raise Silent("it was read as if it were a file")
            if other := differences(found, expected):
                raise Silent(f"read, with other {other}")

        bounded(attempt)


def a_socket(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # a socket's path has at most 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(before)


THINGS: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "/dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "/dev/urandom": lambda path: path.symlink_to("/dev/urandom"),
    "a socket": a_socket,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a folder": lambda path: path.mkdir(),
    "a link to a pipe": lambda path: (os.mkfifo(path.with_name("pipe")), path.symlink_to("pipe")),
}


# ------------------------------------------------------------------ inputs of this kind of fault alone


def make_sealed(folder: Path) -> None:
    make_results(folder)
    seal_folder(folder)


def make_runs(folder: Path) -> None:
    """A tracking folder with two finished jobs, the later one of which is the one that is spoilt."""
    for name in ("first", "second"):
        place = job_folder(folder, name, 0, ["model=x"])
        run = new_run(place, folder, name=name, key=name, params={}, config="x: 1\n", sweep=name)
        made = place.parent / "made"
        make_results(made)
        with job(run, Sinks({})) as running:
            running.log(Results.load(made))
        shutil.rmtree(made)


def read_back(folder: Path):
    from ctxexp import Results

    return Results.load(folder)


def read_runs(folder: Path) -> Values:
    """The values of every finished job that can be read; a message of the rest is printed, and no run is a refusal."""
    found = {job.folder.parent.name: results for job, results in finished_results(folder)}
    if "second" not in found:
        raise CtxexpError("the spoilt job is left out")
    return {f"{name} {key}": value for name, one in found.items() for key, value in one.by_name.items()}


def make_sts(folder: Path) -> None:
    for name in ("STSbenchmark/sts-test.csv", "SICK/SICK_test_annotated.txt"):
        (folder / name).parent.mkdir(parents=True)
    (folder / "STSbenchmark" / "sts-test.csv").write_text("main\tn\t2015\t1\t4.5\tthe river\tthe bank\n" * 3)
    (folder / "SICK" / "SICK_test_annotated.txt").write_text("1\tthe river\tthe bank\t3.5\tNEUTRAL\n" * 3)


def read_sts(folder: Path) -> Values:
    corpora = sts.sts_b(path=str(folder)), sts.sick_r(path=str(folder))
    return {one.name: np.array([pair.gold for pair in one.pairs]) for one in corpora}


def make_plugin(folder: Path) -> None:
    folder.mkdir()
    (folder / "plugin.py").write_text("x = 1\n")


def read_plugin(folder: Path) -> Values:
    from ctxexp.plugins.offers import load_plugin_file

    return {"x": np.array(load_plugin_file(folder / "plugin.py")[0].x)}


def make_words(folder: Path) -> None:
    folder.mkdir()
    (folder / "words.txt").write_text("the\nriver\n")


def read_words(folder: Path) -> Values:
    from ctxexp_measures.words.space import word_list

    return {"words": np.array(word_list(folder / "words.txt"))}


def make_semcor(folder: Path) -> None:
    (folder / "semcor").mkdir(parents=True)
    sentence = '<word text="The" pos="DT" break_level="NO_BREAK"/><word text="river" lemma="river" pos="NN"/>'
    for name in "ab":
        (folder / "semcor" / f"{name}.xml").write_text(f"<contextfile>{sentence}</contextfile>")


def read_semcor(folder: Path) -> Values:
    from ctxexp_measures.senses.corpora.semcor import semcor

    return {"sentences": np.array([s.text for s in semcor(path=str(folder)).sentences])}


def read_one(name: str) -> Callable[[Path], Values]:
    """A file of word vectors as a model, and alone."""

    def read(folder: Path) -> Values:
        encoder = word_vectors(path=str(folder / name))
        layers = [np.asarray(one.layers) for one in encoder.encode(weights.TEXT.sentences)]
        return {"layers": np.concatenate(layers, 1), "alone": read_vectors(folder / name).vectors}

    return read


CONFIGS = ("config.json", "model.safetensors", "tokenizer.json")
INPUTS: dict[str, ReplaceableInput] = {
    "transformer": ReplaceableInput(make_checkpoint("bert"), read_checkpoint("bert"), CONFIGS,
                         ("tokenizer_config.json", "vocab.txt", "added_tokens.json", "chat_template.jinja",
                          "model.safetensors.index.json", "generation_config.json", "README.txt",
                          "config_sentence_transformers.json")),
    "gguf": ReplaceableInput(make_gguf, read_gguf, ("model.gguf",), ("tokenizer.json", "config.json")),
    "elmo": ReplaceableInput(make_checkpoint("elmo"), read_checkpoint("elmo"), ("options.json", "weights.hdf5")),
    **{f"vectors {end}": ReplaceableInput(make_checkpoint("words"), read_one(f"v.{end}"), (f"v.{end}",))
       for end in ("txt", "bin", "safetensors")},
    "results": ReplaceableInput(make_results, read_results, (RESULTS_FILE, REPLICATES, "words.csv"), (FRAME, MANIFEST)),
    "sealed results": ReplaceableInput(make_sealed, read_results,
                                       (RESULTS_FILE, FRAME, REPLICATES, "words.csv", MANIFEST)),
    "runs": ReplaceableInput(make_runs, read_runs, (f"results/second/000_model=x/{STATE}",
                                         f"results/second/000_model=x/{RESULTS_FILE}",
                                         f"results/second/000_model=x/{FRAME}"),
                  (f"results/second/000_model=x/{RUN}", "results/second/000_model=x/config.yaml")),
    "text": ReplaceableInput(make_text, lambda folder: read_text(folder, "text/a.txt"), ("text/a.txt",)),
    "folder of texts": ReplaceableInput(make_text, read_text, (), ("text/c.txt", "text/c.txt.gz")),
    "sts": ReplaceableInput(make_sts, read_sts, ("STSbenchmark/sts-test.csv", "SICK/SICK_test_annotated.txt")),
    "plugin": ReplaceableInput(make_plugin, read_plugin, ("plugin.py",)),
    "semcor": ReplaceableInput(make_semcor, read_semcor, ("semcor/a.xml",)),
    "words": ReplaceableInput(make_words, read_words, ("words.txt",)),
}  # fmt: skip
