"""A chosen layer as an encoder of sentences that mteb and sentence-transformers take: checkpoint, layer, transform."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp import Encoder, Sentence
from ctxexp.command import Experiment, configured
from ctxexp.datasets import tokenizer, user_path
from ctxexp.errors import DataError, EncodingError, ModelError, error_text
from ctxexp.report import write_file
from ctxexp_compare.layer_choice.choice import NONE

if TYPE_CHECKING:
    from mteb.models import ModelMeta  # type: ignore[import-not-found,unused-ignore]
    from sentence_transformers import SentenceTransformer

BATCH = 32
FILE, FIT_ROWS = "layer_encoder.json", "fit_rows.npy"


class LayerEncoder:
    """One vector a text from one layer of a model, after a transform that was fitted once.

    The vectors are those that `ctxexp layer` scored, of the very layer: no final norm is put behind a middle one.

    Args:
        model: The model as on the command line, with its words: `"minilm dtype=bfloat16"`.
        layer: The layer's number, 0 the input layer.
        pooling: Of sentences, as `sentence.pooling=`.
        transform: A transform's name, with its words: `"whitening"`.
        fit_on: Texts that the transform is fitted on; needed unless it takes nothing from them.

    Example:
        >>> encoder = LayerEncoder("bert", 2)
        >>> encoder.encode(["A bank by the river.", "A bank."]).shape
        (2, 192)
    """

    def __init__(
        self,
        model: str,
        layer: int,
        *,
        pooling: str = "mean",
        transform: str = NONE,
        fit_on: Sequence[str] = (),
        _fit_rows: np.ndarray | None = None,
    ) -> None:
        self.model, self.layer, self.pooling, self.transform = model, layer, pooling, transform
        experiment = Experiment(configured(model, None, {"sentence.pooling": pooling}, transform=transform))
        self.encoder: Encoder = experiment.encoder
        if layer not in self.encoder.layer_numbers:
            numbers = ", ".join(map(str, self.encoder.layer_numbers))
            raise ModelError(f"layer={layer}: {model} has layers {numbers}")
        self._view = experiment.sentence_view
        self._width = (self._view or self.encoder).dim
        self._calibration = experiment.calibration
        self._tokenize, self._words = tokenizer("english"), experiment.words
        self.fit_rows: np.ndarray | None = _fit_rows
        self._fitted = None
        if not self._calibration.identity:
            if self._calibration.needs_fit and _fit_rows is None:
                if len(fit_on) < 2:
                    raise DataError(f"transform={transform} is fitted on texts: give two or more with fit_on=")
                self.fit_rows = np.concatenate(list(self._rows(fit_on)))
            rows = np.zeros((1, self._width), np.float32) if self.fit_rows is None else self.fit_rows
            self._fitted = self._calibration.fit(rows, f"layer {layer}")

    @property
    def dim(self) -> int:
        """The number of columns of its vectors."""
        return self._width if self._fitted is None else self._calibration.width(self._width)

    def encode(self, inputs: str | Iterable[Any], **options: Any) -> np.ndarray:
        """The vectors of texts.

        Args:
            inputs: A text, texts, or batches that hold texts under `text`, as mteb's loaders give them.
            options: Those of sentence-transformers and mteb; `normalize_embeddings` scales rows to length 1, the others
                change nothing that is returned.

        Returns:
            (n, dim) float32; (dim,) for a single text.

        Raises:
            EncodingError: A text without a vector, such as an empty one for a model without special pieces.
        """
        texts = [inputs] if isinstance(inputs, str) else list(_texts(inputs))
        rows = [*self._rows(texts)]
        x = np.concatenate(rows) if rows else np.empty((0, self._width), np.float32)
        if self._fitted is not None:
            x = np.ascontiguousarray(self._calibration.apply(self._fitted, x, f"layer {self.layer}"))
        if options.get("normalize_embeddings"):
            x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return x[0] if isinstance(inputs, str) else x

    def _rows(self, texts: Sequence[str]) -> Iterator[np.ndarray]:
        """The layer's vectors of the texts before the transform, (n, dim) float32 a batch."""
        at = list(self.encoder.layer_numbers).index(self.layer)
        for start in range(0, len(texts), BATCH):
            batch = [self._tokenize(text) for text in texts[start : start + BATCH]]
            encoder = self._view or self.encoder
            encodings = zip(batch, encoder.encode(batch), strict=True)
            found = [self._one(text, encoded.units, encoded.layers[at]) for text, encoded in encodings]
            yield np.stack(found).astype(np.float32)

    def _one(self, sentence: Sentence, units: tuple[str, ...], x: np.ndarray) -> np.ndarray:
        if self._view is not None:
            rows = x[[i for i, unit in enumerate(units) if unit == self.pooling]]
        else:
            rows = x[[i for i, unit in enumerate(units) if self._words.form(unit) is not None]]
        if not len(rows):
            raise EncodingError(
                f"{self.model}: no vector for the text {sentence.text[:60]!r}, which has no piece to pool by "
                f"{self.pooling}"
            )
        return rows.mean(axis=0, dtype=np.float64)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The cosine of every row of the one with every row of the other, as a torch tensor (n, m)."""
        import torch

        a, b = (torch.as_tensor(x).float().reshape(-1, self.dim) for x in (embeddings1, embeddings2))
        return torch.nn.functional.normalize(a, dim=-1) @ torch.nn.functional.normalize(b, dim=-1).T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The cosine of each row of the one with the same row of the other, as a torch tensor (n,)."""
        import torch

        a, b = (torch.as_tensor(x).float().reshape(-1, self.dim) for x in (embeddings1, embeddings2))
        return torch.nn.functional.cosine_similarity(a, b)

    @property
    def mteb_model_meta(self) -> ModelMeta:
        """The model's metadata for mteb, whose results are filed under it."""
        from mteb.models import ModelMeta  # which needn't be installed

        name = f"ctxexp/{self.model.replace(' ', '_').replace('/', '_')}-layer{self.layer}-{self.transform}"
        empty = {key: None for key, field in ModelMeta.model_fields.items() if field.is_required()}
        return ModelMeta.model_construct(
            **{**empty, "name": name, "revision": self.encoder.name, "embed_dim": self.dim}
        )

    def save(self, folder: str | Path) -> Path:
        """Write the encoder's description, and the rows that its transform was fitted on.

        Args:
            folder: The folder.

        Returns:
            The path of its description.

        Example:
            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as folder:
            ...     _ = LayerEncoder("bert", 2).save(folder)
            ...     LayerEncoder.load(folder).layer
            2
        """
        folder = user_path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if self.fit_rows is not None:
            np.save(folder / FIT_ROWS, self.fit_rows)
        keys = {key: getattr(self, key) for key in ("model", "layer", "pooling", "transform")}
        return write_file(folder / FILE, json.dumps({**keys, "encoder": self.encoder.name}, indent=1) + "\n")

    @classmethod
    def load(cls, folder: str | Path) -> LayerEncoder:
        """Read an encoder back.

        Args:
            folder: The folder that `save` wrote.

        Returns:
            The encoder, its transform fitted again on the same rows.

        Raises:
            ModelError: The folder holds none, or the model's vectors are no longer those that were saved.
        """
        folder = user_path(folder)
        try:
            saved: Mapping[str, Any] = json.loads((folder / FILE).read_text(encoding="utf-8"))
            choice = {key: saved[key] for key in ("model", "layer", "pooling", "transform")}
            rows = np.load(folder / FIT_ROWS) if (folder / FIT_ROWS).exists() else None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(
                f"{folder} holds no layer encoder ({error_text(error)}); expected a folder of LayerEncoder.save, with "
                f"{FILE}"
            ) from None
        encoder = cls(**choice, _fit_rows=rows)
        if encoder.encoder.name != saved.get("encoder"):
            raise ModelError(
                f"{folder} was saved of {saved.get('encoder')!r}, but {encoder.model} is {encoder.encoder.name!r} now: "
                "choose the layer anew"
            )
        return encoder

    def as_sentence_transformer(self) -> SentenceTransformer:
        """A SentenceTransformer with this encoder as its only module. Raises ModelError without that library."""
        from ctxexp_compare.layer_choice.sentence_transformer import sentence_transformer

        return sentence_transformer(self)


def _texts(inputs: Iterable[Any]) -> Iterator[str]:
    """Texts of texts, or of batches with texts under `text`."""
    for one in inputs:
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping) and "text" in one:
            yield from [one["text"]] if isinstance(one["text"], str) else one["text"]
        else:
            raise DataError(f"expected texts, or batches with texts under 'text', got {type(one).__name__}")
