"""Metadata of a run: typed, frozen, and written beside the values. Each stage states the part that it knows, and `|`
merges the parts."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from ctxexp.model import TextStart

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Part = TypeVar("Part")
SIZE_MATCHED = "size-matched"  # a measure's `level` where each group is held against random groups of its own size


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """The model: `encoder` is their identity, `weights` the choice or file behind them."""

    name: str = ""  # as a config calls it
    encoder: str = ""
    weights: str = ""
    dtype: str = ""
    n_layers: int = 0  # that it has
    layers: tuple[int, ...] = ()  # those that were measured, where that isn't all
    dim: int = 0
    causal: bool | None = None  # True: a sentence's first unit sees no other word
    start: TextStart | None = None  # what stands before each text; None: the encoder doesn't say
    details: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CorpusInfo:
    """The text, and how much of it has vectors."""

    name: str = ""
    fingerprint: str = ""
    choices: dict[str, object] = field(default_factory=dict)
    sentences: int = 0
    occurrences: int = 0
    words: int = 0  # distinct ones that are measured
    pairs: int = 0
    min_contexts: int = 0  # that a word needs
    max_contexts: int | None = None  # that a word has at most; None: all
    one_pass: int = 0  # shards of a text whose vectors were summed, and not stored; 0: they were stored
    text_sentences: int = 0  # of the text that a bounded corpus was taken from, repeated ones counted
    text_words: int = 0
    left_out: int = 0  # occurrences that a control leaves out
    skipped: int = 0  # words without a vector
    skipped_share: float = 0.0
    unknown: int = 0  # pieces that the model's tokenizer doesn't know
    pieces: int = 0

    @property
    def contexts(self) -> str:
        """The bound on the contexts of a word, in words."""
        if self.one_pass:
            return "all contexts, in one pass, no vector stored"
        return f"at most {self.max_contexts:,} contexts a word" if self.max_contexts else "all contexts"

    @property
    def unknown_share(self) -> float | None:
        """The unknown among the pieces; None for an encoder without pieces."""
        return self.unknown / self.pieces if self.pieces else None


@dataclass(frozen=True, kw_only=True)
class FitInfo:
    """The text on which a transform was fitted."""

    text: str = "target"  # the measured one, or another's name
    transductive: bool = True  # whether all measured sentences were in it
    overlap: float = 1.0  # their share
    sentences: int = 0  # that it has


@dataclass(frozen=True, kw_only=True)
class TransformInfo:
    """The calibration of the space; `fit` is None where nothing is fitted."""

    name: str = "none"
    arguments: dict[str, object] = field(default_factory=dict)
    fit: FitInfo | None = None


@dataclass(frozen=True, kw_only=True)
class BaselineInfo:
    """The baseline."""

    name: str = ""
    size: int = 0
    matched: bool = False  # whether its groups have the size of what they are compared with


@dataclass(frozen=True, kw_only=True)
class ResamplingInfo:
    """The clusters that intervals resample: kind (`unit`) and number (`n`) for words, kind (`pairs`) for pairs."""

    unit: str = ""
    n: int = 0
    pairs: str = ""


@dataclass(frozen=True, kw_only=True)
class PoolingInfo:
    """How sentences got vectors; `name` is empty where none did."""

    name: str = ""
    details: dict[str, object] = field(default_factory=dict)
    mixes: dict[str, str] = field(default_factory=dict)  # of layers, in words


@dataclass(frozen=True, kw_only=True)
class MeasureInfo:
    """A metric's metadata (`ctxexp.results.described`), and `level`, the source of its baseline: `exact`, `drawn` or
    `size-matched`."""

    name: str = ""
    title: str = ""
    variant: str | None = None  # None: it doesn't say
    definition: str = ""
    unit: str = ""
    over: str = ""
    main: str = ""
    line: float | None = None
    level: str = ""


@dataclass(frozen=True, kw_only=True)
class TableInfo:
    """An embedding table that was measured beside the layers."""

    rows: int = 0
    dim: int = 0
    note: str = ""
    tied: bool = False


@dataclass(frozen=True, kw_only=True)
class PluginInfo:
    """A plugin that supplied something to the run, such as `model lengths`."""

    plugin: str
    distribution: str
    version: str
    supplies: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """The identity of a run and every choice behind its numbers."""

    title: str = ""  # what charts call it
    model: ModelInfo = ModelInfo()
    corpus: CorpusInfo = CorpusInfo()
    control: str = "none"
    control_note: str = ""  # what is to be said of it
    transform: TransformInfo = TransformInfo()
    baseline: BaselineInfo = BaselineInfo()
    pooling: PoolingInfo = PoolingInfo()
    measures: dict[str, MeasureInfo] = field(default_factory=dict)
    tables: dict[str, TableInfo] = field(default_factory=dict)
    seed: int = 0
    seeds: tuple[int, ...] = ()  # of the runs that this is the mean of
    objective: str = ""  # what stands for it where something optimises over runs
    protocol: str = ""  # a digest of every choice but the seed, as the command has them
    bootstrap: int = 0
    resampled: ResamplingInfo = ResamplingInfo()
    encoded: int = 0  # sentences that no cache had
    published: bool = False  # whether figures show the paper's curves
    plugins: tuple[PluginInfo, ...] = ()
    version: str = ""

    def __or__(self, other: RunInfo) -> RunInfo:
        """The merge of both; where both state a fact, that of `other`."""
        return _both(self, other)

    def to_json(self) -> dict[str, Any]:
        """The same in JSON's types."""
        document: dict[str, Any] = _adapter().dump_python(self, mode="json")
        return document

    @classmethod
    def from_json(cls, document: object) -> RunInfo:
        """The inverse of `to_json`. Raises ValueError for a document that it can't have written."""
        return _adapter().validate_python(document)


@cache
def _adapter() -> TypeAdapter[RunInfo]:
    from pydantic import TypeAdapter

    return TypeAdapter(RunInfo)


def _both(one: Part, other: Part) -> Part:
    """The merge of two parts, the second's facts first; a field at its default states no fact."""
    blank = type(other)()
    values: dict[str, object] = {}
    for name in (each.name for each in fields(other)):  # type: ignore[arg-type]  # parts are dataclasses
        a, b, nothing = vars(one)[name], vars(other)[name], vars(blank)[name]
        if isinstance(b, dict):
            values[name] = {**a, **b}
        elif is_dataclass(b) and is_dataclass(a):
            values[name] = _both(a, b)
        else:
            values[name] = a if b == nothing else b
    return type(other)(**values)
