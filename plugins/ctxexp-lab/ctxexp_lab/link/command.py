"""`ctxexp link MODEL ...`: the softmax link of language models, each beside its untrained twin."""

from __future__ import annotations

import math
from pathlib import Path

from ctxexp.errors import ConfigError, ModelError
from ctxexp.models import Checkpoint
from ctxexp.report import Document, Table
from ctxexp_lab.link.head import context_states
from ctxexp_lab.link.statistics import LinkEstimate, link

CHANCE = (
    "chance: the middle 95% where frequencies (of log_p, bias_log_p), rows of the output matrix (of counted_...) or "
)


def softmax_link(
    model: str,
    *models: str,
    text: str = "",
    options: str = "",
    contexts: int = 2000,
    least: int = 5,
    bootstrap: int = 200,
    untrained: bool = True,
    seed: int = 0,
    out: Path = Path("link"),
) -> Document:
    """Correlate a language model's products of contexts and pieces with PMI, log p and second-order co-occurrence.

    model: bert, gpt2, a folder or a hub name, causal or masked, quoted with its words
    models: more of them
    text: a file, a folder or a data set; empty: the embedded one
    options: words for every model, such as "dtype=bfloat16"
    contexts: how many contexts of the text are read, at most
    least: how often two pieces must follow each other to be counted
    bootstrap: resamples behind each interval, and permutations behind each chance level
    untrained: the same network with weights drawn anew beside each model
    seed: of all draws
    out: the folder for link.csv and link.md
    example: ctxexp link gpt2 bert
    """
    for name, value, lowest in (("contexts", contexts, 2), ("bootstrap", bootstrap, 0)):
        if value < lowest:
            raise ConfigError(f"{name}={value}: expected a whole number from {lowest} on")
    rows: list[tuple[str, dict[str, LinkEstimate]]] = []
    for one in (model, *models):
        checkpoint, sentences, label = _opened(one, text, options)
        for twin_seed in (None, seed) if untrained else (None,):
            states = context_states(checkpoint, sentences, untrained=twin_seed, contexts=contexts, seed=seed)
            name = f"{label}{', untrained' if twin_seed is not None else ''} ({states.kind})"
            rows.append((name, link(states, least=least, replicates=bootstrap, seed=seed)))
    return Document(tables={"link": table(rows)})


def _opened(model: str, text: str, options: str) -> tuple[Checkpoint, list[str], str]:
    """A model's files, the sentences of its text, and what tables call it."""
    from ctxexp.command import Experiment, configured

    experiment = Experiment(configured(model, text or None, options))
    study = experiment.study
    checkpoint = getattr(study.encoder, "checkpoint", None)
    if checkpoint is None:
        raise ModelError(f"model={model}: the softmax link is of models that transformers loads, such as bert and gpt2")
    return checkpoint, [sentence.text for sentence in study.corpus.sentences], experiment.title


def table(rows: list[tuple[str, dict[str, LinkEstimate]]]) -> Table:
    """A line a statistic, two columns a model: its value with the interval, and what chance gives."""
    import pandas as pd

    numbers = pd.DataFrame(
        [{"model": name, "statistic": statistic, **vars(one)} for name, of in rows for statistic, one in of.items()]
    )
    names = list(dict.fromkeys(statistic for _, of in rows for statistic in of))
    lines = []
    for statistic in names:
        cells = [statistic]
        for _, of in rows:
            one = of.get(statistic)
            cells += ["", ""] if one is None else [_interval(one.value, one.low, one.high), _range(one)]
        lines.append(cells)
    columns = ["correlation", *(head for name, _ in rows for head in (name, "chance"))]
    notes = [
        "of h.w (plus the bias, where there is one) with: the model's own PMI (own_pmi) and log p(x) (log_p), over all "
        "pairs and within contexts; PMI counted in the text, of a piece and the one before it (counted_...); "
        "second_order: cosines of mean states of contexts with cosines of what follows them in the text",
        "intervals: 95%, contexts' sentences (or last pieces) and pieces resampled at once",
        CHANCE + "states (of second_order) are dealt to others; own_pmi has none: see the untrained twin",
    ]
    return Table("Softmax link (Li et al. 2020, section 2)", numbers, columns, lines, notes)


def _interval(value: float, low: float, high: float) -> str:
    return "" if math.isnan(value) else f"{value:+.2f} [{low:+.2f}, {high:+.2f}]"


def _range(one: LinkEstimate) -> str:
    return "" if math.isnan(one.chance_low) else f"{one.chance_low:+.2f} to {one.chance_high:+.2f}"
