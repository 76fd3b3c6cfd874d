"""Weights & Biases as a sink."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from ctxexp import Results, Run, Sink
from ctxexp_lab.sinks import require, values_by_layer


class WandbSink(Sink):
    """Weights & Biases: curves by layer; offline (`wandb sync` sends the run later), or to its server.

    project: where runs go (of which user or team: WANDB_ENTITY)
    mode: offline, in the tracking folder's `wandb`, or online
    """

    def __init__(self, *, project: str = "ctxexp", mode: Literal["offline", "online"] = "offline") -> None:
        require("wandb")
        self.project, self.mode = project, mode
        self._run: Any = None

    def start(self, run: Run) -> None:
        import wandb

        self._run = wandb.init(
            project=self.project, mode=self.mode, dir=str(run.tracking_folder), name=run.name, id=run.id,
            group=run.sweep, config=dict(run.params), reinit="create_new",
            settings=wandb.Settings(silent=True, console="off", x_disable_stats=True, save_code=False),
        )  # fmt: skip

    def log(self, results: Results, folder: Path) -> None:
        for layer, values in values_by_layer(results):
            self._run.log(values, step=layer)

    def finish(self, status: str, error: str | None = None) -> None:
        if self._run is not None:
            self._run.finish(exit_code=int(status != "FINISHED"))

    def metadata(self) -> Mapping[str, str]:
        if self._run is None:
            return {}
        hint = f"wandb sync {Path(self._run.settings.sync_file).parent}"
        place = {"link": str(self._run.url)} if self.mode == "online" else {"hint": hint}
        return {"run_id": str(self._run.id), **place}
