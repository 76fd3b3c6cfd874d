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
from ctxexp.control import Control
from ctxexp.dataset import Corpus, Sentence
from ctxexp.datasets.words import tokenizer
from ctxexp.errors import ConfigError, TrackingError, near
from ctxexp.metric import Metric
from ctxexp.model import Encoder
from ctxexp.progress import Progress, Silent
from ctxexp.report.wording import unique_labels
from ctxexp.results import Results
from ctxexp.transform import Transform

if TYPE_CHECKING:
    from ctxexp.command.config import Config
    from ctxexp.report.comparison import Comparison

MAX_YIELDED = 1_000_000  # sentences of a text that doesn't say how many it has

Text = str | Path | Corpus | Iterable[str | Sequence[str] | Sentence]


class Parts(TypedDict, total=False):
    """What may be chosen beside model and text: a name as on the command line, or an object."""

    baseline: str | Baseline
    transform: str | Callable[[], Transform]  # a factory
    control: str | Control


def measure(
    model: str | Encoder,
    text: Text | None = None,
    *,
    metrics: str | Sequence[str] | Mapping[str, Callable[[], Metric]] | None = None,
    options: str | Sequence[str] = (),
    folder: str | Path | None = None,
    progress: bool | Progress = True,
    **parts: Unpack[Parts],
) -> Results:
    """What the command would measure, as an object; nothing is logged.

    `model`: a name that the command knows (`gpt2`), or an encoder: of `from_transformers`, `from_arrays`, or your own.
    `text`: sentences (strings, or lists of words), a path (a sentence a line), or a Corpus; None: the arrays' own
    words, else the command's data set. `metrics`, and in `parts` `baseline`, `transform`, `control`: names as on the
    command line (`metrics` also a list), or objects: factories by label, a Baseline, a factory, a Control; None: the
    command's defaults. `options` are further words of the command line: `["min_contexts=3", "weights=untrained"]`.
    `folder` takes what metrics write (None: it is thrown away). `progress`: bars, none, or your own.

    Raises CtxexpError, with the command's own messages.
    """
    from ctxexp.command.run import run  # with what checks configs: not at `import ctxexp`

    config = configured(model, text, options, metrics=metrics, **parts)
    shown = progress if isinstance(progress, Progress) else Progress() if progress else Silent()
    with TemporaryDirectory() as own:
        return run(config, Path(folder or own), shown)


def configured(
    model: str | Encoder,
    text: Text | None = None,
    options: str | Sequence[str] = (),
    *,
    metrics: str | Sequence[str] | Mapping[str, Callable[[], Metric]] | None = None,
    **parts: Unpack[Parts],
) -> Config:
    """The config that these choices make, objects and all; see `measure`."""
    for key in parts.keys() - Parts.__annotations__.keys():
        raise ConfigError(
            f"measure has no argument {key!r}{near(key, Parts.__annotations__)}; keys of the command line go into "
            f'options, as in options=["model.{key}=..."]'
        )
    _check_kinds(model, text)
    options = shlex.split(options) if isinstance(options, str) else options
    chosen: dict[str, Any] = {"model": model, "metric": metrics, **parts}
    config = _composed(chosen, text, options)
    for kind, made in chosen.items():
        if kind == "metric" and isinstance(made, Mapping):
            config = config.having(kind, made)
        elif made is not None and not isinstance(made, str | Sequence):
            factory = made if kind == "transform" else partial(lambda made: made, made)
            config = config.having(kind, {_name(made): factory})
    if not isinstance(model, str):
        config = replace(config, dtype=model.dtype)  # type: ignore[arg-type]  # an encoder's own, whatever it is
    if (corpus := _corpus(model, text, config)) is not None:
        config = config.having("dataset", {corpus.name: lambda: corpus})
    return config


def load(folder: str | Path) -> Results:
    """The results in a run's folder (`mlruns/results/.../...`), tables included. Raises TrackingError if none are."""
    return Results.load(Path(folder).expanduser())


def runs(folder: str | Path = "mlruns", *, sweep: str | None = None) -> dict[str, Results]:
    """Finished runs of a tracking folder by their label, the newest first; `sweep`: of that one only, "last" the last.

    Raises TrackingError if there are none.
    """
    from ctxexp.sinks.disk.finished import finished_results  # sinks settle how MLflow behaves: not at `import ctxexp`

    held = finished_results(folder, sweep=sweep)
    found = [(results.info.title or job.folder.parent.name, results) for job, results in held]
    if not found:
        place = Path(folder).expanduser() / "results"
        raise TrackingError(f"no finished run{f' of sweep {sweep}' if sweep else ''} in {place}")
    return dict(unique_labels(found))


def compare(results: Mapping[str, Results] | Sequence[Results]) -> Comparison:
    """Several runs side by side; in a notebook it shows itself as a table."""
    from ctxexp.report.comparison import Comparison  # with all that draws figures

    named = results.items() if isinstance(results, Mapping) else ((r.info.title or "run", r) for r in results)
    return Comparison(tuple(unique_labels(list(named))))


def _name(part: object) -> str:
    """What an object is called: by its title, by its name, as a function or class, or as one of its class."""
    names = (getattr(part, key, "") for key in ("title", "name", "__name__"))
    return str(next(filter(None, names), type(part).__name__))


def _composed(chosen: Mapping[str, Any], text: Text | None, options: Sequence[str]) -> Config:
    """The config that these choices make as words of a command line, where they are words. Raises ConfigError for
    objects of the wrong kind."""
    from ctxexp.command import compose  # Hydra's

    transform, control, metrics = (chosen.get(kind) for kind in ("transform", "control", "metric"))
    for name, made in {"transform": transform, **(metrics if isinstance(metrics, Mapping) else {})}.items():
        if made is not None and not isinstance(made, str) and not callable(made):
            raise ConfigError(f"{name}: expected a factory, such as a class, got {type(made).__name__}")
    if control is not None and not isinstance(control, str | Control):
        raise ConfigError(f"control: expected a name or a ctxexp.Control, got {type(control).__name__}")
    words = [f"{kind}={name}" for kind, name in chosen.items() if isinstance(name, str)]
    if isinstance(metrics, Sequence) and not isinstance(metrics, str):
        words.append(f"metric=[{','.join(metrics)}]")
    if isinstance(text, str | Path):
        words += ["dataset=text", f"dataset.path={compose.quote(str(text))}"]
    return compose.config_of([*words, *options])


def _check_kinds(model: object, text: object) -> None:
    """Raise ConfigError, with what to write, for a model or a text of another type."""
    if isinstance(model, list | tuple):
        raise ConfigError(
            f"model: expected one, got {len(model)}; measure each, then lay them side by side: "
            "ctxexp.compare({name: ctxexp.measure(name, ...) for name in names})"
        )
    if not isinstance(model, str | Encoder):
        raise ConfigError(
            f"model: expected a name or a ctxexp.Encoder, got {type(model).__name__}; wrap a model in memory: "
            "ctxexp.from_transformers(model, tokenizer)"
        )
    if text is not None and not isinstance(text, str | Path | Corpus | Iterable):
        raise ConfigError(f"text: expected sentences, a file's path or a Corpus, got {type(text).__name__}")


def _corpus(model: str | Encoder, text: Text | None, config: Config) -> Corpus | None:
    """The text as a corpus; None where the config's data set is the text."""
    if text is None:
        return model.corpus if isinstance(model, Encoder) else None
    if isinstance(text, str | Path):
        return None
    if isinstance(text, Corpus):
        return text
    read = tokenizer(config.words.tokenizer, lower=config.words.lower)
    sentences: list[Sentence] = []
    unbounded = not hasattr(text, "__len__")
    for number, one in enumerate(text):
        if unbounded and number == MAX_YIELDED:
            raise ConfigError(
                f"text: it yields more than {MAX_YIELDED:,} sentences, as a generator does that never ends; give a "
                'list, or a file\'s path, which is streamed with options=["words.max_contexts=256"]'
            )
        if isinstance(one, Sentence):
            sentences.append(one)
        elif isinstance(one, str):
            sentences.append(read(one))
        else:
            sentences.append(Sentence.of(one))
    if not sentences:
        raise ConfigError("text: expected at least one sentence, got none")
    return Corpus("sentences", tuple(sentences), choices={"tokenizer": config.words.tokenizer})
