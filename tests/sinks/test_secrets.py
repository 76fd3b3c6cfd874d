"""A secret that a reference leads to reaches the sink, and is written and printed nowhere; one in clear is refused."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxexp.errors import ConfigError
from ctxexp.files import credentials
from tests.composed import config_of, forget_plugin_files, run_command_line

SECRET = "hunter22$@{' x"
PLUGIN = '''
import os
from pathlib import Path
import ctxexp
from ctxexp import Sink

class Watch(Sink):
    """Sends curves to a service."""
    secrets = ("pin",)

    def __init__(self, *, pin="", api_key=""):
        self.pin, self.api_key = pin, api_key

    def send(self, run, results):
        with Path(os.environ["RECEIVED"]).open("a") as file:
            file.write(f"{self.pin}|{self.api_key}\\n")
        return {"link": f"https://host/runs?id={self.pin}", "hint": f", served by key{self.pin}_v2"}

class Leaky(Watch):
    """Raises errors and tells texts that quote its key."""

    def check(self, folder):
        return {"address": f"https://host/{self.pin}"}

    def send(self, run, results):
        raise ValueError(f"no such key: {self.pin}, {self.pin!r}, key{self.pin}_v2")

@ctxexp.hookimpl
def register_sinks(register):
    register("watch", Watch)
    register("leaky", Leaky)
'''
RUN = ["dataset=text", "dataset.path=text.txt", "model=word_vectors", "model.path=vectors.txt", "metric=word_norm"]
RUN += ["min_contexts=2", "cache.folder=cache", "plugins=[watch.py]"]
YAML = "# @package _global_\nsink:\n  {0}:\n    name: {0}\n    pin: {1}\n"


@pytest.fixture
def received(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of what sinks were given, outside the folder in which commands are typed."""
    monkeypatch.setattr(credentials, "_sink_secrets", set())
    monkeypatch.setenv("MYKEY", SECRET)
    folder = tmp_path / "typed"
    folder.mkdir()
    (folder / "vectors.txt").write_text("bank 1 0\nriver 0 1\nmoney 1 1\n")
    (folder / "text.txt").write_text("bank river money\nmoney bank river\nriver money bank\n")
    (folder / "watch.py").write_text(PLUGIN)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("RECEIVED", str(tmp_path / "received"))
    yield tmp_path / "received"
    forget_plugin_files()  # watch.py is this test's alone


def experiment(pin: str, received: Path, sink: str = "watch") -> list[str]:
    """The flags with which `experiment=mine` is found: a YAML of a sink with this pin."""
    mine = received.parent / "configs" / "experiment" / "mine.yaml"
    mine.parent.mkdir(parents=True)
    mine.write_text(YAML.format(sink, pin))
    return ["--config-dir", str(mine.parents[1])]


def assert_hidden(secret: str, printed: str) -> None:
    """The secret is neither printed nor in any file or file name below the working folder."""
    assert secret not in printed
    for path in Path.cwd().rglob("*"):
        assert secret not in str(path), path
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(("place", "sweep"), [("pin", ["-m", "seed=0,1"]), ("api_key", []), ("a YAML", [])])
def test_a_secret_reaches_the_sink_alone(
    sweep: list[str], place: str, received: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    flags = experiment("${oc.env:MYKEY}", received) if place == "a YAML" else []
    words = ["sink=none", "experiment=mine"] if flags else ["sink=watch", f"sink.watch.{place}=${{oc.env:MYKEY}}"]
    assert not run_command_line([*flags, *sweep, *RUN, *words])
    given = f"|{SECRET}" if place == "api_key" else f"{SECRET}|"
    assert received.read_text().splitlines() == [given] * (2 if sweep else 1)
    assert_hidden("hunter22", "".join(capfd.readouterr()))
    assert "${oc.env:MYKEY}" in next(Path().rglob("config.yaml")).read_text()
    assert "https://host/runs?id=" in next(Path().rglob("status.json")).read_text()


@pytest.mark.parametrize(
    "words",
    [
        ["sink=watch", "sink.watch.pin=hunter22"],
        ["+sink={watch:{name:watch,pin:'hunter22'}}"],
        ["sink=none", "experiment=mine"],
        ["sink=mlflow", "sink.mlflow.uri=http://me:hunter22@127.0.0.1:9"],
        ["dataset.path=https://host/a?sig=hunter22"],
        ["model.token=hunter22"],
    ],
    ids=lambda words: words[-1],
)
def test_a_secret_in_clear_is_refused_before_anything_is_written(
    words: list[str], received: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = experiment("hunter22", received)
    assert run_command_line([*folder, *RUN, *words]) == 2
    printed = "".join(capfd.readouterr())
    assert credentials.RULE in printed
    assert not Path("mlruns").exists()
    assert_hidden("hunter22", printed)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([*RUN[:1], "--hlep", "sink.watch.pin=hunter22", *RUN[1:]], "arguments: --hlep; ctxexp"),
        (["sink.watch.pin=hunter22", "--help", "sink=watch", *RUN], credentials.RULE),
        (["ui", "--api-key=hunter22"], credentials.RULE),
        (["ui", "uri=http://me:hunter22@host"], credentials.RULE),
        ([*RUN, "dataset.path=${oc.env:SIGNED}"], "no such file"),
    ],
)
def test_an_error_quotes_no_secret(
    words: list[str], says: str, received: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SIGNED", "https://me:hunter22@host/a?sig=hunter22sig")
    assert run_command_line(words)
    printed = "".join(capfd.readouterr())
    assert says in printed
    assert_hidden("hunter22", printed)


@pytest.mark.parametrize(
    "words",
    [
        ["sink=[mlflow,leaky]", "sink.leaky.pin=${oc.env:MYKEY}"],
        ["sink=none", "experiment=mine"],
    ],
    ids=["with MLflow", "a YAML"],
)
def test_errors_and_links_of_sinks_are_masked(
    words: list[str],
    received: Path,
    empty_store: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    Path("mlruns").mkdir()
    shutil.copy(empty_store / "mlflow.db", "mlruns")
    monkeypatch.setenv("MYKEY", 'hunter22$"x')
    folder = experiment("${oc.env:MYKEY}", received, "leaky")
    assert run_command_line([*folder, *RUN, *words]) == 1
    printed = "".join(capfd.readouterr())
    assert "ValueError: no such key: ***, '***', key***_v2" in printed
    assert_hidden("hunter22", printed)
    assert "https://host/***" in next(Path().rglob("status.json")).read_text()


def test_a_variable_that_is_not_set_is_named_with_its_key(received: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([*RUN, "sink=watch", "sink.watch.pin=${oc.env:NOKEY}"])
    assert "Environment variable 'NOKEY' not found\" full_key: sink.watch.pin" in capfd.readouterr().err


@pytest.mark.parametrize(("sink", "broken"), [("watch", 0), ("leaky", 1)])
def test_conform_shows_no_key(sink: str, broken: int, received: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["conform", sink, "pin=${oc.env:MYKEY}", RUN[-1]]) == broken
    printed = "".join(capfd.readouterr())
    assert f"sink {sink} pin=${{oc.env:MYKEY}}" in printed
    assert ("no such key: ***" in printed) == bool(broken)
    assert_hidden("hunter22", printed)


def test_python_composes_by_the_same_rule(received: Path) -> None:
    config = config_of([*RUN, "sink=watch", "sink.watch.pin=${oc.env:MYKEY}"])
    assert config.sink["watch"].arguments["pin"] == SECRET
    with pytest.raises(ConfigError, match=re.escape(f"pin: {credentials.RULE}")):
        config_of([*RUN, "sink=watch", "sink.watch.pin=hunter22"])
