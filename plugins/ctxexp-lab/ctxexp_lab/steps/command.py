"""`ctxexp steps`: a training's checkpoints, a folder of them or revisions of the hub, are put in order of their steps,
checked, and measured in one sweep, the training step as an axis.

A network moves away from where it was: of three checkpoints in order the outer two are the furthest apart. One that
breaks this with several others isn't what it is called. Wrong revisions have been published.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np

from ctxexp.command import registry, show
from ctxexp.datasets import user_path
from ctxexp.errors import ConfigError, DataError
from ctxexp.models import Checkpoint

USAGE = """usage: ctxexp steps FOLDER [FOLDER ...] [check=true] [key=value ...]
       ctxexp steps HUB_ID revision=step1,step1000,... [check=true] [key=value ...]

Measure the checkpoints of trainings: heat maps of each measure, layers by training steps, and a slider in the report.

  FOLDER       folders of a training's checkpoints, whose names end in their step: step8, checkpoint-500
  revision     revisions of a hub's model, likewise
  check=true   first look whether the checkpoints are what they are called: two of equal weights, or one whose weights
               lie elsewhere on the training's way, are an error; false: a warning
  key=value    anything that ctxexp takes: metric=, dataset=, control=, model.prefix= ..."""

TOLERANCE = 0.02  # of a distance: by how much the outer two may be nearer than one of the inner pairs
MOST = 2_000_000  # weights of a checkpoint that are compared: evenly spaced ones


def steps(*words: str) -> int:
    """Measure a training's checkpoints, layers by training steps: steps outputs/minis/gpt2/checkpoints."""
    if {"-h", "--help"} & set(words):
        show(USAGE)
        return 0
    sources = [word for word in words if is_source(word)]
    values = {word.partition("=")[0]: word.partition("=")[2] for word in words if word not in sources}
    revisions = [one for one in values.get("revision", "").strip("[]").split(",") if one]
    if not sources or (revisions and len(sources) > 1):
        raise ConfigError(" ".join(USAGE.partition("\n\n")[0].split()))
    if values.get("check", "true") not in ("true", "false"):
        raise ConfigError(f"check={values['check']}: expected true or false")
    by_source = [find_checkpoints(source, revisions) for source in sources]
    wrong = [text for checkpoints in by_source for text in wrong_checkpoints(checkpoints)]
    if wrong and values.get("check") != "false":
        raise DataError(f"{'; '.join(wrong)}. With check=false they are measured as they are called")
    for text in wrong:
        show(f"warning: {text}", sys.stderr)
    rest = [word for word in words if word not in sources and word.partition("=")[0] not in ("revision", "check")]
    return int(registry().find("command", "run").factory(*sweep(by_source, rest)))


def is_source(word: str) -> bool:
    """Whether a word is a folder or a hub id. A sweep's folders have an equals sign too: `gpt2-seed=1`."""
    return not word.startswith("-") and ("=" not in word or user_path(word).is_dir())


def sweep(by_source: Sequence[Sequence[StepCheckpoint]], rest: Sequence[str]) -> list[str]:
    """The words of the sweep over these checkpoints."""
    checkpoints = [one for of_source in by_source for one in of_source]
    sources = dict.fromkeys(one.source for one in checkpoints)
    words = ["-m", "model=huggingface", f"model.checkpoint={','.join(map(_quoted, sources))}"]
    if checkpoints[0].revision is not None:
        words.append(f"model.revision={','.join(_quoted(one.revision or '') for one in checkpoints)}")
    return [*words, *rest]


def _quoted(text: str) -> str:
    """A value as Hydra's grammar reads it."""
    return text if re.fullmatch(r"[\w./~-]+", text) else "'" + text.replace("'", "\\'") + "'"


def distances(weights: list[np.ndarray]) -> np.ndarray:
    """(n, n) Euclidean distances of n checkpoints' weights, (m,) each."""
    out = np.zeros((len(weights), len(weights)))
    for i, j in combinations(range(len(weights)), 2):
        out[i, j] = out[j, i] = float(np.linalg.norm(weights[i].astype(np.float64) - weights[j]))
    return out


def misplaced(distance: np.ndarray) -> list[int]:
    """Checkpoints without which the others (n, n) are in order, those that break it most taken out first; sorted."""
    left, out = list(range(len(distance))), []
    while any(blame := _blame(distance, left).values()):
        worst = left[int(np.argmax(list(blame)))]
        left.remove(worst)
        out.append(worst)
    return sorted(out)


def _blame(distance: np.ndarray, order: list[int]) -> dict[int, float]:
    """Of each checkpoint, in how many triples that are out of order it stands, each by how much it is."""
    blame = dict.fromkeys(order, 0.0)
    for i, j, k in combinations(order, 3):
        inner = max(distance[i, j], distance[j, k])
        if distance[i, k] < inner * (1 - TOLERANCE):
            for one in (i, j, k):
                blame[one] += 1 - float(distance[i, k] / inner)
    return blame


@dataclass(frozen=True)
class StepCheckpoint:
    """A checkpoint of a training by its step: a folder, or a revision of a hub's model."""

    step: int
    source: str
    revision: str | None = None

    @property
    def name(self) -> str:
        """The name in messages."""
        return self.revision or Path(self.source).name

    @cached_property
    def files(self) -> Checkpoint:
        """Its files, downloaded if need be. Raises ModelError."""
        return Checkpoint.of(self.source, self.revision)


def find_checkpoints(source: str, revisions: Sequence[str]) -> list[StepCheckpoint]:
    """The checkpoints of a folder, or those revisions of a hub's model, steps ascending.

    Raises ConfigError where names say no step, DataError where there are fewer than two.
    """
    folder = user_path(source)
    if revisions:
        unknown = [revision for revision in revisions if Checkpoint.training_step(revision) is None]
        if unknown:
            raise ConfigError(f"revision={unknown[0]}: expected a name that ends in its training step, as step1000")
        steps = [StepCheckpoint(Checkpoint.training_step(revision) or 0, source, revision) for revision in revisions]
    elif not folder.is_dir():
        raise DataError(
            f"no folder {folder}: expected one of checkpoints, as step8, or revision=step1,step1000 of a hub id"
        )
    else:
        inside = [path for path in folder.iterdir() if (path / "config.json").is_file()]
        by_step = [(Checkpoint.training_step(path.name), str(path)) for path in inside]
        steps = [StepCheckpoint(step, path) for step, path in by_step if step is not None]
    if len(steps) < 2:
        raise DataError(f"{source} has {len(steps)} checkpoints with their step in their name; expected two or more")
    return sorted(steps, key=lambda one: one.step)


def wrong_checkpoints(checkpoints: Sequence[StepCheckpoint]) -> list[str]:
    """A line for each thing that says that a checkpoint isn't what it is called: its own record of its step, weights
    that two of them share, and weights that lie elsewhere on the training's path."""
    lines = []
    for one in checkpoints:
        recorded = _recorded_step(one.files.folder)
        if recorded is not None and recorded != one.step:
            lines.append(f"{one.name} says in its run.json that it is step {recorded}")
    weights = [sampled_weights(one.files) for one in checkpoints]
    sizes = {len(w) for w in weights}
    if len(sizes) > 1:
        raise DataError(f"{checkpoints[0].source}: checkpoints of one training have weights of one shape; these don't")
    distance = distances(weights)
    for i in range(len(checkpoints)):
        for j in range(i):
            if distance[i, j] == 0:
                lines.append(f"{checkpoints[j].name} and {checkpoints[i].name} have the same weights")
    if not any("same weights" in line for line in lines):
        lines += [
            f"{checkpoints[i].name} is out of order: its weights lie elsewhere on the training's way, or on another's"
            for i in misplaced(distance)
        ]
    return lines


def _recorded_step(folder: Path) -> int | None:
    """The step in a run.json of `ctxexp train`, or in the trainer_state.json of transformers' Trainer."""
    for name, key in (("run.json", "steps"), ("trainer_state.json", "global_step")):
        if (folder / name).is_file():
            record = json.loads((folder / name).read_text(encoding="utf-8"))
            if isinstance(record, dict) and isinstance(record.get(key), int):
                return int(record[key])
    return None


def sampled_weights(checkpoint: Checkpoint) -> np.ndarray:
    """Evenly spaced weights of a checkpoint, (m,) float32 with m at most about MOST, ordered by name."""
    from safetensors import safe_open

    files, parts = checkpoint.weight_files, []
    total = sum(path.stat().st_size for path in files) // 2  # a guess: two bytes a weight
    stride = max(1, total // MOST)
    for path in files:
        with safe_open(path, framework="pt") as tensors:
            for name in sorted(tensors.keys()):
                parts.append(tensors.get_tensor(name).flatten()[::stride].float().numpy())
    return np.concatenate(parts)
