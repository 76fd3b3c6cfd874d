"""A disk that is full: one line, the old file as it was, and nothing half-written left."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from ctxexp import Corpus, Results, measure
from ctxexp.errors import DiskError, StoreError
from ctxexp.files import atomic_write
from ctxexp.models import WordVectors
from ctxexp.report import Table, save_figure, write_file
from ctxexp.report import page as report
from ctxexp.report.terminal import write_tables
from tests.composed import offer, registry_of
from tests.sample_results import results_with, run_info
from tests.tracked import run_of, tracked


@contextmanager
def room(size: int) -> Iterator[None]:
    """The system refuses any file of more than `size` bytes: what a full disk does, for any user."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


def held(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_said_with_its_folder(tmp_path: Path) -> None:
    write_file(tmp_path / "a.json", "old")
    (tmp_path / f"a.json.{os.getpid()}.part").symlink_to("/dev/full")
    with pytest.raises(DiskError) as error:
        write_file(tmp_path / "a.json", "new")
    assert str(error.value) == (
        f"cannot write a.json: the disk of {tmp_path} is full; make room there or choose another folder, and repeat "
        "the command (resume=true skips jobs that finished)"
    )
    assert held(tmp_path) == {"a.json": b"old"}


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    expected = rf"cannot write {tmp_path}/file/below/a\.txt: Not a directory; choose a writable place"
    with pytest.raises(DiskError, match=expected):
        write_file(tmp_path / "file" / "below" / "a.txt", "x")


def test_what_breaks_off_leaves_the_old_file(tmp_path: Path) -> None:
    write_file(tmp_path / "new" / "a", "old")

    def break_off() -> None:
        with atomic_write(tmp_path / "new" / "a") as part:
            part.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert held(tmp_path) == {"new/a": b"old"}


def results() -> Results:
    curve = np.linspace(0, 1, 40)
    info = run_info(title="m", n_layers=40, measures={"self_similarity": {"definition": "d", "unit": "u"}})
    replicates = np.random.default_rng(0).normal(size=(40, 50))
    tables = {"words": pd.DataFrame({"x": list(range(400))})}
    return results_with({"self_similarity/raw": curve}, tables=tables, replicates={"a/b": replicates}, info=info)


def figure() -> Figure:
    made = Figure(figsize=(2, 2))
    made.add_subplot().plot([0, 1], [0, 1])
    return made


def sweep_table(_: object) -> Table:
    return Table("T", pd.DataFrame({"x": list(range(400))}), ["x"], [["1"]])


TABLES = registry_of()
offer(TABLES, "report", "table_t", sweep_table)
VECTORS = WordVectors(["a", "b"], np.random.default_rng(0).normal(size=(2, 200)).astype(np.float32))
WRITERS = {
    "results": lambda folder: results().save(folder),
    "replicates": lambda folder: Results(replicates=results().replicates).save(folder),
    "curves": lambda folder: Results(results().frame).save(folder),
    "page": lambda folder: report.write_report([("m", results())], folder / "report.html"),
    "figure": lambda folder: save_figure(figure(), folder, "figure"),
    "sweep table": lambda folder: write_tables([], folder, TABLES),
    "word vectors": lambda folder: VECTORS.save(folder),
}


@pytest.mark.parametrize("what", list(WRITERS))
def test_no_writer_leaves_half_a_file(tmp_path: Path, what: str) -> None:
    for size in (0, 500):
        with room(size), pytest.raises(DiskError, match=r"^cannot write .*: File too large; choose a writable place$"):
            WRITERS[what](tmp_path)
        assert not [name for name in held(tmp_path) if name.endswith(".part")]
    WRITERS[what](tmp_path)
    whole = held(tmp_path)
    assert whole
    assert all(whole.values())
    with room(500), pytest.raises(DiskError):
        WRITERS[what](tmp_path)
    assert held(tmp_path) == whole


def test_the_cache_names_its_folder_and_keeps_nothing_half_made(tmp_path: Path) -> None:
    from tests.traced import Counted

    made = Corpus.of("c", [("the", "river", f"{i:0100d}") for i in range(99)])

    def encode() -> int:
        options = [f"cache.folder={tmp_path / 'cache'}", "figures.explorer=0"]
        return measure(Counted(), made, metrics="word_norm", bootstrap=0, options=options).info.encoded

    for size in (200, 4800, 5000):  # the first rows of a layer, its last, the vocabulary
        with (
            room(size),
            pytest.raises(StoreError, match=r"the vector cache in .*cache can't be used: .*; make room or"),
        ):
            encode()
        assert {path.name for path in (tmp_path / "cache").iterdir()} == {"locks"}
    assert encode() == 99


def run(folder: Path, results: Results) -> None:
    with tracked(run_of(folder, folder, config="a: 1\n")) as running:
        running.save(results)


def test_a_job_whose_results_do_not_fit_has_failed(tmp_path: Path) -> None:
    words = pd.DataFrame({"x": list(range(20_000))})
    large = results_with(tables={"words": words}, info=run_info(title="m", n_layers=2))
    with (
        room(50_000),
        pytest.raises(DiskError, match=r"^cannot write .*/words\.csv: File too large; choose a writable"),
    ):
        run(tmp_path / "job", large)
    state = json.loads((tmp_path / "job" / "status.json").read_text())
    assert state["status"] == "FAILED"
    assert "words.csv: File too large" in state["error"]
    assert not {"results.json", "words.csv"} & set(held(tmp_path / "job"))
    with room(0), pytest.raises(DiskError, match=r"^cannot write .*/config\.yaml: File too large; choose a writable"):
        run(tmp_path / "other", large)
    assert held(tmp_path / "other") == {}
    run(tmp_path / "job", large)
    assert json.loads((tmp_path / "job" / "status.json").read_text())["status"] == "FINISHED"


def test_what_a_killed_process_wrote_goes_with_the_next_write(tmp_path: Path) -> None:
    """Unless it is another file's, young, or of a process that is here."""
    dead = 2**22 + 1  # Linux gives no process this number
    names = [f"a[1].csv.{dead}", f"a[1].csv.{os.getppid()}", f"b.csv.{dead}", f"a[1].csv.{dead + 1}"]
    gone, here, other, young = (tmp_path / f"{name}.part" for name in names)
    for part in (gone, here, other, young):
        part.write_text("half")
        if part != young:
            os.utime(part, (1, 1))
    write_file(tmp_path / "a[1].csv", "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"a[1].csv", here.name, other.name, young.name}
