"""The tasks that a layer is chosen by, and a model's scores on them: at every layer and at their mean, after every
transform."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ctxexp import Corpus, EncodedSentence, Encoder, Metric, Results, Sentence, measure
from ctxexp.command import Experiment, Progress, configured, typed_model
from ctxexp.datasets import user_path
from ctxexp.errors import ConfigError, DataError, MetricError, UnknownName
from ctxexp.models import Checkpoint, TransformerOptions, checkpoint_encoder
from ctxexp.results import Key
from ctxexp_compare.layer_choice.checkpoint import layer_vectors, plain_view, save_layer
from ctxexp_compare.layer_choice.choice import MEAN, NONE, Candidate, Place, ScoreTable
from ctxexp_compare.layer_choice.retrieval import Retrieval
from ctxexp_compare.layer_choice.sense_neighbours import SenseNeighbours
from ctxexp_compare.own_pairs import own_corpus

STS_TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
WIC, SEMCOR, STS = "WiC", "SemCor", "sts"
FEWEST = 20  # pairs of your own, or queries with their documents: the interval of fewer is that of a few draws
DOCUMENTS = 60  # of SemCor: enough for about three hundred words of several senses
ALL = (*STS_TASKS, WIC, SEMCOR)


@dataclass(frozen=True)
class TaskRun:
    """A run that scores one task or several: its arguments, its metrics, the key and factor of each score, and the
    text, where that is the user's own."""

    options: tuple[str, ...]
    metrics: str | Mapping[str, Callable[[], Metric]]
    keys: Mapping[str, Key]
    points: float = 100.0  # per unit of the measure
    sentences: bool = False  # whether it needs one vector a sentence
    notes: tuple[str, ...] = ()
    text: Corpus | None = None

    @property
    def corpus(self) -> Corpus:
        """The text."""
        return self.text or Experiment(configured("random_words", None, self.options)).corpus


def parse_tasks(text: str) -> list[str]:
    """The tasks by their names, `sts` for the seven of it; files of your own by their paths. Raises UnknownName, and
    ConfigError for none."""
    by_key = {name.casefold(): name for name in ALL} | {"stsbenchmark": "STS-B", "stsb": "STS-B"}
    names: list[str] = []
    for word in filter(None, (word.strip() for word in text.split(","))):
        if word.casefold() == STS:
            names += STS_TASKS
        elif word.casefold() in by_key or user_path(word).is_file():
            names.append(by_key.get(word.casefold(), word))
        else:
            raise UnknownName("task, and no file of pairs,", word, [STS, *ALL])
    if not names:
        raise ConfigError(f"tasks=: expected some of {STS}, {', '.join(ALL)}, by comma")
    return list(dict.fromkeys(names))


def task_runs(tasks: Sequence[str], data: Path | None, documents: Path | None = None) -> list[TaskRun]:
    """The runs that score these tasks; `data` is the folder of their data, or one with a folder for each of `sts`,
    `wic` and `semcor` (None: downloaded), `documents` further ones for queries of your own.

    Raises DataError for a table of your own that isn't one of pairs or queries.
    """
    runs = []
    if sts := [task for task in tasks if task in STS_TASKS]:
        options = ("dataset=sts", f"dataset.tasks=[{','.join(sts)}]", *_path(data, "sts"))
        keys = {task: Key("sts", "all", "" if len(sts) == 1 else task) for task in sts}
        overlap = ("STS-B holds pairs of STS12 to STS16, which count twice",) if "STS-B" in sts and len(sts) > 1 else ()
        runs.append(TaskRun(options, "sts", keys, 1.0, sentences=True, notes=overlap))
    if WIC in tasks:
        options = ("dataset=wic", *_path(data, "wic"))
        runs.append(TaskRun(options, "wic", {WIC: Key("wic", "accuracy", "test")}))
    if SEMCOR in tasks:
        options = ("dataset=semcor", f"dataset.documents={DOCUMENTS}", *_path(data, "semcor"))
        metrics = {"sense_neighbours": SenseNeighbours}
        runs.append(TaskRun(options, metrics, {SEMCOR: Key("sense_neighbours", "raw")}))
    for task in tasks:
        if task not in ALL:
            text, asks = own_corpus(user_path(task), documents)
            if len(text.pairs) < FEWEST:
                raise DataError(f"{task}: {len(text.pairs)} pairs tell no layers apart; expected {FEWEST} or more")
            own: dict[str, Callable[[], Metric]] | str = {"retrieval": Retrieval} if asks else "sts"
            key = Key("retrieval" if asks else "sts", "all")
            runs.append(TaskRun((), own, {task: key}, 1.0, sentences=True, text=text))
    return runs


def _path(data: Path | None, name: str) -> tuple[str, ...]:
    if data is None:
        return ()
    path = str(data / name if (data / name).is_dir() else data).replace("'", r"\'")
    return (f"dataset.path='{path}'",)


DELEGATED = (
    "dim", "dtype", "title", "details", "sequential", "positional", "causal", "start", "corpus", "poolings", "lengths",
    "count_unknown", "token_spans", "unit_keys",
)  # fmt: skip


class WithMeanLayer(Encoder):
    """The layers of an encoder, and behind the last one the unweighted mean of them all."""

    def __init__(self, base: Encoder) -> None:
        for name in DELEGATED:
            setattr(self, name, getattr(base, name))
        self.base, self.name = base, f"{base.name} and the mean of its layers"
        self.n_layers, self.layers = base.n_layers + 1, (*base.layer_numbers, base.n_layers)

    @property
    def class_code(self) -> str:
        return self.base.class_code

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        for one in self.base.encode(batch):
            mean = one.layers.mean(axis=0, keepdims=True, dtype=np.float64).astype(one.layers.dtype)
            yield EncodedSentence(one.units, np.concatenate([one.layers, mean]))

    def sentence_encoder(self) -> Encoder | None:
        view = self.base.sentence_encoder()
        return None if view is None else WithMeanLayer(view)


@dataclass(frozen=True)
class Model:
    """A model as the command line names it, name and words: its encoder, and that of its untrained twin."""

    name: str
    words: tuple[str, ...]
    encoder: Encoder
    twin: Encoder | None
    why_no_twin: str = ""


def load_model(model: str, options: Sequence[str], *, twin: bool, seed: int = 0) -> Model:
    """The model and, where it can be had, its untrained twin: the same network with weights drawn anew."""
    name, own = typed_model(model)
    words = (*options, *own)
    config = configured(name, None, [*words, f"seed={seed}"])
    encoder = Experiment(config).encoder
    if not twin:
        return Model(name, words, encoder, None)
    if config.model.arguments.get("weights") == "untrained" or encoder.details.get("untrained") is True:
        return Model(name, words, encoder, None, "it is untrained itself")
    if "weights" in (config.model.signature() or {}):
        others = [word for word in words if not word.removeprefix("model.").startswith("weights=")]
        untrained = configured(name, None, [*others, f"seed={seed}", "weights=untrained"])
        return Model(name, words, encoder, Experiment(untrained).encoder)
    checkpoint, choices = getattr(encoder, "checkpoint", None), getattr(encoder, "options", None)
    if not isinstance(checkpoint, Checkpoint) or not isinstance(choices, TransformerOptions):
        return Model(name, words, encoder, None, f"model {name!r} has no weights to draw anew")
    return Model(name, words, encoder, checkpoint_encoder(checkpoint, choices, untrained=seed))


def sentence_pooling(encoder: Encoder, pooling: str) -> str:
    """The pooling of sentences: the one that is asked for, else the model's own, else `mean_words`."""
    view = None if pooling else encoder.sentence_encoder()
    return view.poolings[0] if view is not None else pooling or "mean_words"


def measured_table(
    model: Model,
    tasks: Sequence[str],
    *,
    data: Path | None = None,
    documents: Path | None = None,
    transforms: Sequence[str] = (NONE,),
    pooling: str = "",
    options: Sequence[str] = (),
    seed: int = 0,
    bootstrap: int = 1000,
    progress: Progress | None = None,
) -> ScoreTable:
    """The table of a model's scores over the tasks.

    Args:
        model: The model, and its twin where it has one; the twin is measured without a transform.
        tasks: Names of tasks.
        data: The folder of the data, or one with a folder for each data set.
        documents: Further documents for queries of your own.
        transforms: Names of transforms; `none` is always among them. Each is fitted on the task's own text.
        pooling: Of sentences; empty: the model's own, `mean` where its files name none.
        options: Further arguments of every run.
        seed: Of resamples.
        bootstrap: Resamples of each task's items.
        progress: Where progress shows.

    Returns:
        The table, with covariances over resamples of items.

    Raises:
        ConfigError: A pooling that has no vector in every layer, or fewer than 100 resamples.
        CtxexpError: Whatever a run raises.
    """
    if bootstrap < 100:
        raise ConfigError(f"bootstrap={bootstrap}: expected 100 or more, which say how sure each score is")
    pooling = sentence_pooling(model.encoder, pooling)
    if pooling == "pooler":
        raise ConfigError("pooling=pooler gives vectors in the last layer only, so there is no layer to choose")
    ways = [(name, model.encoder, False) for name in dict.fromkeys([NONE, *transforms])]
    ways += [(NONE, model.twin, True)] if model.twin else []
    numbers: list[Place] = [*model.encoder.layer_numbers, MEAN]
    candidates = tuple(Candidate(layer, name, twin) for name, _, twin in ways for layer in numbers)
    scores: dict[str, np.ndarray] = {}
    covariance: dict[str, np.ndarray] = {}
    notes: list[str] = []
    for run in task_runs(tasks, data, documents):
        notes += [f"sentence vectors by pooling {pooling}"] if run.sentences else []
        common = [*run.options, *options, f"seed={seed}", f"bootstrap={bootstrap}", "figures.explorer=0"]
        common += [f"sentence.pooling={pooling}"] if run.sentences else []
        try:
            results = [
                measure(
                    WithMeanLayer(encoder), run.text, metrics=run.metrics, transform=name, options=common,
                    progress=Progress.of(progress),
                )
                for name, encoder, _ in ways
            ]  # fmt: skip
        except DataError as error:  # which names the key of a run's config
            hint = "; or measure on pairs of your own, tasks=pairs.csv: text_a, text_b, score" if data is None else ""
            raise DataError(str(error).replace("dataset.path", "data") + hint) from error
        notes += run.notes
        for task in run.keys:
            scores[task], covariance[task] = _scores(run, task, results)
    order = [task for task in tasks if task in scores]
    if model.why_no_twin:
        notes.append(f"no untrained twin: {model.why_no_twin}")
    return ScoreTable(
        model.name,
        tuple(order),
        candidates,
        np.stack([scores[task] for task in order]),
        np.stack([covariance[task] for task in order]),
        tuple(dict.fromkeys(notes)),
    )


def _scores(run: TaskRun, task: str, results: Sequence[Results]) -> tuple[np.ndarray, np.ndarray]:
    """A task's scores (candidates,) in points, and their covariance over the same resamples of its items."""
    key = run.keys[task]
    values, replicates = [], []
    for one in results:
        found = one.replicates.get(key)
        if key not in one.by_key or found is None:
            raise MetricError(f"{task}: no score {key} with resamples in the run; it has {', '.join(one.measures())}")
        few = one.info.model.layers
        values.append(one.by_key[key].value[list(few) if few else slice(None)])
        replicates.append(found[list(few)] if few and len(found) > len(few) else found)
    scores, draws = np.concatenate(values) * run.points, np.concatenate(replicates).astype(np.float64) * run.points
    draws = draws[:, np.isfinite(draws).all(axis=0)] if np.isfinite(scores).all() else draws
    return scores, np.cov(draws)


def save_choice(
    chosen: Candidate, model: Model, folder: Path, *, runs: Sequence[TaskRun], pooling: str, options: Sequence[str]
) -> Path:
    """Write the chosen layer as a plain checkpoint; a transform is fitted on all runs' sentences together.

    Raises ModelError where none can hold it, with the reason.
    """
    assert chosen.layer != MEAN  # which is never chosen
    pooling = sentence_pooling(model.encoder, pooling)
    view, fitted = plain_view(model.encoder, pooling), None
    if chosen.transform != NONE:
        texts = list(dict.fromkeys(sentence.text for run in runs for sentence in run.corpus.sentences))
        calibration = Experiment(configured(model.encoder, None, options, transform=chosen.transform)).calibration
        fitted = calibration, calibration.fit(layer_vectors(view, texts, chosen.layer, pooling), str(chosen))
    return save_layer(view, chosen.layer, folder, pooling=pooling, transform=fitted)
