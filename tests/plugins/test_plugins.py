"""The registry: first-party names come through the hooks, a stranger's mistake is named and the rest goes on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ctxexp import (
    Baseline,
    Control,
    Corpus,
    CtxexpError,
    EncodedSentence,
    Encoder,
    GroupMean,
    Register,
    Transform,
    errors,
    hookimpl,
)
from ctxexp.command import Experiment, compose
from ctxexp.errors import (
    FILE_MODULE,
    ConfigError,
    MetricError,
    PluginError,
    Terminated,
    plugin_call,
)
from ctxexp.plugins.registry import PluginVersion, load_plugin_files, plugin_files, registry
from tests.composed import composed, forget_plugin_files, of, offer, registry_of, run_command_line


class Good:
    @hookimpl
    def register_models(self, register: Register) -> None:
        register("theirs", lambda *, path: path)


def _plugin(**functions: Any) -> object:
    return type("Bad", (), {name: hookimpl(f) for name, f in functions.items()})()


def test_a_broken_plugin_is_named_and_leaves_nothing_behind() -> None:
    def taken(self: object, register: Register) -> None:
        register("new", print)
        register("bert", print)

    def raises(self: object, register: Register) -> None:
        raise ValueError("boom")

    plugins = [
        ("unmarked", type("Unmarked", (), {"register_models": lambda self, register: None})()),
        ("folder", _plugin(config_folders=lambda self, register: None)),
        ("empty", type("Empty", (), {"helper": lambda self: None})()),
        ("taken", _plugin(register_models=taken)),
        ("argument", _plugin(register_models=lambda self, registrar: None)),
        ("hook", _plugin(register_modles=lambda self, register: None)),
        ("callable", _plugin(register_metrics=lambda self, register: register("x", "not callable"))),
        ("raising", _plugin(register_datasets=raises)),
        ("good", Good()),
    ]
    registry = registry_of(plugins)
    report = "\n".join(registry.broken)
    assert "registers model 'bert', which plugin 'ctxexp' already supplies; rename one of them" in report
    assert "registrar" in report  # the argument that the hook doesn't have
    assert "expected a callable factory, or module:name, got 'not callable'" in report
    assert "ValueError: boom" in report
    assert "register_modles" in report  # no such hook
    assert "a hook takes one argument, register" in report
    assert "did you mean 'register_models'" in report
    assert "register_models lacks its mark: put @ctxexp.hookimpl above it" in report
    assert "it offers nothing: mark a function register_models(register) with @ctxexp.hookimpl" in report
    assert len(registry.broken) == 8
    assert "new" not in registry.names("model")
    assert "theirs" in registry.names("model")


# Single files: plugins=[./my_plugin.py]

FILE = """
import dataclasses
import numpy as np
import ctxexp

@dataclasses.dataclass
class Bits(ctxexp.Encoder):
    \"\"\"Words as bits of their length. More is not said.\"\"\"

    width: int = 4
    broken: bool = False

    n_layers = 1

    @property
    def dim(self):
        return self.width

    @property
    def name(self):
        return f"bits width={self.width} broken={self.broken}"

    def encode(self, batch):
        for sentence in batch:
            if self.broken:
                raise ZeroDivisionError("by purpose")
            rows = [[len(w) >> i & 1 for i in range(self.width)] for w in sentence.words]
            yield ctxexp.EncodedSentence(sentence.words, np.array(rows, np.float32).reshape(1, -1, self.width) + 1)

@ctxexp.hookimpl
def register_models(register):
    register("bits", Bits)
"""


def write(folder: Path, text: str = FILE, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("import os\n\nimport nowhere_to_be_found\n", 3, "ModuleNotFoundError: No module named 'nowhere_to"),
        ("def f(:\n", 1, "SyntaxError: "),
        ("def f():\n    return 1 / 0\n\nf()\n", 2, "ZeroDivisionError: division by zero"),
        (FILE.replace("    register(", "    raise KeyError("), 32, "KeyError: ('bits', <class"),
    ],
)
def test_a_broken_file_is_an_error_with_its_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(PluginError) as caught:
        registry_of(files=[path])
    assert str(caught.value).startswith(f"plugin file '{path}' can't be loaded: {message}")
    assert f"line {line}" in str(caught.value)


def test_a_missing_file_has_neighbours(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(PluginError, match=r"no plugin file .*/mne\.py; did you mean mine\.py\?"):
        registry_of(files=[tmp_path / "mne.py"])
    with pytest.raises(PluginError, match=r"no plugin file .*/x\.py$"):
        registry_of(files=[tmp_path / "nowhere" / "x.py"])


@pytest.fixture
def fresh_registry() -> Iterator[None]:
    """What the test makes the process's registry use is forgotten after it."""
    yield
    forget_plugin_files()


@pytest.mark.usefixtures("fresh_registry")
def test_the_command_line_names_files_absolutely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, name="it's mine.py")
    monkeypatch.chdir(tmp_path)
    overrides = compose.take_plugins(["model=bits", 'plugins=["./it\'s mine.py"]'])
    assert overrides[0] == "model=bits"
    assert compose.registry().find("model", "bits").plugin == "it's mine"
    compose.prepare()
    compose.compose_run([*overrides, "model.width=2"])
    with pytest.raises(ConfigError, match=r"model\.width='two': expected int"):
        compose.compose_run([*overrides, "model.width=two"])
    monkeypatch.chdir("/")
    assert compose.take_plugins(overrides) == overrides  # as a worker gets them
    forget_plugin_files()
    with pytest.raises(ConfigError, match="no model 'bits'"):
        compose.compose_run(["model=bits"])
    with pytest.raises(ConfigError, match="files of plugins are named on the command line only"):
        compose.compose_run([overrides[1]])


# Whose fault it is, and what a run records.


CORPUS = Corpus.of("c", [["the", "bank", str(i)] for i in range(6)])


def config(tmp_path: Path, registry: Any, **nodes: Any) -> Any:
    words = ["metric=anisotropy", "baseline=uniform", "bootstrap=5", f"cache.folder={tmp_path}"]
    return composed(*words, registry=registry, **nodes)


def bits(tmp_path: Path, registry: Any, **arguments: Any) -> Any:
    """The config of a run of the model in `FILE`."""
    return of(config(tmp_path, registry, model={"name": "bits", **arguments}), CORPUS)


class _Ones(Encoder):
    name, n_layers, dim = "anything", 1, 2

    def encode(self, batch: Any) -> Any:
        for s in batch:
            yield EncodedSentence(s.words, np.ones((1, len(s.words), 2), np.float32))


def _fails(*args: Any) -> Any:
    raise KeyError("by purpose")


def part(base: type, **members: Any) -> type:
    return type("Bad", (base,), members)


@pytest.mark.parametrize(
    ("kind", "factory", "message"),
    [
        ("model", part(_Ones, encode=_fails), "failed on a batch of 6 sentences, after 0 of them"),
        ("model", dict, "is no encoder: dict doesn't derive from ctxexp.Encoder"),
        ("model", lambda: 1 / 0, "could not be built: ZeroDivisionError: division by zero; check it with: python -m"),
        ("dataset", list, "expected a Corpus or TextStream, got list"),
        ("control", part(Control, corpus=lambda self, corpus, seed: []), "corpus() gave list; expected a Corpus"),
        ("control", part(Control, left_out=_fails), "the control failed: KeyError: 'by purpose'"),
        (
            "transform",
            part(Transform, fit=lambda self, x: None, apply=_fails),
            "fit() gave NoneType at layer 0; end it",
        ),
        ("metric", part(GroupMean, over="word", score=_fails), "failed at layer 0, word 'bank' (or one of 1 more of 6"),
        ("baseline", part(Baseline, name="bad", groups=_fails), "baseline 'bad' failed: KeyError: 'by purpose'"),
    ],
)
def test_what_fails_names_its_plugin(tmp_path: Path, kind: str, factory: Any, message: str) -> None:
    registry = registry_of()
    supplier = PluginVersion("faults", "ctxexp-faults", "0.9")
    registry.offers[kind, "faulty"] = replace(offer(registry, kind, "faulty", factory), supplier=supplier)
    offer(registry, "model", "ones", _Ones)
    node = {"name": "faulty"}
    chosen = {"model": {"name": "ones"}, kind: {"faulty": node} if kind == "metric" else node}
    whole = config(tmp_path, registry, **chosen)
    if kind != "dataset":
        whole = of(whole, CORPUS)
    with pytest.raises(CtxexpError) as caught:
        Experiment(whole).run(tmp_path)
    assert message in str(caught.value)
    assert f"{kind} 'faulty'" in str(caught.value)
    assert "plugin 'faults' (ctxexp-faults 0.9)" in str(caught.value)


def test_a_run_records_the_plugins_that_took_part(tmp_path: Path) -> None:
    path = write(tmp_path)
    registry = registry_of([("unused", Good())], files=[path, path])
    whole = bits(tmp_path, registry)
    (used,) = Experiment(whole).run(tmp_path).info.plugins
    assert used.plugin == "mine"
    assert used.supplies == ("model bits",)
    key = Experiment(whole).key()
    assert Experiment(replace(whole, plugins=["/elsewhere/mine.py"])).key() == key
    made = registry.find("model", "bits")
    registry.offers["model", "bits"] = replace(made, supplier=replace(made.supplier, version="sha256:other"))
    assert Experiment(bits(tmp_path, registry)).key() != key


def test_an_edited_file_is_encoded_again(tmp_path: Path) -> None:
    """Whoever edits a plugin rarely thinks of the encoder's name."""

    encoded = []
    for text in (FILE, FILE, FILE.replace("+ 1)", "+ 2)")):
        registry = registry_of(files=[write(tmp_path, text)])
        results = Experiment(bits(tmp_path, registry)).run(tmp_path)
        encoded.append(results.info.encoded)
    assert encoded == [6, 0, 6]


def test_an_argument_that_the_name_lacks_is_encoded_again(tmp_path: Path) -> None:
    lacking = FILE.replace('return f"bits width={self.width} broken={self.broken}"', 'return "bits"')
    registry = registry_of(files=[write(tmp_path, lacking)])

    def encoded(**arguments: Any) -> int:
        return Experiment(bits(tmp_path, registry, **arguments)).run(tmp_path).info.encoded

    assert [encoded(), encoded(width=4), encoded(width=3), encoded(width=3)] == [6, 0, 6, 0]


@pytest.mark.parametrize("module", [FILE_MODULE + "mine", "a_distribution.inner"])
def test_an_error_in_a_plugin_names_file_and_line(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("mine", "a_distribution:hooks", "ctxexp")
    monkeypatch.setattr(errors, "entry_points", lambda group: [entry])
    names = {"__name__": module}
    exec(compile("import json\ndef compute():\n    json.loads('[')\n", "/my/own.py", "exec"), names)
    message = r"metric 'm' failed: JSONDecodeError: .*\(char 1\) \(/my/own\.py, line 3\)$"
    with pytest.raises(MetricError, match=message), plugin_call("metric", "m"):
        names["compute"]()


def test_a_run_records_its_encoders_own_dtype(tmp_path: Path) -> None:
    registry = registry_of(files=[write(tmp_path)])
    whole = replace(bits(tmp_path, registry), dtype="bfloat16")
    assert Experiment(whole).run(tmp_path).info.model.dtype == "float32"


def test_the_listing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path)
    assert run_command_line(["plugins", str(path)]) == 0
    text = capsys.readouterr().out
    assert re.search(rf"^mine \({re.escape(str(path))}\) sha256:\w+$", text, flags=re.MULTILINE)
    assert re.search(r"^  model=bits +Words as bits of their length\.$", text, flags=re.MULTILINE)
    assert "      width: int = 4, broken: bool = false" in text
    assert run_command_line(["plugins", str(path), "json=true"]) == 0
    told = json.loads(capsys.readouterr().out)["tables"]
    options, keys = (told[name]["rows"] for name in ("options", "keys"))
    assert {"group": "model", "name": "bits", "about": "Words as bits of their length."} in options
    own = {row["key"]: row["value"] for row in keys if (row["group"], row["name"]) == ("model", "bits")}
    assert own == {"model.width": "4", "model.broken": "false"}
    assert "model=bits" in told["plugins"]["rows"][-1]["offers"]
    forget_plugin_files()


@pytest.mark.slow
def test_a_file_works_in_every_worker_of_a_sweep(tmp_path: Path) -> None:
    write(tmp_path)
    words = ["-m", "ctxexp", "-m", "plugins=[./mine.py]", "model=bits", "model.broken=false,true"]
    words += ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "metric=anisotropy", "bootstrap=5", "baseline=b100"]
    words += ["sink=none"]
    env = {**os.environ, "CTXEXP_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("bits broken=True: failed, "), done.stdout
    assert "\nAnisotropy in bits: " in done.stdout
    assert f"ZeroDivisionError: by purpose ({tmp_path / 'mine.py'}, line 26) [model 'bits' is of plugin" in done.stderr
    assert "Traceback" not in done.stderr
    found = [json.loads(p.read_text())["info"]["plugins"] for p in tmp_path.glob("mlruns/results/*/*/results.json")]
    for path in tmp_path.glob("mlruns/results/*/*/run.json"):
        assert json.loads(path.read_text())["params"]["plugins"]["mine"].startswith(f"{tmp_path / 'mine.py'} sha256:")
    ((used,),) = found
    assert used["distribution"] == str(tmp_path / "mine.py")
    assert used["supplies"] == ["model bits"]


# A stranger's sys.exit() ends no command: it is a fault that is named like any other.


def test_termination_is_no_fault_of_the_code_it_interrupts() -> None:
    message = r"^metric 'm' failed: RuntimeError: it called sys\.exit\(3\)$"
    with pytest.raises(MetricError, match=message) as caught, plugin_call("metric", "m"):
        sys.exit(3)
    assert caught.value.part == ("metric", "m")
    with pytest.raises(Terminated), plugin_call("metric", "m"):
        raise Terminated(143)


def test_a_file_that_cannot_be_loaded_leaves_the_earlier_ones(tmp_path: Path) -> None:
    before = plugin_files()
    with pytest.raises(PluginError, match="no plugin file"):
        load_plugin_files([str(tmp_path / "nowhere.py")])
    assert plugin_files() == before
    assert "bert" in registry().names("model")
