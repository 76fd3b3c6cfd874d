"""What a sink declares as a secret, and what a URI carries, reaches who needs it and is written and printed nowhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from ctxexp.command import compose
from ctxexp.command.cli import main
from ctxexp.command.secrets import environment_texts, hide_overrides, is_secret
from ctxexp.jobs import execute
from ctxexp.jobs.credentials import info_as_written, mask, redact
from ctxexp.results.run_info import CorpusInfo, RunInfo

SECRET = "hunter22$@{ x"
PLUGIN = '''
import os
from pathlib import Path
import ctxexp
from ctxexp.sink import Sink

class Watch(Sink):
    """Sends curves to a service."""
    secrets = ("pin",)

    def __init__(self, *, pin="", api_key=""):
        self.pin, self.api_key = pin, api_key

    def log(self, results, folder):
        with Path(os.environ["RECEIVED"]).open("a") as file:
            file.write(f"{self.pin}|{self.api_key}\\n")

@ctxexp.hookimpl
def register_sinks(register):
    register("watch", Watch)
'''
RUN = ["dataset=text", "dataset.path=text.txt", "model=word_vectors", "model.path=vectors.txt", "metric=word_norm"]
RUN += ["min_contexts=2", "cache.folder=cache", "plugins=[watch.py]"]
YAML = "# @package _global_\nsink:\n  watch:\n    name: watch\n    pin: {}\n"


@pytest.fixture
def received(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of what sinks were given, outside the folder in which commands are typed."""
    for name in [name for name in os.environ if name.startswith("CTXEXP_SECRET_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "typed"
    folder.mkdir()
    (folder / "vectors.txt").write_text("bank 1 0\nriver 0 1\nmoney 1 1\n")
    (folder / "text.txt").write_text("bank river money\nmoney bank river\nriver money bank\n")
    (folder / "watch.py").write_text(PLUGIN)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("RECEIVED", str(tmp_path / "received"))
    yield tmp_path / "received"
    compose.load_plugin_files([])  # watch.py is this test's alone
    for name in [name for name in os.environ if name.startswith("CTXEXP_SECRET_")]:
        del os.environ[name]


def typed(words: list[str], monkeypatch: pytest.MonkeyPatch) -> object:
    """The exit status of these words of a command line."""
    monkeypatch.setattr(sys, "argv", ["ctxexp", *words])
    monkeypatch.setattr(execute, "_failed", [])  # of this process's commands before this one
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def assert_hidden(secret: str, printed: str) -> None:
    """The secret is neither printed nor in any file or file name below the working folder."""
    assert secret not in printed
    for path in Path.cwd().rglob("*"):
        assert secret not in str(path), path
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("sweep", [[], ["-m", "seed=0,1"]], ids=["run", "sweep"])
@pytest.mark.parametrize("key", ["pin", "api_key"], ids=["declared", "by its name"])
def test_a_secret_of_the_command_line_reaches_the_sink_alone(
    sweep: list[str], key: str, received: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert not typed([*sweep, *RUN, "sink=watch", f"sink.watch.{key}={SECRET}"], monkeypatch)
    given = f"{SECRET}|" if key == "pin" else f"|{SECRET}"
    assert received.read_text().splitlines() == [given] * (2 if sweep else 1)
    assert_hidden("hunter22", "".join(capfd.readouterr()))
    assert f"${{oc.env:CTXEXP_SECRET_SINK_WATCH_{key.upper()}}}" in next(Path().rglob("config.yaml")).read_text()


@pytest.mark.parametrize("sweep", [[], ["-m", "seed=0,1"]], ids=["run", "sweep"])
def test_a_secret_of_an_experiment_reaches_the_sink_alone(
    sweep: list[str], received: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    mine = received.parent / "configs" / "experiment" / "mine.yaml"
    mine.parent.mkdir(parents=True)
    mine.write_text(YAML.format("hunter22"))
    folder, words = ["--config-dir", str(mine.parents[1])], [*RUN, "sink=none", "experiment=mine"]
    assert not typed([*folder, *sweep, *words], monkeypatch)
    assert received.read_text().splitlines() == ["hunter22|"] * (2 if sweep else 1)
    assert not typed([*folder, "--cfg", "job", *words], monkeypatch)
    printed = "".join(capfd.readouterr())
    assert "pin: ***" in printed
    assert_hidden("hunter22", printed)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["sink=watch", "+sink.watch.pin=hunter22"], "Could not append"),
        (["sink=watch", "+sink.watch.my_api_keyy=hunter22{"], "no argument"),
        (["sink={watch:{name:watch,pin:hunter22}}"], "expected a name"),
        (["+sink={watch:{name:watch,pin:'hunter22'}}"], "has a sink already"),
        (["dataset.path=https://me:hunter22@host/a?sig=hunter22sig"], "no such file"),
        (["dataset.path=https://host/a#access_token=hunter22"], "no such file"),
    ],
)
def test_no_message_quotes_a_secret(
    words: list[str],
    says: str,
    received: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert typed([*RUN, *words], monkeypatch)
    printed = "".join(capfd.readouterr())
    assert says in printed
    assert_hidden("hunter22", printed)


def test_a_config_that_is_shown_refers_to_secrets(
    received: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert not typed([*RUN, "sink=watch", "sink.watch.pin=hunter22", "--cfg", "job"], monkeypatch)
    printed = capfd.readouterr().out
    assert "pin: ${oc.env:CTXEXP_SECRET_SINK_WATCH_PIN}" in printed
    assert_hidden("hunter22", printed)


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("https://host/a?sig=s1gn&x=1", "https://host/a?sig=***&x=1"),
        ("https://host/a?auth=s1gn", "https://host/a?auth=***"),
        ("https://host/a?x-amz-credential=s1gn&X-Amz-Signature=s", "https://host/a?x-amz-credential=***&X-Amz-Signature=***"),
        ("https://host/a#access_token=s1gn&state=1", "https://host/a#access_token=***&state=1"),
        ("https://host/a?author=me&design=2", "https://host/a?author=me&design=2"),
        ("https://host/a#section-2", "https://host/a#section-2"),
    ],
)  # fmt: skip
def test_signatures_and_fragments_are_credentials(uri: str, shown: str) -> None:
    assert redact(uri) == shown


def test_a_uri_with_credentials_becomes_a_reference_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = "s3://me:hunter22@host/a", "https://host/b?sig=hunter33"
    [path, plain, swept] = hide_overrides([f"dataset.path='{one}'", "model.checkpoint=org/name", f"x={one},{two},c"])
    names = [text[len("${oc.env:") : -1] for text in (path.partition("'")[2][:-1], *swept[2:].split(",")[:2])]
    assert [os.environ[name] for name in names] == [one, one, two]
    assert (plain, swept.endswith(",c")) == ("model.checkpoint=org/name", True)
    assert mask("cannot read hunter33 of me:hunter22") == "cannot read *** of me:***"
    for name in names:
        monkeypatch.delenv(name)


def test_what_refers_to_something_or_only_sounds_secret_stays() -> None:
    words = ["sink.watch.pin=${oc.env:PIN}", "sink.watch.api_key=null", "sink.watch.max_tokens=5", "sink=[a,b]"]
    assert hide_overrides(words) == words
    assert not is_secret("tokenizer")


def test_a_file_of_the_environment_is_written_as_its_reference(
    received: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("vectors.txt").rename(received.parent / "hunter22.txt")
    monkeypatch.setenv("VECTORS", str(received.parent / "hunter22.txt"))
    words = [*RUN, "sink=none", "model.path=${oc.env:VECTORS}"]
    assert not typed(words, monkeypatch)
    [folder] = Path().glob("mlruns/results/*/*/run.json")
    assert '"path": "${oc.env:VECTORS}"' in folder.read_text()
    for path in folder.parent.rglob("*.json"):
        assert "hunter22" not in path.read_text(), path


def test_only_what_the_environment_gave_is_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA", "/data/polysemy")
    monkeypatch.delenv("UNSET", raising=False)
    config = OmegaConf.create({"path": "${oc.env:DATA}", "unset": "${oc.env:UNSET,null}", "name": "polysemy"})
    assert environment_texts(config) == {"/data/polysemy": "${oc.env:DATA}"}  # polysemy is a data set's own name
    monkeypatch.setenv("DATA", "/data/mine")
    info = RunInfo(title="None of mine", corpus=CorpusInfo(name="mine"))
    assert info_as_written(info, environment_texts(config)).corpus.name == "${oc.env:DATA}"
    assert info_as_written(info, environment_texts(config)).title == "None of ${oc.env:DATA}"


def test_python_composes_with_the_same_words(received: Path) -> None:
    config = compose.config_of([*RUN, "sink=watch", "sink.watch.pin=hunter22"])
    assert config.sink["watch"].arguments["pin"] == "hunter22"
