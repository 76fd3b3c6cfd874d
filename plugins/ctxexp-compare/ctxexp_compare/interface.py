"""The Python interface, `compare`: of models by name, runs by folder, encoders, and spaces."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ctxexp import Encoder
from ctxexp.command import Experiment, Progress, configured, registry
from ctxexp.datasets import user_path
from ctxexp.errors import ConfigError, UnknownName
from ctxexp_compare.contract import TwoSpaces
from ctxexp_compare.hooks import COMPARISON
from ctxexp_compare.matrices import ComparisonOptions, Similarities, similarities
from ctxexp_compare.space import Space, Texts

DEFAULT_MEASURES = ("cka", "mutual_knn", "information_imbalance")


def compare(
    *spaces: str | Path | Encoder | Space,
    text: Texts | None = None,
    measures: str | Sequence[str | TwoSpaces] = DEFAULT_MEASURES,
    options: Sequence[str] = (),
    progress: bool | Progress = True,
    **choices: Any,
) -> Similarities:
    """Compare every two layers of the spaces by every measure, over the occurrences that all spaces have.

    Args:
        spaces: folders of runs or of sweeps (all of their runs), models by name or with arguments of a command line
            (`"minilm dtype=bfloat16"`), encoders, or `Space`s; one alone is compared with itself.
        text: sentences for models and encoders, as in `ctxexp.measure`.
        measures: names, with their arguments as in `mutual_knn k=30`, or objects.
        options: further arguments for models, as in `ctxexp.measure`.
        progress: whether to show progress, or where.
        choices: those of `ctxexp_compare.matrices.ComparisonOptions`, such as `sample=500`, `null="free"`.

    Returns:
        The measures of every two layers, as a table (`frame`), figures (`plot()`) and matrices.

    Raises:
        CtxexpError: for an unknown name, impossible options, or too few occurrences in common.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(2, 40, 8))  # two layers of 40 occurrences
        >>> turned = x @ np.linalg.qr(x[0, :8])[0]
        >>> one, other = Space.of_arrays("one", x), Space.of_arrays("other", turned)
        >>> alike = compare(one, other, measures="cka", bootstrap=0, progress=False)
        >>> alike.matrices["cka"].value.round(3)[0].tolist()[::2]  # with itself, and with itself rotated
        [1.0, 1.0]
    """
    display = Progress.of(progress)
    metrics = parse_measures(measures)
    ComparisonOptions(**choices)  # before any model encodes
    factories = [factory for one in spaces for factory in _space_factories(one, text, options)]
    return similarities([factory() for factory in factories], metrics, progress=display, **choices)


def _space_factories(
    one: str | Path | Encoder | Space, text: Texts | None, options: Sequence[str]
) -> list[Callable[[], Space]]:
    """Functions that make the spaces. A name that is misspelt is refused at once, before any model encodes."""
    if isinstance(one, Space):
        return [lambda: one]
    if isinstance(one, Encoder):
        return [partial(Space.of_model, one, text, options=options)]
    if folders := run_folders(str(one)):
        return [partial(Space.of_run, folder) for folder in folders]
    config = configured(one, text, options)
    Experiment(config).check()
    return [lambda: Space.of_experiment(Experiment(config))]


def run_folders(name: str, holds: str = "config.yaml") -> list[Path]:
    """The folder itself if it is a run's, which `holds` that file, else those of the runs in it; none for a model: its
    folder, or its name.

    Raises ConfigError for a folder without runs, and for a path where there is none."""
    folder = user_path(name)
    if (folder / "config.json").is_file():
        return []
    if not folder.is_dir():
        if "=" not in name and (name.count("/") > 1 or name.startswith((".", "~", "/"))):
            raise ConfigError(f"no folder {folder}: expected a run's or a sweep's results, or a model's name")
        return []
    folders = [folder] if (folder / holds).exists() else sorted(path.parent for path in folder.glob(f"*/{holds}"))
    if not folders:
        raise ConfigError(f"{folder} holds no run ({holds}); name a folder in <tracking.folder>/results")
    return folders


def parse_measures(measures: str | Iterable[str | TwoSpaces]) -> list[TwoSpaces]:
    """The measures by name (`all`: every one), objects as they are. Raises UnknownName, and ConfigError for arguments
    that a measure doesn't take."""
    names = registry().names(COMPARISON)
    requests = [name.strip() for name in measures.split(",")] if isinstance(measures, str) else list(measures)
    requests = names if requests == ["all"] else requests
    parsed: list[TwoSpaces] = []
    for one in requests:
        if isinstance(one, TwoSpaces):
            parsed.append(one)
            continue
        name, *arguments = one.split()
        if name not in names:
            raise UnknownName("measure of two spaces", name, [*names, "all"])
        parsed.append(_build(name, arguments))
    return parsed


def _build(name: str, words: Sequence[str]) -> TwoSpaces:
    offer = registry().find(COMPARISON, name)
    with offer.plugin_call():
        parameters = inspect.signature(offer.factory).parameters
        arguments: dict[str, int] = {}
        for word in words:
            key, _, value = word.partition("=")
            if key not in parameters or not value.isdigit():
                raise ConfigError(
                    f"{name} {word}: expected {' '.join(f'{key}=<number>' for key in parameters) or 'no argument'}"
                )
            arguments[key] = int(value)
        one = offer.factory(**arguments)
    if not isinstance(one, TwoSpaces):
        raise ConfigError(f"{name!r}: expected a ctxexp_compare.TwoSpaces, got {type(one).__name__}")
    return one
