"""`ctxexp probe use=frozen,mix,all`: ELMo frozen, with a learnt mix of layers, or trained, on word senses."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

from ctxexp.command.key_values import parse
from ctxexp.errors import ConfigError
from ctxexp.models.choices import Weights

ARGUMENTS: dict[str, tuple[Any, Any, str]] = {
    "use": (str, "frozen,mix,all", "frozen: each layer alone; mix: gamma sum_j s_j h_j, learnt; all: the network too"),
    "model": (Literal["elmo"], "elmo", "the only one with a mix of its own"),
    "weights": (Weights, "mini", "mini, published, untrained"),
    "options_file": (str | None, None, "an options.json, with weight_file instead of weights"),
    "weight_file": (str | None, None, "its HDF5 weights"),
    "folds": (int, 5, "of the cross-validation; a sentence is in one fold"),
    "epochs": (int, 40, "of the linear layer and the mix"),
    "rate": (float, 0.01, "their AdamW rate; a tenth of it once the network learns too"),
    "tune_epochs": (int, 2, "of use=all: further epochs in which everything learns"),
    "tune_rate": (float, 1e-4, "of use=all: the network's rate"),
    "batch": (int, 32, "occurrences a step"),
    "seed": (int, 0, "of folds, order, resamples and untrained weights"),
    "device": (str, "cpu", "cpu, cuda, mps, auto; to the last bit the same on cpu only"),
    "out": (str | None, None, "a folder for probe.csv"),
}  # fmt: skip
SETTINGS = ("folds", "epochs", "rate", "tune_epochs", "tune_rate", "batch", "seed")


def main(argv: Sequence[str]) -> int:
    """Print the table, write it where asked."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    if {"-h", "--help"} & set(argv):
        print(__doc__, *(f"  {k}={default}: {words}" for k, (_, default, words) in ARGUMENTS.items()), sep="\n")
        return 0
    try:
        run(parse(argv, ARGUMENTS, "use=mix"))
    except OSError as error:
        raise ConfigError(f"{error}; choose another out=") from error
    return 0


def run(given: dict[str, Any]) -> None:
    from ctxexp.datasets.polysemy import polysemy
    from ctxexp.models.elmo.encoder import ElmoEncoder
    from ctxexp.models.elmo.factory import elmo
    from ctxexp.results import Table
    from ctxexp_train.probe import Settings, Task, probe, table

    settings = Settings(**{key: given[key] for key in SETTINGS})
    if given["out"] is not None:
        Path(given["out"]).mkdir(parents=True, exist_ok=True)
    chosen = {key: given[key] for key in ("weights", "options_file", "weight_file", "seed", "device")}
    encoder = cast(ElmoEncoder, elmo(**chosen))  # what the factory makes; its type says any encoder
    network = encoder._network  # read and copied, never changed
    task = Task.of(polysemy())
    scores = probe(task, network, given["use"].split(","), settings)
    found = table(task, scores, settings.seed)
    choices = " ".join(f"{key}={given[key]}" for key in SETTINGS)
    print(f"{encoder.details['checkpoint']}: {encoder.name}")
    print(f"{len(task):,} occurrences of {len(task.words)} words, {len(task.senses)} senses; {choices}")
    n_layers = sum(name.startswith("s_") and not name.endswith("_sd") for name in found.columns)
    print(f"  {'use':<16}{'layer':<6} accuracy  95% interval     less the mix's           s_0..s_L, gamma")
    for row in zip(*found.columns.values(), strict=True):
        line = dict(zip(found.columns, row, strict=True))
        text = f"  {line['use']:<16}{line['layer']:<6}   {line['accuracy']:.3f}   "
        text += f"[{line['ci_low']:.3f}, {line['ci_high']:.3f}]"
        if line["minus_mix"] == line["minus_mix"]:
            text += f"   {line['minus_mix']:+.3f} [{line['minus_mix_ci_low']:+.3f}, {line['minus_mix_ci_high']:+.3f}]"
        if line["gamma"] == line["gamma"]:
            weights = ", ".join(f"{line[f's_{j}']:.2f}" for j in range(n_layers))
            text = f"{text:<77}{weights}; {line['gamma']:.2f}"
        print(text)
    print("intervals: bootstrap over words, of other words like these; not of other folds, seeds or rates")
    if given["out"] is not None:
        path = Path(given["out"]) / "probe.csv"
        whole = {"model": [encoder.name] * len(found), "choices": [choices] * len(found)}
        Table({**found.columns, **whole}).write_csv(path)
        print(f"table: {path}")
