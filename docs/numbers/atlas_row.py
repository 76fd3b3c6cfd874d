"""A row of the atlas: the card.json that `ctxexp card` wrote, of a model that others can have, over a known text."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ctxexp.errors import DataError
from ctxexp.results import RunInfo


class Text(NamedTuple):
    """One of the atlas' texts: what is typed for it, the digest of its sentences and words, and its title."""

    typed: str
    fingerprint: str
    title: str


TEXTS = {
    "embedded": Text("dataset=polysemy", "e5178d12e7fcdb665339b55c52ea29b9", "the embedded sentences"),
    "sts-b": Text("dataset=sts_b", "13478aac61790cf18ca8870dec438633", "STS-B"),
    "semcor": Text("dataset=semcor_sample", "595a8cf8076da3019965d40c2a796cb2", "SemCor"),
}
HEADLINES = (  # curves that each row has, and how a column is called
    ("self_similarity/share_of_room", "self-similarity, share of the room above chance"),
    ("self_similarity/raw", "raw"),
    ("anisotropy/mean_cosine", "chance: cosine of unrelated words"),
    ("self_similarity/adjusted", "adjusted"),
    ("intra_sentence_similarity/size_matched_share_of_room", "intra-sentence similarity, likewise, length-matched"),
    ("max_explainable_variance/share_of_room", "MEV, likewise"),
)
FEWEST_RESAMPLES = 100
MOST = 1 + 1e-4  # of a cosine or a share, rounded

Values = list[float | None]


class Curve(BaseModel):
    """Values by layer, and the ends of their 95% intervals where there are any."""

    model_config = ConfigDict(extra="forbid")
    value: Values
    low: Values | None = None
    high: Values | None = None


class Row(BaseModel):
    """The schema of a file in `docs/atlas/`."""

    model_config = ConfigDict(extra="forbid")
    format: Literal[1]
    title: Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[^|`<>\n]+$")]
    command: str
    findings: list[str]
    warnings: list[str]
    extremes: list[str]
    advice: list[str] = []
    sinks: list[str]
    controls: list[str]
    curves: dict[str, Curve]
    run: RunInfo

    @property
    def text(self) -> str:
        """The text's name in the atlas."""
        return next(name for name, text in TEXTS.items() if text.fingerprint == self.run.corpus.fingerprint)

    @model_validator(mode="after")
    def _check(self) -> Row:
        _check_command(self.command)
        info = self.run
        if info.corpus.fingerprint not in {text.fingerprint for text in TEXTS.values()}:
            typed = " or ".join(text.typed for text in TEXTS.values())
            raise ValueError(f"the text is {info.corpus.name!r}, none of the atlas'; expected a run with {typed}")
        if (info.control, info.transform.name, info.seed) != ("none", "none", 0):
            raise ValueError("expected control=none, transform=none and seed=0, as they are by default")
        if info.bootstrap < FEWEST_RESAMPLES:
            raise ValueError(f"{info.bootstrap} resamples; expected bootstrap={FEWEST_RESAMPLES} or more")
        for key, _ in HEADLINES:
            if key not in self.curves:
                raise ValueError(f"no curve {key}; expected the measures {', '.join(k for k, _ in HEADLINES)}")
            _check_curve(key, self.curves[key], info.model.n_layers)
        return self


def read_row(path: Path) -> Row:
    """The row in a file. Raises DataError, which says what is wrong with it."""
    if not re.fullmatch(r"[a-z0-9.-]+|card", path.stem):
        raise DataError(f"{path}: expected a name of small letters, digits, dots and hyphens")
    try:
        return Row.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the card"
        raise DataError(f"{path}: {where}: {first['msg']}; a row is the card.json of `ctxexp card`") from error


def lowest(row: Row, key: str) -> str:
    """`.274 (5)`: a curve's lowest value and its layer."""
    value, layer = min((v, i) for i, v in enumerate(row.curves[key].value) if v is not None)
    return f"{_number(value)} ({layer})"


def cell(row: Row, key: str, layer: int) -> str:
    """`.551 [.543, .558]`"""
    curve = row.curves[key]
    value, low, high = (values[layer] if values else None for values in (curve.value, curve.low, curve.high))
    if value is None:
        return ""
    return _number(value) if low is None or high is None else f"{_number(value)} [{_number(low)}, {_number(high)}]"


def _number(value: float) -> str:
    return f"{value:.3f}".replace("0.", ".", 1)


def _check_command(command: str) -> None:
    words = shlex.split(command)
    if words[:2] != ["ctxexp", "card"] or len(words) < 3:
        raise ValueError(f"{command!r}: expected a card that was made of a model, ctxexp card 'MODEL key=value'")
    for word in " ".join(words[2:]).split():
        if re.match(r"[/~.\\]|[A-Za-z]:\\", word.rpartition("=")[2]):
            raise ValueError(f"{word!r} is a path on your machine; expected a model that others can have, by its name")


def _check_curve(key: str, curve: Curve, n_layers: int) -> None:
    parts = [values for values in (curve.value, curve.low, curve.high) if values is not None]
    if {len(values) for values in parts} != {n_layers}:
        raise ValueError(f"{key}: {len(curve.value)} values; the model has {n_layers} layers")
    for layer, ends in enumerate(zip(curve.low or curve.value, curve.value, curve.high or curve.value, strict=True)):
        known = [v for v in ends if v is not None]
        is_share = key.endswith("share_of_room")  # of little room it may be far below 0
        outside = [v for v in known if not math.isfinite(v) or v > MOST or (v < -MOST and not is_share)]
        if outside or known != sorted(known):
            raise ValueError(f"{key}, layer {layer}: {ends}; expected low <= value <= high, each from -1 to 1")
