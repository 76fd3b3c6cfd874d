"""Evidence on a paper's claims: where it comes from, whether it is the paper's own, and what a user offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ctxexp import Results
from ctxexp.errors import ConfigError, DataError

if TYPE_CHECKING:
    from ctxexp_compare.space import Space

    from ctxexp import Encoder
    from ctxexp.command.face import Text

Kind = Literal["protocol", "points", "other"]
"""`protocol`: the paper's own experiment or its released results, which give a verdict; `points`: released figures
without intervals, of which it is only said on which side they lie; `other`: anything else, which gives no verdict."""

LinkedResults = tuple[Results, str]
"""A finished run and a link to it."""


@dataclass
class Source:
    """Evidence that is judged together. A paper's kinds of evidence are subclasses of it.

    `departures`: by model, what keeps it from being the paper's own experiment; none of kind `protocol` has any.
    `controls`: lines on what there is without context. `command`: a command line that gives it again.
    """

    kind: Kind
    title: str
    departures: dict[str, list[str]] = field(default_factory=dict)
    controls: list[str] = field(default_factory=list)
    command: str = ""

    def models(self) -> list[str]:
        """The models in it, in the order of reporting."""
        return []

    def links(self) -> list[str]:
        """The runs in it, each with its link."""
        return []


@dataclass
class Inputs:
    """Evidence that a user offers: finished runs, a folder of released results, models to measure."""

    runs: Sequence[LinkedResults] = ()
    released: Path | None = None
    models: tuple[str, ...] = ()
    has_draws: bool = True  # whether instances of theorems and of claims on measures are drawn, which takes seconds
    _spaces: dict[tuple[object, ...], Space] = field(default_factory=dict, repr=False)

    def released_folder(self, paper: str, *files: str) -> Path | None:
        """The folder of a paper's released results, which holds all of these files: `<released>/<paper>`, or `released`
        itself, a clone of the paper's repository; None without one."""
        if self.released is None:
            return None
        folders = (self.released / paper, self.released)
        return next((folder for folder in folders if all((folder / name).exists() for name in files)), None)

    def space(self, model: str, *options: str, sentences: int | None = None) -> Space:
        """The vectors of a model's words on the run's default text, or on about so many sentences of it, encoded once
        for all papers."""
        from ctxexp_compare.space import Space

        key = (model, *options, sentences)
        if key not in self._spaces:
            text = _some_sentences(sentences) if sentences else None
            if UNTRAINED in options:
                others = [option for option in options if option != UNTRAINED]
                self._spaces[key] = Space.of_model(untrained_encoder(model, others), text)
            else:
                self._spaces[key] = Space.of_model(model, text, options=options)
        return self._spaces[key]


MINIS = ("gpt2", "bert", "elmo")
"""Models whose shipped weights are minis: a name alone, or `weights=mini`, is no model of that paper."""
PACKAGED = ("smollm2", "minilm")
"""Models whose files come as packages: trained ones, whose untrained twins are drawn of their configs."""
UNTRAINED = "weights=untrained"


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
    from ctxexp_compare.layer_choice.measured import load_model

    loaded = load_model(model, options, twin=True)
    if loaded.twin is None:
        raise ConfigError(f"model {model!r}: {loaded.why_no_twin}")
    return loaded.twin


def model_label(model: str) -> str:
    """An offered model's name in reports: a mini is called one."""
    return f"{model} (mini)" if is_mini(model) else model


def _some_sentences(n: int) -> Text:
    """At most n sentences of the run's default text, evenly spaced: they stand there by word."""
    from ctxexp.datasets import polysemy

    sentences = polysemy().sentences
    return [sentence.text for sentence in sentences[:: -(-len(sentences) // n)]]


def check_released(folder: Path | None) -> Path | None:
    """The folder of released results; raises DataError where there is none."""
    if folder is not None and not folder.is_dir():
        raise DataError(
            f"no folder {folder} (released=): expected a clone of a paper's repository, or a folder with one a paper, "
            "named as the paper is in `ctxexp claims`"
        )
    return folder
