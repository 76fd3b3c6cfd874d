"""Make anew the figures and tables that the docs show of models, by the commands that the docs name; but for speeds
and simulated coverage.

`STS=FOLDER SEMCOR=FOLDER CORPUS=FOLDER TEXT=FOLDER python -m docs.numbers [STEP ...]`, in a checkout
that has the models' plugins (`make models` installs them). Without a step all are made; those whose data isn't given
are left out, each with a line. STEP=FOLDER takes what was measured before: a sweep's summary folder, as a rule.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.numbers.part import ROOT, Drawing
from docs.numbers.steps import STEPS


def make(name: str) -> int:
    """The exit status of the step's commands."""
    step = STEPS[name]
    if missing := [variable for variable in step.needs if variable not in os.environ]:
        print(f"{name} is left out: {', '.join(missing)} is not given", flush=True)
        return 0
    print(f"== {name}", flush=True)
    if not isinstance(step, Drawing):
        return typed(step.commands, ROOT)
    with TemporaryDirectory() as folder:
        if status := typed(step.commands, Path(folder)):
            return status
        (output,) = Path(folder).glob(step.output_glob)
        step.write(output)
    return 0


def typed(commands: str, folder: Path) -> int:
    """Their exit status, with the programs beside this Python first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euc", commands], cwd=folder, env={**os.environ, "PATH": path}, check=False
    ).returncode


def main(words: list[str]) -> str | None:
    """What failed, if anything did; before any work, which word is none of the steps."""
    parts = {name: step for name, step in STEPS.items() if isinstance(step, Drawing)}
    for word in words:
        name, is_measured, _ = word.partition("=")
        if name not in (parts if is_measured else STEPS):
            known = [f"{part}=FOLDER" for part in parts] if is_measured else STEPS
            return f"error: no step {word!r}; expected {', '.join(known)}"
    failed = []
    for word in words or [name for name, step in STEPS.items() if step.commands]:
        name, _, measured = word.partition("=")
        if measured:
            parts[name].write(Path(measured))
        elif make(name):
            failed.append(name)
    return f"failed: {', '.join(failed)}" if failed else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
