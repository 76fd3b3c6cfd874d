"""Evidence on a paper's claims: models with their curves, where they come from, and what a user offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ctxexp import Encoder, Results
from ctxexp.command import registry
from ctxexp.errors import ConfigError, DataError
from ctxexp_papers.claims.statistics import LayerCurve

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from ctxexp_compare import Space

Kind = Literal["protocol", "other"]
"""`protocol`: the paper's own experiment or its released results, which give a verdict; `other`: anything else."""
ARCHITECTURES = {"gpt2": "decoder", "smollm2": "decoder", "bert": "encoder", "minilm": "encoder", "elmo": "recurrent"}
"""Of models; one that isn't listed counts for no claim on one architecture."""
MINIS = ("gpt2", "bert", "elmo")
"""Models whose shipped weights are minis: a name alone, or `weights=mini`, is no model of that paper."""
PACKAGED = ("smollm2", "minilm")
"""Models whose files come as packages: trained ones, whose untrained twins are drawn of their configs."""
UNTRAINED = "weights=untrained"


@dataclass(frozen=True)
class Member:
    """A model's evidence: curves by what they measure (`kinds.key_of`), and tables of its words by name."""

    model: str
    curves: Mapping[str, LayerCurve]
    words: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    link: str = ""  # to the run


@dataclass
class Source:
    """Evidence that is judged together.

    `departures`: by model, what keeps it from being the paper's own experiment; none of kind `protocol` has any.
    `command`: a command line that gives it again.
    """

    kind: Kind
    title: str
    members: list[Member] = field(default_factory=list)
    departures: dict[str, list[str]] = field(default_factory=dict)
    command: str = ""

    def members_of(self, architectures: Sequence[str]) -> list[Member]:
        """The members of these architectures, or of these names; all where none are named."""
        names = [(m, m.model.split()[0]) for m in self.members]
        return [m for m, name in names if not architectures or {name, ARCHITECTURES.get(name)} & {*architectures}]


@dataclass
class Inputs:
    """Evidence that a user offers: finished runs by label, a folder of released results, models to measure."""

    runs: Mapping[str, Results] = field(default_factory=dict)
    released: Path | None = None
    models: tuple[str, ...] = ()
    _spaces: dict[tuple[object, ...], Space] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.released is not None and not self.released.is_dir():
            raise DataError(
                f"no folder {self.released} (released=): expected a clone of a paper's repository, or a folder with "
                "one a paper, named as the paper is in `ctxexp claims`"
            )

    def folders(self, paper: str) -> list[Path]:
        """Where a paper's released results may lie: `<released>/<paper>`, or `released` itself, a clone of them."""
        return [] if self.released is None else [self.released / paper, self.released]

    def space(self, model: str, *options: str, sentences: int | None = None) -> Space:
        """The vectors of a model's words on the run's default text, or on about so many sentences of it, encoded once
        for all papers."""
        from ctxexp_compare import Space

        key = (model, *options, sentences)
        if key not in self._spaces:
            text = None
            if sentences:
                every = registry().find("dataset", "polysemy").factory().sentences
                text = [sentence.text for sentence in every[:: -(-len(every) // sentences)]]
            if UNTRAINED in options:
                others = [option for option in options if option != UNTRAINED]
                self._spaces[key] = Space.of_model(untrained_encoder(model, others), text)
            else:
                self._spaces[key] = Space.of_model(model, text, options=options)
        return self._spaces[key]

    def tied_table(self, model: str) -> np.ndarray | None:
        """The rows that stand for text of a model's table that is its output layer too; None where it has none."""
        from ctxexp.command import Experiment, configured

        study = Experiment(configured(model)).study
        table = next((table for table in study.encoder.tables(study.corpus.running) if table.tied), None)
        return None if table is None else table.vectors


def is_mini(model: str) -> bool:
    """Whether a model as it was typed ("gpt2", "bert weights=published") is one of the shipped minis.

    Example:
        >>> is_mini("gpt2"), is_mini("gpt2 weights=published"), is_mini("smollm2")
        (True, False, False)
    """
    name, *options = model.split() or [""]
    weights = [option.removeprefix("weights=") for option in options if option.startswith("weights=")]
    return name in MINIS and weights in ([], ["mini"]) and all("=" in option for option in options)  # not of a pair


def has_twin(model: str) -> bool:
    """Whether a model as it was typed can be had untrained: the same network with weights drawn anew."""
    return bool(model.split()) and model.split()[0] in (*MINIS, *PACKAGED) and "weights=" not in model


def untrained_encoder(model: str, options: Sequence[str] = ()) -> Encoder:
    """The untrained twin of a model as it was typed: the same network, its weights drawn as the architecture begins.
    Raises ConfigError for a model that has none."""
    from ctxexp_compare.layer_choice.tasks import load_model

    loaded = load_model(model, options, twin=True)
    if loaded.twin is None:
        raise ConfigError(f"model {model!r}: {loaded.why_no_twin}")
    return loaded.twin


def model_label(model: str) -> str:
    """An offered model's name in reports: a mini is called one."""
    return f"{model} (mini)" if is_mini(model) else model
