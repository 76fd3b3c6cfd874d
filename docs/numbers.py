"""Make anew what the docs say of models, figures, tables and words, by the commands that the docs name; but for the
explorer's screenshot, speeds and simulated coverage.

`STS=FOLDER SEMCOR=FOLDER WIC=FOLDER DWUG=FOLDER BENCHMARKS=FOLDER python docs/numbers.py [STEP ...]`, in a checkout
that has the models' plugins (`make showcase` installs them). Without a step all are made; those whose data isn't given
are left out, each with a line.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
SWEEP = "mlruns/results/*/summary"


@dataclass(frozen=True)
class Step:
    """`measure` is typed in an empty folder, then `write` in the checkout, with what lies at `made` there as words."""

    write: str
    measure: str = ""
    made: str = SWEEP
    needs: tuple[str, ...] = ()


STEPS = {
    "golden": Step("python -m tests.golden --write"),
    "card": Step('python -m ctxexp_train.card --sts "$STS" --write', needs=("STS",)),
    "gallery": Step("python docs/pictures.py"),
    "notebooks": Step("python tests/test_notebooks.py"),
    "multiverse": Step("python -m ctxexp_multiverse.page", "python -m ctxexp -m experiment=multiverse"),
    "two_spaces": Step(
        "python -m ctxexp_compare.page", "python -m ctxexp compare bert gpt2 elmo minilm smollm2 layers=8", "compare"
    ),
    "what_is_context": Step(
        "python -m ctxexp_senses.components.words",
        "python -m ctxexp -m experiment=what_is_context model=bert,gpt2,elmo,smollm2 dataset=polysemy,semcor_sample",
        needs=("SEMCOR",),
    ),
    "by_class": Step(
        "python -m ctxexp_senses.by_class.words",
        "python -m ctxexp -m dataset=semcor_sample metric=by_class control=no_sinks model=bert,gpt2,elmo,smollm2",
        needs=("SEMCOR",),
    ),
    "usages": Step(
        "python -m ctxexp_senses.usages.words",
        'python -m ctxexp -m dataset=wic dataset.path="$WIC" metric=wic model=bert,minilm\n'
        'python -m ctxexp dataset=wic dataset.path="$WIC" metric=wic model=smollm2 dtype=bfloat16\n'
        'python -m ctxexp -m dataset=dwug dataset.path="$DWUG" dataset.subset=subset1,subset2 metric=semantic_change '
        "model=bert,minilm",
        made="mlruns",
        needs=("WIC", "DWUG"),
    ),
    "first_word": Step(
        "python -m ctxexp_first_word.readme",
        "python -m ctxexp -m experiment=first_word dataset=polysemy,sts_b_given",
        needs=("STS",),
    ),
    "league": Step(
        "python -m ctxexp_calibration.league.page",
        'python -m ctxexp -m experiment=calibration_league model=bert,gpt2,elmo dataset.path="$STS"',
        needs=("STS",),
    ),
    "table_1": Step(
        "python -m ctxexp_words.page",
        'python -m ctxexp -m experiment=table_1 model=glove,minilm,smollm2 dataset.path="$STS" '
        'metric.static_vectors.data="$BENCHMARKS"',
        needs=("STS", "BENCHMARKS"),
    ),
    "probe": Step(
        "python -m ctxexp_train.probe.page",
        "ctxexp probe use=frozen,mix,all out=mini\nctxexp probe use=frozen,mix,all weights=untrained out=untrained",
        made="*/probe.csv",
    ),
    "drift": Step("python plugins/ctxexp-card/benchmarks/drift.py bert,gpt2,minilm"),
    "itself": Step("python plugins/ctxexp-card/benchmarks/itself.py"),
}


def make(name: str) -> int:
    """The exit status of the step's last command."""
    step = STEPS[name]
    if missing := [variable for variable in step.needs if variable not in os.environ]:
        print(f"{name} is left out: {', '.join(missing)} is not given", flush=True)
        return 0
    print(f"== {name}", flush=True)
    with TemporaryDirectory() as folder:
        if status := typed(step.measure, Path(folder)):
            return status
        made = sorted(Path(folder).glob(step.made), key=lambda path: path.stat().st_mtime) if step.measure else []
        return typed(" ".join([step.write, *(f"'{path}'" for path in made)]), ROOT)


def typed(commands: str, folder: Path) -> int:
    """Their exit status, with the programs beside this Python first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euc", commands], cwd=folder, env={**os.environ, "PATH": path}, check=False
    ).returncode


if __name__ == "__main__":
    failed = [name for name in sys.argv[1:] or STEPS if make(name)]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)
