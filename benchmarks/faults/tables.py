"""Results folders of strangers: nothing outside of the folder is read, written or sent."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ctxexp import Results, load
from ctxexp.errors import MetricError, TrackingError
from ctxexp.files import MANIFEST, find_damage, seal_folder
from ctxexp.files.process import job_folder
from ctxexp.jobs import Sinks, finished_on_disk, job, new_run
from ctxexp.report import frame
from ctxexp.report.comparison import Comparison
from ctxexp.sinks.mlflow.sink import MlflowSink
from tests.made import results_with, told

from . import Lost, Silent
from .damage import heard

SECRET = "kingfisher"
FILES = ("results.json", "results.parquet", "replicates.npz", "words.csv", MANIFEST)
Attack = Callable[[Path, np.random.Generator], object]


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each attack in turn, on a folder of its own beside one that is not to be touched."""
    store = functools.cache(lambda: sweep_store(folder / "store", results()))
    for place in range(count):
        rng = np.random.default_rng([seed, place])
        name, attack = list(ATTACKS.items())[place % len(ATTACKS)]
        own = folder / str(place)
        if attack is sent_link:
            yield name, lambda attack=attack, rng=rng: attack(store(), rng)
        else:
            yield name, lambda attack=attack, rng=rng, own=own: try_attack(own, attack, rng)


def results() -> Results:
    tables = {"words": pd.DataFrame({"word": ["bank", "river"], "raw": [0.5, 0.25]})}
    replicates = {"m/raw": np.ones((3, 4), np.float32)}
    return results_with({"m/raw": np.arange(3.0)}, tables=tables, replicates=replicates, info=told(n_layers=3))


def try_attack(top: Path, attack: Attack, rng: np.random.Generator) -> None:
    """Saves results beside a folder of secrets, and tries the attack while every file that is opened is noted."""
    outside, run = top / "outside", top / "runs" / "run"
    outside.mkdir(parents=True)
    results().save(outside)
    (outside / "words.csv").write_text(SECRET)
    seal_folder(outside)
    results().save(run)
    before = content(outside), {path.name for path in top.iterdir()}
    try:
        with watch_opens(outside) as paths:
            attack(run, rng)
    finally:
        if (content(outside), {path.name for path in top.iterdir()}) != before:
            raise Lost(f"written outside of the folder: {sorted(map(str, top.rglob('*')))}")
        if paths:
            raise Silent(f"read outside of the folder: {sorted(paths)}")


def content(folder: Path) -> dict[str, str]:
    """Each file below the folder with a digest."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


_watched: list[tuple[str, set[str]]] = []


@functools.cache
def _listen() -> None:
    def hear(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and _watched and isinstance(args[0], str | bytes):
            folder, paths = _watched[-1]
            if (real := os.path.realpath(os.fsdecode(args[0]))).startswith(folder):
                paths.add(real)

    sys.addaudithook(hear)


@contextmanager
def watch_opens(folder: Path) -> Iterator[set[str]]:
    """Yields the files below `folder` that this process opens inside, under whatever name."""
    _listen()
    paths: set[str] = set()
    _watched.append((str(folder.resolve()) + os.sep, paths))
    try:
        yield paths
    finally:
        _watched.pop()


def read(run: Path) -> None:
    """Loads the folder as people and `resume=true` do: an error that shows no secret, or its own results."""
    try:
        found = load(run)
    except TrackingError as error:
        if SECRET in str(error):
            raise Silent(f"the message shows it: {error}") from error
        raise
    if not found.tables["words"].equals(results().tables["words"]) or not found.frame.equals(results().frame):
        raise Silent(f"other results: {found.tables}")


# ------------------------------------------------------------------ names


def odd_name(run: Path, rng: np.random.Generator) -> str:
    """A name of a file that leads out of `run`, or none at all."""
    up = "../" * int(rng.integers(1, 9))
    names = [
        "../../outside/words", f"{run.parents[1]}/outside/words", f"./{up}outside/words", f"{up}etc/passwd",
        "/dev/zero", "words/../../../outside/words", "..\\..\\outside\\words", "words\0", "\0", "", "a/b", "words\n",
        "\u2044etc\u2044x", "..%2f..%2foutside%2fwords",
        "w" * int(rng.integers(201, 6000)), "~/words", "~root/x", "\ud800", "words ", " ",
        "file:///etc/passwd", "C:\\words", "$HOME", "- -", "words:stream", "//host/words", "%s" * 40, "*", "wor[d]s",
    ]  # fmt: skip
    return names[rng.integers(len(names))]


def table_name(run: Path, rng: np.random.Generator) -> None:
    """results.json names a table elsewhere; the folder is sealed or not."""
    document = json.loads((run / "results.json").read_text())
    name = odd_name(run, rng)
    document["tables"] = {**document["tables"], name: document["tables"]["words"]}
    (run / "results.json").write_text(json.dumps(document))
    if rng.random() < 0.5:
        seal_folder(run)
    read(run)
    raise Silent(f"the table {name!r} was loaded")


def manifest_name(run: Path, rng: np.random.Generator) -> None:
    """files.json names a file elsewhere, with its right digest or another: it is neither read nor waited for."""
    seal_folder(run)
    outside = run.parents[1] / "outside"
    listed = json.loads((run / MANIFEST).read_text())
    right = hashlib.blake2b(SECRET.encode(), digest_size=16).hexdigest()
    names = ["../../outside/words.csv", str(outside / "words.csv"), "/dev/zero", odd_name(run, rng), "../../outside"]
    listed[names[rng.integers(len(names))]] = right if rng.random() < 0.5 else "0" * 32
    (run / MANIFEST).write_text(json.dumps(listed))
    if find_damage(run) is None:
        raise Silent(f"whole, though it names {set(listed)}")
    read(run)  # by its own files, which are whole


def saved_name(run: Path, rng: np.random.Generator) -> None:
    """A metric's table of an odd name is not saved, and what was there stays."""
    before = content(run)
    tables = {"words": pd.DataFrame({"word": ["x"]}), odd_name(run, rng): pd.DataFrame({"word": ["x"]})}
    try:
        results_with({"m/raw": np.ones(3)}, tables=tables).save(run)
    except MetricError as error:
        if content(run) != before:
            raise Lost("half of it was saved") from error
        raise
    raise Silent(f"saved as {sorted(map(str, run.rglob('*')))}")


def measure_name(run: Path, rng: np.random.Generator) -> None:
    """A measure of an odd name is drawn and tabled in the folder that is named for it."""
    document = json.loads((run / "results.json").read_text())
    for value in document["values"]:
        value["measure"] = odd_name(run, rng)
    (run / "results.json").write_text(json.dumps(document).replace("\\ud800", "?"))
    held = load(run)
    Comparison((("one", held),)).frame.to_csv(run / "compared.csv")
    figure = held.plot()
    if not all(
        path.resolve().is_relative_to(run) for path in frame.save_figure(figure, run, document["values"][0]["measure"])
    ):
        raise Silent("a figure stands elsewhere")


# ------------------------------------------------------------------ links


def link(run: Path, rng: np.random.Generator) -> None:
    """A file of the folder is a link out of it: refused, unless nothing reads it (the frame, which is for others)."""
    file = FILES[rng.integers(len(FILES))]
    sealed = rng.random() < 0.5
    if sealed or file == MANIFEST:
        seal_folder(run)
    outside = run.parents[1] / "outside"
    targets = [
        outside / file, Path(f"../../outside/{file}"), outside, Path("/dev/zero"), Path("/dev/stdin"), Path(file),
        Path("nowhere"), Path("/proc/self/mem"), outside / "nowhere", Path("chain"),
    ]  # fmt: skip
    (run / "chain").symlink_to(Path("../../outside") / file)
    (run / file).unlink()
    (run / file).symlink_to(targets[rng.integers(len(targets))])
    read(run)
    if file != "results.parquet" and not (file == MANIFEST or (run / file).readlink() == Path("nowhere")):
        raise Silent(f"{file} -> {(run / file).readlink()} was followed")


def own_link(run: Path, rng: np.random.Generator) -> None:
    """Links that stay in the folder, and one to the folder itself, are followed as ever."""
    file = FILES[rng.integers(len(FILES) - 1)]
    (run / file).rename(run / "real")
    (run / file).symlink_to(["real", str(run / "real"), "../run/real"][rng.integers(3)])
    if rng.random() < 0.5:
        seal_folder(run)
    (run.parent / "latest").symlink_to(["run", str(run)][rng.integers(2)])
    try:
        read(run if rng.random() < 0.5 else run.parent / "latest")
    except TrackingError as error:
        raise Lost(f"its own link was refused: {error}") from error


def saved_over_a_link(run: Path, rng: np.random.Generator) -> None:
    """Saving puts files in the links' place."""
    file = FILES[rng.integers(4)]
    (run / file).unlink()
    (run / file).symlink_to(run.parents[1] / "outside" / file)
    results().save(run)
    read(run)


def sent_link(store: Path, rng: np.random.Generator) -> None:
    """A job's folder with a link to a secret: the store gets the other files, and resuming doesn't read it."""
    folder, secret = next((store / "results").glob("*/*")), store.parent / f"secret-{rng.integers(10**9)}"
    secret.write_text(f"word,raw\r\n{SECRET},1.0\r\n")
    path = folder / ["notes.txt", "secret.csv", "a name.json", "words.png"][rng.integers(4)]
    path.symlink_to([secret, Path(os.path.relpath(secret, folder))][rng.integers(2)])
    try:
        with heard(), watch_opens(store.parent) as paths:
            finished_on_disk(store, "key of bert")
            sink = MlflowSink(experiment="study")
            sink.prepare_jobs(store)
            sink.create_run("again", {}, {}, "x: 1\n", 1)
            sink.send_files(folder)
            sent = {item.path for item in sink.client.list_artifacts(sink.run_id)}
    finally:
        path.unlink()
    if not {"results.json", "words.csv", "replicates.npz"} <= sent:
        raise Lost(f"its own files were not sent: {sent}")
    if path.name in sent or str(secret) in paths:
        raise Silent(f"{path.name} was read or sent")


ATTACKS: dict[str, Attack] = {
    "results.json names a table": table_name,
    "a link out of the folder": link,
    "files.json names a file": manifest_name,
    "a link inside of the folder": own_link,
    "a table is saved": saved_name,
    "a link is saved over": saved_over_a_link,
    "a measure's name": measure_name,
    "a link that would be sent": sent_link,
}


def sweep_store(folder: Path, results: Results) -> Path:
    """A tracking store with a finished job of one sweep, which has these results."""
    sinks = Sinks({"mlflow": MlflowSink(experiment="study")})
    sinks.prepare_all(folder)
    place = job_folder(folder, "20260101-000000-abcdef", 0, ["model=bert"])
    run = new_run(
        place, folder, name="bert", key="key of bert", params={}, config="x: 1\n", sweep="20260101-000000-abcdef"
    )
    with job(run, sinks) as running:
        running.log(results)
    return folder
