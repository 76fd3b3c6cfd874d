"""The kit passes what ships, and is a command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ctxexp import GroupMean
from ctxexp.errors import ConfigError, ConformanceError
from ctxexp.testing import check_metric
from ctxexp.testing.by_name import conform
from tests.composed import forget_plugin_files, registry_of, run_command_line
from tests.shipped import KINDS, MaxExplainableVariance, SelfSimilarity

# What ships.

OPTIONS = {
    "model/bert": [{}, {"pooling": "pieces"}],
    "model/elmo": [{"state": "carry"}],
    "model/gpt2": [{"dtype": "bfloat16", "long": "refuse"}],
    "model/huggingface": [],  # bert and gpt2 are of it
    "model/word_vectors": [],  # no file of vectors comes with ours: tests/test_vector_files.py writes one
    "dataset/text": [{"path": str(Path(__file__).resolve().parents[2] / "LICENSE")}],
    "dataset/sick_r": [],  # of sts
    "dataset/sts_b": [],  # of published data, below
    "dataset/sts_2012_2016": [],
    "dataset/sts": [],  # sts_b is of it
}
LAYER_0 = {
    "model/bert": "note    layer 0 holds the word and its position",
    "model/elmo": "note    layer 0 holds the word\n",
}
SHIPPED = [
    pytest.param(
        f"{kind}/{name}",
        options,
        marks=[*[pytest.mark.slow] * (kind == "model"), *[pytest.mark.nightly] * ("pooling" in options)],
    )
    for kind, name in registry_of().offers
    if kind in KINDS and kind not in ("metric", "engine")  # cases of tests/metric_tester.py; tests/engines
    for options in OPTIONS.get(f"{kind}/{name}", [{}])
]


@pytest.mark.parametrize(("name", "options"), SHIPPED, ids=lambda v: v if isinstance(v, str) else "-".join(v))
def test_what_ships_conforms(name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)  # which an installation by itself hasn't
    report = conform(name, options)
    assert " 0 broken" in report
    assert "warned" not in report
    assert LAYER_0.get(name, "") in report


def test_a_published_set_conforms(shared: Path) -> None:
    assert " 0 broken" in conform("dataset/sts_b", {"path": str(shared / "data" / "sts" / "STSbenchmark")})


def test_the_score_of_noise_is_said_and_whether_it_depends_on_n() -> None:
    class Bare(GroupMean):
        over, definition = "word", "length of the mean"

        def score(self, x: np.ndarray) -> np.ndarray:
            return np.linalg.norm(x.mean(axis=-2), axis=-1)

    for metric, depends in ((SelfSimilarity, False), (MaxExplainableVariance, False), (Bare, True)):
        (note,) = (note for note in check_metric(metric).notes if note.startswith("noise scores "))
        assert " at n=2, " in note
        assert ("it depends on n; baselines = ('size_matched',)" in note) is depends, metric


@pytest.fixture(autouse=True)
def _no_files() -> Iterator[None]:
    """Plugin files are loaded for the process."""
    yield
    forget_plugin_files()


SETS = """
import ctxexp

def words(*, order: str = "set"):
    "Words of a set."
    found = {f"word{i}" for i in range(50)}
    return ctxexp.Corpus.of("words", [[w] for w in (sorted(found) if order == "sorted" else found)])

@ctxexp.hookimpl
def register_datasets(register):
    register("words", words)
"""


def test_a_data_set_in_the_order_of_a_set(tmp_path: Path) -> None:
    file = tmp_path / "sets.py"
    file.write_text(SETS)
    with pytest.raises(ConformanceError, match=r"BROKEN  the same in another process: .*is it the order of a set"):
        conform("words", {"plugins": [str(file)]})
    assert " 0 broken" in conform("words", {"plugins": [str(file)], "order": "sorted"})


# The command.

MUTANT = """
import numpy as np
import ctxexp

class Sum(ctxexp.GroupMean):
    over = "word"
    invariances = frozenset({"scale"})

    def __init__(self, *, power: int = 1):
        super().__init__()
        self.power = power

    def score(self, x):
        return x.astype(float).sum((-2, -1)) ** self.power

@ctxexp.hookimpl
def register_metrics(register):
    register("sum", Sum)
"""


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MUTANT)
    assert run_command_line(["conform", "metric/self_similarity", "sample=3"]) == 0
    printed = capsys.readouterr()
    assert "metric self_similarity sample=3: 10 laws hold, 0 broken" in printed.out
    assert printed.err == ""
    assert run_command_line(["conform", "sum", "power=3", f"plugins=[{file}]"]) == 1
    out = capsys.readouterr().out
    assert f"metric sum power=3 of plugin 'mine' ({file} sha256:" in out
    assert "BROKEN  invariances: it declares scale" in out
    for words, message in (
        (["bret"], "error: no name 'bret'; did you mean 'bert'?"),
        (["metrics/sum"], "error: no name 'metrics/sum'; did you mean 'metric/sum' or "),
        (["bert", "poling=first"], "error: model 'bert' has no argument 'poling'; did you mean 'pooling'"),
        ([], "error: ctxexp conform needs NAME: what it is registered as: bert, or with its kind"),
        (["bert", "plugins=3"], "error: plugins=3: expected a list of files"),
        (["dataset/text"], "error: dataset 'text' needs dataset.path=<str>"),
    ):
        assert run_command_line(["conform", *words]) == 2
        assert message in capsys.readouterr().err
    assert run_command_line(["conform", "--help"]) == 0


def test_options_that_are_files_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MUTANT.replace('{"scale"}', ""))
    folder = tmp_path / "ctxexp_conf" / "metric" / "sum"
    folder.mkdir(parents=True)
    (folder / "cubed.yaml").write_text("# @package metric.cubed\nname: sum\npower: 3\n")
    for name in ("metric/sum/cubed", "sum/cubed"):
        assert conform(name, {"plugins": [str(file)]}).startswith("metric sum/cubed of plugin 'mine'")
    assert "metric sum/cubed power=1 of" in conform("sum/cubed", {"plugins": [str(file)], "power": 1})
    assert "metric max_explainable_variance_centred: " in conform("max_explainable_variance_centred", {})
    with pytest.raises(
        ConfigError, match=r"no name 'sum/cubd'; did you mean 'sum/cubed' or 'metric/sum/cubed'\? ctxexp"
    ):
        conform("sum/cubd", {"plugins": [str(file)]})
