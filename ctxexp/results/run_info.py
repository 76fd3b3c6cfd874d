"""What a run measured and how: typed, frozen, and written beside the values. A stage says the part that it knows, and
`|` puts parts together."""

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
    """Which vectors: `encoder` is their identity, `weights` the choice or file behind them."""

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
    """Which text, and how much of it has vectors."""

    name: str = ""
    fingerprint: str = ""
    choices: dict[str, object] = field(default_factory=dict)
    sentences: int = 0
    occurrences: int = 0
    words: int = 0  # distinct ones that are measured
    pairs: int = 0
    min_contexts: int = 0  # that a word needs
    max_contexts: int | None = None  # that a word has at most; None: all
    one_pass: int = 0  # shards in which vectors were summed in one pass, and not stored; 0: they were stored
    text_sentences: int = 0  # of the text that a bounded corpus was taken from, repeated ones counted
    text_words: int = 0
    left_out: int = 0  # occurrences that a control leaves out
    skipped: int = 0  # words without a vector
    skipped_share: float = 0.0
    unknown: int = 0  # pieces that the model's tokenizer doesn't know
    pieces: int = 0

    @property
    def unknown_share(self) -> float | None:
        """The unknown among the pieces; None for an encoder without pieces."""
        return self.unknown / self.pieces if self.pieces else None


@dataclass(frozen=True, kw_only=True)
class FitInfo:
    """What a transform was fitted on."""

    text: str = "target"  # the measured one, or another's name
    transductive: bool = True  # whether all measured sentences were in it
    overlap: float = 1.0  # their share
    sentences: int = 0  # that it has


@dataclass(frozen=True, kw_only=True)
class TransformInfo:
    """After which calibration of the space; `fit` is None where nothing is fitted."""

    name: str = "none"
    arguments: dict[str, object] = field(default_factory=dict)
    fit: FitInfo | None = None


@dataclass(frozen=True, kw_only=True)
class BaselineInfo:
    """Against which chance level."""

    name: str = ""
    size: int = 0
    matched: bool = False  # whether its groups have the size of what they are compared with


@dataclass(frozen=True, kw_only=True)
class Resampled:
    """What intervals draw anew: `unit` and `n` of them for words, `pairs` for sentence pairs."""

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
    """What a metric says of itself (`ctxexp.measuring.described`), and `level`: how its chance level was found:
    `exact`, `drawn` or `size-matched`."""

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
    """What names a run and every choice behind its numbers."""

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
    resampled: Resampled = Resampled()
    encoded: int = 0  # sentences that no cache had
    published: bool = False  # whether figures show the paper's curves
    plugins: tuple[PluginInfo, ...] = ()
    version: str = ""

    def __or__(self, other: RunInfo) -> RunInfo:
        """Both; where both say something, what `other` says."""
        return _both(self, other)

    def to_json(self) -> dict[str, Any]:
        """The same in JSON's types."""
        found: dict[str, Any] = _adapter().dump_python(self, mode="json")
        return found

    @classmethod
    def from_json(cls, document: object) -> RunInfo:
        """What `to_json` gave. Raises ValueError for what it can't have given."""
        return _adapter().validate_python(document)


@cache
def _adapter() -> TypeAdapter[RunInfo]:
    from pydantic import TypeAdapter

    return TypeAdapter(RunInfo)


def _both(one: Part, other: Part) -> Part:
    """A part that says what either says; what is as it is by default says nothing."""
    blank = type(other)()
    merged: dict[str, object] = {}
    for name in (each.name for each in fields(other)):  # type: ignore[arg-type]  # parts are dataclasses
        a, b, nothing = vars(one)[name], vars(other)[name], vars(blank)[name]
        if isinstance(b, dict):
            merged[name] = {**a, **b}
        elif is_dataclass(b) and is_dataclass(a):
            merged[name] = _both(a, b)
        else:
            merged[name] = a if b == nothing else b
    return type(other)(**merged)
