"""`ctxexp steps`: a training's checkpoints are checked, then measured in one sweep, the training step as an axis."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from ctxexp.command import registry, show
from ctxexp.datasets import user_path
from ctxexp.errors import ConfigError, DataError
from ctxexp_lab.steps.checkpoints import StepCheckpoint, find_checkpoints, wrong_checkpoints

USAGE = """usage: ctxexp steps FOLDER [FOLDER ...] [check=true] [key=value ...]
       ctxexp steps HUB_ID revision=step1,step1000,... [check=true] [key=value ...]

Measure the checkpoints of trainings: heat maps of each measure, layers by training steps, and a slider in the report.

  FOLDER       folders of a training's checkpoints, whose names end in their step: step8, checkpoint-500
  revision     revisions of a hub's model, likewise
  check=true   first look whether the checkpoints are what they are called: two of equal weights, or one whose weights
               lie elsewhere on the training's way, are an error; false: a warning
  key=value    anything that ctxexp takes: metric=, dataset=, control=, model.prefix= ..."""


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
