"""Damage to the files of finished jobs: resume fetches or computes again, and a comparison goes on without them."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from ctxexp import Results
from ctxexp.errors import TrackingError
from ctxexp.files.process import job_folder
from ctxexp.jobs import Sinks, job, new_run, reuse
from ctxexp.jobs.execute import _results_of, _rows
from ctxexp.sink import Sweep
from ctxexp.sinks.mlflow import MlflowSink
from tests.made import results_with, told

from . import Lost, Silent

JOBS = ("bert", "elmo", "gpt2")
FILES = ("results.json", "run.json", "status.json", "files.json", "words.csv", "replicates.npz", "config.yaml")
SWEEP = "20260101-000000-abcdef"


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every kind of damage in turn to drawn files; in a third of the cases MLflow's copy is damaged as well."""
    rng = np.random.default_rng(seed)
    order = [list(DAMAGES)[i] for i in rng.permutation(len(DAMAGES))]
    made = cache(lambda: make(folder))
    for place in range(count):
        drawn = np.random.default_rng([seed, place])
        file, how, both = str(drawn.choice(FILES)), order[place % len(order)], drawn.random() < 1 / 3
        name = f"{file}: {how}{', in MLflow too' if both else ''}"
        yield name, lambda file=file, how=how, both=both, drawn=drawn: tried(made(), file, how, both, drawn)


def results(name: str) -> Results:
    rng = np.random.default_rng(len(name))
    curves = {"self_similarity/raw": rng.random(13), "self_similarity/adjusted": np.append(rng.random(12), np.nan)}
    info = told(title=name, n_layers=13, corpus="text", fingerprint=name)
    tables = {"words": pd.DataFrame({"word": ["bank", "river"], "raw": rng.random(2).tolist()})}
    replicates = {"self_similarity/raw": rng.random((13, 8), dtype=np.float32)}
    return results_with(curves, {"sts.last2/all": float(rng.random())}, tables=tables, replicates=replicates, info=info)


def make(folder: Path) -> Sweep:
    """A store with a sweep of three finished jobs, and a copy of its files to begin each case with."""
    store = folder / "store"
    MlflowSink(experiment="study").prepare_jobs(store)
    for number, name in enumerate(JOBS):
        place = job_folder(store, SWEEP, number, [f"model={name}"])
        run = new_run(place, store, name=name, key=f"key of {name}", params={}, config="x: 1\n", sweep=SWEEP)
        with job(run, sinks()) as running:
            running.log(results(name))
    for part in ("results", "artifacts"):
        shutil.copytree(store / part, folder / "whole" / part)
    return Sweep(SWEEP, store, 0.0)


def sinks() -> Sinks:
    return Sinks({"mlflow": MlflowSink(experiment="study")})


def tried(sweep: Sweep, file: str, how: str, both: bool, rng: np.random.Generator) -> None:
    """Damages a file of one job, compares the sweep's jobs, and resumes the job."""
    store, whole = sweep.tracking_folder, sweep.tracking_folder.parent / "whole"
    for part in ("results", "artifacts"):
        shutil.rmtree(store / part)
        shutil.copytree(whole / part, store / part)
    damaged, other = rng.permutation(sorted(sweep.results.iterdir()))[:2]
    name = Path(damaged).name.partition("=")[2]
    run_id = json.loads((damaged / "status.json").read_text())["sinks"]["mlflow"]["run_id"]
    copy = next((store / "artifacts").glob(f"{run_id}/artifacts/"))
    damages = [(damaged / file, other / file)] + (
        [(copy / file, other / file)] if both and file != "status.json" else []
    )
    for path, another in damages:
        DAMAGES[how](path, another, rng)
    log = logging.getLogger("ctxexp")
    log.disabled = True  # its warnings are the next tests' noise
    try:
        compared(sweep, name, Path(damaged))
        resumed(sweep, name, file, fetchable=len(damages) == 1)
    finally:
        log.disabled = False


def compared(sweep: Sweep, name: str, job: Path) -> None:
    """The other two are in the comparison; the damaged one is as it was, or left out by name."""
    rows = _rows(sweep, 0)
    held, problems = _results_of(rows)
    found = {r.info.title: r for _, r in held}
    for one in JOBS:
        if one in found and not same(found[one], results(one)):
            raise Silent(f"other numbers of {one} in the comparison")
        if one not in found and one != name:
            raise Lost(f"{one} is not in the comparison: {problems}")
    [row] = [row for row in rows if row.folder == job] or [None]
    if name not in found and row and row.status == "FINISHED" and not problems:
        raise Silent(f"{name} is left out of the comparison without a word")


def resumed(sweep: Sweep, name: str, file: str, *, fetchable: bool) -> None:
    """What resume takes over is what was computed, to the last bit; what MLflow has whole isn't computed again."""
    again = job_folder(sweep.tracking_folder, "again", 0, [name])
    run = new_run(again, sweep.tracking_folder, name=name, key=f"key of {name}", params={}, config="", sweep="again")
    try:
        held = reuse(run, sinks())
    except TrackingError as error:
        raise Lost(f"the job can't be resumed: {error}") from error
    if held is None:
        if fetchable:
            raise Lost(f"{name} is computed again, though MLflow has its results")
        return
    if not same(Results.load(held), results(name)):
        raise Silent(f"resume takes other numbers for {name}")
    whole = sweep.tracking_folder.parent / "whole" / "results" / SWEEP
    if file == "words.csv" and (held / file).read_bytes() != next(whole.glob(f"*={name}/{file}")).read_bytes():
        raise Silent("resume takes a damaged table")


def same(one: Results, other: Results) -> bool:
    drawn, again = one.replicates, other.replicates
    return (
        one.info == other.info
        and one.frame.equals(other.frame)
        and one.tables.keys() == other.tables.keys()
        and all(one.tables[name].equals(other.tables[name]) for name in one.tables)
        and drawn.keys() == again.keys()
        and all(np.array_equal(drawn[key], again[key], equal_nan=True) for key in drawn)
    )


def flip(path: Path, _: Path, rng: np.random.Generator) -> None:
    data = bytearray(path.read_bytes())
    data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    path.write_bytes(data)


def digit(path: Path, _: Path, rng: np.random.Generator) -> None:
    """Another digit: a JSON file stays one."""
    data = bytearray(path.read_bytes())
    digits = [i for i, byte in enumerate(data) if chr(byte).isdigit()] or [0]
    at = digits[rng.integers(len(digits))]
    data[at] = ord("0") + (data[at] - ord("0") + 1) % 10
    path.write_bytes(data)


def cut(path: Path, _: Path, rng: np.random.Generator) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: rng.integers(len(data))])


def zeros(path: Path, _: Path, rng: np.random.Generator) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def noise(path: Path, _: Path, rng: np.random.Generator) -> None:
    path.write_bytes(rng.bytes(200))


def deep(path: Path, _: Path, rng: np.random.Generator) -> None:
    path.write_text("[" * 100_000)


def odd(path: Path, _: Path, rng: np.random.Generator) -> None:
    """JSON of another shape: every value of another type."""
    values: list[object] = [None, 5, "x", [1], {}, True, 1e999, 10**400]
    try:
        keys = list(json.loads(path.read_text()))
    except ValueError:
        keys = ["values", "status"]
    path.write_text(json.dumps({key: values[rng.integers(len(values))] for key in keys}))


def copied(path: Path, other: Path, rng: np.random.Generator) -> None:
    path.write_bytes(other.read_bytes())


def folder(path: Path, _: Path, rng: np.random.Generator) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path, Path, np.random.Generator], None]] = {
    "one bit": flip,
    "one digit": digit,
    "cut short": cut,
    "zeros": zeros,
    "noise": noise,
    "deeply nested": deep,
    "other types": odd,
    "another job's": copied,
    "a folder in its place": folder,
    "gone": lambda path, _, rng: path.unlink(),
}
