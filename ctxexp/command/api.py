"""The Python API: measure a model in a line (of sentences or a table in memory, a path, the name of a data set, or a
Corpus), read finished runs back, compare them.
"""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from io import IOBase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ctxexp.baselines import Baseline
from ctxexp.controls import Control
from ctxexp.dataset import Corpus, Sentence
from ctxexp.datasets.text import TextTable
from ctxexp.errors import ConfigError, line, suggestions
from ctxexp.files import user_path
from ctxexp.host import callers_process, plain
from ctxexp.metrics import Metric
from ctxexp.model import Encoder
from ctxexp.models.huggingface import from_transformers
from ctxexp.plugins.registry import GROUPS, load_plugin_files, names_in_file, option_names, registry
from ctxexp.progress import Progress
from ctxexp.report.wording import unique_labels
from ctxexp.results import Results
from ctxexp.transforms import Transform

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from ctxexp.command.config import Config, WordOptions
    from ctxexp.report.comparison import Comparison

KEYS = {key: key for key in ("seed", "min_contexts", "bootstrap", "weights", "device")}
KEYS |= {"column": "dataset.column", "layers": "model.layers"}  # keywords of `measure`, by the config's keys
OTHERS = ("metrics", "tokenizer", "options", "folder", "progress")
PARTS = ("transform", "control", "baseline")  # given by name or as an object
TEXT_SECOND = "the model stands first, then the text: ctxexp.measure(model, text)"
log = logging.getLogger("ctxexp")
TextLike = str | Path | Corpus | Mapping[str, Any] | Iterable[str | Sequence[str] | Sentence | Mapping[str, Any]]


def measure(
    model: object,
    text: TextLike | None = None,
    *,
    metrics: str | Sequence[str] | Mapping[str, Callable[[], Metric]] | None = None,
    column: str | None = None,
    seed: int | None = None,
    min_contexts: int | None = None,
    bootstrap: int | None = None,
    weights: str | None = None,
    layers: Sequence[int] | None = None,
    device: str | None = None,
    baseline: str | Baseline | None = None,
    transform: str | Callable[[], Transform] | None = None,
    control: str | Control | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    options: str | Sequence[str] | Mapping[str, object] = (),
    folder: str | Path | None = None,
    progress: bool | Progress = True,
    **others: object,
) -> Results:
    """The results of a run of the command with these choices; nothing is logged.

    Args:
        model: A name that the command knows (`gpt2`), a repository of the hub, a folder of a model or of a run, with
            words behind it (`"bert model.pooling=first"`); a model of transformers, in a pipeline or a
            SentenceTransformer too; or an encoder: of `from_arrays`, or your own.
        text: Sentences (strings, or lists of words), a table (DataFrame, data set, columns or rows), a path (of a text
            or a table, as on the command line), a data set's name, or a Corpus; None: the arrays' own words, else the
            command's data set.
        metrics: Names as on the command line, or factories by label; None: the command's defaults.
        column: The column of a table that holds its texts; None: `text`, else `sentence`.
        seed: Of everything that is drawn.
        min_contexts: The number of distinct sentences that a word needs to be measured.
        bootstrap: The number of resamples behind intervals; 0: no intervals.
        weights: `mini`, `published` or `untrained`, of a model by name.
        layers: The layers to measure, counted from 0, the input layer, or -1, the last; None: all.
        device: `auto`, `cpu`, `cuda` or `mps`, of a model by name.
        baseline: A name as on the command line, or a Baseline.
        transform: A name, or a factory of transforms.
        control: A name, or a Control.
        tokenizer: The fast tokenizer of a model of transformers; None: the one beside it in a pipeline or a
            SentenceTransformer, else that of the files which the model was loaded from.
        options: Other keys of the command line: `{"words.max_contexts": 256}`, or its words, `["dtype=bfloat16"]`.
        others: The same as keywords, where they have no dot: `dtype="bfloat16"`, `pooling="first"`.
        folder: Folder for files that metrics write; None: they are deleted.
        progress: Progress bars, none, or a Progress of your own.

    Returns:
        The results; `ctxexp.compare` lays several side by side.

    Raises:
        CtxexpError: With the command's own messages; for an unknown keyword with the nearest one.

    Example:
        >>> from ctxexp import from_arrays
        >>> arrays = from_arrays([[[3.0, 4.0], [0.0, 1.0]], [[0.0, 3.0]]], [["cat", "sat"], ["cat"]])
        >>> measure(arrays, metrics="word_norm", min_contexts=2, progress=False)["word_norm"].tolist()
        [3.0]
    """
    from ctxexp.command.experiment import Experiment  # with what checks configs: not at `import ctxexp`

    config = configured(
        model, text, options, metrics=metrics, column=column, seed=seed, min_contexts=min_contexts,
        bootstrap=bootstrap, weights=weights, layers=layers, device=device, baseline=baseline, transform=transform,
        control=control, tokenizer=tokenizer, **others,
    )  # fmt: skip
    with TemporaryDirectory() as own, callers_process():
        return Experiment(config, Progress.of(progress)).run(Path(folder or own))


def configured(
    model: object,
    text: TextLike | None = None,
    options: str | Sequence[str] | Mapping[str, object] = (),
    **keywords: Any,
) -> Config:
    """The config that these choices make, objects and all; `keywords` are those of `measure`.

    Example:
        >>> config = configured("gpt2", ["The bank was wet.", "The bank lent us money."], "dtype=bfloat16")
        >>> config.model.name, config.dtype
        ('gpt2', 'bfloat16')
    """
    from ctxexp.command.config import parse_config
    from ctxexp.command.options import plain_config

    if "metric" in keywords:
        keywords["metrics"] = keywords.pop("metric")
    model, text, options, keywords = map(plain, (model, text, options, keywords))
    chosen = {key: value for key, value in keywords.items() if value is not None}
    model = _model(model, chosen)
    check_text(text)
    column = None if text is None or isinstance(text, str | Path) else chosen.pop("column", None)
    _check_parts(chosen)
    config = parse_config(plain_config(_choices(model, text, options, chosen)), registry())
    is_untrained = isinstance(model, str) and config.weights.name == "untrained"
    if is_untrained and "weights" not in (config.model.signature() or {}):
        raise ConfigError(
            f"weights=untrained: model {config.model.name!r} doesn't take it, and would be the trained one; expected a "
            "model with the option weights, as bert, gpt2 or elmo, with model.checkpoint=... for another one's shape"
        )
    return replace(config, **_objects(model, corpus_of(model, text, config.words, column), chosen))


def _choices(model: str | Encoder, text: object, options: object, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What is chosen by name or value, by the config's keys; plugins' files are loaded. Raises ConfigError for a key
    that no chosen option has, or that is given twice."""
    from ctxexp.command.config import section_error, section_names
    from ctxexp.command.overrides import read_choices, typed_model
    from ctxexp.command.short_keys import full_key

    choices: dict[str, Any] = {KEYS[key]: value for key, value in chosen.items() if key in KEYS}
    choices |= {kind: chosen[kind] for kind in PARTS if isinstance(chosen.get(kind), str)}
    metrics = chosen.get("metrics")
    if not isinstance(metrics, Mapping | None):
        is_file = isinstance(metrics, str) and metrics.endswith(".py")
        choices["metric"] = names_in_file("metric", metrics) if is_file else metrics
    if isinstance(text, Path):
        choices |= {"dataset": "text", "dataset.path": text}
    elif isinstance(text, str):
        choices["dataset"] = text
    more = options if isinstance(options, Mapping) else read_choices(_words(options))
    if isinstance(model, str):
        choices["model"], own = typed_model(model)
        more = {**read_choices(own), **more}
    others = {key: value for key, value in chosen.items() if key not in (*KEYS, *OTHERS, *PARTS)}
    _check_once(others, more)
    for key in others.keys() & {*section_names()}:
        raise section_error(key, others[key])
    more = {full_key(key, value, choices): value for key, value in {**more, **others}.items()}
    _check_keys(more, others, in_memory=isinstance(model, Encoder))
    _check_once(choices, more)
    if "plugins" in more:
        load_plugin_files(more["plugins"])
    return {**choices, **more}


def _check_once(one: Mapping[str, object], other: Mapping[str, object]) -> None:
    for key in one.keys() & other.keys():
        raise ConfigError(f"{key} is given twice, as an argument and in options: leave one out")


def _objects(model: str | Encoder, corpus: Corpus | None, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a config that are given as objects, by its keys."""
    from ctxexp.command.config import own_component

    objects: dict[str, Any] = {}
    for kind in PARTS:
        part = chosen.get(kind)
        if part is not None and not isinstance(part, str):
            factory = part if kind == "transform" else partial(_itself, part)
            objects[kind] = own_component(kind, _name(part), factory)
    if isinstance(metrics := chosen.get("metrics"), Mapping):
        objects["metric"] = {label: own_component("metric", label, factory) for label, factory in metrics.items()}
    if isinstance(model, Encoder):
        objects |= {"model": own_component("model", _name(model), partial(_itself, model)), "dtype": model.dtype}
    if corpus is not None:
        objects["dataset"] = own_component("dataset", corpus.name, partial(_itself, corpus))
    return objects


def _itself(part: object) -> object:
    return part


def _check_keys(keys: Iterable[str], others: Mapping[str, object], *, in_memory: bool) -> None:
    """Raise ConfigError for a keyword that no chosen option has, with the nearest one, and for one of a model by name
    where the model is in memory."""
    from ctxexp.command.config import key_names

    usual = {*KEYS, *OTHERS, *PARTS, "text"}
    meant = {one: f"options={{{one!r}: ...}}" for one in key_names() if "." in one} | {one: one for one in usual}
    for key in keys:
        if in_memory and key.startswith("model.") and key.rpartition(".")[2] in others:
            raise ConfigError(f"{key}= is of a model by name: one in memory has its own; leave it out")
        if key in others and key not in (*key_names(), *GROUPS):
            close = [meant.get(one, one) for one in suggestions(key, [*key_names(), *usual])]
            hint = f"; did you mean {' or '.join(close)}?" if close else f" ({', '.join(sorted(usual))})"
            raise ConfigError(f"measure has no argument {key!r}{hint}")


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
        ...     load(Results().save(folder)).measures()
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
    from ctxexp.jobs import finished_by_label  # sinks settle how MLflow behaves: not at `import ctxexp`

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
    if isinstance(sources, str | Results) or not isinstance(sources, Iterable):
        sources = [sources]
    labelled = [*sources.items()] if isinstance(sources, Mapping) else [("", one) for one in sources]
    labelled += [("", one) for one in others]
    if odd := [one for _, one in labelled if not isinstance(one, Results)]:
        raise ConfigError(
            f"compare: expected results, got {type(odd[0]).__name__}; measure each first: "
            "ctxexp.compare({name: ctxexp.measure(name, ...) for name in names}); two models' spaces are compared by "
            "ctxexp_compare.compare(model, model)"
        )
    return Comparison(tuple(unique_labels([(label or one.info.title or "run", one) for label, one in labelled])))


def _name(part: object) -> str:
    """The name of an object: its title, its name, that of the function or class, or that of its class."""
    names = (getattr(part, key, "") for key in ("title", "name", "__name__"))
    return str(next(filter(None, names), type(part).__name__))


def _check_parts(chosen: Mapping[str, Any]) -> None:
    """Raise ConfigError, with what to write, for objects of the wrong kind."""
    metrics, transform = chosen.get("metrics"), chosen.get("transform", "")
    factories = dict(metrics) if isinstance(metrics, Mapping) else {}
    if not isinstance(transform, str):
        factories["transform"] = transform
    for name, factory in factories.items():
        if not callable(factory):
            raise ConfigError(f"{name}: expected a factory, such as a class, got {type(factory).__name__}")
    if not isinstance(metrics, Mapping | None):
        names = metrics if isinstance(metrics, list | tuple) else [metrics]
        if odd := [type(name).__name__ for name in names if not isinstance(name, str)]:
            raise ConfigError(
                f"metrics: expected names, got {odd[0]}; objects go by label, as in metrics={{'mine': Mine}}"
            )


def _words(options: object) -> list[str]:
    """The options as words of a command line. Raises ConfigError, with what to write, for what can't be."""
    expected = 'options: expected keys and values, as in options={"dtype": "bfloat16"}, or words of the command line'
    if isinstance(options, str):
        try:
            return shlex.split(options)
        except ValueError as error:  # a quote that nothing closes
            raise ConfigError(f"{expected}; {options[:60]!r} can't be split into words: {error}") from None
    words: list[Any] = list(options) if isinstance(options, Iterable) and not isinstance(options, bytes) else [options]
    if odd := [word for word in words if not isinstance(word, str)]:
        raise ConfigError(f"{expected}, got {type(odd[0]).__name__}")
    return words


def _model(model: object, chosen: dict[str, Any]) -> str | Encoder:
    """The model as it is typed, or its encoder, which takes tokenizer and layers out of what is chosen. Raises
    ConfigError, with what to write, for a model of another type, and for a choice that it would pass over."""
    if isinstance(model, list | tuple):
        several = "measure each: ctxexp.compare({name: ctxexp.measure(name, ...) for name in names})"
        are_texts = any(" " in str(one) for one in model)
        raise ConfigError(f"model: expected one, got {len(model)}; {TEXT_SECOND if are_texts else several}")
    if isinstance(model, Path):  # of one part it isn't a name
        model = str(model) if len(model.parts) > 1 else f"./{model}"
    if not isinstance(model, str | Encoder):
        layers = chosen.pop("layers", None)
        model = from_transformers(
            model, chosen.pop("tokenizer", None), layers=layers, unused="refuse"
        )  # as of a folder
    if "tokenizer" in chosen:
        raise ConfigError(f"tokenizer= goes with a transformers model in memory, got {type(model).__name__}")
    if odd := {"weights", "layers", "device"} & chosen.keys() if isinstance(model, Encoder) else ():
        raise ConfigError(f"{min(odd)}= is of a model by name: one in memory has its own; leave it out")
    return model


def check_text(text: object) -> None:
    """Raise ConfigError, with what to write, for a sentence in place of a list, and for another type."""
    if isinstance(text, str) and re.search(r"\s\w+\s|\n", text) and not user_path(text[:200]).exists():
        raise ConfigError(
            f"text: no file {line(text, 60)!r}; sentences are a list: ctxexp.measure(model, [{line(text, 40)!r}])"
        )
    hints = {IOBase: "; give its path", set: "; sorted(text) has an order", bytes: "; text.decode() is text"}
    hint = next((hint for kind, hint in hints.items() if isinstance(text, kind)), "")
    if isinstance(text, str) and text in option_names("model") and not Path(text).exists():
        raise ConfigError(f"text: {text} is a model; {TEXT_SECOND}")
    is_table = hasattr(text, "column_names") or hasattr(text, "collect_schema")  # Arrow's and Polars' needn't iterate
    if hint or not (is_table or isinstance(text, str | Path | Corpus | Iterable | None)):
        raise ConfigError(f"text: expected sentences, a file's path or a Corpus, got {type(text).__name__}{hint}")


def corpus_of(
    model: str | Encoder, text: TextLike | None, words: WordOptions, column: str | None = None
) -> Corpus | None:
    """The text as a corpus; None where the config's data set is the text. `column` holds the texts of a table, or of
    rows; None: `text`, else `sentence`."""
    if text is None:
        return model.corpus if isinstance(model, Encoder) else None
    if isinstance(text, str | Path):
        return None
    if isinstance(text, Corpus):
        return text
    table = TextTable(text, {"tokenizer": words.tokenizer, "lower": str(words.lower).lower()}, column)
    corpus = replace(table.corpus(), origin=table.origin, left_out=table.n_left_out)
    sentences = corpus.sentences
    if sentences and all(len(one.text) < 200 and Path(one.text).is_file() for one in sentences):
        raise ConfigError(f"text: a list of files; give one, {sentences[0].text!r}, or the folder that they lie in")
    if not table.n_rows:
        raise ConfigError("text: expected at least one sentence, got none")
    if not any(map(len, sentences)):  # before a model is loaded
        raise ConfigError(f"text: expected words, got none in {table.n_rows:,} sentences")
    return corpus
