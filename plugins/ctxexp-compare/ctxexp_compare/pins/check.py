"""Whether a model still gives what its pin holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ctxexp import Encoder
from ctxexp.errors import ConfigError
from ctxexp_compare.pins import facts
from ctxexp_compare.pins.causes import Moves, likely_cause, usable_rows
from ctxexp_compare.pins.encoding import BATCH, EncodedText
from ctxexp_compare.pins.pin import Pin
from ctxexp_compare.pins.sketch import row_moves, sketch
from ctxexp_compare.pins.tokens import tokenizer_digest
from ctxexp_compare.pins.weights import SAME_WEIGHTS, weight_changes

if TYPE_CHECKING:
    import pandas as pd

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
    cause: str

    @property
    def verdict(self) -> Sameness:
        """`moved` if a layer, the tokenizer or a setting did."""
        return "moved" if len(self.moves.moved) or self.tokenizer or self.settings else "same"

    @property
    def sentence(self) -> str:
        """The verdict in a line: where and by how much, beside the noise, and what changed."""
        by, layers, at = self.moves.by_layer, self.moves.pin.layers, self.moves.moved
        tokenizer = f"tokenizer changed: {', '.join(self.tokenizer)}" if self.tokenizer else "tokenizer unchanged"
        rest = "".join(f"; {one}" for one in (*self.settings, self.cause) if one)
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
    text = EncodedText(encoder, pooled, pin.sentences, facts.sentence_pooling(encoder, pooled), batch=batch)
    tokens = tokenizer_digest(encoder, pin.sentences, text.words)
    vectors = text.vectors(pin.rows)
    kept = [encoder.layer_numbers.index(number) for number in pin.layers]
    usable = usable_rows(pin.rows, pin.tokenizer.changed_sentences(tokens), vectors)
    now = sketch(np.nan_to_num(vectors[kept]), pin.sketch.n_columns, pin.seed)
    noise = pin.noise[encoder.dtype]
    moves = Moves(pin, now, row_moves(pin.sketch, now), usable, tolerance(noise, encoder.dtype))
    settings = facts.differences(pin.settings, facts.settings(encoder, view))
    changes = pin.tokenizer.changes(tokens)
    if not np.isfinite(vectors[:, ~np.isin(pin.rows.sentence, pin.tokenizer.changed_sentences(tokens))]).all():
        settings.append("some vectors are missing")
    cause = ""
    if len(moves.moved):
        weights = weight_changes(pin.weights, pin.precision, encoder)
        causes = [likely_cause(moves), "" if weights == SAME_WEIGHTS and (settings or changes) else weights]
        cause = "; ".join(filter(None, causes))
    environment = facts.differences(pin.environment, facts.environment(encoder))
    return PinCheck(moves, noise, tuple(changes), tuple(settings), tuple(environment), cause)


def tolerance(noise: np.ndarray, dtype: str) -> np.ndarray:
    """(layers,) from where on a layer counts as moved."""
    result: np.ndarray = np.maximum(MARGIN * noise.astype(np.float64), RESOLUTION.get(dtype, RESOLUTION["float32"]))
    return result


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
