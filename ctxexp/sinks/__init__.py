"""Where runs are sent: one sink a folder."""

from __future__ import annotations

from ctxexp.plugins import Register, hookimpl
from ctxexp.sinks.mlflow.sink import MlflowSink


@hookimpl
def register_sinks(register: Register) -> None:
    register("mlflow", MlflowSink)
