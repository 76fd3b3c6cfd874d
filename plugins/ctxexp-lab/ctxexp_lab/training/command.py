"""The verb `train`: Hydra composes conf/train.yaml and the overrides, once or, with -m, for each of a sweep."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ctxexp.errors import ConfigError
from ctxexp.report import Document

CONF = Path(__file__).parent / "conf"
OUTPUTS = Path("outputs/minis")
SWITCHES = ("-m", "--multirun", "-r", "--run", "--resolve")  # flags of Hydra's that take no value


def train(*words: str) -> Document:
    """Train a small model, or go on where one was stopped: bert|gpt2|elmo FOLDER minutes=45 (or steps=), FOLDER of
    text."""
    if {"-h", "--help"} & set(words):  # Hydra's own has no comments
        return Document((CONF / "train.yaml").read_text(encoding="utf-8").splitlines())

    from transformers.utils.logging import disable_progress_bar

    from ctxexp_lab.training.train import train as run_training

    def job(cfg: DictConfig) -> float:
        cfg.folder = str(folder_of(cfg, swept_keys(args)))
        losses[Path(cfg.folder)] = run_training(cfg)["loss"]
        return losses[Path(cfg.folder)]

    disable_progress_bar()  # of writing files of a few MB
    args, losses = [*map(_as_override, ["", *words], words)], dict[Path, float]()
    sys.argv[1:] = args  # Hydra reads them there
    os.environ["HYDRA_FULL_ERROR"] = "1"  # its exceptions come through, instead of a traceback of its own
    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name="train")(job)()
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(" ".join(str(error).split())) from error
    said = [f"{folder.name}: held-out loss {loss:.4f}" for folder, loss in losses.items()]
    return Document(said, files=[*losses])


def _as_override(before: str, word: str) -> str:
    """A bare word as its key's value: a kind of model, or the text's folder; behind a flag of Hydra's, as it stands."""
    if "=" in word or word.startswith("-") or (before.startswith("-") and before not in SWITCHES):
        return word
    return f"model={word}" if (CONF / "model" / f"{word}.yaml").exists() else f"text={word}"


def swept_keys(words: Sequence[str]) -> list[str]:
    """The keys that a sweep gives several values."""
    overrides = OverridesParser.create().parse_overrides([word for word in words if not word.startswith("-")])
    return [override.key_or_group for override in overrides if override.is_sweep_override()]


def folder_of(cfg: DictConfig, swept: list[str]) -> Path:
    """The training's folder: a sweep's each have one of their own, named by what tells them apart."""
    model_choice = HydraConfig.get().runtime.choices.model
    other_keys = [key for key in swept if key != "model"]
    name = "-".join([model_choice, *(f"{key.rpartition('.')[2]}={OmegaConf.select(cfg, key)}" for key in other_keys)])
    if cfg.folder is None:
        return OUTPUTS / name
    return Path(cfg.folder) / name if swept else Path(cfg.folder)
