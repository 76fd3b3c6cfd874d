"""Trackio as a sink."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Any

from ctxexp import Results, Run, Sink
from ctxexp_hub.trackers import require, values_by_layer


class TrackioSink(Sink):
    """Trackio: curves by layer, in its folder on this machine (TRACKIO_DIR), or in a Space of the Hugging Face hub.

    project: where runs go
    space: the id of a Space; null: this machine
    """

    def __init__(self, *, project: str = "ctxexp", space: str | None = None) -> None:
        require("trackio")
        self.project, self.space = project, space

    def send(self, run: Run, results: Results) -> Mapping[str, str]:
        import trackio
        from trackio.context_vars import current_run

        others = current_run.get()  # a training's, which goes on
        config = json.loads(json.dumps(dict(run.params), default=str))
        with redirect_stdout(io.StringIO()):  # it prints how to see the runs, each time
            stored: Any = trackio.init(
                project=self.project, name=run.name, group=run.sweep, space_id=self.space, config=config, embed=False,
                auto_log_gpu=False, auto_log_cpu=False,
            )  # fmt: skip
        current_run.set(others)
        try:
            for layer, values in values_by_layer(results):
                stored.log(values, step=layer)
        finally:
            with redirect_stdout(io.StringIO()):
                stored.finish()
        return {"run_id": stored.id, "hint": f"trackio show --project {self.project}"}
