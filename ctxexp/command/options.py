"""The config's own keys, typed: each key of ctxexp.yaml with its type and range."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from ctxexp.errors import ConfigError, near, short
from ctxexp.files import user_path
from ctxexp.maths.mix import BANDS, WordMix
from ctxexp.maths.mix import Weights as MeanWeights
from ctxexp.plugins.offers import Seed
from ctxexp.results.objective import Objective
from ctxexp.vectors.stores import check_mixes

DEVICES = ("auto", "cpu", "cuda", "cuda:1", "mps")
FIT_ON = ("target", "train", "all", "nli:<path>")
SHARDS = "one_pass.shards"
_OURS = {  # our keys, and those that are typed for them
    "dataset=FILE": "text file path input data",
    "dataset.column=NAME": "column text_column field",
    "tracking.folder=FOLDER": "output out folder output_dir outdir save_dir",
    "sink.mlflow.uri=URI": "mlflow.tracking_uri tracking_uri tracking.uri mlflow.uri",
    "sink.mlflow.experiment=NAME": "experiment_name mlflow.experiment_name tracking.experiment project",
    "model.layers=[0,-1]": "layer layers",
    "weights=untrained": "untrained random random_init pretrained",
    "device=cuda": "gpu cuda use_gpu",
    "words.sample=N": "max_sentences n limit num_sentences n_sentences sample subset",
    "words.lower=true": "lowercase do_lower_case uncased",
    "batch_tokens=N": "batch_size batch bs",
    "bootstrap=N": "ci n_bootstrap resamples confidence",
    "min_contexts=N": "min_count min_freq words.min_contexts min_occurrences",
    "metric=NAME": "metrics measure measures",
    "verbose=true": "v verbose quiet",
    "--open": "open browser",
}
MEANT = {key: ours for ours, keys in _OURS.items() for key in keys.split()}


@dataclass(frozen=True, kw_only=True)
class WordOptions:
    """From text to words, the same for every model."""

    tokenizer: Literal["english", "unicode", "whitespace"]
    lower: bool
    fold_case: bool
    punctuation: Literal["drop", "keep"]
    deduplicate: bool
    max_contexts: Annotated[int | None, Ge(2)]
    max_sentences: Annotated[int, Ge(2)]
    sample: Annotated[int | None, Ge(1)]
    weights: MeanWeights = "bands"
    bands: list[float] | None = None

    def __post_init__(self) -> None:
        _ = self.mix

    @property
    def mix(self) -> WordMix:
        """How words are weighed in means over them."""
        return WordMix(weights=self.weights, bands=self.bands or BANDS)


@dataclass(frozen=True, kw_only=True)
class OnePassOptions:
    """Whether a text is measured while it is encoded, without storing a row."""

    shards: Annotated[int | None, Ge(1), Le(4096)] = None  # of the text; None: rows are stored


@dataclass(frozen=True, kw_only=True)
class PoolingOptions:
    """How a sentence gets one vector."""

    pooling: str
    mixes: list[Any]

    def __post_init__(self) -> None:
        check_mixes(self.mixes)


@dataclass(frozen=True, kw_only=True)
class Cache:
    """Where vectors are kept, and how many."""

    folder: str | None
    limit_gb: Annotated[float, Ge(0), Le(10**9)] | Literal["auto"] | None  # no disk holds more

    def __post_init__(self) -> None:
        _check_folder("cache.folder", self.folder)


@dataclass(frozen=True, kw_only=True)
class Tracking:
    """Where results go."""

    folder: str
    sweep: str | None

    def __post_init__(self) -> None:
        _check_folder("tracking.folder", self.folder)
        if not re.fullmatch(r"\w[\w.-]*", self.sweep or "_"):
            raise ConfigError(f"tracking.sweep={short(self.sweep)}: expected letters, digits, _ . - (a sweep sets it)")


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Contents of figures beside the run itself."""

    published: bool
    explorer: Annotated[int, Ge(0)]


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Which checkpoints models take."""

    name: str


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The config's own keys."""

    seed: Seed
    device: str
    dtype: Literal["float32", "bfloat16", "float16"]
    batch_tokens: Annotated[int, Ge(1)]
    min_contexts: Annotated[int, Ge(2)]
    bootstrap: Annotated[int, Ge(0), Le(10**6)]  # what no memory holds
    resume: bool
    fit_on: str
    sentence: PoolingOptions
    words: WordOptions
    cache: Cache
    tracking: Tracking
    figures: Figures
    weights: Weights
    plugins: list[str]
    one_pass: OnePassOptions = OnePassOptions()
    intervals: Literal["new_text", "these_words"] = "new_text"
    objective: str | None = None
    experiment: object = None
    verbose: bool = False

    @property
    def shards(self) -> int | None:
        """The number of shards of a text that is measured without storing a row; None: rows are stored."""
        return self.one_pass.shards

    def __post_init__(self) -> None:
        self._check_bounds()
        most = self.words.max_contexts
        if most is not None and most < self.min_contexts:
            raise ConfigError(
                f"words.max_contexts={most} is below min_contexts={self.min_contexts}: no word could have enough"
            )
        if not re.fullmatch(r"target|train|all|nli:(?!<).+", self.fit_on):
            raise ConfigError(f"fit_on={short(self.fit_on)}: no such choice{near(self.fit_on, FIT_ON)}")
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?|mps", self.device):
            raise ConfigError(f"device={short(self.device)}: no such choice{near(self.device, DEVICES)}")
        if self.objective is not None:
            Objective.read(self.objective)

    def _check_bounds(self) -> None:
        """Raise ConfigError for bounds of the text that exclude each other."""
        words = self.words
        bounds = {"words.max_contexts": words.max_contexts, SHARDS: self.shards}
        keys = [key for key, value in bounds.items() if value is not None]
        if not keys and words.sample is not None:
            raise ConfigError(f"words.sample={words.sample} needs words.max_contexts, such as 256: both bound the text")
        if len(keys) == 2:
            raise ConfigError(f"{SHARDS} takes all contexts, words.max_contexts bounds them; leave one out")
        if keys and not words.deduplicate:
            raise ConfigError(f"{keys[0]} counts equal sentences as one context: leave deduplicate=false out")


def _check_folder(key: str, folder: str | None) -> None:
    if folder is not None and not folder.strip():
        raise ConfigError(f"{key}={folder!r}: expected a folder; . is the one where the command is typed")
    user_path(folder or ".")
