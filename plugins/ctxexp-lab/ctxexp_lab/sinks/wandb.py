"""Weights & Biases as a sink."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from struct import unpack_from
from typing import Any, Literal

from ctxexp import Results, Run, Sink
from ctxexp_lab.sinks import require, values_by_layer

BLOCK, HEADER = 32768, 7  # bytes of an offline file's blocks; of its beginning, and of a record's
LAST, WAIT = (1, 4), 10  # kinds of a record's last part; seconds, at most, for what a finished run still writes


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

    def read(self) -> Iterable[tuple[str, int, float]] | None:
        from wandb.proto.wandb_internal_pb2 import Record

        if self.mode == "online" or self._run is None:
            return None
        end, records = time.monotonic() + WAIT, list[Any]()
        while time.monotonic() < end and not any(one.HasField("exit") for one in records):  # another process writes it
            records = [Record.FromString(each) for each in _records(Path(self._run.settings.sync_file))]
        items = [(one.history.step.num, item) for one in records for item in one.history.item]
        points = [(item.nested_key[0] if item.nested_key else item.key, i, item.value_json) for i, item in items]
        return [(name, i, float(json.loads(value))) for name, i, value in points if not name.startswith("_")]


def _records(path: Path) -> Iterator[bytes]:
    """The records of an offline file, which is a log of LevelDB's format."""
    data, at, record = path.read_bytes(), HEADER, b""
    while at + HEADER <= len(data):
        if (left := BLOCK - at % BLOCK) < HEADER:
            at += left
            continue
        _, length, kind = unpack_from("<IHB", data, at)
        record, at = record + data[at + HEADER : at + HEADER + length], at + HEADER + length
        if kind in LAST and at <= len(data):
            yield record
            record = b""
