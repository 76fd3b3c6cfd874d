"""What holds for an encoder's view of whole sentences: named units, vectors that depend on their sentence alone."""

from __future__ import annotations

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.errors import EncodingError
from ctxexp.model import Encoder, check_encoded, check_separate, lacking
from ctxexp.testing.report import Broken

SENTENCES = [Sentence.of(text.split()) for text in ("The bank closed early .", "It rained .", "the river", "It rained")]
TOLERANCE = 6e-2  # share of a layer's root mean square, wide enough for half types


def check_sentences(view: Encoder, encoder: Encoder) -> None:
    """Raise Broken if what the encoder's `sentences()` gave isn't a view as `ctxexp.Encoder` documents it."""
    if wrong := lacking(view):
        raise Broken(f"sentences(): what it gave {wrong}")
    if not view.poolings:
        raise Broken("sentences(): what it gave has no poolings; expected the names of its units")
    if view.name == encoder.name:
        raise Broken("sentences(): its name is the encoder's own, so the cache would mix up words and sentences")
    if (view.n_layers, view.dim) != (encoder.n_layers, encoder.dim):
        raise Broken(
            f"sentences() has {view.n_layers} layers of {view.dim}, the encoder {encoder.n_layers} of {encoder.dim}"
        )
    together = list(view.encode(SENTENCES))
    try:
        for i, encoded in enumerate(together):
            check_encoded(view, i, encoded)
        check_separate(view, together)
    except EncodingError as error:
        raise Broken(f"sentences(): {error}") from error
    for sentence, encoded in zip(SENTENCES, together, strict=True):
        if strange := [unit for unit in encoded.units if unit not in view.poolings]:
            raise Broken(f"sentences() gave units {strange} that aren't among its poolings {list(view.poolings)}")
        (alone,) = view.encode([sentence])
        scale = np.sqrt((alone.layers.astype(np.float64) ** 2).mean()) + 1e-12
        if alone.units != encoded.units or np.abs(alone.layers - encoded.layers).max(initial=0) > TOLERANCE * scale:
            raise Broken("sentences(): a sentence's vectors depend on the others in its batch; is padding pooled?")
