"""Planted texts for the gate: two models whose curves differ by nothing but what documents and sentences add."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from ctxexp_compare.gate import diff

from ctxexp import Results, from_arrays, measure
from ctxexp.maths import Curve, Resamples
from ctxexp.results import Key, RunInfo

LAYERS, PER_DOCUMENT = 7, 5
KEYS = (Key("anisotropy", "mean_cosine"), Key("self_similarity", "share_of_room"))


@cache
def facts() -> dict[str, Any]:
    """What a run says of the measures."""
    arrays = from_arrays([np.eye(2), 1 - np.eye(2)], [["a", "b"], ["b", "a"]])
    return measure(
        arrays,
        metrics=[key.measure for key in KEYS],
        min_contexts=2,
        bootstrap=0,
        options="baseline.size=2",
        progress=False,
    ).info.measures


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
    draws = Resamples.of_clusters(of, replicates, np.random.default_rng(0))
    frames: tuple[list[pd.DataFrame], list[pd.DataFrame]] = ([], [])
    drawn: tuple[dict[Key, np.ndarray], dict[Key, np.ndarray]] = ({}, {})
    for key in KEYS:
        scores = 0.4 + 0.1 * rng.normal(size=(LAYERS, n))
        effect = rng.normal(size=(LAYERS, documents))[:, document] + 0.5 * rng.normal(size=(LAYERS, n))
        effect = spread * effect
        effect[3] += shift
        for frame, replicated, own in zip(frames, drawn, (scores, scores + effect), strict=True):
            value = own.mean(axis=1)
            moved = np.stack([draws.by_block(row) for row in (own - value[:, None]) / n])
            frame.append(
                pd.DataFrame({**key.columns, "layer": range(LAYERS), "value": value, "low": np.nan, "high": np.nan})
            )
            replicated[key] = draws.of(Curve(value, moved))
    info = RunInfo(
        title="planted",
        model=replace(RunInfo().model, n_layers=LAYERS),
        corpus=replace(RunInfo().corpus, name="text", fingerprint="planted"),
        measures=facts(),
        bootstrap=replicates,
        resampled=replace(RunInfo().resampled, unit=unit, n=draws.units.n),
    )
    a, b = (Results(pd.concat(own), replicates=of_key, info=info) for own, of_key in zip(frames, drawn, strict=True))
    return a, b


def false_alarms(unit: str, *, documents: int, texts: int) -> float:
    """The share of texts over which models that differ by nothing on average fail at a margin of 0."""
    rng = np.random.default_rng(1)
    pairs = (planted(rng, unit, documents=documents, replicates=1000) for _ in range(texts))
    failed = sum(bool(diff(a, b, margin=0, independent_sentences=True).outside) for a, b in pairs)
    return failed / texts
