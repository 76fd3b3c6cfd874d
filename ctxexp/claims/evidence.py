"""What claims are tested on: curves of a model, and runs that may be compared with each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from ctxexp.results import Results
from ctxexp.wording import attribute, canonical

PAPER = ("elmo", "bert", "gpt2")
"""The models that the paper speaks of, by their registered names."""

OWN = {  # the name of the authors' file or folder, and the vectors' width
    "elmo": ("elmo_2x4096_512_2048cnn_2xhighway_weights.hdf5", 1024),
    "bert": ("bert-base-cased", 768),
    "gpt2": ("gpt2", 768),
}
LAYERS = {"elmo": 3, "bert": 13, "gpt2": 13}
SAMPLED = ("one_per_sentence", "uniform", None)  # baselines of random occurrences, as the paper's
CORPUS = "sts_2012_2016"
"""The paper's own text."""
Kind = Literal["published", "other", "released"]


@dataclass(frozen=True)
class Evidence:
    """One run's curves, by curve key (n_layers,), or the figures that the authors released; `tables` opens a CSV of it.

    `model` is elmo, bert or gpt2, or the name of what a file of word vectors holds. `link` leads to the run.
    """

    model: str
    curves: Mapping[str, np.ndarray]
    label: str = ""
    link: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)
    tables: Callable[[str], dict[str, list[str]] | None] = lambda name: None

    def curve(self, key: str) -> np.ndarray | None:
        """The curve, if it has any value."""
        found = self.curves.get(key)
        return found if found is not None and np.isfinite(found).any() else None

    def n(self, measure: str, layer: int) -> float:
        """How many groups the value of this layer is over; NaN if unknown."""
        found = self.curves.get(f"{measure}/n")
        return float(found[layer]) if found is not None and layer < len(found) else float("nan")


@dataclass
class Family:
    """Evidence that may stand in one sentence: the same weights, corpus, transform and control; newest first."""

    kind: Kind
    title: str
    corpus: str = ""
    members: list[Evidence] = field(default_factory=list)

    def find(self, model: str, *keys: str) -> Evidence | None:
        """The newest run of the model that has all these curves."""
        for member in self.members:
            if member.model == model and all(member.curve(key) is not None for key in keys):
                return member
        return None

    def models(self) -> list[str]:
        """The models in it, the paper's first."""
        held = {member.model for member in self.members}
        return [m for m in PAPER if m in held] + sorted(held - set(PAPER))


def families(runs: Iterable[tuple[Results, str, Callable[[str], dict[str, list[str]] | None]]]) -> list[Family]:
    """Finished runs (results, link, how to open a table), newest first, sorted into families; the paper's own first.

    Only runs of the paper's models and of word-vector files count. The paper's own: the published weights, without a
    transform or a control. A file of word vectors has neither weights nor contexts and joins every family.
    """
    found: dict[tuple[str, ...], Family] = {}
    files = []
    for results, link, tables in runs:
        info = results.info
        name, label = str(info.get("name") or ""), str(info.get("model") or "")
        if name == "word_vectors":
            files.append(Evidence(_file(info, label), _by_level(results, measured(results)), label, link, info, tables))
            continue
        if name not in PAPER:
            continue
        changed = [str(info.get("transform") or "none"), _control(info)]
        weights = "published" if _papers_own(results) else str(info.get("weights") or "unknown")
        key = (weights, str(info.get("fingerprint") or ""), *changed)
        if key not in found:
            own = key[0] == "published" and changed == ["none", "none"]
            found[key] = Family(
                "published" if own else "other", _title(weights, info, changed), str(info.get("corpus") or "")
            )
        labels = measured(results)
        curves = _by_level(results, labels)
        found[key].members.append(Evidence(name, curves, label, link, info, partial(_table, labels, tables)))
    every = sorted(found.values(), key=lambda f: (f.kind != "published", f.corpus != CORPUS))
    for family in every:
        family.members += files
    return every


def measured(results: Results) -> dict[str, str]:
    """The label of each thing that a run measured, by what it is whatever its label: the metric's name with its
    variant. Of several labels that one of the same words, else the first; a measure that doesn't say is left out.
    """
    labels: dict[str, str] = {}
    for label in results.info.get("measures") or {}:
        if attribute(results, label, "variant") is not None:
            known = canonical(results, label)
            labels[known] = label if label == known else labels.get(known, label)
    return labels


def _table(
    labels: Mapping[str, str], tables: Callable[[str], dict[str, list[str]] | None], name: str
) -> dict[str, list[str]] | None:
    """A run's word table of what goes by this name; None where it measured no such thing."""
    return tables(labels[name]) if name in labels else None


def _by_level(results: Results, labels: Mapping[str, str]) -> dict[str, np.ndarray]:
    """The curves by what they are of and what they are adjusted by: with `baseline=size_matched` plain `adjusted` is by
    that level.

    Adjusted by another twin of the group (its positions, its frequency), a curve is no reading of the paper: left out.
    """
    baseline = results.info.get("baseline")
    curves = {}
    for name, label in labels.items():
        for key, curve in results.curves.items():
            measure, _, statistic = key.rpartition("/")
            if measure != label:
                continue
            if baseline in SAMPLED or not statistic.startswith("adjusted"):
                curves[f"{name}/{statistic}"] = curve
            elif baseline == "size_matched":
                curves[f"{name}/size_matched_{statistic}"] = curve
    return curves


def _file(info: Mapping[str, Any], label: str) -> str:
    """glove or fasttext by the name of the file, else the run's label."""
    details = info.get("details") or {}
    file = str(details.get("file") or label).lower()
    if "glove" in file:
        return "glove"
    return "fasttext" if any(sign in file for sign in ("fasttext", "wiki-news", "crawl-300", "cc.en")) else label


def own_weights(every: Sequence[Family]) -> Family | None:
    """The family that decides: the paper's own weights, on the paper's own text if there are several."""
    return next((family for family in every if family.kind == "published"), None)


def _control(info: Mapping[str, Any]) -> str:
    control = info.get("control") or "none"
    return str(control.get("name") or "none") if isinstance(control, Mapping) else str(control)


def _papers_own(results: Results) -> bool:
    """Whether a run used the paper's weights: weights=published, or its files given under their published names."""
    info = results.info
    name, width = OWN.get(str(info.get("name")), ("", 0))
    given = (
        info.get("weights") == name and results.n_layers == LAYERS[str(info.get("name"))] and info.get("dim") == width
    )
    return info.get("weights") == "published" or given


def _title(weights: str, info: Mapping[str, Any], changed: Sequence[str]) -> str:
    parts = [f"weights {weights}", f"corpus {info.get('corpus') or 'unknown'}"]
    parts += [f"{what} {name}" for what, name in zip(("transform", "control"), changed, strict=True) if name != "none"]
    return ", ".join(parts)
