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

class Leaky(Watch):
    """Raises errors and returns a link that quote its key."""

    def log(self, results, folder):
        raise ValueError(f"no such key: {self.pin}, {self.pin!r}, key{self.pin}_v2")

    def metadata(self):
        return {"link": f"https://host/runs?id={self.pin}", "hint": f", served by key{self.pin}_v2"}

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
    folder, words = experiment("hunter22", received), [*RUN, "sink=none", "experiment=mine"]
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


@pytest.mark.parametrize(
    "words",
    [
        ["sink=leaky", "sink.leaky.pin=hunter22"],
        ["sink=[mlflow,leaky]", "sink.leaky.pin=${oc.env:MYKEY}"],
        ["sink=leaky", "sink.leaky.pin='${oc.decode:${oc.env:LISTED}}'"],
        ["sink=none", "experiment=mine"],
        pytest.param(
            ["-m", "sink=leaky", "sink.leaky.pin=${oc.env:MYKEY}", "hydra/launcher=joblib", "seed=0,1"],
            marks=pytest.mark.slow,
        ),
    ],
    ids=["clear", "with MLflow", "decoded", "a YAML", "workers"],
)
def test_errors_and_links_of_sinks_are_masked(
    words: list[str], received: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MYKEY", 'hunter22$"x')
    monkeypatch.setenv("LISTED", "hunter22listed")
    folder = experiment("${oc.env:MYKEY}", received, "leaky")
    assert typed([*folder, *RUN, *words], monkeypatch) == 1
    printed = "".join(capfd.readouterr())
    assert "ValueError: no such key: ***, '***', key***_v2" in printed
    assert_hidden("hunter22", printed)
    assert "https://host/runs?id=***" in next(Path().rglob("status.json")).read_text()


def test_a_link_is_printed_without_the_key(
    received: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    watch = Path("watch.py")
    watch.write_text(watch.read_text().replace("raise ValueError", "print"))
    monkeypatch.setenv("MYKEY", "hunter22")
    assert not typed([*RUN, "sink=leaky", "sink.leaky.pin=${oc.env:MYKEY}"], monkeypatch)
    assert "run:        https://host/runs?id=***, served by key***_v2\n" in capfd.readouterr().out


@pytest.mark.parametrize("flags", [["--cfg", "job", "--resolve"], ["--info", "config"]], ids=["resolved", "info"])
@pytest.mark.parametrize("value", ["${oc.env:MYKEY}", "hunter22", "[hunter22]"], ids=["reference", "clear", "a list"])
def test_a_config_is_printed_without_its_keys(
    flags: list[str],
    value: str,
    received: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MYKEY", "hunter22")
    assert not typed([*experiment(value, received), *flags, *RUN, "sink=none", "experiment=mine"], monkeypatch)
    printed = "".join(capfd.readouterr())
    assert "pin:" in printed
    assert_hidden("hunter22", printed)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["sink.watch.pin=hunter22", "--help", "sink=watch", *RUN], "no group, key or verb 'sink.watch.pin=***'"),
        (["sink.other.api_key='hunter22'", "--help"], "no group, key or verb \"sink.other.api_key='***'\""),
        (["--hlep", "sink.watch.pin=hunter22", *RUN], "unrecognized arguments: --hlep; ctxexp --help"),
        (["--info", "sink.watch.pin=hunter22", *RUN], "invalid choice: 'sink.watch.pin=...'"),
        (["ui", "--api-key=hunter22"], "'--api-key=***': expected key=value"),
        (["conform", "watch", "pni=hunter22", "pin=hunter22", RUN[-1]], "no argument 'pni'"),
    ],
)
def test_an_early_error_quotes_no_secret(
    words: list[str], says: str, received: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert typed(words, monkeypatch) == 2
    printed = "".join(capfd.readouterr())
    assert says in printed
    assert "hunter22" not in printed


def test_a_sweep_may_say_so_among_its_overrides(received: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not typed([RUN[-1], *RUN[:-1], "-m", "sink=watch", "sink.watch.pin=hunter22", "seed=0,1"], monkeypatch)
    assert received.read_text().splitlines() == ["hunter22|"] * 2


@pytest.mark.parametrize(("sink", "broken"), [("watch", 0), ("leaky", 1)])
def test_conform_shows_no_key(
    sink: str, broken: int, received: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert typed(["conform", sink, "pin=hunter22", "api_key=k", RUN[-1]], monkeypatch) == broken
    printed = "".join(capfd.readouterr())
    assert f"sink {sink} pin=*** api_key=***" in printed
    assert ("no such key: ***" in printed) == bool(broken)
    assert "hunter22" not in printed


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
