"""Curves by layer, at steps of a training."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
from transformers import TrainerCallback

import ctxexp
from ctxexp import Corpus, Group, Metric, Results
from ctxexp.command import Experiment, configured
from ctxexp.errors import ConfigError, EncodingError
from ctxexp.results import Estimates, Key
from ctxexp_lab.curves.live import (
    LiveEncoder,
    attach,
    device_of,
    encoder_of,
    first_process_says,
    is_first_process,
    keep_states,
)
from ctxexp_lab.curves.rule import StopRule

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from transformers import PreTrainedTokenizerBase

MEASURES = ("contextuality", "anisotropy", "effective_rank")
READ = 20_000  # sentences of a file, from its beginning, among which some are drawn
RESAMPLES = 200  # behind the interval of a rule
log = logging.getLogger("ctxexp_lab")


class LayerCurves(TrainerCallback):  # type: ignore[misc]  # transformers has no types
    """Measures of a model's layers while it trains, every `every` steps, with their chance levels.

    It is a callback of transformers' `Trainer`, and of a loop of your own `step` is called. A session is one training:
    where another begins (`train()` once more, a lower step, another model at the same step), values and verdict begin
    anew, and a folder gets a sibling, such as `live-2`. What can't be measured (no tokenizer, a measure that the text
    doesn't allow) is said as soon as the model is known.

    A model of transformers is read as by `eval()`, and left as it was: its mode, gradients and every random state. The
    text is encoded anew each time; nothing stays on the disk. Where several processes train, rank 0 measures. Values
    are those of `ctxexp steps` on the same weights and text.

    Args:
        text: Sentences, a file or a data set, as `ctxexp.measure` takes them; None: the embedded sentences. Of a file
            the first 20,000 sentences count.
        every: Steps between two measurements; step 0 is one.
        measures: Names of metrics, as on the command line.
        sentences: The most sentences that are measured: of more, so many are drawn once; None: all.
        tokenizer: The model's fast tokenizer; None: the trainer's, or that of the model's files.
        stop_when: What stops the training, as "effective_rank < 3 or contextuality > .9 in any layer".
        log: A function that gets the values and the step.
        folder: The folder that gets each step's results, for `ctxexp report folder=...`; None: none.
        name: The training's name in figures.
        min_contexts: The number of sentences that a word needs to be measured.
        seed: Of what is drawn.

    Example:
        >>> from transformers import AutoModel
        >>> from ctxexp.models import minis
        >>> curves = LayerCurves(sentences=32, measures=["anisotropy"])
        >>> values = curves.step(AutoModel.from_pretrained(minis.folder("gpt2")), 0)
        >>> len(values), abs(values["layers/anisotropy/chance"]) < 0.01, curves.should_stop  # five layers, and chance
        (6, True, False)
    """

    def __init__(
        self,
        text: Any = None,
        *,
        every: int = 500,
        measures: Sequence[str] = MEASURES,
        sentences: int | None = 256,
        tokenizer: PreTrainedTokenizerBase | None = None,
        stop_when: str | None = None,
        log: Callable[[dict[str, float], int], object] | None = None,
        folder: str | Path | None = None,
        name: str = "training",
        min_contexts: int = 2,
        seed: int = 0,
    ) -> None:
        self.every, self.measures, self.tokenizer, self.log = every, tuple(measures), tokenizer, log
        self.folder, self.name, self.seed = folder and Path(folder).expanduser(), name, seed
        self.rules = [] if stop_when is None else [StopRule.parse(rule) for rule in str(stop_when).split(" or ")]
        for rule in self.rules:
            if rule.measure not in self.measures:
                raise ConfigError(
                    f"stop_when={stop_when!r}: {rule.measure} is none of measures={list(self.measures)}: add it there"
                )
        options = {"dataset.limit": READ} if isinstance(text, str | Path) and Path(text).exists() else {}
        self.corpus = _draw(
            Experiment(configured("bert", text, options, metrics=self.measures)).corpus, sentences, seed
        )
        self.choices: dict[str, Any] = {
            "metrics": self.measures,
            "min_contexts": min_contexts,
            "bootstrap": RESAMPLES if self.rules else 0,
            "seed": seed,
            "options": {
                "figures.explorer": 0,
                "baseline.size": min(1000, len(set(self.corpus.sentences))),
                "cache.limit_gb": None,  # else the size of the cache, which gets nothing, is looked up each time
            },
        }
        self._built: Experiment | None = None
        self._noise: dict[tuple[str, int, int], float] = {}
        self.results: dict[int, Results] = {}  # by step, without the tables of single words
        self._encoder: ctxexp.Encoder | None = None
        self._model: object = None
        self._n_sessions = 1
        self._step: int | None = None  # the last one that was told
        self.begin()

    def begin(self, model: object = None) -> None:
        """Begin a training: values, verdict and its reason are those of no other; what can be checked of the model is.

        Args:
            model: The model that will be trained, as `step` takes it; None: not known yet.

        Raises:
            CtxexpError: The model can't be measured, or not by these measures.
        """
        self._n_sessions += bool(self.results)
        if model is not self._model:
            self._encoder = None
        self._model, self._step, self.results = model, None, {}
        self.should_stop, self.reason = False, ""
        if model is not None and is_first_process():
            with suppress(EncodingError), keep_states(device_of(model)):  # weights that are no numbers yet
                self._experiment(model)

    def step(self, model: object, step: int) -> dict[str, float]:
        """Measure the model if the step is one for that. With `stop_when`, every process calls this at every step.

        Args:
            model: A model of transformers, a module that holds one, or a ctxexp.Encoder.
            step: The number of steps that were done.

        Returns:
            The values by name: `layers/<measure>/<layer>`, and `layers/<measure>/chance/<layer>`, or without a layer
            where chance is one number. None at other steps and in other processes.

        Raises:
            CtxexpError: The model or the text can't be measured.
        """
        if self._step is None or step < self._step or (step == self._step and model is not self._model):
            self.begin(model)
        elif step == self._step:
            return {}
        self._step = step
        if model is not self._model:
            self._model, self._encoder = model, None
        if step % self.every:
            return {}
        device, values = device_of(model), {}
        if is_first_process():
            with keep_states(device):
                values = self._measure(model, step)
            if values and self.log:
                self.log(dict(values), step)
        if self.rules:
            self.should_stop = first_process_says(self.should_stop, device)
        return values

    def on_init_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """A trainer of transformers is made: its model is checked, with its tokenizer."""
        self.tokenizer = self.tokenizer or kwargs.get("processing_class")
        if kwargs.get("model") is not None:  # a search makes it later
            self.begin(kwargs["model"])

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Its training begins."""
        self.begin(kwargs["model"])
        self.on_step_end(args, state, control, **kwargs)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measure, and give the values to `state.log_history` and to what the trainer reports to."""
        values = self.step(kwargs["model"], state.global_step)
        if values and (trainer := _calling_trainer()):
            trainer.log(values)
        elif values:
            state.log_history.append({**values, "step": state.global_step})
        control.should_training_stop |= self.should_stop

    def attach(self, trainer: Any) -> None:
        """Have a trainer call `step` and send the values to what it reports to.

        Args:
            trainer: A `transformers.Trainer`, or a `lightning.Trainer` before its `fit`.

        Raises:
            ConfigError: It is neither.
        """
        attach(self, trainer)

    def _experiment(self, model: object) -> Experiment:
        """The measures on the model, whose encoder is made anew for another model. Raises CtxexpError."""
        if self._encoder is None:
            self._encoder = encoder_of(model, self.tokenizer)
        if self._built is None:
            encoder = LiveEncoder(self._encoder, self.name, 0)
            experiment = Experiment(configured(encoder, self.corpus, **self.choices))
            experiment.study.record()  # checks what is measured
            for rule in self.rules:  # of a layer that isn't there
                rule.breach(Estimates(*np.full((3, self._encoder.n_layers), np.nan)), 0)
            self._built = experiment
        return self._built

    def _measure(self, model: object, step: int) -> dict[str, float]:
        """The values at a step, which are kept too; one that says so where the model gives no numbers."""
        first = self._built is None
        try:
            experiment = self._experiment(model)
            assert self._encoder is not None
            encoder = LiveEncoder(self._encoder, self.name, step)
            with TemporaryDirectory() as folder:
                vectors = replace(experiment.vectors, cache=Path(folder) / "vectors", limit_bytes=None)
                results = replace(experiment.study, encoder=encoder).run(vectors, folder=Path(folder))
        except EncodingError as error:  # a training that went wrong goes on
            log.warning("step %d isn't measured: %s", step, error)
            return {"layers/not_measured": 1.0}
        if first and not all(results.info.mix.filled):
            log.warning("the text fills %d of %d bands of word frequency; give a longer one, or more sentences",
                        sum(results.info.mix.filled), len(results.info.mix.filled))  # fmt: skip
        self.results[step] = results = replace(results, tables={}, replicates={})
        if self.folder:
            suffix = f"-{self._n_sessions}" if self._n_sessions > 1 else ""
            results.save(self.folder.with_name(f"{self.folder.name}{suffix}") / f"step{step}")
        values = self._values(results)
        reasons = [rule.breach(self.curve(results, rule.measure), step) for rule in self.rules]
        if any(reasons):
            self.should_stop, self.reason = True, f"step {step}: {next(filter(None, reasons))}"
            log.warning("the training is stopped at %s", self.reason)
            values["layers/stopped"] = 1.0
        return values

    @staticmethod
    def curve(results: Results, measure: str) -> Estimates:
        """The curve that stands for a measure: its own main one, its share of the room, or raw; NaN stays NaN."""
        names = (results.info.measure(measure).main, "share_of_room", "adjusted", "raw")
        return next(results.by_key[key] for name in names if (key := Key.of(measure, name)) in results.by_key)

    def chance(self, results: Results, measure: str) -> np.ndarray:
        """The chance level of a measure by layer: the cosine of unrelated words where the measure has such a baseline,
        else its value on as many vectors of random directions; NaN for a measure of lengths, or of words in texts."""
        if (key := Key.of(measure, "baseline")) in results.by_key:
            return results.by_key[key].value
        value, size = self.curve(results, measure).value, results.by_key.get(Key.of(measure, "n"))
        n = np.zeros(len(value)) if size is None else np.nan_to_num(size.value)
        return np.array([self._of_noise(measure, int(rows), results.info.model.dim) for rows in n])

    def _of_noise(self, measure: str, n: int, dim: int) -> float:
        """The value of a measure on n random directions; anisotropy's is about 0."""
        if (measure, n, dim) not in self._noise:
            assert self._built is not None
            metric: Metric = self._built.study.metrics[measure]()
            value = float("nan")
            if n > 1 and "scale" in metric.invariances and type(metric).bind_text is Metric.bind_text:
                metric.update(Group(0, np.random.default_rng(self.seed).standard_normal((n, dim)).astype(np.float32)))
                statistics: Mapping[str, Any] = metric.compute()
                value = float(statistics.get(metric.reading.main or "raw", value))
            self._noise[measure, n, dim] = value
        return self._noise[measure, n, dim]

    def _values(self, results: Results) -> dict[str, float]:
        values: dict[str, float] = {}
        for measure in self.measures:
            chance = self.chance(results, measure)
            if len(set(chance.tolist())) == 1:
                values[f"layers/{measure}/chance"] = float(chance[0])
                chance = chance[:0]
            for name, curve in ((measure, self.curve(results, measure).value), (f"{measure}/chance", chance)):
                values |= {f"layers/{name}/{i:02d}": float(x) for i, x in enumerate(curve)}
        return {name: value for name, value in values.items() if np.isfinite(value)}

    @property
    def frame(self) -> pd.DataFrame:
        """Table with a row for each step, measure and layer: value, its interval where there is one, chance."""
        import pandas as pd

        rows = []
        for step, results in self.results.items():
            for measure in self.measures:
                curve, chance = self.curve(results, measure), self.chance(results, measure)
                for layer, numbers in enumerate(zip(*curve, chance, strict=True)):
                    rows.append((step, measure, layer, *numbers))
        return pd.DataFrame(rows, columns=["step", "measure", "layer", "value", "low", "high", "chance"])

    def plot(self) -> Figure | None:
        """Heat maps, layers by steps, as `ctxexp steps` draws them; None before the second measurement."""
        from ctxexp_lab.steps.figure import figure

        return figure([(f"step {step}", results) for step, results in self.results.items()])


def _calling_trainer() -> Any:
    """The trainer of transformers that calls its callbacks just now, which get all but what logs; None without one."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        one = frame.f_locals.get("self")
        if hasattr(one, "callback_handler") and hasattr(one, "log"):
            return one
        frame = frame.f_back
    return None


def _draw(corpus: Corpus, most: int | None, seed: int) -> Corpus:
    """At most so many distinct sentences of the corpus, in its order."""
    sentences = list(dict.fromkeys(corpus.sentences))
    if most is not None and len(sentences) > most:
        places = np.random.default_rng(seed).choice(len(sentences), most, replace=False)
        sentences = [sentences[i] for i in sorted(places.tolist())]
    return Corpus(corpus.name, tuple(sentences), choices=dict(corpus.choices))
