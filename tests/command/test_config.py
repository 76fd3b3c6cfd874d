"""Every config that ships composes, the paper's is its protocol, and what one says of the cache is taken."""

from __future__ import annotations

import shutil
from collections import defaultdict
from itertools import chain, zip_longest
from pathlib import Path

import pytest

from ctxexp.command import Experiment
from ctxexp.plugins.registry import config_folders
from ctxexp.vectors.cache import bytes_of
from tests.composed import check_command, composed, config_of
from tests.shipped import GROUPS

NEEDED = {
    "model=huggingface": ["model.checkpoint=x"],
    "model=word_vectors": ["model.path=x"],
    "model=vectors": ["model.path=x"],
    "dataset=vectors": ["dataset.path=x"],
    "dataset=text": ["dataset.path=x"],
    "dataset=qnli": ["dataset.path=x"],
    "dataset=tagged": ["dataset.path=x"],
    "dataset=huggingface": ["dataset.path=x"],
}


def commands() -> list[list[str]]:
    """All metrics at once; an experiment, an engine, or a choice of a group that a plugin's experiments add; else one
    choice of every group at a time."""
    metrics, alone, by_group = [], [], defaultdict[str, list[list[str]]](list)
    for group, name in sorted((p.parent.name, p.stem) for folder in config_folders() for p in folder.glob("*/*.yaml")):
        option = f"{group}={name}"
        if group == "metric":
            metrics.append(name)
        elif group not in GROUPS:
            alone.append([f"+{option}"])
        elif group in ("experiment", "engine"):
            alone.append([option])
        else:
            by_group[group].append([option, *NEEDED.get(option, [])])
    together = [[*chain.from_iterable(row)] for row in zip_longest(*by_group.values(), fillvalue=[])]
    return [[f"metric=[{','.join(metrics)}]"], *alone, *together]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_yaml_composes_and_checks(words: list[str]) -> None:
    if "engine=ray" in words:
        pytest.importorskip("ray", reason="Ray isn't installed: pip install 'ctxexp-scale[ray]'")
    check_command(words, multirun=True)  # whose files are the jobs' own matter


def test_a_sweep_over_names_globs_and_ranges_composes() -> None:
    of_files = "huggingface,word_vectors,vectors,sentence_transformer"
    for models, seeds in (("bert,gpt2,elmo", "1,2"), (f"glob(*,exclude=[{of_files}])", "range(1,3)")):
        check_command([f"model={models}", f"seed={seeds}"], multirun=True)


def test_the_papers_protocol() -> None:
    config = config_of(["experiment=ethayarajh_2019"])
    assert config.weights.name == "published"
    assert config.dataset.name == "sts_2012_2016"
    assert config.baseline.name == "one_per_sentence"
    assert config.baseline.arguments == {"size": 1000, "redraws": 30, "exact": False}
    assert config.min_contexts == 5
    assert config.metric["intra_sentence_similarity"].arguments["sample"] == 500
    assert config.metric["max_explainable_variance_released"].arguments["definition"] == "released"
    for name in ("max_explainable_variance", "max_explainable_variance_released"):  # the paper's level, by name
        assert config.metric[name].arguments["baselines"] == ["run", "size_matched"]
    usual = config_of([])
    assert usual.metric["max_explainable_variance"].arguments["baselines"] == ["size_matched"]


@pytest.mark.parametrize(
    ("given", "expected"), [("auto", 40 * 10**9), ("20", 20 * 10**9), ("0.5", 5 * 10**8), ("null", None)]
)
def test_a_number_stays_and_otherwise_the_disk_decides(
    given: str, expected: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**12, 0, 80 * 10**9))
    vectors = Experiment(composed(f"cache.folder={tmp_path}", f"cache.limit_gb={given}")).vectors
    assert (bytes_of(vectors.limit_bytes, vectors.cache), vectors.cache) == (expected, tmp_path)
    assert composed().cache.limit_gb == "auto"
