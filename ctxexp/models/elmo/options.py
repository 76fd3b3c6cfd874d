"""ELMo's `options.json`, read, checked and written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StrictBool, ValidationError

from ctxexp.errors import ModelError

MOST_WEIGHTS = 10**10  # the original has 93.6 million, its 2 layers 4096 cells each
_Size = Annotated[int, Field(ge=1, le=10**5, strict=True)]
_Depth = Annotated[int, Field(le=100, strict=True)]
_Clip = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]


class _Embedding(BaseModel):
    dim: _Size


class _CharCnn(BaseModel):
    embedding: _Embedding
    filters: Annotated[list[tuple[_Size, _Size]], Field(min_length=1, max_length=100)]
    n_highway: Annotated[_Depth, Field(ge=0)] = 0
    n_characters: int
    max_characters_per_token: Annotated[_Size, Field(ge=3)]
    activation: Literal["relu", "tanh"]


class _Lstm(BaseModel):
    dim: _Size
    projection_dim: _Size
    n_layers: Annotated[_Depth, Field(ge=1)]
    cell_clip: _Clip | None = None
    proj_clip: _Clip | None = None
    use_skip_connections: StrictBool = False


class _File(BaseModel):
    char_cnn: _CharCnn
    lstm: _Lstm


@dataclass(frozen=True, slots=True)
class ElmoOptions:
    """The architecture: what an `options.json` says, checked."""

    character_dim: int
    filters: tuple[tuple[int, int], ...]  # (width, number) each
    n_highway: int
    n_characters: int
    word_width: int  # characters per word, its markers included
    activation: str  # "relu" or "tanh"
    cells: int
    projection: int
    n_layers: int
    cell_clip: float  # infinite: no clip
    projection_clip: float
    skip: bool  # residual connections from layer 2 on

    @property
    def n_filters(self) -> int:
        return sum(number for _, number in self.filters)

    @property
    def widest(self) -> int:
        return max(width for width, _ in self.filters)

    @property
    def has_projection(self) -> bool:
        """The original projects the filters' responses only where their number isn't the projection's already."""
        return self.n_filters != self.projection

    @property
    def n_weights(self) -> int:
        """The network's weights, all told."""
        n, p, c = self.n_filters, self.projection, self.cells
        tokens = (self.n_characters - 1) * self.character_dim + sum(
            k * (w * self.character_dim + 1) for w, k in self.filters
        )
        return (
            tokens
            + self.n_highway * 2 * n * (n + 1)
            + self.has_projection * p * (n + 1)
            + self.n_layers * 2 * (4 * c * (2 * p + 1) + c * p)
        )

    @classmethod
    def parse(cls, options: Mapping[str, object], where: str = "options") -> ElmoOptions:
        """From the content of an `options.json`; `where` names it in errors."""
        try:
            content = _File.model_validate(options)
        except ValidationError as error:
            wrong = error.errors()[0]
            name = ".".join(map(str, wrong["loc"])) or "the whole"
            if wrong["type"] == "missing":
                raise ModelError(f"{where}: no {name}; is this the options.json of an ELMo biLM?") from None
            raise ModelError(f"{where}: {name} is {wrong['input']!r:.60}: {wrong['msg']}") from None
        cnn, lstm = content.char_cnn, content.lstm
        if cnn.n_characters != 262:
            raise ModelError(
                f"{where}: char_cnn.n_characters is {cnn.n_characters!r}, expected 262 (256 bytes, 5 markers, the "
                "mask); a file written for training says 261: change it to 262"
            )
        parsed = cls(
            character_dim=cnn.embedding.dim,
            filters=tuple(cnn.filters),
            n_highway=cnn.n_highway,
            n_characters=262,
            word_width=cnn.max_characters_per_token,
            activation=cnn.activation,
            cells=lstm.dim,
            projection=lstm.projection_dim,
            n_layers=lstm.n_layers,
            cell_clip=lstm.cell_clip or float("inf"),
            projection_clip=lstm.proj_clip or float("inf"),
            skip=lstm.use_skip_connections,
        )
        if parsed.word_width < parsed.widest:
            raise ModelError(
                f"{where}: words of {parsed.word_width} characters don't hold the widest filter, {parsed.widest}"
            )
        if parsed.n_weights > MOST_WEIGHTS:
            raise ModelError(f"{where}: a network of {parsed.n_weights:,} weights; expected at most {MOST_WEIGHTS:,}")
        return parsed


def read_options(path: Path) -> ElmoOptions:
    """The options in the JSON file `path`."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ModelError(f"no ELMo options file at {path}; give options_file=<path of an options.json>") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} can't be read as JSON ({error}); expected an ELMo options.json") from None
    return ElmoOptions.parse(content, str(path))
