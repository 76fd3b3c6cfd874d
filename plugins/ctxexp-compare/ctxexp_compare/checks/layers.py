"""Whether a model still gives what its pin sketches, layer by layer, and the kind of change that the layers show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp import Encoder, Sentence
from ctxexp.errors import ConfigError
from ctxexp_compare.checks import facts
from ctxexp_compare.checks.encoding import BATCH, encode, word_rows
from ctxexp_compare.checks.facts import TokenizerDigest, WeightChange, tokenizer_digest, weight_change
from ctxexp_compare.light.pin import Pin, PinRows
from ctxexp_compare.light.sketch import Sketch, row_moves, sketch
from ctxexp_compare.light.vectors import root_mean_square

if TYPE_CHECKING:
    import pandas as pd

LOOSE = 8  # times the tolerance: from which on a single row counts as moved
SHARE = 0.02  # of a layer's largest move, likewise
FAR = 100  # times the tolerance: any smaller move changes lengths and cosines by less than can be seen
MARGIN = 4.0  # times the noise that was measured: another machine's kernels differ by more than a batch's size does
RESOLUTION = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}  # no move below counts: a few units of rounding
CAUSE_OF_SETTING = {
    "mode": "pooling", "include_prompt": "pooling", "prompt": "prompt", "modules": "projection", "Dense": "projection",
    "Normalize": "normalising", "lower": "tokenizer", "start": "tokenizer", "prefix": "prompt", "window": "text cut",
    "final_norm": "before the norm", "pooling": "pooling",
}  # fmt: skip  # by a part of its name


@dataclass(frozen=True)
class LayerCheck:
    """A model against its pin: how far words moved, `rows` (layers, n) in lengths of a vector, and what else changed.

    `is_usable` (n,) bool are rows of texts that have the pieces that they had; `tolerance` (layers,) is from where on a
    layer counts as moved. `changed` are the texts with other pieces.
    """

    pin: Pin
    now: Sketch
    rows: np.ndarray
    is_usable: np.ndarray
    tolerance: np.ndarray
    tokenizer: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    weights: WeightChange = field(default_factory=WeightChange)

    @property
    def by_layer(self) -> np.ndarray:
        """Root mean square over the usable rows (layers,)."""
        return root_mean_square(self.rows[:, self.is_usable])

    @property
    def moved(self) -> np.ndarray:
        """Positions of the layers that moved."""
        return np.flatnonzero(self.by_layer > self.tolerance)

    @property
    def has_moved(self) -> np.ndarray:
        """(n,) bool: the usable rows that moved in any layer."""
        largest = np.maximum(LOOSE * self.tolerance, SHARE * self.rows.max(axis=1, initial=0))
        return (self.rows > largest[:, None]).any(axis=0) & self.is_usable

    @property
    def settings_cause(self) -> str:
        """The cause that a changed setting is; empty for none that is known."""
        keys = (line.split(" ")[0] if " -> " not in line else line.rpartition(" -> ")[0] for line in self.settings)
        return next((cause for key in keys for part, cause in CAUSE_OF_SETTING.items() if part in key), "")

    @property
    def frame(self) -> pd.DataFrame:
        """A row a layer: how far it moved, the noise, from where on it counts, whether it does."""
        import pandas as pd

        by, noise = self.by_layer, self.pin.noise
        columns = {"layer": self.pin.layers, "moved_by": by, "noise": noise, "tolerance": self.tolerance}
        return pd.DataFrame(columns | {"moved": by > self.tolerance})


def check_layers(pin: Pin, encoder: Encoder, *, batch: int = BATCH) -> LayerCheck:
    """Encode the pin's words anew and compare. Raises ConfigError where the pinned layers aren't there."""
    if missing := [number for number in pin.layers if number not in encoder.layer_numbers]:
        raise ConfigError(
            f"layer {missing[0]} was pinned, and this model gives layers {list(encoder.layer_numbers)}: leave "
            "model.layers out, or pin with the same"
        )
    sentences = sentences_of(pin)
    encoded = encode(encoder, sentences, batch=batch)
    tokens, then = tokenizer_digest(encoder, sentences, encoded), pin.facts
    plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in then["tokenizer"].items()}
    digest = TokenizerDigest(**plain)
    vectors = word_rows(encoded, pin.rows)
    there = np.isfinite(vectors).all(axis=(0, 2))
    usable = _usable_rows(pin.rows, digest.changed_sentences(tokens), there)
    kept = [encoder.layer_numbers.index(number) for number in pin.layers]
    now = sketch(np.nan_to_num(vectors[kept]), pin.sketch.n_columns, pin.seed)
    settings = facts.differences(then["settings"], facts.settings(encoder, encoder.sentence_encoder()))
    if not there[~np.isin(pin.rows.sentence, digest.changed_sentences(tokens))].all():
        settings.append("some vectors are missing")
    return LayerCheck(
        pin, now, row_moves(pin.sketch, now), usable, tolerance(pin.noise, encoder.dtype),
        tuple(digest.changes(tokens)), tuple(settings),
        tuple(facts.differences(then["environment"], facts.environment(encoder))),
        weight_change(then["weights"], facts.weight_digests(encoder)),
    )  # fmt: skip


def sentences_of(pin: Pin) -> list[Sentence]:
    """The pin's texts with their words."""
    pairs = zip(pin.texts, pin.spans, strict=True)
    return [Sentence(text, tuple(text[a:b] for a, b in spans), spans) for text, spans in pairs]


def _usable_rows(rows: PinRows, changed: Sequence[int], there: np.ndarray) -> np.ndarray:
    """(n,) bool: rows that can be compared: they are `there` (n,) now, and their texts have the pieces that they had;
    all that are there where that leaves none."""
    same: np.ndarray = there & ~np.isin(rows.sentence, changed)
    return same if same.any() else there


def tolerance(noise: np.ndarray, dtype: str) -> np.ndarray:
    """(layers,) from where on a layer counts as moved."""
    return np.maximum(MARGIN * noise.astype(np.float64), RESOLUTION.get(dtype, RESOLUTION["float32"]))


def likely_cause(moves: LayerCheck) -> tuple[str, str]:
    """The cause that fits the layers that moved, and what is known of it in words; the cause is empty for a change
    without a name of its own, both where nothing moved."""
    if not len(moves.moved):
        return "", ""
    return _by_rows(moves) or _by_other_layers(moves) or _by_geometry(moves) or ("", _by_layers(moves))


def _by_rows(moves: LayerCheck) -> tuple[str, str] | None:
    """Where some kind of rows alone moved."""
    rows, has_moved, usable = moves.pin.rows, moves.has_moved, moves.is_usable
    sizes = np.array(moves.pin.lengths)[rows.sentence]
    moved, stayed = sizes[has_moved], sizes[usable & ~np.isin(sizes, sizes[has_moved])]
    if len(moved) and len(stayed) and moved.min() > stayed.max():
        return "text cut", f"words of texts of more than {stayed.max()} pieces alone moved"
    several, single = (rows.n_pieces > 1) & usable, (rows.n_pieces == 1) & usable
    if several.any() and single.any() and has_moved[several].mean() > 0.5 and not has_moved[single].any():
        return "pooling", "words of several pieces alone moved: their pieces are pooled otherwise"
    return None


def _by_other_layers(moves: LayerCheck) -> tuple[str, str] | None:
    """Where a layer is what another layer was."""
    pin, numbers, pairs = moves.pin, moves.pin.layers, list[tuple[int, int]]()
    for at in moves.moved.tolist():
        for other in range(len(numbers)):
            if other != at and _distance(pin.sketch, other, moves.now, at, moves.is_usable) <= moves.tolerance[other]:
                pairs.append((numbers[at], numbers[other]))
                break
    if not pairs:
        return None
    shifts = {other - layer for layer, other in pairs}
    if len(pairs) > 1 and len(shifts) == 1:
        start = f"layers are shifted by {shifts.pop():+d}: "
        return "another layer", f"{start}layer {pairs[0][0]} is what layer {pairs[0][1]} was"
    return "another layer", "; ".join(f"layer {layer} is what layer {other} was" for layer, other in pairs[:3])


def _distance(a: Sketch, i: int, b: Sketch, j: int, usable: np.ndarray) -> float:
    one, other = (Sketch(*(part[at : at + 1] for part in of)) for of, at in ((a, i), (b, j)))
    return float(root_mean_square(row_moves(one, other)[:, usable])[0])


def _by_geometry(moves: LayerCheck) -> tuple[str, str] | None:
    """Where lengths or cosines stayed in the layers that moved."""
    then, now, at, usable = moves.pin.sketch, moves.now, moves.moved, moves.is_usable
    tolerance = moves.tolerance[at]
    if (moves.by_layer[at] < FAR * tolerance).any():
        return None
    pair = usable & np.roll(usable, -1)
    cosines = root_mean_square((now.cosines - then.cosines)[at][:, pair])
    ratios = (now.lengths[at] / np.where(then.lengths[at] > 0, then.lengths[at], 1))[:, usable]
    if (cosines > tolerance).any():
        return None
    if (root_mean_square(ratios - 1) <= tolerance).all():
        return "rotated", "lengths and cosines are what they were"
    if (root_mean_square(now.lengths[at][:, usable] - 1) <= tolerance).all():
        return "normalising", "each vector has the length 1 now"
    if (ratios.std(axis=1) <= tolerance * ratios.mean(axis=1)).all():
        factors = ", ".join(f"{factor:.3g}" for factor in np.unique(ratios.mean(axis=1).round(4))[:3])
        return "normalising", f"scaled by {factors}: cosines are what they were"
    return "normalising", "lengths changed, cosines didn't: a norm is new or missing"


def _by_layers(moves: LayerCheck) -> str:
    """Where in the model it begins."""
    numbers, at = moves.pin.layers, moves.moved.tolist()
    if len(at) == 1 and len(numbers) > 1:
        if at[0] == len(numbers) - 1 and numbers[-1] == moves.pin.n_layers - 1:
            return f"layer {numbers[-1]} alone, the last: its final norm, or its last block"
        return f"layer {numbers[at[0]]} alone: what is given out, since layers above it stayed"
    if at[0] == 0:
        return "from the input layer on" if numbers[0] == 0 else f"from layer {numbers[0]} on, the first that is pinned"
    first, below = numbers[at[0]], numbers[at[0] - 1]
    return f"from block {first} on" if first - below == 1 else f"from a block between {below + 1} and {first} on"
