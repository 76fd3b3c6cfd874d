"""Weights & Biases as a sink."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from ctxexp import Results, Run, Sink
from ctxexp_hub.trackers import require, values_by_layer


class WandbSink(Sink):
    """Weights & Biases: curves by layer; offline (`wandb sync` sends the run later), or to its server.

    project: where runs go (of which user or team: WANDB_ENTITY)
    mode: offline, in the tracking folder's `wandb`, or online
    """

    def __init__(self, *, project: str = "ctxexp", mode: Literal["offline", "online"] = "offline") -> None:
        require("wandb")
        self.project, self.mode = project, mode

    def send(self, run: Run, results: Results) -> Mapping[str, str]:
        import wandb

        stored = wandb.init(
            project=self.project, mode=self.mode, dir=str(run.tracking_folder), name=run.name, id=run.id,
            group=run.sweep, config=dict(run.params), reinit="create_new",
            settings=wandb.Settings(silent=True, console="off", x_disable_stats=True, save_code=False),
        )  # fmt: skip
        hint = f"wandb sync {Path(stored.settings.sync_file).parent}"
        place = {"link": str(stored.url)} if self.mode == "online" else {"hint": hint}
        try:
            for layer, values in values_by_layer(results):
                stored.log(values, step=layer)
        finally:
            stored.finish(exit_code=int(run.status != "FINISHED"))
        return {"run_id": str(stored.id), **place}
