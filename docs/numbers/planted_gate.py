"""Planted texts for the gate: two models whose curves differ by nothing but what documents and sentences add."""

from __future__ import annotations

import numpy as np
from ctxexp_compare.gate import diff

from ctxexp import Results
from ctxexp.maths import Curve, Resamples
from ctxexp.maths.resampling import Units
from ctxexp.results import Key, RunInfo
from ctxexp.results.run_info import CorpusInfo, MeasureInfo, ModelInfo, ResamplingInfo
from ctxexp.results.values import Values

LAYERS, PER_DOCUMENT = 7, 5
KEYS = (Key("anisotropy", "mean_cosine"), Key("self_similarity", "share_of_room"))
MEASURES = {
    "anisotropy": MeasureInfo(name="anisotropy", main="mean_cosine", title="Anisotropy", unit="cosine"),
    "self_similarity": MeasureInfo(name="self_similarity", title="Self-similarity", unit="cosine"),
}


def planted(
    rng: np.random.Generator,
    unit: str,
    *,
    documents: int = 40,
    shift: float = 0.0,
    spread: float = 0.05,
    replicates: int = 500,
) -> tuple[Results, Results]:
    """Two runs over one text of documents of 5 sentences, resampled by `unit` with the code of every run.

    Sentences' scores of the second differ by an effect of their document (normal, of `spread`), half as much by one of
    their own, and by `shift` in layer 3.
    """
    document = np.repeat(np.arange(documents), PER_DOCUMENT)
    n = len(document)
    of = document if unit == "document" else np.arange(n)
    units = Units(unit, int(of.max()) + 1, of, of)
    draws = Resamples(units, replicates, np.random.default_rng(0))
    both = Values(), Values()
    for key in KEYS:
        scores = 0.4 + 0.1 * rng.normal(size=(LAYERS, n))
        effect = rng.normal(size=(LAYERS, documents))[:, document] + 0.5 * rng.normal(size=(LAYERS, n))
        effect = spread * effect
        effect[3] += shift
        for values, own in zip(both, (scores, scores + effect), strict=True):
            value = own.mean(axis=1)
            moved = np.stack([units.summed(of, row) for row in (own - value[:, None]) / n])
            values.set(key, value)
            values.replicates[key] = draws.of(Curve(value, moved))
    info = RunInfo(
        title="planted",
        model=ModelInfo(n_layers=LAYERS),
        corpus=CorpusInfo(name="text", fingerprint="planted"),
        measures=MEASURES,
        bootstrap=replicates,
        resampled=ResamplingInfo(unit=unit, n=units.n),
    )
    a, b = (Results.of(values, info=info) for values in both)
    return a, b


def false_alarms(unit: str, *, documents: int, texts: int) -> float:
    """The share of texts over which models that differ by nothing on average fail at a margin of 0."""
    rng = np.random.default_rng(1)
    pairs = (planted(rng, unit, documents=documents, replicates=1000) for _ in range(texts))
    failed = sum(bool(diff(a, b, margin=0, independent_sentences=True).outside) for a, b in pairs)
    return failed / texts
