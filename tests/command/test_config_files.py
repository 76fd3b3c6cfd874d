"""Configs that are parsed once a process are Hydra's own, and follow their files."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from ctxexp.command import compose, config_files
from ctxexp.command.names import config_folder

COMMANDS = (
    [],
    ["model=gpt2", "metric=[self_similarity,isoscore]", "baseline=b100"],
    ["experiment=ethayarajh_2019", "model=elmo", "model.layers=[0,2]"],
    ["transform=whitening", "hydra/launcher=joblib", "hydra/sweeper=optuna", "seed=3"],
)


@pytest.mark.parametrize("overrides", COMMANDS, ids=" ".join)
def test_a_config_is_the_one_that_hydra_composes(overrides: list[str]) -> None:
    compose.prepare()
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(config_folder()), version_base="1.3"):
        own = hydra_compose("ctxexp", overrides=overrides, return_hydra_config=True)
    for _ in range(2):  # parsed, then remembered
        with compose._hydra():
            composed = compose._compose_job(overrides)
        assert OmegaConf.to_yaml(composed) == OmegaConf.to_yaml(own)
        assert composed._metadata.flags == own._metadata.flags


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a config `one`, in a loader that parses once."""
    (tmp_path / "one.yaml").write_text("value: 1\ninner: {x: 2}\n")
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(tmp_path), version_base="1.3"):
        config_files.parse_once(GlobalHydra.instance().config_loader())
        yield tmp_path


def test_a_file_is_parsed_once_and_anew_when_it_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []

    def load(file: TextIO) -> Any:
        parsed.append(Path(file.name).name)
        return own_load(file)

    own_load = OmegaConf.load
    monkeypatch.setattr(OmegaConf, "load", load)
    first = hydra_compose("one")
    assert parsed.count("one.yaml") == 1
    first.inner.x = 5
    assert hydra_compose("one").inner.x == 2  # what a caller changes stays with it
    assert parsed.count("one.yaml") == 1
    (folder / "one.yaml").write_text("value: 10\ninner: {x: 2}\n")
    assert hydra_compose("one").value == 10
    (folder / "one.yaml").unlink()
    with pytest.raises(Exception, match="Cannot find primary config 'one'"):
        hydra_compose("one")


def test_a_stored_config_is_taken_anew_when_another_is_stored(folder: Path) -> None:
    store = ConfigStore.instance()
    before = copy.copy(store.repo)
    try:
        store.store(name="made", node={"value": 1})
        assert hydra_compose("made").value == 1
        assert hydra_compose("made").value == 1
        store.store(name="made", node={"value": 2})
        assert hydra_compose("made").value == 2
    finally:
        store.repo = before
