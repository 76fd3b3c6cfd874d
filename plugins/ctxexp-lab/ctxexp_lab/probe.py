"""`ctxexp probe`: a sweep of the metric `probe`, each model beside its untrained twin and each word read alone."""

from __future__ import annotations

from collections.abc import Sequence

from ctxexp.command import registry, show

USAGE = """Usage: ctxexp probe [key=value ...]

Probe each layer of a model for labels of words by a linear classifier, beside the model's untrained twin where it has
one, and beside each word read alone.

  model        one or several with commas; default: bert
  labels       pos, sense, label, or a file: a word, a tab and its label a line
  classifier, folds, most, controls
               of metric=probe: ctxexp --help metric=probe says more
  key=value    anything that ctxexp takes: dataset=, weights=, control= ..."""

PROBE_OPTIONS = ("labels", "classifier", "folds", "most", "controls")  # of metric=probe, in ctxexp-measures
TWINS = ("bert", "gpt2", "elmo")  # models that the group `weights` is of


def probe(*words: str) -> int:
    """Probe a model's layers for labels of words, beside its untrained twin: model=bert labels=pos dataset=semcor."""
    if {"-h", "--help"} & set(words):
        show(USAGE)
        return 0
    return int(registry().find("command", "run").factory(*probe_sweep(words)))


def probe_sweep(words: Sequence[str]) -> list[str]:
    """The sweep that measures `metric=probe` of the models that the words name, each beside its untrained twin where it
    has one, and beside itself where each word is read alone, without context."""
    values = {word.partition("=")[0]: word.partition("=")[2] for word in words}
    options = [f"metric.probe.{word}" if word.partition("=")[0] in PROBE_OPTIONS else word for word in words]
    models = values.get("model") or next((word for word in words if "=" not in word), "bert")
    has_twin = all(name in TWINS for name in models.split(","))
    twin = ["weights=mini,untrained"] if has_twin and "weights" not in values else []
    alone = ["control=none,alone"] if "control" not in values else []
    return ["-m", *options, *twin, *alone, *(["metric=probe"] if "metric" not in values else [])]
