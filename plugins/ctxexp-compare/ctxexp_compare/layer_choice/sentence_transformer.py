"""A layer encoder as the module of a SentenceTransformer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ctxexp.errors import ModelError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from ctxexp_compare.layer_choice.encoder import LayerEncoder


class LayerModule(torch.nn.Module):
    """A module that turns texts into `sentence_embedding`; the texts themselves are its features."""

    def __init__(self, encoder: LayerEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.register_buffer("device_marker", torch.empty(0), persistent=False)

    def preprocess(self, inputs: list[str], **options: Any) -> dict[str, Any]:
        """The texts, as features."""
        return {"texts": [f"{options.get('prompt') or ''}{text}" for text in inputs]}

    tokenize = preprocess

    def forward(self, features: dict[str, Any], **options: Any) -> dict[str, Any]:
        """The features with their vectors."""
        vectors = torch.from_numpy(self.encoder.encode(features["texts"]))
        return {**features, "sentence_embedding": vectors.to(str(self.get_buffer("device_marker").device))}

    def get_embedding_dimension(self) -> int:
        """The number of columns of the vectors."""
        return self.encoder.dim

    get_sentence_embedding_dimension = get_embedding_dimension

    def save(self, output_path: str, *args: Any, **options: Any) -> None:
        """Write the encoder into the module's folder."""
        self.encoder.save(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any) -> LayerModule:
        """Read it back from there."""
        from ctxexp_compare.layer_choice.encoder import LayerEncoder

        return cls(LayerEncoder.load(Path(model_name_or_path) / subfolder))


def sentence_transformer(encoder: LayerEncoder) -> SentenceTransformer:
    """A SentenceTransformer with this one module. Raises ModelError where the library isn't installed."""
    try:
        from sentence_transformers import SentenceTransformer
    except ModuleNotFoundError as error:
        raise ModelError("as_sentence_transformer() needs the library: pip install sentence-transformers") from error
    return SentenceTransformer(modules=[LayerModule(encoder)], device="cpu")
