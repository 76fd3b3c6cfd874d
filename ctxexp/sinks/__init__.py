"""Where runs are kept beside the disk: the sinks that a config chooses, one a folder."""

from __future__ import annotations

from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_sinks(register: Register) -> None:
    register("mlflow", "ctxexp.sinks.mlflow.sink:MlflowSink")
