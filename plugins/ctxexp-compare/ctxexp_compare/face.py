"""The Python face: what is compared may be named, run, loaded or in hand."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from ctxexp.command.words import model_words
from ctxexp.errors import ConfigError, UnknownName
from ctxexp.face import Text
from ctxexp.files.paths import user_path
from ctxexp.model import Encoder
from ctxexp.plugins import COMPARISON
from ctxexp.progress import Progress, Silent
from ctxexp_compare.engine import Similarities, similarities
from ctxexp_compare.measure import Null, RowChoice, TwoSpaces
from ctxexp_compare.space import Space

USUAL = ("cka", "mutual_knn", "information_imbalance")


class Choices(TypedDict, total=False):
    """How spaces are compared; see `similarities`."""

    sample: int
    layers: int | None
    seed: int
    bootstrap: int
    permutations: int
    null: Null
    rows: RowChoice


def compare(
    *spaces: str | Path | Encoder | Space,
    text: Text | None = None,
    measures: str | Sequence[str | TwoSpaces] = USUAL,
    options: Sequence[str] = (),
    progress: bool | Progress = True,
    **choices: Unpack[Choices],
) -> Similarities:
    """Every two layers of the spaces under every measure, over the occurrences that all spaces have.

    `spaces`: folders of runs or of sweeps (all of their runs), models by name or as words of a command line
    (`"minilm dtype=bfloat16"`), encoders, or `Space`s; one alone is compared with itself. `text` and `options` are for
    models, as in `ctxexp.measure`. `measures`: names, with their arguments as in `mutual_knn k=30`, or objects.

    Raises CtxexpError, as the command does.
    """
    shown = progress if isinstance(progress, Progress) else Progress() if progress else Silent()
    made = chosen(measures)
    found = [space for one in spaces for space in _spaces(one, text, options)]
    if not found:
        raise ConfigError("compare: expected at least one run or model, got none")
    return similarities(found, made, progress=shown, **choices)


def _spaces(one: str | Path | Encoder | Space, text: Text | None, options: Sequence[str]) -> list[Space]:
    if isinstance(one, Space):
        return [one]
    if isinstance(one, Encoder):
        return [Space.of_model(one, text, options=options)]
    if folders := runs_in(str(one)):
        return [Space.of_run(folder) for folder in folders]
    model, words = model_words(str(one))
    return [Space.of_model(model, text, options=[*options, *words])]


def runs_in(name: str) -> list[Path]:
    """The folders of runs that a folder is or holds; none if it is no folder. Raises ConfigError for an odd one."""
    folder = user_path(name)
    if not folder.is_dir():
        if "/" in name and "=" not in name:
            raise ConfigError(f"no folder {folder}: expected a run's or a sweep's results, or a model's name")
        return []
    found = [folder] if (folder / "config.yaml").exists() else sorted(p.parent for p in folder.glob("*/config.yaml"))
    if not found:
        raise ConfigError(f"{folder} holds no run (config.yaml); name a folder in <tracking.folder>/results")
    return found


def chosen(measures: str | Iterable[str | TwoSpaces]) -> list[TwoSpaces]:
    """The measures by name, `all` of them, or as they are. Raises UnknownName, and ConfigError for odd arguments."""
    from ctxexp.command.names import registry

    known = registry().names(COMPARISON)
    asked = [name.strip() for name in measures.split(",")] if isinstance(measures, str) else list(measures)
    asked = known if asked == ["all"] else asked
    made: list[TwoSpaces] = []
    for one in asked:
        if isinstance(one, TwoSpaces):
            made.append(one)
            continue
        name, *given = one.split()
        if name not in known:
            raise UnknownName("measure of two spaces", name, [*known, "all"])
        made.append(_made(name, given))
    if not made:
        raise ConfigError(f"measures: expected at least one of {', '.join(known)}")
    return made


def _made(name: str, given: Sequence[str]) -> TwoSpaces:
    from ctxexp.command.names import registry

    with registry().credit(COMPARISON, name):
        factory = registry().find(COMPARISON, name).factory
        taken = inspect.signature(factory).parameters
        arguments: dict[str, int] = {}
        for word in given:
            key, _, value = word.partition("=")
            if key not in taken or not value.isdigit():
                raise ConfigError(
                    f"{name} {word}: expected {' '.join(f'{key}=<number>' for key in taken) or 'no argument'}"
                )
            arguments[key] = int(value)
        one = factory(**arguments)
    if not isinstance(one, TwoSpaces):
        raise ConfigError(f"{name!r}: expected a ctxexp_compare.TwoSpaces, got {type(one).__name__}")
    return one
