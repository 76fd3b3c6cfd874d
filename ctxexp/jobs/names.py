"""The names of runs, by what was chosen on the command line: two that differ in text, seed or pooling have two."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxexp.plugins import CONFIG_KINDS
from ctxexp.plugins.registry import LOCATION_ARGUMENTS
from ctxexp.report.wording import unique_labels

# Top-level keys that cannot change a measured number: jobs that differ in these alone have one key.
RESULT_NEUTRAL_KEYS = ("tracking", "sink", "cache", "engine", "resume", "verbose", "figures", "experiment",
                       "plugins")  # fmt: skip
LOCATION_KEYS = tuple(
    f"{group}.{argument}" for group, argument in LOCATION_ARGUMENTS.items()
)  # they say which option it is
TITLE_KEYS = ("model", "weights", "dtype")
UNTITLED_KEYS = tuple(f"model.{name}" for name in ("layers", "path", "seed"))  # others of a model are in its title
LOCATION_OPTIONS = ("text", "huggingface")  # beside a location they tell nothing
# Sections of which a title tells all that is chosen, or whose choice makes no run another.
UNNAMED_SECTIONS = ("control", "transform", "fit_on", "hydra", "device", "batch_tokens", "bootstrap", "metric")


def run_name(title: str, overrides: Sequence[str]) -> str:
    """The title with the choices of the command line that it doesn't tell, `bert (small.txt, seed 1)`."""
    keys = [re.split("[=@]", override.lstrip("+~"))[0] for override in overrides]
    neutral = {*UNNAMED_SECTIONS, *RESULT_NEUTRAL_KEYS} - {"experiment"}
    needless = {
        f"{key.partition('.')[0]}={option}" for key in LOCATION_KEYS if key in keys for option in LOCATION_OPTIONS
    }
    texts = [
        _short_text(override)
        for key, override in zip(keys, overrides, strict=True)
        if key not in TITLE_KEYS
        and (key in UNTITLED_KEYS or not key.startswith("model."))
        and key.partition(".")[0] not in neutral
        and override not in needless
    ]
    return f"{title} ({', '.join(texts)})" if texts else title


def title_of(name: str, overrides: Sequence[str]) -> str:
    """The title within a run's name."""
    return name.removesuffix(run_name("", overrides))


def labels(jobs: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """A label for each job, no two alike: its name, and the overrides that tell it from its namesakes, as in
    `bert (seed 1)`."""
    names = [name or " ".join(overrides) or "job" for name, overrides in jobs]
    told_apart: list[tuple[str, None]] = []
    for name, (_, overrides) in zip(names, jobs, strict=True):
        same = [set(o) for n, (_, o) in zip(names, jobs, strict=True) if n == name]
        common = set.intersection(*same) if len(same) > 1 else set(overrides)
        difference = ", ".join(_short_text(o) for o in overrides if o not in common)
        told_apart.append((f"{name} ({difference})" if difference else name, None))
    return [label for label, _ in unique_labels(told_apart)]


def _short_text(override: str) -> str:
    """A short text for an override: the choice of a group, or a key's last part and its value; of paths the end.

    Sentences keep their name: `pooling cls` alone would be that of a word's pieces.
    """
    key, _, value = override.lstrip("+").partition("=")
    value = ", ".join(part.rpartition("/")[2] for part in value.strip("[]'\"").split(","))
    if key in (*CONFIG_KINDS, "weights", "experiment", *LOCATION_KEYS):
        return value
    group, _, last = key.rpartition(".")
    return f"sentence {last} {value}" if group == "sentence" else f"{last} {value}"
