"""A verb for ctxexp's command: `claims`, the sentences of Ethayarajh (2019) as tests on one's own runs."""

from __future__ import annotations

from pathlib import Path

import ctxexp
from ctxexp.plugins import Register


def claims(
    *,
    folder: Path = Path("mlruns"),
    uri: str | None = None,
    experiment: str = "ctxexp",
    model: str | None = None,
    released: bool = False,
    out: Path | None = None,
) -> None:
    """Test the claims of Ethayarajh (2019) on finished runs, or on the figures that the authors released.

    Verdicts come from runs of the paper's own weights, text and protocol alone; others, and the released figures, go
    through the same tests and are reported as such.

    folder: the tracking folder
    uri: an MLflow store to read instead of the folder
    experiment: MLflow's experiment, with uri
    model: of which models, of bert, gpt2, elmo, several with commas; null: all
    released: the authors' released figures only; needs no run
    out: a folder for claims.md and claims.html
    """
    from ctxexp_claims.command import finished, tell

    tell([] if released else finished(folder, uri, experiment, model), out)


@ctxexp.hookimpl
def register_commands(register: Register) -> None:
    register("claims", claims)
