"""The Python face: measure a model in a line, read finished runs back, compare them.

`measure` composes what the command composes, with the same defaults and names, and gives the same numbers.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from ctxexp.baseline import Baseline
from ctxexp.command.locations import choose_text, quote
from ctxexp.command.texts import Text as Text
from ctxexp.command.texts import check_text, corpus_of
from ctxexp.control import Control
from ctxexp.errors import ConfigError, near
from ctxexp.metric import Metric
from ctxexp.model import Encoder
from ctxexp.models.memory import from_transformers
from ctxexp.progress import Progress, Silent
from ctxexp.report.wording import unique_labels
from ctxexp.results import Results
from ctxexp.transform import Transform

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from ctxexp.command.config import Config
    from ctxexp.report.comparison import Comparison


class PartChoices(TypedDict, total=False):
    """Choices beside model and text, each a name as on the command line, or an object."""

    baseline: str | Baseline
    transform: str | Callable[[], Transform]  # a factory
    control: str | Control


def measure(
    model: str | Path | Encoder | PreTrainedModel,
    text: Text | None = None,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    column: str | None = None,
    metrics: str | Sequence[str] | Mapping[str, Callable[[], Metric]] | None = None,
    options: str | Sequence[str] = (),
    folder: str | Path | None = None,
    progress: bool | Progress = True,
    **parts: Unpack[PartChoices],
) -> Results:
    """The results of a run of the command with these choices; nothing is logged.

    Args:
        model: A name that the command knows (`gpt2`), a repository of the hub or a folder of a model, a transformers
            model in memory (with its `tokenizer`), or an encoder: of `from_arrays`, or your own.
        text: Sentences (strings, or lists of words), a table (DataFrame, data set, columns or rows), a path (of a text
            or a table, as on the command line), a data set's name, or a Corpus; None: the arrays' own words, else the
            command's data set.
        tokenizer: The fast tokenizer of a model in memory; `from_transformers` takes more options of such a model.
        column: The column of a table that holds its texts; None: `text`, else `sentence`.
        metrics: Names as on the command line, or factories by label; None: the command's defaults.
        options: Further arguments of the command line: `["min_contexts=3", "weights=untrained"]`.
        folder: Folder for files that metrics write; None: they are deleted.
        progress: Progress bars, none, or a Progress of your own.
        parts: `baseline`, `transform` and `control`, each a name as on the command line, or a Baseline, a factory of
            transforms, a Control.

    Returns:
        The results; `ctxexp.compare` lays several side by side.

    Raises:
        CtxexpError: With the command's own messages.

    Example:
        >>> from ctxexp import from_arrays
        >>> arrays = from_arrays([[[3.0, 4.0], [0.0, 1.0]], [[0.0, 3.0]]], [["cat", "sat"], ["cat"]])
        >>> results = measure(arrays, metrics="word_norm", options=["min_contexts=2"], progress=False)
        >>> results.curve("word_norm").tolist()  # the mean length of the three vectors
        [3.0]
    """
    from ctxexp.command.build import Built  # with what checks configs: not at `import ctxexp`

    if tokenizer is not None:
        if not hasattr(model, "config"):
            raise ConfigError(f"tokenizer= goes with a transformers model in memory, got {type(model).__name__}")
        model = from_transformers(model, tokenizer)
    config = configured(model, text, options, column=column, metrics=metrics, **parts)
    stages = progress if isinstance(progress, Progress) else Progress() if progress else Silent()
    with TemporaryDirectory() as own:
        return Built(config, stages).run(Path(folder or own))


def configured(
    model: str | Path | Encoder | PreTrainedModel,
    text: Text | None = None,
    options: str | Sequence[str] = (),
    *,
    column: str | None = None,
    metrics: str | Sequence[str] | Mapping[str, Callable[[], Metric]] | None = None,
    **parts: Unpack[PartChoices],
) -> Config:
    """The config that these choices make, objects and all; see `measure`."""
    for key in parts.keys() - PartChoices.__annotations__.keys():
        raise ConfigError(
            f"measure has no argument {key!r}{near(key, PartChoices.__annotations__)}; keys of the command line go "
            f'into options, as in options=["model.{key}=..."]'
        )
    if isinstance(model, Path):  # of one part it isn't a name
        model = str(model) if len(model.parts) > 1 else f"./{model}"
    _check_kinds(model, text)
    assert isinstance(model, str | Encoder)
    options = _args(options)
    choices: dict[str, Any] = {"model": model, "metric": metrics, **parts}
    if column is not None and isinstance(text, str | Path):
        options = [f"dataset.column={quote(column)}", *options]
    config = _compose(choices, text, options)
    if isinstance(model, str) and "weights=untrained" in options and "weights" not in (config.model.signature() or {}):
        raise ConfigError(
            f"weights=untrained: model {config.model.name!r} doesn't take it, and would be the trained one; expected a "
            "model with the option weights, as bert, gpt2 or elmo, with model.checkpoint=... for another one's shape"
        )
    for kind, choice in choices.items():
        if kind == "metric" and isinstance(choice, Mapping):
            config = config.with_factories(kind, choice)
        elif choice is not None and not isinstance(choice, str | Sequence):
            factory = choice if kind == "transform" else partial(lambda choice: choice, choice)
            config = config.with_factories(kind, {_name(choice): factory})
    if not isinstance(model, str):
        config = replace(config, dtype=model.dtype)  # type: ignore[arg-type]  # an encoder's own, whatever it is
    if (corpus := corpus_of(model, text, config.words, column)) is not None:
        config = config.with_factories("dataset", {corpus.name: lambda: corpus})
    return config


def load(folder: str | Path) -> Results:
    """The results in a run's folder, tables included.

    Args:
        folder: A run's folder, as in `mlruns/results/<sweep>/<job>`.

    Returns:
        The results, equal to those that were saved.

    Raises:
        TrackingError: The folder holds no results, or they are damaged.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     Results().save(folder)
        ...     load(folder).measures()
        []
    """
    return Results.load(Path(folder).expanduser())


def runs(folder: str | Path = "mlruns", *, sweep: str | None = None) -> dict[str, Results]:
    """The results of a tracking folder's finished runs by label, the newest first.

    Args:
        folder: The tracking folder.
        sweep: The sweep whose runs are returned ("last": the last one); None: all.

    Returns:
        Results by label, each label once.

    Raises:
        TrackingError: There is no finished run.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     runs(folder)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ctxexp.errors.TrackingError: no finished run in ...
    """
    from ctxexp.jobs.finished_runs import finished_by_label  # sinks settle how MLflow behaves: not at `import ctxexp`

    return {label: results for label, (_, results) in finished_by_label(folder, sweep=sweep).items()}


def compare(results: Mapping[str, Results] | Iterable[Results] | Results, *others: Results) -> Comparison:
    """Several runs side by side; in a notebook it shows itself as a table.

    Args:
        results: Results by label, or a list of them, which go by their titles.
        others: Further results, by their titles.

    Returns:
        A comparison with `frame` and `plot()`.

    Raises:
        ConfigError: Something else than results.

    Example:
        >>> compare({"one": Results(), "other": Results()})
        <Comparison of one, other>
    """
    from ctxexp.report.comparison import Comparison  # with all that draws figures

    sources: Any = results  # whatever a user guesses
    if isinstance(sources, str) or not isinstance(sources, Iterable):
        sources = [sources]
    labelled = [*sources.items()] if isinstance(sources, Mapping) else [("", one) for one in sources]
    labelled += [("", one) for one in others]
    if odd := [one for _, one in labelled if not isinstance(one, Results)]:
        raise ConfigError(
            f"compare: expected results, got {type(odd[0]).__name__}; measure each first: "
            "ctxexp.compare({name: ctxexp.measure(name, ...) for name in names})"
        )
    return Comparison(tuple(unique_labels([(label or one.info.title or "run", one) for label, one in labelled])))


def _name(part: object) -> str:
    """The name of an object: its title, its name, that of the function or class, or that of its class."""
    names = (getattr(part, key, "") for key in ("title", "name", "__name__"))
    return str(next(filter(None, names), type(part).__name__))


def _compose(choices: Mapping[str, Any], text: Text | None, options: Sequence[str]) -> Config:
    """The config that these choices make as arguments of a command line, where they are texts. Raises ConfigError for
    objects of the wrong kind."""
    from ctxexp.command import compose  # Hydra's
    from ctxexp.command.help import option_names

    transform, metrics = choices.get("transform"), choices.get("metric")
    for name, factory in {"transform": transform, **(metrics if isinstance(metrics, Mapping) else {})}.items():
        if factory is not None and not isinstance(factory, str) and not callable(factory):
            raise ConfigError(f"{name}: expected a factory, such as a class, got {type(factory).__name__}")
    for kind, base in (("control", Control), ("baseline", Baseline)):
        if (choice := choices.get(kind)) is not None and not isinstance(choice, str | base):
            raise ConfigError(f"{kind}: expected a name or a ctxexp.{base.__name__}, got {type(choice).__name__}")
    args = [f"{kind}={name}" for kind, name in choices.items() if isinstance(name, str)]
    if isinstance(metrics, Sequence) and not isinstance(metrics, str):
        if odd := [type(name).__name__ for name in metrics if not isinstance(name, str)]:
            raise ConfigError(
                f"metrics: expected names, got {odd[0]} among them; objects go by label, as in metrics={{'mine': Mine}}"
            )
        args.append(f"metric=[{','.join(metrics)}]")
    if isinstance(text, str | Path):
        args += choose_text(text, option_names("dataset"))
    return compose.config_of([*args, *options])


def _args(options: object) -> list[str]:
    """The options one by one. Raises ConfigError, with what to write, for what is no text or no list of texts."""
    expected = 'options: expected words of the command line, as in options=["min_contexts=3"]'
    if isinstance(options, str):
        try:
            return shlex.split(options)
        except ValueError as error:  # a quote that nothing closes
            raise ConfigError(f"{expected}; {options[:60]!r} can't be split into words: {error}") from None
    if not isinstance(options, Iterable) or isinstance(options, Mapping | bytes):
        raise ConfigError(f"{expected}, got {type(options).__name__}")
    args = list(options)
    if odd := [arg for arg in args if not isinstance(arg, str)]:
        raise ConfigError(f"{expected}, got {type(odd[0]).__name__} in it")
    return args


def _check_kinds(model: object, text: object) -> None:
    """Raise ConfigError, with what to write, for a model or a text of another type."""
    if isinstance(model, list | tuple):
        raise ConfigError(
            f"model: expected one, got {len(model)}; measure each, then lay them side by side: "
            "ctxexp.compare({name: ctxexp.measure(name, ...) for name in names})"
        )
    if not isinstance(model, str | Encoder):
        raise ConfigError(
            f"model: expected a name, a folder or a ctxexp.Encoder, got {type(model).__name__}; a transformers model "
            "comes with its tokenizer: ctxexp.measure(model, text, tokenizer=tokenizer), or wrapped once for several "
            "measurements: ctxexp.from_transformers(model, tokenizer)"
        )
    check_text(text)
