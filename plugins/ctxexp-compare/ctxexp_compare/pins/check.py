"""Whether a model still gives what its pin holds, and the kind of change that vectors show where it doesn't."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ctxexp import Encoder
from ctxexp.errors import ConfigError
from ctxexp_compare.pins import facts
from ctxexp_compare.pins.encoding import BATCH, EncodedText
from ctxexp_compare.pins.facts import SAME_WEIGHTS, tokenizer_digest, weight_changes
from ctxexp_compare.pins.pin import Pin
from ctxexp_compare.pins.sketch import Sketch, root_mean_square, row_moves, sketch
from ctxexp_compare.pins.text import PinRows

if TYPE_CHECKING:
    import pandas as pd

LOOSE = 8  # times the tolerance: from which on a single row counts as moved
SHARE = 0.02  # of a layer's largest move, likewise
FAR = 100  # times the tolerance: any smaller move changes lengths and cosines by less than can be seen


@dataclass(frozen=True)
class Moves:
    """How far rows moved: `rows` (layers, n) in lengths of a vector, and from where on a layer counts as moved."""

    pin: Pin
    now: Sketch
    rows: np.ndarray
    is_usable: np.ndarray  # (n,) bool: rows of sentences that have the pieces that they had
    tolerance: np.ndarray  # (layers,)

    @property
    def by_layer(self) -> np.ndarray:
        """Root mean square over the usable rows (layers,); NaN without any."""
        if not self.is_usable.any():
            return np.full(len(self.rows), np.nan)
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


def likely_cause(moves: Moves) -> str:
    """The kind of change that fits what moved and what didn't, in words; empty where nothing moved."""
    if not len(moves.moved):
        return ""
    return _by_rows(moves) or _by_other_layers(moves) or _by_geometry(moves) or _by_layers(moves)


def _by_rows(moves: Moves) -> str:
    """Where some kind of rows alone moved."""
    rows, has_moved, usable = moves.pin.rows, moves.has_moved, moves.is_usable
    word = ~rows.is_sentence
    sizes = np.array(moves.pin.lengths)[rows.sentence]
    if cut := _cut(sizes, has_moved, usable):
        what = "sentence vectors" if not has_moved[word].any() else "vectors"
        return f"{what} of texts of more than {cut} pieces alone: a shorter window or limit"
    if not has_moved[word].any():
        return "sentence vectors alone: another prompt, pooling, or module behind it"
    several, single = word & (rows.n_pieces > 1) & usable, word & (rows.n_pieces == 1) & usable
    if several.any() and single.any() and has_moved[several].mean() > 0.5 and not has_moved[single].any():
        return "words of several pieces alone: another pooling of pieces"
    return ""


def _cut(sizes: np.ndarray, has_moved: np.ndarray, usable: np.ndarray) -> int:
    """The size of the longest text of which nothing moved, where in every longer one something did; 0 otherwise."""
    moved, stayed = sizes[has_moved], sizes[usable & ~np.isin(sizes, sizes[has_moved])]
    if not len(moved) or not len(stayed) or moved.min() <= stayed.max():
        return 0
    return int(stayed.max())


def _by_other_layers(moves: Moves) -> str:
    """Where a layer is what another layer was."""
    pin, numbers, found = moves.pin, moves.pin.layers, list[tuple[int, int]]()
    for at in moves.moved.tolist():
        for other in range(len(numbers)):
            if other != at and _distance(pin.sketch, other, moves.now, at, moves.is_usable) <= moves.tolerance[other]:
                found.append((numbers[at], numbers[other]))
                break
    if not found:
        return ""
    shifts = {other - layer for layer, other in found}
    if len(found) > 1 and len(shifts) == 1:
        return f"layers are shifted by {shifts.pop():+d}: layer {found[0][0]} is what layer {found[0][1]} was"
    return "; ".join(f"layer {layer} is what layer {other} was" for layer, other in found[:3])


def _distance(a: Sketch, i: int, b: Sketch, j: int, usable: np.ndarray) -> float:
    one, other = (Sketch(*(part[at : at + 1] for part in of)) for of, at in ((a, i), (b, j)))
    return float(root_mean_square(row_moves(one, other)[:, usable])[0])


def _by_geometry(moves: Moves) -> str:
    """Where lengths or cosines stayed in the layers that moved."""
    then, now, at, usable = moves.pin.sketch, moves.now, moves.moved, moves.is_usable
    tolerance = moves.tolerance[at]
    if (moves.by_layer[at] < FAR * tolerance).any():
        return ""
    pair = usable & np.roll(usable, -1)
    cosines = root_mean_square((now.cosines - then.cosines)[at][:, pair])
    ratios = (now.lengths[at] / np.where(then.lengths[at] > 0, then.lengths[at], 1))[:, usable]
    if (cosines > tolerance).any():
        return ""
    if (root_mean_square(ratios - 1) <= tolerance).all():
        return "rotated: lengths and cosines are what they were"
    if (root_mean_square(now.lengths[at][:, usable] - 1) <= tolerance).all():
        return "normalised: each vector has the length 1 now"
    if (ratios.std(axis=1) <= tolerance * ratios.mean(axis=1)).all():
        factors = ", ".join(f"{factor:.3g}" for factor in np.unique(ratios.mean(axis=1).round(4))[:3])
        return f"scaled by {factors}: cosines are what they were"
    return "lengths changed, cosines didn't: a norm is new or missing"


def _by_layers(moves: Moves) -> str:
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


def usable_rows(rows: PinRows, changed: Sequence[int], there: np.ndarray) -> np.ndarray:
    """(n,) bool: rows that can be compared: they are `there` (n,) now, and their sentences have the pieces that they
    had; all that are there where that leaves none."""
    same: np.ndarray = there & ~np.isin(rows.sentence, changed)
    return same if same.any() else there


MARGIN = 4.0  # times the noise that was measured: another machine's kernels differ by more than a batch's size does
RESOLUTION = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}  # no move below counts: a few units of rounding

Sameness = Literal["same", "moved"]


@dataclass(frozen=True)
class PinCheck:
    """A model against its pin, layer by layer, with what else changed."""

    moves: Moves
    noise: np.ndarray  # (layers,) of the dtype that was checked
    tokenizer: tuple[str, ...]
    settings: tuple[str, ...]
    environment: tuple[str, ...]
    cause: str  # of what moved; empty where no layer did
    hidden: str  # weights that changed where no layer moved

    @property
    def verdict(self) -> Sameness:
        """`moved` if a layer, the tokenizer, a setting or a weight did."""
        is_moved = len(self.moves.moved) or self.tokenizer or self.settings or self.hidden
        return "moved" if is_moved else "same"

    @property
    def sentence(self) -> str:
        """The verdict in a line: where and by how much, beside the noise, and what changed."""
        by, layers, at = self.moves.by_layer, self.moves.pin.layers, self.moves.moved
        tokenizer = f"tokenizer changed: {', '.join(self.tokenizer)}" if self.tokenizer else "tokenizer unchanged"
        rest = "".join(f"; {one}" for one in (*self.settings, self.cause, self.hidden) if one)
        if not len(at):
            most = int(np.nanargmax(by)) if np.isfinite(by).any() else 0
            start = "same" if self.verdict == "same" else "changed"
            held = f"no layer moved by more than {_number(by[most])} (noise {_number(self.noise.max())})"
            return f"{start}: {held}, {tokenizer}{rest}"
        first, most = int(at[0]), int(at[np.argmax(by[at])])
        line = f"moved at layer {layers[first]} by {_number(by[first])} (noise {_number(self.noise[first])})"
        if most != first:
            line += f", most at layer {layers[most]} by {_number(by[most])}"
        return f"{line}, {tokenizer}{rest}"

    @property
    def frame(self) -> pd.DataFrame:
        """A row a layer: how far it moved, the noise, from where on it counts, whether it does."""
        import pandas as pd

        by = self.moves.by_layer
        return pd.DataFrame(
            {
                "layer": self.moves.pin.layers,
                "moved_by": by,
                "noise": self.noise,
                "tolerance": self.moves.tolerance,
                "moved": by > self.moves.tolerance,
            }
        )


def check(pin: Pin, encoder: Encoder, *, batch: int = BATCH) -> PinCheck:
    """Encode the pin's text anew and compare.

    Args:
        pin: A pin, of `pin` or `Pin.load`.
        encoder: The encoder that is to give the same vectors.
        batch: How many sentences are encoded at once.

    Returns:
        How far each layer moved, and the verdict.

    Raises:
        ConfigError: An encoder of other layers or width, or of a dtype that wasn't pinned.
    """
    _require_comparable(pin, encoder)
    view = encoder.sentence_encoder()
    pooled = view if pin.pooling else None
    text = EncodedText(encoder, pooled, pin.sentences, batch=batch)
    tokens = tokenizer_digest(encoder, pin.sentences, text.words)
    vectors = text.vectors(pin.rows)
    kept = [encoder.layer_numbers.index(number) for number in pin.layers]
    there = np.concatenate([np.isfinite(one).all(axis=(0, 2)) for one in vectors])
    changed = pin.tokenizer.changed_sentences(tokens)
    usable = usable_rows(pin.rows, changed, there)
    now = sketch([np.nan_to_num(one[kept]) for one in vectors], pin.sketch.n_columns, pin.seed)
    noise = pin.noise[encoder.dtype]
    moves = Moves(pin, now, row_moves(pin.sketch, now), usable, tolerance(noise, encoder.dtype))
    settings = facts.differences(pin.settings, facts.settings(encoder, view))
    changes = pin.tokenizer.changes(tokens)
    if not there[~np.isin(pin.rows.sentence, changed)].all():
        settings.append("some vectors are missing")
    weights, cause, hidden = weight_changes(pin.weights[encoder.dtype], pin.precision, encoder), "", ""
    if len(moves.moved):
        causes = [likely_cause(moves), "" if weights == SAME_WEIGHTS and (settings or changes) else weights]
        cause = "; ".join(filter(None, causes))
    elif weights and weights != SAME_WEIGHTS:
        hidden = f"{weights}, which no vector of the pinned text shows"
    environment = facts.differences(pin.environment, facts.environment(encoder))
    return PinCheck(moves, noise, tuple(changes), tuple(settings), tuple(environment), cause, hidden)


def tolerance(noise: np.ndarray, dtype: str) -> np.ndarray:
    """(layers,) from where on a layer counts as moved."""
    return np.maximum(MARGIN * noise.astype(np.float64), RESOLUTION.get(dtype, RESOLUTION["float32"]))


def _require_comparable(pin: Pin, encoder: Encoder) -> None:
    """Raise ConfigError where vectors can't be compared at all."""
    if (encoder.n_layers, encoder.dim) != (pin.n_layers, pin.dim):
        raise ConfigError(
            f"{pin.title} was pinned with {pin.n_layers} layers of {pin.dim}, and this model has {encoder.n_layers} of "
            f"{encoder.dim}: no vector of one can be compared with the other's; if that is meant, pin it anew"
        )
    if missing := [number for number in pin.layers if number not in encoder.layer_numbers]:
        raise ConfigError(
            f"layer {missing[0]} was pinned, and this model gives layers {list(encoder.layer_numbers)}: leave "
            "model.layers out, or pin with the same"
        )
    if encoder.dtype not in pin.noise:
        raise ConfigError(
            f"{pin.title} was pinned in {' and '.join(pin.noise)}, and this model computes in {encoder.dtype}, whose "
            f"noise isn't known: pin with dtypes={','.join([*pin.noise, encoder.dtype])}, or check with "
            f"dtype={next(iter(pin.noise))}"
        )


def _number(value: float) -> str:
    """Two significant digits, without a leading zero."""
    text = f"{value:.2g}"
    return text[1:] if text.startswith("0.") else text
