"""`ctxexp probe use=frozen,mix,all`: ELMo frozen, with a learnt mix of layers, or trained, on word senses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ctxexp.command import registry
from ctxexp.report import write_csv
from ctxexp_lab.probe import SenseTask, Settings, probe, table


def run(use: Sequence[str], settings: Settings, out: Path | None, **options: Any) -> None:
    """Print the table, write it where asked; `chosen` are ELMo's arguments."""
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    encoder = registry().find("model", "elmo").factory(**options)
    task = SenseTask.of(registry().find("dataset", "polysemy").factory())
    scores = probe(task, encoder.network, use, settings)
    scores_table = table(task, scores, settings.seed)
    choices = " ".join(f"{key}={value}" for key, value in asdict(settings).items())
    print(f"{encoder.details['checkpoint']}: {encoder.name}")
    print(f"{len(task):,} occurrences of {len(task.vocabulary)} words, {len(task.sense_labels)} senses; {choices}")
    n_layers = sum(name.startswith("s_") and not name.endswith("_sd") for name in scores_table.columns)
    print(f"  {'use':<16}{'layer':<6} accuracy  95% interval     less the mix's           s_0..s_L, gamma")
    for line in scores_table.to_dict("records"):
        text = f"  {line['use']:<16}{line['layer']:<6}   {line['accuracy']:.3f}   "
        text += f"[{line['ci_low']:.3f}, {line['ci_high']:.3f}]"
        if line["minus_mix"] == line["minus_mix"]:
            text += f"   {line['minus_mix']:+.3f} [{line['minus_mix_ci_low']:+.3f}, {line['minus_mix_ci_high']:+.3f}]"
        if line["gamma"] == line["gamma"]:
            weights = ", ".join(f"{line[f's_{j}']:.2f}" for j in range(n_layers))
            text = f"{text:<77}{weights}; {line['gamma']:.2f}"
        print(text)
    print("intervals: bootstrap over words, of other words like these; not of other folds, seeds or rates")
    if out is not None:
        path = out / "probe.csv"
        write_csv(scores_table.assign(model=encoder.name, choices=choices), path)
        print(f"table: {path}")
