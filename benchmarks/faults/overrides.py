"""Odd overrides: every key of the config x values that no one would think of. Each passes or is refused in one line."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ctxexp import CtxexpError
from ctxexp.command import compose
from ctxexp.command.names import quote
from ctxexp.command.overrides import normalize_overrides
from ctxexp.plugins.registry import load_plugin_files

from . import Lost

SECONDS = 2.0  # of processor time, a job: the message is there while one still looks at the screen
LONGEST = 1100  # letters of a message

EXTREMES = ["0", "-1", "1e309", "-1e309", "nan", "-0.0", "1e-320", "9" * 40, "-" + "9" * 40, "0x10", "1_000", "3.7"]
WORDS = ["", "''", "null", "true", "False", "???", "none", "default", "bert", "BERT", "a,b", "a:b", "*", "~", "@", "$"]
LISTS = ["[]", "[[]]", "[null]", "[1,2]", "[[1,2],[3]]", "[a,[b,{c:1}]]", "[-1]", "[1e309]", "{}", "{a:1}", "{1:2}"]
NODES = ["{name:bert}", "{name:null}", "{name:[bert]}", "{name:none,x:1}", "{a:{b:[1]}}", "[" * 60 + "]" * 60]
CALLS = ["range(0,0)", "range(3)", "range(0,1,0)", "choice(1,2)", "interval(0,1)", "glob(*)", "sort(2,1)", "int(a)"]
REFERENCES = ["seed", "nowhere", "model", "model.name", "oc.env:NOT_THERE", "oc.env:HOME", "now:%Y", "oc.decode:'['"]
REFERENCES = [f"${{{name}}}" for name in (*REFERENCES, "oc.select:x", "ctxexp.folder:x", "hydra:job.num")] + ["${a"]
PATHS = ["../x", "../../../../x", "/nowhere/x", "~nobody/x", "./x", "-", "--help", "a" * 300, "a/" * 300, "a/" * 3000]
TEXTS = [
    "ü",
    "漢字",
    "\u202e txt",
    "a\0b",
    "a\nb",
    "\ud800",
    "it's",
    '"',
    "a b",
    "%s",
    "; rm -rf x",
    "$(x)",
    "<b>",
    "é" * 5000,
]
VALUES = [EXTREMES, WORDS, LISTS, NODES, CALLS, REFERENCES, PATHS, TEXTS]
FREQUENCY = ["metric=frequency", "transform=flow"]
STATIC = ["model=elmo", "metric=static_vectors", "dataset=sts"]
PAIRS = ["metric=[sts,sentence_geometry]", "control=no_sinks", "baseline=size_matched"]
HYDRA = ["run.dir", "sweep.dir", "sweep.subdir", "job.name", "job.chdir", "mode", "verbose", "output_subdir", "job.num"]
HYDRA = [f"hydra.{key}" for key in (*HYDRA, "searchpath", "callbacks")] + ["hydra/launcher", "hydra/sweeper"]


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Command lines of one to three odd overrides, some of them sweeps."""
    compose.prepare()
    keys = [*_keys(), *compose.GROUPS, *HYDRA, "plugins", "nowhere", "model.nowhere", "metric.nowhere.sample"]
    for place in range(count):
        draw = random.Random(f"{seed} {place}")
        overrides = [_override(draw, keys) for _ in range(draw.choice([1, 1, 1, 2, 3]))]
        multirun = draw.random() < 0.2
        name = f"{'-m ' if multirun else ''}{' '.join(overrides)[:100]!a}"
        yield name, partial(attempt, overrides, folder, multirun=multirun)


def attempt(overrides: list[str], folder: Path, *, multirun: bool) -> None:
    """Check the command line as the command does; what is said of it is one line, soon, and nothing is written."""
    before, started = sorted(folder.rglob("*")), time.process_time()
    refused: CtxexpError | None = None
    problems: list[str] = []
    try:
        with contextlib.chdir(folder):
            taken = compose.take_plugins(normalize_overrides(overrides))
            compose.prepare()
            problems = compose.check_command(taken, multirun=multirun)
    except CtxexpError as error:
        refused, problems = error, [str(error)]
    finally:
        seconds = time.process_time() - started
        load_plugin_files([])
    if (now := sorted(folder.rglob("*"))) != before:
        raise Lost(f"the check wrote something: {now}")
    for message in problems:
        assert message.strip(), "a message without words"
        assert "\n" not in message, message
        assert len(message) < LONGEST, message
    assert multirun or seconds < SECONDS, f"{seconds:.1f} s of processor time"
    if refused:
        raise refused


def _keys() -> list[str]:
    """Every key that the config of some experiment has."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir

    found: set[str] = set()
    with initialize_config_dir(str(compose.config_folder()), version_base="1.3"):
        for chosen in (FREQUENCY, STATIC, PAIRS):
            found |= set(_flat(compose.plain_values(hydra_compose("ctxexp", overrides=chosen), resolve=False)))
    return sorted(found)


def _flat(node: dict[str, object], prefix: str = "") -> Iterator[str]:
    for key, value in node.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")


def _override(draw: random.Random, keys: list[str]) -> str:
    key = draw.choice(keys)
    value = draw.choice(draw.choice(VALUES))
    if draw.random() < 0.4:
        value = quote(value)
    if draw.random() < 0.1:
        value = f"{value},{draw.choice(EXTREMES)}"
    prefix = draw.choice(["", "", "", "", "", "", "+", "++", "~"])
    return draw.choice([f"{prefix}{key}={value}"] * 12 + [value, f"~{key}", f"{key}", f"{key}@x={value}"])
