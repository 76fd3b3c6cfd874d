"""Requests of strangers: a web page under another name for this machine is told nothing, and odd addresses lead
nowhere."""

from __future__ import annotations

import asyncio
import functools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from ctxexp.jobs.job import job, new_run
from ctxexp.jobs.sinks import Sinks
from ctxexp.jobs.state import job_folder
from ctxexp.results import Results
from ctxexp.sinks.mlflow import database
from ctxexp.sinks.mlflow.app import STORE, ShortLinks
from ctxexp.sinks.mlflow.sink import MlflowSink
from tests.made import results_with

from . import Lost, Silent


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Odd Host headers and odd addresses by turns, to one store."""
    store = functools.cache(lambda: sweep_store(folder / "store", results_with({"m/raw": np.arange(3.0)})))
    for place in range(count):
        name, ask_oddly = [("an odd host", request), ("an odd address", address)][place % 2]
        rng = np.random.default_rng([seed, place])
        yield name, lambda ask_oddly=ask_oddly, rng=rng: ask_oddly(store(), rng)


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


def ask(store: Path, path: str, *hosts: bytes) -> tuple[int, str]:
    """Status and location of the answer to a path, as the server passes it on."""
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    async def receive() -> Any:
        raise AssertionError("nothing is sent to it")

    scope = {"type": "http", "path": path, "headers": [(b"host", host) for host in hosts]}
    with mock.patch.dict(os.environ, {STORE: database.prepare(store)}):
        asyncio.run(ShortLinks()(scope, receive, send))
    return said[0]["status"], dict(said[0]["headers"]).get(b"location", b"").decode()


def odd_host(rng: np.random.Generator) -> bytes:
    """A Host header that is not one of this machine's names, though it looks so."""
    own = ["localhost", "127.0.0.1", "[::1]"][rng.integers(3)]
    letters = "".join(rng.choice(list("abcdefgh"), 6))
    port = f":{rng.integers(1, 70000)}"
    hosts = [
        "", " ", ":5000", f"{letters}.example{port}", f"{own}.{letters}.example{port}", f"{letters}@{own}",
        f"{own}@x.y", f"{letters}.{own}", f"x{own}{port}", f"{own}.{port}", f" {own}", f"{own} ", f"{own}\0",
        f"{own},{letters}.example", f"{own}/{letters}", f"{own}\r\nhost: {letters}", "LOCALHOST", "0x7f000001",
        "2130706433", "0177.0.0.1", "127.1", "127.0.0.2", "[::ffff:127.0.0.1]", "*", "[*]", "?ocalhost", "[l]ocalhost",
        "http://localhost", "ｌocalhost", "\udcff", "l" * 70000, "localhost%00", "100.64.0.1", "172.32.0.1",
        "172.15.0.1", "11.0.0.1", "169.254.169.254",
    ]  # fmt: skip
    return hosts[rng.integers(len(hosts))].encode("utf-8", "surrogateescape")


def request(store: Path, rng: np.random.Generator) -> None:
    """Odd hosts get no answer, alone or beside the right one; the right one gets it afterwards as before."""
    host = odd_host(rng)
    beside = [(host,), (host,), (host, b"localhost:5000"), (b"localhost:5000", host)][rng.integers(4)]
    if (answer := ask(store, "/sweep/last", *beside)) != (403, ""):
        raise Silent(f"{beside} got {answer}")
    if ask(store, "/sweep/last", b"localhost:5000")[0] != 302:
        raise Lost("this machine gets no answer any more")


def address(store: Path, rng: np.random.Generator) -> None:
    """Odd names of sweeps lead nowhere, soon, and never to another server."""
    names = [
        "../../x", "' OR 1=1 --", "'", "\"", "`", "%27%20OR%20''='", "%", "_" * 22, "\\", "//evil.example", "last/../x",
        "20260101-000000-abcdeg", "20260101", "a" * 9000, "\0", "\n", "\r\nlocation: http://evil.example", "\ud800",
        "漢字", "20260101-000000-abcdef' AND 'x'='y", "[", "last last", "LAST", "http://evil.example", "{}", "null",
    ]  # fmt: skip
    name, start = names[rng.integers(len(names))], time.process_time()
    status, location = ask(store, f"/sweep/{name}", b"127.0.0.1:5000")
    if status != 404 or location:
        raise Silent(f"{name!r} leads to {location!r} with {status}")
    assert time.process_time() - start < 2, "more than 2 s of processor time"
    if not ask(store, "/sweep/20260101-000000-abcdef", b"127.0.0.1:5000")[1].startswith("/"):
        raise Lost("its own sweep has no address any more")
