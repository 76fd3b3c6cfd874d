"""The command as a user types it: sweeps end to end, failures, resume, and one line for a mistake."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ctxexp import Results
from ctxexp.command import registry
from ctxexp.command.help import MOVED
from ctxexp.results import Key
from tests.composed import run_command_line
from tests.shipped import GROUPS
from tests.warm import Warm


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Path:
    """A folder to stand in, with a small text and an empty store."""
    from tests.shipped import polysemy

    folder = tmp_path_factory.mktemp("cli")
    shutil.copytree(empty_store, folder / "mlruns")
    lines = [s.text for s in polysemy().sentences if s.words and "the" in s.words][:120]
    (folder / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


SMALL = ["dataset=text", "dataset.path=text.txt", "baseline=b100", "bootstrap=50"]


def ctxexp(
    place: Path, *words: str, check: int | None = 0, warm: Warm | None = None
) -> subprocess.CompletedProcess[str]:
    """`python -m ctxexp WORDS` in `place`, from nothing or from libraries that are `warm`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "HYDRA_"))}
    env = {**kept, "CTXEXP_CACHE": str(place / "cache"), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    python = warm.python if warm else sys.executable
    done = subprocess.run(
        [python, "-m", "ctxexp", *words], cwd=place, env=env, capture_output=True, text=True, timeout=400
    )
    if check is not None:
        assert done.returncode == check, done.stdout + done.stderr
    return done


def job_folders(place: Path) -> list[Path]:
    return sorted((p.parent for p in place.glob("mlruns/results/*/*/results.json")), key=lambda p: p.stat().st_mtime)


PAPER = ("self_similarity", "intra_sentence_similarity", "max_explainable_variance")


@pytest.mark.slow
def test_a_sweeps_second_run_encodes_nothing(place: Path, warm: Warm) -> None:
    from mlflow import MlflowClient

    done = ctxexp(place, "-m", "model=bert,gpt2", *SMALL, warm=warm)
    assert done.stdout.splitlines()[-1].startswith("report: ")
    assert len(done.stdout.strip().splitlines()) <= 14
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 100
    client = MlflowClient(f"sqlite:///{place}/mlruns/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name("ctxexp").experiment_id])
    jobs = {r.info.run_name: r for r in runs if r.data.tags["ctxexp.kind"] == "job"}
    assert set(jobs) == {f"{model} (text.txt, b100)" for model in ("bert", "gpt2")}
    assert {r.info.status for r in runs} == {"FINISHED"}
    assert len({r.data.tags["ctxexp.sweep"] for r in runs}) == 1
    assert sum(r.data.tags["ctxexp.kind"] == "summary" for r in runs) == 1
    assert len({r.data.tags["mlflow.runColor"] for r in jobs.values()}) == 2
    for folder in job_folders(place):
        results = Results.load(folder)
        run = jobs[f"{results.info.title} (text.txt, b100)"]
        of_measures = {name.partition("/")[0].partition(" ")[0] for name in run.data.metrics}
        assert of_measures == {"contextuality", "anisotropy", *PAPER}, sorted(run.data.metrics)
        assert len(run.data.metrics) <= 12, sorted(run.data.metrics)
        assert 15 < len(run.data.params) <= 35, run.data.params
        assert results.info.encoded > 0
        for key in (
            Key("self_similarity", "raw"),
            Key("anisotropy", "mean_cosine"),
            Key("max_explainable_variance", "raw"),
        ):
            bands = rf"{key.measure}( \d of \d bands)?/{key.statistic}"  # those that this text fills
            (name,) = (name for name in run.data.metrics if re.fullmatch(bands, name))
            history = sorted(client.get_metric_history(run.info.run_id, name), key=lambda m: m.step)
            assert [m.step for m in history] == list(range(results.n_layers))
            assert [m.value for m in history] == results.by_key[key].value.tolist()
    summary = next(place.glob("mlruns/results/*/summary"))
    assert {"report.html", "comparison.csv", "overview.svg"} <= {p.name for p in summary.iterdir()}

    before = len(job_folders(place))
    ctxexp(place, "model=bert", "metric=self_similarity", *SMALL, warm=warm)
    [again] = job_folders(place)[before:]
    assert Results.load(again).info.encoded == 0

    resumed = ctxexp(place, "model=bert", "metric=self_similarity", *SMALL, "resume=true", warm=warm)
    assert "finished before" in resumed.stdout
    assert len(job_folders(place)) == before + 1


@pytest.mark.slow
def test_a_failed_job_is_recorded_and_the_sweep_goes_on(place: Path, warm: Warm) -> None:
    words = ["-m", "dataset=nowhere.txt,text.txt", "metric=anisotropy", "baseline=b100", "sink=none"]
    done = ctxexp(place, *words, check=1, warm=warm)
    assert done.stderr.count("error: no such file or folder: nowhere.txt (dataset.path)\n") == 1
    assert "Traceback" not in done.stderr
    assert done.stdout.startswith("bert (nowhere.txt): failed, no such file or folder: nowhere.txt")
    assert done.stdout.splitlines()[-1].startswith("report: ")
    states = [json.loads(p.read_text()) for p in place.glob("mlruns/results/*/*/status.json")]
    assert any(s["status"] == "FAILED" and "nowhere.txt" in s["error"] for s in states)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, warm: Warm) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    done = ctxexp(tmp_path, "tracking.folder=taken", "metric=anisotropy", check=2, warm=warm)
    assert done.stderr.startswith(f"error: cannot write {tmp_path}/taken/results/")
    assert done.stderr.endswith("choose a writable place (tracking.folder=)\n")


def test_help_is_one_screen_that_names_every_verb_and_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    words = set(re.findall(r"[\w-]+", "\n".join(lines)))
    offers = [registry().find("command", name) for name in registry().names("command")]
    assert {*GROUPS, *(one.name for one in offers if not one.summary.startswith(MOVED))} <= words


def test_start_up_imports_nothing_heavy() -> None:
    """A run's mistakes are said quickly because these stay out."""
    code = (
        "import sys; from ctxexp.command import compose; compose.prepare();"
        "compose.compose_run(['model=elmo']);"
        "compose.compose_run(['model=huggingface', 'model.checkpoint=a/b']);"
        "heavy = {'torch', 'mlflow', 'transformers', 'matplotlib', 'plotly', 'sklearn', 'scipy', 'pandas', 'h5py'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    help_alone = (
        "import sys, ctxexp; from ctxexp.command.cli import run_command_line; run_command_line(['--help']);"
        "run_command_line(['--help', 'metric']);"
        "print(sorted({'numpy', 'pydantic', 'hydra', 'omegaconf'} & set(sys.modules)), ctxexp.maths.__name__)"
    )
    for each, printed in ((code, "[]"), (help_alone, "[] ctxexp.maths")):
        done = subprocess.run([sys.executable, "-c", each], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == printed


def test_with_json_an_error_is_a_document_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["conform", "metric/anisotropi", "json=true"]) == 2
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert (document["verb"], document["status"], document["tables"]) == ("conform", 2, {})
    assert document["sentences"] == [printed.err.strip()]
    assert "anisotropy" in printed.err


def test_an_empty_argument_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """As of a shell's variable that has no value: the embedded text would be measured in its place."""
    assert run_command_line(["bert", ""]) == 2
    assert "an argument is empty" in capsys.readouterr().err
