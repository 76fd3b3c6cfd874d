"""The Python face: measure a model in a line, read finished runs back, compare them.

`measure` composes what the command composes, with the same defaults and names, and gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ctxexp.control import Control
from ctxexp.dataset import Corpus, Sentence
from ctxexp.errors import ConfigError, TrackingError
from ctxexp.model import Encoder
from ctxexp.progress import Progress, Silent
from ctxexp.results import Results

if TYPE_CHECKING:
    from ctxexp.command.config import Node
    from ctxexp.plugins import Registry
    from ctxexp.report.comparison import Comparison

Text = str | Path | Corpus | Iterable[str | Sequence[str] | Sentence]


def measure(
    model: str | Encoder,
    text: Text | None = None,
    *,
    metrics: str | Sequence[str] | Mapping[str, Callable[[], Any]] | None = None,
    baseline: Any = None,
    transform: str | Callable[[], Any] | None = None,
    control: str | Control | None = None,
    options: Sequence[str] = (),
    folder: str | Path | None = None,
    progress: bool | Progress = True,
) -> Results:
    """What the command would measure, as an object; nothing is logged.

    `model`: a name that the command knows (`gpt2`), or an encoder: of `from_transformers`, `from_arrays`, or your own.
    `text`: sentences (strings, or lists of words), a path (a sentence a line), or a Corpus; None: the arrays' own
    words, else the command's data set. `metrics`, `baseline`, `transform`, `control`: names as on the command line
    (`metrics` also a list), or objects: factories by label, a Baseline, a factory, a Control; None: the command's
    defaults. `options` are further words of the command line: `["min_contexts=3", "weights=untrained"]`. `folder`
    takes what metrics write (None: it is thrown away). `progress`: bars, none, or your own.

    Raises CtxexpError, with the command's own messages.
    """
    from ctxexp.command import run
    from ctxexp.command.config import supplied
    from ctxexp.command.fit import load_text

    config, registry = _composed(model, text, metrics, baseline, transform, control, options)
    parts = {"baseline": baseline, "control": control, "transform": transform}
    parts = {kind: part for kind, part in parts.items() if part is not None and not isinstance(part, str)}
    if control is not None and not isinstance(control, str | Control):
        raise ConfigError(f"control: expected a name or a ctxexp.Control, got {type(control).__name__}")
    load = partial(run.load_corpus, control=parts.get("control"))
    corpus = _corpus(model, text, config)
    if corpus is None:
        corpus = load(config, registry)
    else:
        chosen = parts.get("control") or supplied("control", config["control"], registry)
        corpus = run.prepared(corpus, deduplicate=config["words"]["deduplicate"])
        corpus = run.changed(corpus, chosen, config["seed"])
    encoder = run.load_encoder(config, registry) if isinstance(model, str) else model
    study = run.study_of(config, corpus, encoder, registry, load_text(config, registry, load))
    config |= {kind: {"name": _name(part)} for kind, part in parts.items()}  # what results and messages call them
    if "transform" in parts:
        parts["transform_name"] = config["transform"]["name"]
    if isinstance(metrics, Mapping):
        parts["metrics"], config["metric"] = metrics, {name: {"name": name} for name in metrics}
    if not isinstance(model, str):
        parts["model"] = model.title or model.name
        config |= {"model": {"name": parts["model"]}, "dtype": model.dtype}
    study = replace(study, **parts)
    study = replace(study, title=run.label(config, registry, study.control))
    shown = progress if isinstance(progress, Progress) else Progress() if progress else Silent()
    with TemporaryDirectory() as own:
        return run.measured(study, config, registry, Path(folder or own), shown)


def load(folder: str | Path) -> Results:
    """The results in a run's folder (`mlruns/results/.../...`), tables included. Raises TrackingError if none are."""
    return Results.load(Path(folder).expanduser())


def runs(folder: str | Path = "mlruns", *, sweep: str | None = None) -> dict[str, Results]:
    """Finished runs of a tracking folder by their label, the newest first; `sweep`: of that one only, "last" the last.

    Raises TrackingError if there are none.
    """
    from ctxexp.jobs.state import read_state
    from ctxexp.report.wording import unique_labels

    place = Path(folder).expanduser() / "results"
    found = []
    newest = ""
    for state in sorted(place.glob("*/*/status.json"), reverse=True):
        name = state.parent.parent.name
        newest = newest or name
        told = read_state(state.parent)
        if told.get("status") != "FINISHED" or (sweep not in (None, name) and not (sweep == "last" and name == newest)):
            continue
        results = load(told.get("results") or state.parent)
        found.append((results.info.title or name, results))
    if not found:
        raise TrackingError(f"no finished run{f' of sweep {sweep}' if sweep else ''} in {place}")
    return dict(unique_labels(found))


def compare(results: Mapping[str, Results] | Sequence[Results]) -> Comparison:
    """Several runs side by side; in a notebook it shows itself as a table."""
    from ctxexp.report.comparison import Comparison
    from ctxexp.report.wording import unique_labels

    named = results.items() if isinstance(results, Mapping) else ((r.info.title or "run", r) for r in results)
    return Comparison(tuple(unique_labels(list(named))))


def _name(part: Any) -> str:
    """What an object is called: by itself, as a function or class, or as one of its class."""
    return str(getattr(part, "name", "") or getattr(part, "__name__", type(part).__name__))


def _composed(
    model: Any, text: Any, metrics: Any, baseline: Any, transform: Any, control: Any, options: Sequence[str]
) -> tuple[Node, Registry]:
    """The config that these words of a command line make, checked, and the registry of its names."""
    from ctxexp.command import compose

    factories = {"transform": transform} | (dict(metrics) if isinstance(metrics, Mapping) else {})
    for name, made in factories.items():
        if made is not None and not isinstance(made, str) and not callable(made):
            raise ConfigError(f"{name}: expected a factory, such as a class, got {type(made).__name__}")
    groups = {"model": model, "baseline": baseline, "transform": transform, "control": control}
    words = [f"{group}={name}" for group, name in groups.items() if isinstance(name, str)]
    if isinstance(metrics, str):
        words.append(f"metric={metrics}")
    elif metrics is not None and not isinstance(metrics, Mapping):
        words.append(f"metric=[{','.join(metrics)}]")
    if isinstance(text, str | Path):
        words += ["dataset=text", f"dataset.path={compose.quote(str(text))}"]
    config, registry = compose.config_of([*words, *options])
    if callable(transform) and config["fit_on"] != "target":
        raise ConfigError(f"fit_on={config['fit_on']} goes with the name of a transform, not with an object")
    return config, registry


def _corpus(model: Any, text: Any, config: Node) -> Corpus | None:
    """The text as a corpus; None where the config's data set is the text."""
    from ctxexp.datasets.words import tokenizer

    if text is None:
        return model.corpus if isinstance(model, Encoder) else None
    if isinstance(text, str | Path):
        return None
    if isinstance(text, Corpus):
        return text
    read = tokenizer(config["words"]["tokenizer"], lower=config["words"]["lower"])
    sentences: list[Sentence] = []
    for one in text:
        if isinstance(one, Sentence):
            sentences.append(one)
        elif isinstance(one, str):
            sentences.append(read(one))
        else:
            sentences.append(Sentence.of(one))
    if not sentences:
        raise ConfigError("text: expected at least one sentence, got none")
    return Corpus("sentences", tuple(sentences), choices={"tokenizer": config["words"]["tokenizer"]})
