"""A training run: its steps, its checkpoint, its curves, and the networks that it exports.

Runs resume from their checkpoint, and a resumed run gives the weights that an uninterrupted one gives: a step depends
on the weights, the seed and its number alone. A run timed by `minutes` records its `steps`, which reproduce it. All
this holds to the bit on a CPU.
"""

from __future__ import annotations

import csv
import json
import logging
import math
import shutil
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Protocol

import torch
from omegaconf import DictConfig

from ctxexp.errors import ModelError
from ctxexp_lab.training.data import PieceStreams, TextSource
from ctxexp_lab.training.optimiser import Optimiser, rate_scale
from ctxexp_lab.training.recipe import check_options, check_same, recipe_of
from ctxexp_lab.training.tracking import Tracker, tracked

CURVES = ("curve", "held_out")  # CSVs of a training's folder, whose columns are MLflow's metrics
log = logging.getLogger("ctxexp_lab")


class Learner(Protocol):
    """A network in training, with its loss at each step."""

    network: Any
    unit: str
    device: torch.device

    def units(self, step: int, steps: int | None) -> int: ...
    def loss(self, step: int, steps: int | None) -> torch.Tensor: ...
    def held_out(self, limit: int | None) -> dict[str, float]: ...
    def begin_from(self, folder: Path) -> None: ...
    def export(self, folder: Path) -> None: ...


def learner(cfg: DictConfig) -> Learner:
    """The untrained model that `cfg.model` describes, with its text."""
    text = TextSource(Path(cfg.text), tuple(cfg.files), cfg.held_out, cfg.words, cfg.seed, cfg.skip)
    if cfg.contrastive is not None:
        from ctxexp_lab.training.contrastive import Contrastive

        return Contrastive(cfg, text)
    if cfg.model.name == "elmo":
        from ctxexp_lab.training.elmo import Bilm, WordStreams

        words = WordStreams.of(text, vocabulary=cfg.model.vocabulary, cache=Path(cfg.cache))
        return Bilm(cfg, words)
    from ctxexp_lab.training.transformer import Transformer

    return Transformer(cfg, PieceStreams.of(text, vocabulary=cfg.model.shape.vocabulary, cache=Path(cfg.cache)))


class TrainingRun:
    """One training run in a folder: checkpoint.pt, curve.csv, held_out.csv, checkpoints/step<N>/, export/ at its end.

    Only checkpoint.pt, the last, holds the optimiser; those kept by the way are exports, in float16. Raises ConfigError
    for a folder that holds a training of another recipe.
    """

    def __init__(self, cfg: DictConfig) -> None:
        check_options(cfg)
        torch.set_num_threads(cfg.threads)
        self.cfg, self.folder = cfg, Path(cfg.folder)
        self.tracker: Tracker | None = None
        self.folder.mkdir(parents=True, exist_ok=True)
        self.learner = learner(cfg)
        self.device = self.learner.device
        self.optimiser = Optimiser(
            self.learner.network,
            muon_rate=cfg.model.muon_rate,
            adamw_rate=cfg.model.adamw_rate,
            weight_decay=cfg.weight_decay,
            clip=cfg.clip,
        )
        self.step, self.seconds, self.units = 0, 0.0, 0
        self.best_loss, self.best_step = math.inf, 0  # of the checks so far
        self.steps: int | None = cfg.steps
        if (self.folder / "checkpoint.pt").is_file():
            self._load()
        elif cfg.start is not None:
            self.learner.begin_from(Path(cfg.start))

    def _load(self) -> None:
        state = torch.load(self.folder / "checkpoint.pt", weights_only=True, map_location=self.device)
        check_same(recipe_of(self.cfg), state.get("recipe", {}), self.folder)
        self.learner.network.load_state_dict(state["network"])
        self.step, self.seconds, self.units = state["step"], state["seconds"], state["units"]
        self.optimiser.load(state["optimiser"])
        self.best_loss, self.best_step = state["best_loss"], state["best_step"]
        self.steps = self.cfg.steps if self.cfg.steps is not None else state["steps"]
        for name in CURVES:
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
            "recipe": recipe_of(self.cfg),
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
        if self.tracker is not None:
            self.tracker.log(name, row)

    def _place(self) -> dict[str, float]:
        """How far the run is, as the first columns of its curves."""
        return {"step": self.step, "units": self.units, "minutes": round(self.seconds / 60, 2)}

    def check(self) -> dict[str, float]:
        """Losses now on the first `held_out_limit` held-out units, in the log and in held_out.csv."""
        losses = self.learner.held_out(self.cfg.held_out_limit)
        log.info("step %d: held-out %s", self.step, {k: round(v, 4) for k, v in losses.items()})
        self._write("held_out", {**self._place(), **losses})
        return losses

    def _compare(self) -> dict[str, float]:
        """Held-out losses now; keeps the network beside the checkpoint if no check before had a lower loss."""
        losses = self.check()
        if losses["loss"] < self.best_loss:
            self.best_loss, self.best_step = losses["loss"], self.step
            self._write_whole(self.learner.network.state_dict(), "best.pt")
        return losses

    def _look(self) -> None:
        """Checks, and keeps a checkpoint, where this step is one for that."""
        is_last = self.step == self.steps
        losses = None
        if self.step and (self.step % self.cfg.held_out_every == 0 or (is_last and self.best_step)):
            losses = self._compare()
        if self.cfg.keep is not None and (is_last or is_kept(self.step, self.cfg.keep)):
            self._keep(losses or self.check())

    def _keep(self, losses: dict[str, float]) -> None:
        """Exports the network to checkpoints/step<N>, which is there whole or not at all."""
        target = self.folder / "checkpoints" / f"step{self.step}"
        part = target.with_name(f"{target.name}.part")
        for folder in (part, target):
            shutil.rmtree(folder, ignore_errors=True)
        self.learner.export(part)
        write_json(part / "run.json", self._record(losses, self.step))
        part.replace(target)

    def train(self) -> None:
        """Steps until the run's end or `stop_after`, saving now and then and at the end."""
        cfg, done, total = self.cfg, 0, torch.zeros((), dtype=torch.float64, device=self.device)
        half = cfg.precision == "bf16"
        cast = torch.autocast(self.device.type, torch.bfloat16) if half else nullcontext()
        last_save = time.monotonic()
        if self.step == 0:
            with cast:
                self._look()
        while self.steps is None or self.step < self.steps:
            if cfg.stop_after is not None and self.step >= cfg.stop_after:
                break
            start = time.monotonic()
            with cast:
                loss = self.learner.loss(self.step, self.steps)
            loss.backward()  # type: ignore[no-untyped-call]  # torch's is not annotated
            scale = rate_scale(self.step, self.steps, warmup=cfg.warmup, decay=cfg.decay)
            self.optimiser.step(scale)
            self.units += self.learner.units(self.step, self.steps)
            self.step += 1
            total, done = total + loss.detach(), done + 1
            is_logged = self.step % cfg.log_every == 0
            mean = total.item() / done if is_logged else 0.0  # which waits for a GPU
            self.seconds += time.monotonic() - start
            if is_logged:
                self._log_loss(mean, scale)
                done, total = 0, torch.zeros_like(total)
            if self.steps is None and self.seconds >= 60 * cfg.minutes * (1 - cfg.decay):
                self.steps = max(self.step + 1, round(self.step / (1 - cfg.decay)))
                log.info("the decay begins: %d steps in all", self.steps)
            with cast:
                self._look()
            if time.monotonic() - last_save > cfg.save_every:
                self.save()
                last_save = time.monotonic()
        self.save()

    def _log_loss(self, mean: float, scale: float) -> None:
        """The mean loss of the last steps, in the log and in curve.csv. Raises ModelError where it is no number."""
        if not math.isfinite(mean):
            raise ModelError(
                f"the loss of {self.folder} is {mean} by step {self.step}: lower model.muon_rate="
                f"{self.cfg.model.muon_rate} or model.adamw_rate={self.cfg.model.adamw_rate}, and begin in another "
                "folder="
            )
        self._write("curve", {**self._place(), "loss": round(mean, 5), "rate": round(scale, 5)})
        log.info("step %d of %s: %.4f, %.0f %ss a second", self.step, self.steps, mean,
                 self.units / self.seconds, self.learner.unit)  # fmt: skip

    def _record(self, losses: dict[str, float], best_step: int) -> dict[str, object]:
        """The entry of an exported network in run.json; `best_step` is its step."""
        return {
            "steps": self.step,
            "best_step": best_step,
            "units": self.units,
            "unit": self.learner.unit,
            "minutes": round(self.seconds / 60, 1),
            "held_out": losses,
            "recipe": recipe_of(self.cfg) | {"steps": self.steps},
            "went_on_from": self.cfg.start and record_of(str(self.cfg.start)),
            "torch": torch.__version__,
        }

    def finish(self) -> dict[str, float]:
        """Writes run.json and the exported folder of the best network checked (the last one, if none was); returns its
        losses on the whole held-out text, in float32."""
        if self.best_step:
            best = torch.load(self.folder / "best.pt", weights_only=True, map_location=self.device)
            self.learner.network.load_state_dict(best)
        losses, step = self.learner.held_out(None), self.best_step or self.step
        if self.tracker is not None:
            self.tracker.log("final", {"step": step, **losses})
        export = self.folder / "export"
        self.learner.export(export)
        write_json(export / "run.json", self._record(losses, step))
        for name in CURVES:
            if (self.folder / f"{name}.csv").is_file():
                (export / f"{name}.csv").write_text((self.folder / f"{name}.csv").read_text())
        return losses

    def finished_losses(self) -> dict[str, float] | None:
        """The losses that an earlier command ended with, if it trained all steps of this one."""
        file = self.folder / "export" / "run.json"
        record = json.loads(file.read_text()) if file.is_file() else {}
        return record["held_out"] if self.step == self.steps == record.get("steps") else None


def is_kept(step: int, first: int) -> bool:
    """Whether a checkpoint is kept at `step`: 0, `first` and its doublings. They hold for any length of the run."""
    return step == 0 or (step % first == 0 and (step // first).bit_count() == 1)


def record_of(start: str) -> object:
    """The record of the training whose export `start` is, or the name of a network that was trained elsewhere."""
    file = Path(start) / "run.json"
    return json.loads(file.read_text()) if file.is_file() else start


def write_json(path: Path, record: dict[str, object]) -> None:
    path.write_text(json.dumps(record, indent=1) + "\n")


def train(cfg: DictConfig) -> dict[str, float]:
    """Trains or resumes, checks and exports; gives the held-out losses (nats a unit; see the model's card)."""
    run = TrainingRun(cfg)
    if (losses := run.finished_losses()) is None:
        with tracked(cfg.tracking, run.folder.name, run.folder, recipe_of(cfg)) as run.tracker:
            run.train()
            losses = run.finish()
    log.info("%s: step %s, held-out loss %.4f", run.folder, run.step, losses["loss"])
    return losses
