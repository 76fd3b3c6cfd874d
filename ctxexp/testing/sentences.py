"""Laws of an encoder's view of whole sentences: units named after poolings, vectors that depend on their sentence
alone."""

from __future__ import annotations

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.errors import EncodingError
from ctxexp.model import Encoder, check_encoded, check_separate, contract_violation
from ctxexp.testing.report import Breach

SENTENCES = [Sentence.of(text.split()) for text in ("The bank closed early .", "It rained .", "the river", "It rained")]
TOLERANCE = 6e-2  # share of a layer's root mean square, wide enough for half-precision types


def check_sentences(view: Encoder, encoder: Encoder) -> None:
    """Raise Breach unless the encoder's `sentence_encoder()` returned a view as the contract, `ctxexp.Encoder`,
    documents it."""
    if wrong := contract_violation(view):
        raise Breach(f"sentence_encoder(): what it gave {wrong}")
    if not view.poolings:
        raise Breach("sentence_encoder(): what it gave has no poolings; expected the names of its units")
    if view.name == encoder.name:
        raise Breach("sentence_encoder(): its name is the encoder's own, so the cache would mix up words and sentences")
    if (view.n_layers, view.dim) != (encoder.n_layers, encoder.dim):
        raise Breach(
            f"sentence_encoder() has {view.n_layers} layers of {view.dim}, "
            f"the encoder {encoder.n_layers} of {encoder.dim}"
        )
    together = list(view.encode(SENTENCES))
    try:
        for i, vectors in enumerate(together):
            check_encoded(view, i, vectors)
        check_separate(view, together)
    except EncodingError as error:
        raise Breach(f"sentence_encoder(): {error}") from error
    for sentence, vectors in zip(SENTENCES, together, strict=True):
        if strange := [unit for unit in vectors.units if unit not in view.poolings]:
            raise Breach(
                f"sentence_encoder() gave units {strange} that aren't among its poolings {list(view.poolings)}"
            )
        (alone,) = view.encode([sentence])
        scale = np.sqrt((alone.layers.astype(np.float64) ** 2).mean()) + 1e-12
        if alone.units != vectors.units or np.abs(alone.layers - vectors.layers).max(initial=0) > TOLERANCE * scale:
            raise Breach(
                "sentence_encoder(): a sentence's vectors depend on the others in its batch; is padding pooled?"
            )
