"""Eight small runs whose every number is on file: `python -m tests.golden --check` compares them to the last bit.

Bits hold on one machine. Other processors and other numbers of threads add in another order, other versions of NumPy
and torch too: there the numbers hold to ELSEWHERE, and `--check --tolerance` compares to that. A change that moves no
number leaves the file alone; one that does writes it again (`--write`) and says why.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ctxexp import Corpus, Pair, Results
from ctxexp.results import LAYER

FILE = Path(__file__).parent / "golden.json"
# Absolute, and relative to the value. The greatest difference seen without AVX-512 and with two threads was 1.8e-5, of
# a correlation over few pairs (distances to neighbours by frequency, up to 39,000, differed by 9.4e-5); in the two
# cases run with the oldest versions that we allow it was 6.7e-7.
ELSEWHERE = 1e-4
SENTENCES = 120  # of the embedded corpus; more than b100 draws
FAST = ("bootstrap=50", "min_contexts=3")

SEVEN = (
    "metric=[anisotropy,self_similarity,intra_sentence_similarity,max_explainable_variance,"
    "max_explainable_variance_centred,max_explainable_variance_released,word_norm]"
)

CASES: dict[str, tuple[str, ...]] = {
    "words": ("model=bert", SEVEN),
    "drawn": ("model=gpt2", "baseline=b100", "control=no_first", "seed=1", SEVEN),
    "size_matched": ("model=elmo", "baseline=size_matched", "control=shuffled", SEVEN),
    "position_matched": ("model=bert", "baseline=position_matched", "transform=whitening", "weights=untrained", SEVEN),
    "frequency_matched": ("model=gpt2", "baseline=frequency_matched", "control=no_sinks", SEVEN),
    "tables": (
        "model=gpt2",
        "baseline=uniform",
        "metric=frequency",
        "metric.frequency_geometry.bins=[0,100,500,5000,10000]",
        "metric.degeneration.rows=300",
    ),
    "pairs": (
        "model=bert",
        "metric=[sts,edit_distance,sentence_geometry]",
        "sentence.pooling=mean",
        "sentence.mixes=[last2,scalar_mix]",
        "transform=flow",
        "transform.width=8",
        "transform.depth=1",
        "transform.epochs=0",  # one step of Adam follows the gradient's sign, where other processors round otherwise
    ),
    "static": (
        "model=elmo",
        "metric=[static_vectors,static_vectors_mean,sense_separation]",
        "metric.static_vectors.benchmarks=[]",
        "metric.static_vectors_mean.benchmarks=[]",
        "transform=all_but_the_top",
    ),
}


def corpus() -> Corpus:
    """The first sentences of each of the embedded corpus's first words, with senses; neighbours are pairs whose gold
    similarity is the share of words that both have."""
    from tests.shipped import polysemy

    whole = polysemy()
    sentences = whole.sentences[:SENTENCES]
    senses = tuple(sense for sense in whole.senses if sense.sentence < SENTENCES)
    pairs = []
    for i in range(SENTENCES - 1):
        a, b = set(sentences[i].words), set(sentences[i + 1].words)
        pairs.append(Pair(i, i + 1, len(a & b) / len(a | b), "even" if i % 2 else "odd"))
    return Corpus("golden", sentences, tuple(pairs), senses, whole.choices)


def results_of(overrides: tuple[str, ...], folder: Path) -> Results:
    """The results of one run, as the command would measure it, vectors encoded anew under `folder`."""
    from ctxexp.command import Experiment
    from ctxexp.command.overrides import quote
    from tests.composed import config_of, with_part

    config = config_of([*FAST, f"cache.folder={quote(str(folder / 'cache'))}", "device=cpu", *overrides])
    return Experiment(with_part(config, "dataset", "golden", corpus)).run(folder / "files")


def numbers(results: Results) -> dict[str, Any]:
    """What the file holds of a run: every curve and scalar, and a digest of every table."""
    curves = {}
    scalars = {}
    for key, held in results.by_key.items():
        for end, values in zip(("", "_ci_low", "_ci_high"), held, strict=True):
            if not end or not np.isnan(values).all():
                found = [plain(v) for v in values.tolist()]
                (curves if key.place == LAYER else scalars)[f"{key}{end}"] = found if key.place == LAYER else found[0]
    return {
        "curves": dict(sorted(curves.items())),
        "scalars": dict(sorted(scalars.items())),
        "tables": {name: digest(table) for name, table in sorted(results.tables.items())},
    }


def plain(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def digest(table: pd.DataFrame) -> str:
    """Of the names and values, floats to the last bit."""
    numbers = {name: column.tolist() for name, column in table.items() if name != "pos"}  # which came after the file
    text = json.dumps(numbers, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def differences(held: dict[str, Any], now: dict[str, Any], tolerance: float = 0.0) -> Iterator[str]:
    """What differs between two such runs, a line each: values by more than `tolerance`, tables (not looked at where
    there is a tolerance) by their digest, names by being there."""
    for part in ("curves", "scalars", "tables"):
        before, after = _known(held[part]), now[part]
        yield from (f"{name} is gone" for name in before.keys() - after.keys())
        yield from (f"{name} is new" for name in after.keys() - before.keys())
        for name in before.keys() & after.keys():
            if part == "tables":
                if not tolerance and before[name] != after[name]:
                    yield f"table {name} differs"
                continue
            a, b = (np.atleast_1d(np.asarray(x[name], np.float64)) for x in (before, after))
            if a.shape != b.shape:
                yield f"{name}: {len(a)} values, now {len(b)}"
            elif not np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
                yield f"{name} differs by up to {np.nanmax(np.abs(a - b)):.3g}"


def _known(part: dict[str, Any]) -> dict[str, Any]:
    """Without the ends of intervals that are NaN throughout: an interval that isn't known is none."""
    ends = ("_ci_low", "_ci_high")
    return {k: v for k, v in part.items() if not k.endswith(ends) or {*np.atleast_1d(v).tolist()} != {"nan"}}
