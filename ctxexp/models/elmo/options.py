"""ELMo's `options.json`, read, checked and written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasPath, BeforeValidator, Field, StrictBool, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from ctxexp.errors import ModelError

_Size = Annotated[int, Field(ge=1, le=10**5, strict=True)]
_Clip = Annotated[float, BeforeValidator(lambda clip: clip or float("inf")), Field(ge=0, strict=True)]


def _at(*keys: str, **bounds: Any) -> Any:
    """The field's place in an `options.json`."""
    return Field(validation_alias=AliasPath(*keys), **bounds)


@dataclass(frozen=True, slots=True, config={"populate_by_name": True})
class ElmoOptions:
    """The architecture: what an `options.json` says, checked."""

    character_dim: Annotated[_Size, _at("char_cnn", "embedding", "dim")]
    # (width, number) each
    filters: Annotated[tuple[tuple[_Size, _Size], ...], _at("char_cnn", "filters", min_length=1, max_length=100)]
    n_highway: Annotated[int, _at("char_cnn", "n_highway", default=0, ge=0, le=100, strict=True)]
    n_characters: Annotated[int, _at("char_cnn", "n_characters")]
    # characters per word, its markers included
    word_width: Annotated[_Size, _at("char_cnn", "max_characters_per_token", ge=3)]
    activation: Annotated[Literal["relu", "tanh"], _at("char_cnn", "activation")]
    cells: Annotated[_Size, _at("lstm", "dim")]
    projection: Annotated[_Size, _at("lstm", "projection_dim")]
    n_layers: Annotated[int, _at("lstm", "n_layers", ge=1, le=100, strict=True)]
    cell_clip: Annotated[_Clip, _at("lstm", "cell_clip", default=float("inf"))]  # infinite: no clip
    projection_clip: Annotated[_Clip, _at("lstm", "proj_clip", default=float("inf"))]
    # residual connections from layer 2 on
    skip: Annotated[StrictBool, _at("lstm", "use_skip_connections", default=False)]

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

    @classmethod
    def parse(cls, options: Mapping[str, object], where: str = "options") -> ElmoOptions:
        """From the content of an `options.json`; `where` names it in errors."""
        try:
            parsed: ElmoOptions = TypeAdapter(cls).validate_python(options)
        except ValidationError as error:
            wrong = error.errors()[0]
            name = ".".join(map(str, wrong["loc"])) or "the whole"
            if wrong["type"] == "missing":
                raise ModelError(f"{where}: no {name}; is this the options.json of an ELMo biLM?") from None
            raise ModelError(f"{where}: {name} is {wrong['input']!r:.60}: {wrong['msg']}") from None
        if parsed.n_characters != 262:
            raise ModelError(
                f"{where}: char_cnn.n_characters is {parsed.n_characters!r}, expected 262 (256 bytes, 5 markers, the "
                "mask); a file written for training says 261: change it to 262"
            )
        if parsed.word_width < parsed.widest:
            raise ModelError(
                f"{where}: words of {parsed.word_width} characters don't hold the widest filter, {parsed.widest}"
            )
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
