"""Which layer is this? Vectors of every token, by another engine, beside transformers' hidden states of the same
checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ctxexp import Encoder, Sentence
from ctxexp.errors import DataError
from ctxexp.models import TokenStates
from ctxexp_compare.attention_sinks.sinks import number_ranges
from ctxexp_compare.checks.token_files import read_vectors
from ctxexp_compare.light.vectors import from_vectors, unit
from ctxexp_compare.light.verdict import Verdict, judge

TOLERANCE = 0.1  # median distance of a row's direction, up to which a layer is named
CLEARLY = 0.5  # of the next best layer's distance, at most
EXACT = 1e-3  # a distance below it needs no next best
SEARCHED = 20  # sentences by which the arrangement is found; every row counts after
BEFORE, AFTER = "before the final norm", "after the final norm"
Key = tuple[int, str]  # layer and norm


class Arrangement(NamedTuple):
    """Whether special tokens have rows, and how many tokens late rows begin."""

    special: bool = True
    shift: int = 0

    def tokens(self, states: TokenStates) -> slice:
        """The tokens that have a row: all, or the text's own."""
        ends = states.words.sum(axis=1)
        first, end = (0, len(states.ids)) if self.special else (int(states.words[:, 0].min()), int(ends.max()))
        return slice(first + max(self.shift, 0), end + min(self.shift, 0))

    def rows(self, x: np.ndarray) -> np.ndarray:
        """A sentence's array (layers, rows, columns), of the rows that have a token."""
        return x[:, max(-self.shift, 0) : x.shape[1] - max(self.shift, 0)]


@dataclass(frozen=True)
class LayerIdentity:
    """A layer of the file: the layer of the checkpoint that it is nearest to, with which norm, how far in the median,
    and how its rows compare; no verdict where it is none."""

    name: int
    nearest: int
    norm: str
    distance: float
    verdict: Verdict | None

    @property
    def suffix(self) -> str:
        """What is unusual in it, in words."""
        norm = f" {self.norm}" if self.norm else ""
        if self.verdict is None or self.verdict.verdict == "same":
            return norm
        if self.verdict.verdict == "rounded":
            return f"{norm}, rounded as {self.verdict.rounding} would"
        return f"{norm}, but {self.verdict.sentences[0].removeprefix('different: ')}"


def check_tokens(encoder: Encoder, file: Path, sentences: Sequence[Sentence]) -> Verdict:
    """Compare the vectors of every token in a file with a transformer's hidden states of the same sentences. Raises
    DataError for a file of other sentences."""
    states = [encoder.token_states(sentence) for sentence in sentences]
    vectors, names, _ = read_vectors(file, states)
    if len(vectors) != len(states):
        raise DataError(f"{file} has vectors of {len(vectors)} sentences, the text {len(states)} sentences (text=)")
    return identify(vectors, states, names)


def identify(
    vectors: Sequence[np.ndarray], states: Sequence[TokenStates], names: Sequence[int] | None = None
) -> Verdict:
    """Which layer each layer of vectors is.

    Args:
        vectors: For each sentence an array (layers, rows, columns).
        states: The checkpoint's own, of the same sentences.
        names: The numbers that the file gives its layers; None: from 0, of one alone the last.

    Returns:
        The verdict, whose `layers` say what each is.

    Raises:
        DataError: Arrays of other shapes than the sentences' tokens and the model's width.
    """
    n_layers, _, dim = states[0].layers.shape
    vectors = [np.asarray(x, np.float64) for x in vectors]
    best: tuple[float, Arrangement] | None = None
    for arrangement in _arrangements(vectors, states):
        _, distances = _distances(vectors[:SEARCHED], states[:SEARCHED], arrangement)
        score = float(np.median(distances.min(axis=1)))
        if best is None or score < best[0] * 0.999:
            best = score, arrangement
    if best is None:
        raise DataError(
            f"arrays of shape {vectors[0].shape}; expected (layers, tokens, columns): {len(states[0].ids)} tokens of "
            f"{dim} columns in the first sentence"
        )
    arrangement = best[1]
    keys, distances = _distances(vectors, states, arrangement)
    if names is None or len(names) != len(distances):
        names = [n_layers - 1] if len(distances) == 1 else range(len(distances))
    layers = []
    for at, (name, row) in enumerate(zip(names, distances, strict=True)):
        layer, norm = keys[int(row.argmin())]
        others = min((one for key, one in zip(keys, row, strict=True) if key[0] != layer), default=np.inf)
        verdict = None
        if row.min() <= EXACT or row.min() <= min(TOLERANCE, CLEARLY * others):
            x = np.concatenate([arrangement.rows(v)[at] for v in vectors])
            y = np.concatenate([_candidates(s, arrangement)[layer, norm] for s in states])
            verdict = judge(y, x, from_vectors(y, x))
        layers.append(LayerIdentity(name, layer, norm, float(row.min()), verdict))
    return _summary(layers, arrangement, n_layers, len(vectors))


def _summary(layers: Sequence[LayerIdentity], arrangement: Arrangement, n_layers: int, n: int) -> Verdict:
    known = [one for one in layers if one.verdict is not None]
    verdicts = [one.verdict for one in known if one.verdict is not None]
    gone = sorted({*range(n_layers)} - {one.nearest for one in known}) if len(layers) > 1 else []
    causes = {
        "one token off": arrangement.shift != 0,
        "before the norm": any(one.norm == BEFORE for one in known),
        "another layer": bool(gone) or any(one.nearest != one.name or one.norm == AFTER for one in known),
        **{one.cause: bool(one.cause) for one in verdicts},
    }
    cause = next((cause for cause, fits in causes.items() if fits), "")
    rows = tuple(
        {"layer": one.name, "is": one.nearest if one.verdict else None, "norm": one.norm, "distance": one.distance}
        for one in layers
    )
    notes = () if arrangement.special else ("note: special tokens are left out",)
    if not cause and len(known) == len(layers) and all(one.verdict != "different" for one in verdicts):
        return replace(max(verdicts, key=lambda one: one.error), n=n, layers=rows, notes=notes)
    parts = [_run([one for _, one in run]) for _, run in groupby(enumerate(layers), _relation)]
    if gone:
        parts.append(f"layer{'s' * (len(gone) > 1)} {number_ranges(gone)} {'are' if len(gone) > 1 else 'is'} missing")
    if shift := arrangement.shift:
        parts.append(f"row {max(-shift, 0)} here is token {max(shift, 0)}")
    detail = "; ".join(parts)
    error = max((one.error for one in verdicts), default=np.inf)
    return Verdict("different", cause, detail, error=error, n=n, notes=notes, layers=rows)


def _relation(numbered: tuple[int, LayerIdentity]) -> tuple[object, ...]:
    """What layers have in common that are said together."""
    i, one = numbered
    return (i,) if one.verdict is None else (one.name - i, one.nearest - i, one.norm, one.suffix.split(" (")[0])


def _run(run: Sequence[LayerIdentity]) -> str:
    first, last = run[0], run[-1]
    if first.verdict is None:
        return f"layer {first.name} here is no hidden state of this checkpoint (nearest: {first.nearest})"
    if len(run) == 1:
        return f"layer {first.name} here is hidden_states[{first.nearest}]{first.suffix}"
    here = f"layers {first.name} to {last.name} here are"
    return f"{here} hidden_states[{first.nearest}] to hidden_states[{last.nearest}]{first.suffix}"


def _distances(
    vectors: Sequence[np.ndarray], states: Sequence[TokenStates], arrangement: Arrangement
) -> tuple[list[Key], np.ndarray]:
    """The candidates, and how far the file's layers lie from each (layers, candidates), median over rows."""
    cosines, keys = [], list[Key]()
    for of, own in zip(vectors, states, strict=True):
        candidates = _candidates(own, arrangement)
        keys = list(candidates)
        x, y = unit(arrangement.rows(of)), unit(np.stack(list(candidates.values())))
        cosines.append(np.matmul(x.transpose(1, 0, 2), y.transpose(1, 2, 0)))
    return keys, np.median(np.sqrt(np.maximum(2 - 2 * np.concatenate(cosines), 0)), axis=0)


def _arrangements(vectors: Sequence[np.ndarray], states: Sequence[TokenStates]) -> Iterator[Arrangement]:
    """Every arrangement that fits all sentences, plain ones first."""
    for special in (True, False):
        plain, dim = Arrangement(special), states[0].layers.shape[2]
        shapes = [(len(vectors[0]), len(s.ids[plain.tokens(s)]), dim) for s in states]
        if shapes == [x.shape for x in vectors]:
            yield from (plain._replace(shift=shift) for shift in ((0, 1, -1) if special else (0,)))


def _candidates(states: TokenStates, arrangement: Arrangement) -> dict[Key, np.ndarray]:
    """What a layer may be (rows, dim): a hidden state, and that before or after the final norm."""
    last = states.layers.shape[0] - 1
    sources: dict[Key, np.ndarray] = {(i, ""): x for i, x in enumerate(states.layers)}
    if states.before_norm is not None:
        sources[last, BEFORE] = states.before_norm
    if states.normed is not None:
        sources |= {(i, AFTER): states.normed[i] for i in range(last)}
    return {key: x[arrangement.tokens(states)] for key, x in sources.items()}
