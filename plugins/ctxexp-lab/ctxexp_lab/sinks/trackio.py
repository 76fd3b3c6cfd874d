"""Trackio as a sink."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from ctxexp import Results, Run, Sink
from ctxexp_lab.sinks import require, values_by_layer


class TrackioSink(Sink):
    """Trackio: curves by layer, in its folder on this machine (TRACKIO_DIR), or in a Space of the Hugging Face hub.

    project: where runs go
    space: the id of a Space; null: this machine
    """

    def __init__(self, *, project: str = "ctxexp", space: str | None = None) -> None:
        require("trackio")
        self.project, self.space = project, space
        self._run: Any = None

    def start(self, run: Run) -> None:
        import trackio
        from trackio.context_vars import current_run

        others = current_run.get()  # a training's, which goes on
        config = json.loads(json.dumps(dict(run.params), default=str))
        with redirect_stdout(io.StringIO()):  # it prints how to see the runs, each time
            self._run = trackio.init(
                project=self.project, name=run.name, group=run.sweep, space_id=self.space, config=config, embed=False,
                auto_log_gpu=False, auto_log_cpu=False,
            )  # fmt: skip
        current_run.set(others)

    def log(self, results: Results, folder: Path) -> None:
        for layer, values in values_by_layer(results):
            self._run.log(values, step=layer)

    def finish(self, status: str, error: str | None = None) -> None:
        if self._run is not None:
            with redirect_stdout(io.StringIO()):
                self._run.finish()

    def metadata(self) -> Mapping[str, str]:
        return {} if self._run is None else {"run_id": self._run.id, "hint": f"trackio show --project {self.project}"}
