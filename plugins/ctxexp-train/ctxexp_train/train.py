"""Trains a mini: `ctxexp train model=bert|gpt2|elmo text=<folder of *.txt.xz> minutes=45`.

Runs resume from their checkpoint, and a resumed run gives the weights that an uninterrupted one gives: a step depends
on the weights, the seed and its number alone. A run timed by `minutes` records its `steps`, which reproduce it.
"""

from __future__ import annotations

import csv
import json
import logging
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import hydra
import torch
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ctxexp.errors import ConfigError, line
from ctxexp_train.data import PieceStreams, TextSource
from ctxexp_train.optimiser import Optimiser, rate_scale

log = logging.getLogger("ctxexp_train")
CONF = Path(__file__).parent / "conf"


class Learner(Protocol):
    """A network in training, with its loss at each step."""

    network: Any
    unit: str

    def in_block(self, name: str) -> bool: ...
    def units(self, step: int, steps: int | None) -> int: ...
    def loss(self, step: int, steps: int | None) -> torch.Tensor: ...
    def held_out(self, limit: int | None) -> dict[str, float]: ...
    def begin_from(self, folder: Path) -> None: ...
    def export(self, folder: Path) -> None: ...


def learner(cfg: DictConfig) -> Learner:
    """The untrained model that `cfg.model` describes, with its text."""
    text = TextSource(Path(cfg.text), tuple(cfg.files), cfg.held_out, cfg.words, cfg.seed, cfg.skip)
    if cfg.model.name == "elmo":
        from ctxexp_train.bilm import Bilm, WordStreams

        words = WordStreams.of(text, vocabulary=cfg.model.vocabulary, cache=Path(cfg.cache))
        return Bilm(cfg, words)
    from ctxexp_train.transformer import Transformer

    return Transformer(cfg, PieceStreams.of(text, vocabulary=cfg.model.shape.vocabulary, cache=Path(cfg.cache)))


class TrainingRun:
    """One training run in a folder: checkpoint.pt, curve.csv, held_out.csv, run.json, and export/ at its end."""

    def __init__(self, cfg: DictConfig) -> None:
        if (cfg.steps is None) == (cfg.minutes is None):
            raise ConfigError(f"give either steps= or minutes=, not steps={cfg.steps} minutes={cfg.minutes}")
        torch.set_num_threads(cfg.threads)
        self.cfg, self.folder = cfg, Path(cfg.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.learner = learner(cfg)
        self.optimiser = Optimiser(
            self.learner.network,
            self.learner.in_block,
            muon_rate=cfg.model.muon_rate,
            adamw_rate=cfg.model.adamw_rate,
            weight_decay=cfg.weight_decay,
            clip=cfg.clip,
        )
        self.step, self.seconds, self.units = 0, 0.0, 0
        self.begun = 0  # the step at which the optimiser had no moments yet
        self.best_loss, self.best_step = math.inf, 0  # of the checks so far
        self.steps: int | None = cfg.steps
        if (self.folder / "checkpoint.pt").is_file():
            self._load()
        elif cfg.start is not None:
            self.learner.begin_from(Path(cfg.start))

    def _load(self) -> None:
        state = torch.load(self.folder / "checkpoint.pt", weights_only=True)
        self.learner.network.load_state_dict(state["network"])
        self.step, self.seconds, self.units = state["step"], state["seconds"], state["units"]
        if state["optimiser"] is None:  # of a condensed checkpoint
            self.begun = self.step
        else:
            self.optimiser.load(state["optimiser"])
            self.begun = state["begun"]
        self.best_loss, self.best_step = state["best_loss"], state["best_step"]
        self.steps = self.cfg.steps if self.cfg.steps is not None else state["steps"]
        for name in ("curve", "held_out"):
            self._forget_after(self.folder / f"{name}.csv")
        log.info("resumed at step %d of %s", self.step, self.steps)

    def _forget_after(self, path: Path) -> None:
        """Drops rows beyond the checkpoint, which are about to be computed again."""
        if path.is_file():
            head, *rows = path.read_text().splitlines(keepends=True)
            path.write_text("".join([head, *(r for r in rows if int(r.split(",", 1)[0]) <= self.step)]))

    def save(self) -> None:
        """Writes the checkpoint atomically."""
        state = {
            "network": self.learner.network.state_dict(),
            "optimiser": self.optimiser.state(),
            "step": self.step,
            "steps": self.steps,
            "seconds": self.seconds,
            "units": self.units,
            "best_loss": self.best_loss,
            "best_step": self.best_step,
            "begun": self.begun,
        }
        self._write_whole(state, "checkpoint.pt")

    def _write_whole(self, state: object, name: str) -> None:
        torch.save(state, self.folder / f"{name}.tmp")
        (self.folder / f"{name}.tmp").replace(self.folder / name)

    def _write(self, name: str, row: dict[str, float]) -> None:
        path = self.folder / f"{name}.csv"
        new = not path.is_file()
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, row)
            if new:
                writer.writeheader()
            writer.writerow(row)
        if self.cfg.tracking:
            import mlflow

            values = {f"{name}/{k}": float(v) for k, v in row.items() if k != "step"}
            mlflow.log_metrics(values, step=int(row["step"]))

    def check(self, limit: int | None) -> dict[str, float]:
        """Held-out losses now, in the log and in held_out.csv."""
        losses = self.learner.held_out(limit)
        log.info("step %d: held-out %s", self.step, {k: round(v, 4) for k, v in losses.items()})
        at = {"step": self.step, "units": self.units, "minutes": round(self.seconds / 60, 2)}
        self._write("held_out", {**at, **losses})
        return losses

    def _compare(self) -> None:
        """Keeps the network beside the checkpoint if no check before had a lower loss."""
        loss = self.check(self.cfg.held_out_limit)["loss"]
        if loss < self.best_loss:
            self.best_loss, self.best_step = loss, self.step
            self._write_whole(self.learner.network.state_dict(), "best.pt")

    def train(self) -> None:
        """Steps until the run's end or `stop_after`, saving now and then and at the end."""
        cfg, done, total = self.cfg, 0, 0.0
        cast = torch.autocast("cpu", torch.bfloat16) if cfg.precision == "bf16" else nullcontext()
        last_save = time.monotonic()
        while self.steps is None or self.step < self.steps:
            if cfg.stop_after is not None and self.step >= cfg.stop_after:
                break
            start = time.monotonic()
            with cast:
                loss = self.learner.loss(self.step, self.steps)
            loss.backward()  # type: ignore[no-untyped-call]  # torch's is not annotated
            scale = rate_scale(self.step, self.steps, warmup=cfg.warmup, decay=cfg.decay, begun=self.begun)
            self.optimiser.step(scale)
            self.units += self.learner.units(self.step, self.steps)
            self.step += 1
            self.seconds += time.monotonic() - start
            total, done = total + loss.item(), done + 1
            if self.step % cfg.log_every == 0:
                at = {"step": self.step, "units": self.units, "minutes": round(self.seconds / 60, 2)}
                self._write("curve", {**at, "loss": round(total / done, 5), "rate": round(scale, 5)})
                log.info("step %d of %s: %.4f, %.0f %ss a second", self.step, self.steps, total / done,
                         self.units / self.seconds, self.learner.unit)  # fmt: skip
                done, total = 0, 0.0
            if self.steps is None and self.seconds >= 60 * cfg.minutes * (1 - cfg.decay):
                self.steps = max(self.step + 1, round(self.step / (1 - cfg.decay)))
                log.info("the decay begins: %d steps in all", self.steps)
            if self.step % cfg.held_out_every == 0:
                with cast:
                    self._compare()
            if time.monotonic() - last_save > cfg.save_every:
                self.save()
                last_save = time.monotonic()
        if self.step == self.steps and self.step % cfg.held_out_every and self.best_step:
            with cast:
                self._compare()
        self.save()

    def finish(self) -> dict[str, float]:
        """Writes run.json and the exported folder of the best network checked (the last one, if none was); returns its
        losses on the whole held-out text, in float32."""
        if self.best_step:
            self.learner.network.load_state_dict(torch.load(self.folder / "best.pt", weights_only=True))
        losses = self.check(None)
        choices = OmegaConf.to_container(self.cfg, resolve=True)
        assert isinstance(choices, dict)
        for place in ("text", "cache", "folder", "start", "tracking", "stop_after", "minutes", "hydra"):
            choices.pop(place, None)
        record = {
            "steps": self.step,
            "best_step": self.best_step or self.step,
            "units": self.units,
            "unit": self.learner.unit,
            "minutes": round(self.seconds / 60, 1),
            "held_out": losses,
            "recipe": choices | {"steps": self.steps},
            "went_on_from": self.cfg.start and json.loads((Path(self.cfg.start) / "run.json").read_text()),
            "torch": torch.__version__,
        }
        export = self.folder / "export"
        self.learner.export(export)
        (export / "run.json").write_text(json.dumps(record, indent=1) + "\n")
        for name in ("curve", "held_out"):
            if (self.folder / f"{name}.csv").is_file():
                (export / f"{name}.csv").write_text((self.folder / f"{name}.csv").read_text())
        return losses


def train(cfg: DictConfig) -> dict[str, float]:
    """Trains or resumes, checks and exports; gives the held-out losses (nats a unit; see the model's card)."""
    run = TrainingRun(cfg)
    with _tracked(cfg, run.folder) if cfg.tracking else nullcontext():
        run.train()
        return run.finish()


@contextmanager
def _tracked(cfg: DictConfig, folder: Path) -> Iterator[None]:
    """An MLflow run in experiment "minis" for the loss curves; a resumed training goes on in the run it began in."""
    import mlflow

    address = os.environ.get("MLFLOW_TRACKING_URI")  # set_tracking_uri leaves its argument there, for all that follows
    mlflow.set_tracking_uri(cfg.tracking)
    mlflow.set_experiment("minis")
    note = folder / "mlflow_run_id"
    run_id = note.read_text() if note.is_file() else None
    try:
        with mlflow.start_run(run_id=run_id, run_name=cfg.model.name) as active:
            if run_id is None:
                note.write_text(active.info.run_id)
                names = ("seed", "words", "steps", "minutes", "norm", "tied", "cosine_penalty")
                mlflow.log_params({"model": cfg.model.name} | {name: cfg[name] for name in names})
            yield
    finally:
        os.environ.pop("MLFLOW_TRACKING_URI", None)
        if address is not None:
            os.environ["MLFLOW_TRACKING_URI"] = address


def main(argv: list[str]) -> int:
    """The verb: trains as conf/train.yaml and these overrides say. Raises ConfigError for what Hydra can't compose."""
    if {"-h", "--help"} & set(argv):  # Hydra's own needs a model first
        print((CONF / "train.yaml").read_text(encoding="utf-8"), end="")
        return 0
    sys.argv[1:] = argv  # Hydra reads them there
    os.environ["HYDRA_FULL_ERROR"] = "1"  # its exceptions come through, instead of a traceback of its own
    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name="train")(train)()
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(line(str(error))) from error
    return 0
