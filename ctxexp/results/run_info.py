"""Metadata of a run: typed, frozen, and written beside the values; and a metric's, for figures, tables and claims:
attributes, so that nothing is read out of prose.

It goes through the stages of a run, each of which adds what it alone knows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from ctxexp.maths.word_mix import BANDS
from ctxexp.model import TextStart

if TYPE_CHECKING:
    from pydantic import TypeAdapter

CLUSTERS = {  # that intervals draw anew, in the plural
    "sentence": "sentences",
    "document": "documents",
    "group of paired sentences": "groups of paired sentences",
    "shard of sentences": "shards of sentences",
    "shard of documents": "shards of documents",
    "pair": "sentence pairs",
    "group of pairs": "groups of pairs that share a sentence",
}
ControlName = Literal["layer_0", "vector_a_word", "alone", "untrained", "shuffled"]
UNTRAINED, SHUFFLED, RANDOM_WORDS = "untrained", "shuffled", "random_words"  # weights, control and model of such runs
ALONE = "each word alone"  # control of such runs, and what it adds to the encoder's name
SIZE_MATCHED = "size-matched"  # a measure's `level` where each group is held against random groups of its own size


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """The model: `encoder` identifies its vectors, `weights` names the option or file that its weights come from."""

    name: str = ""  # as a config calls it
    encoder: str = ""
    weights: str = ""
    dtype: str = ""
    n_layers: int = 0  # layers that it has, the input layer counted
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
    choices: dict[str, object] = field(default_factory=dict)  # arguments of the data set, and word options
    sentences: int = 0
    occurrences: int = 0
    words: int = 0  # distinct words that are measured
    pairs: int = 0  # of sentences
    min_contexts: int = 0  # distinct sentences that a word needs to be measured
    max_contexts: int | None = None  # largest number of occurrences per word; None: all
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

    text: str = "target"  # name of the text; target: the measured one
    transductive: bool = True  # whether it holds all measured sentences
    overlap: float = 1.0  # share of the measured sentences that it holds
    sentences: int = 0  # number of its sentences


@dataclass(frozen=True, kw_only=True)
class TransformInfo:
    """The transform of the vectors; `fit` is None where nothing is fitted."""

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
    """The clusters that intervals resample: kind (`unit`) and number (`n`) for words, kind (`pairs`) for pairs; and
    what `intervals` of words are for, `new_text` or `these_words`."""

    unit: str = ""
    n: int = 0
    pairs: str = ""
    intervals: str = ""

    @property
    def clusters(self) -> str:
        """The clusters that intervals of words resample, with their number: "7 shards of documents"."""
        unit = " ".join(self.unit.split())
        return f"{self.n:,} {unit if self.n == 1 else CLUSTERS.get(unit, f'{unit}s')}"


@dataclass(frozen=True, kw_only=True)
class MixInfo:
    """The weights of words in means over them: `bands`, `equal` or `occurrences`."""

    weights: str = ""
    bands: tuple[float, ...] = ()  # edges of relative frequency
    words: tuple[int, ...] = ()  # with contexts enough, in each band
    filled: tuple[bool, ...] = ()  # whether a band has words enough
    wanted: int = 0  # words more that the text would need to fill each band, about

    @property
    def mark(self) -> str:
        """What tells the number from that of a text which fills all bands: `2 of 3 bands`; empty for such a text."""
        lacks = self.weights == "bands" and not all(self.filled)
        return f"{sum(self.filled)} of {len(self.filled)} bands" if lacks else ""

    @property
    def phrase(self) -> str:
        """How the run's words are weighed, where it isn't by all of the default bands of frequency, or the text doesn't
        fill these; empty where it does."""
        weights = {"equal": "words weigh the same", "occurrences": "words weigh by their occurrences"}
        if self.weights in weights:
            return f"{weights[self.weights]}: the mean depends on the amount of text"
        edges = ", ".join(f"{edge:.2g}" for edge in self.bands)
        bands = "" if self.bands in ((), BANDS) else f"bands of frequency {edges}"
        own = ", of whose words it speaks" * any(self.filled)
        more = f"; about {self.wanted:,} words more would fill all" if self.wanted else ""
        return ", ".join(
            filter(None, [bands, self.mark and f"the text fills {self.mark} of word frequency{own}{more}"])
        )


@dataclass(frozen=True, kw_only=True)
class PoolingInfo:
    """How sentences got vectors; `name` is empty where none did."""

    name: str = ""
    details: dict[str, object] = field(default_factory=dict)
    mixes: dict[str, str] = field(default_factory=dict)  # of layers, in words


@dataclass(frozen=True, kw_only=True)
class MeasureInfo:
    """A metric's metadata (`ctxexp.results.run_info`), and `level`, the source of its baseline: `exact`,
    `drawn`, `size-matched`, or a few words on one that the metric computes itself."""

    name: str = ""
    title: str = ""
    variant: str | None = None  # None: it doesn't say
    definition: str = ""
    unit: str = ""
    over: str = ""
    main: str = ""
    line: float | None = None
    level: str = ""
    subject: str = ""
    lower: str = ""
    higher: str = ""


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
    """The identity of a run and every choice behind its numbers.

    Example:
        >>> import ctxexp
        >>> text = ["The bank was wet.", "The bank lent us money."]
        >>> results = ctxexp.measure("gpt2", text, metrics="word_norm", min_contexts=2, progress=False)
        >>> results.info.model.n_layers
        5
    """

    title: str = ""  # its name in charts
    model: ModelInfo = ModelInfo()
    corpus: CorpusInfo = CorpusInfo()
    control: str = "none"
    control_note: str = ""  # the control's remark on this run, for figures and reports
    transform: TransformInfo = TransformInfo()
    baseline: BaselineInfo = BaselineInfo()
    mix: MixInfo = MixInfo()
    pooling: PoolingInfo = PoolingInfo()
    measures: dict[str, MeasureInfo] = field(default_factory=dict)
    tables: dict[str, TableInfo] = field(default_factory=dict)
    seed: int = 0
    seeds: tuple[int, ...] = ()  # of averaged results: the seeds of the runs
    protocol: str = ""  # digest of the config but for the seed: equal for runs that may be averaged over seeds
    bootstrap: int = 0  # number of resamples
    resampled: ResamplingInfo = ResamplingInfo()
    encoded: int = 0  # sentences that were encoded for this run; the others' vectors were in the cache
    published: bool = False  # whether figures show the paper's curves beside the run's
    plugins: tuple[PluginInfo, ...] = ()
    version: str = ""

    def measure(self, name: str) -> MeasureInfo:
        """The metadata of a measure as the run recorded it; blank where it recorded none."""
        return self.measures.get(name, MeasureInfo())

    def definition_name(self, measure: str) -> str:
        """The metric's name with its variant, independent of its label: `self_similarity`,
        `max_explainable_variance_released`; the label itself where the run has no metadata."""
        info = self.measure(measure)
        if not info.name or info.variant is None:
            return measure
        return f"{info.name}_{info.variant}" if info.variant else info.name

    def definition(self, measure: str, task: str = "") -> str:
        """The definition that the run states of a measure, of a task with the task; else an empty text."""
        sentence = " ".join(self.measure(measure).definition.split())
        if not sentence or not task:
            return sentence
        return f"{'mean over tasks' if task == 'avg' else task}: {sentence}"

    def shares_resamples(self, other: RunInfo) -> bool:
        """Whether both runs' replicates are of the same resamples of the same text."""
        one, two = ((i.seed, i.bootstrap, i.corpus.fingerprint, i.corpus.pairs, i.resampled) for i in (self, other))
        return one == two

    def with_weights(self, label: str) -> str:
        """A label with the weights that the run used, which a chart's leaves out where they are the default."""
        weights = " ".join(self.model.weights.split())
        return label if not weights or weights in label else f"{label} ({weights})"

    @property
    def is_control(self) -> bool:
        """Whether the run is itself one of the controls that need a run: no training, no context, or no order."""
        model, control = self.model, self.control
        return model.weights == UNTRAINED or model.name == RANDOM_WORDS or control.startswith((SHUFFLED, ALONE))

    def control_by(self, b: RunInfo) -> ControlName | None:
        """The control of this run that run `b` is, if any: all but the vectors, or the order of the words, is as here.
        `vector_a_word`, `alone`, `untrained` or `shuffled`."""
        a = self
        same = (a.transform.name, a.transform.arguments, a.corpus.name, a.baseline, a.mix.weights, a.mix.bands) == (
            b.transform.name, b.transform.arguments, b.corpus.name, b.baseline, b.mix.weights, b.mix.bands
        )  # fmt: skip
        if not same or a.is_control:
            return None
        same_text = b.control == a.control and b.corpus.fingerprint == a.corpus.fingerprint
        if b.model.name == RANDOM_WORDS:
            return "vector_a_word" if same_text else None
        if b.model.name != a.model.name:
            return None
        if b.control == ALONE and b.model.encoder == f"{a.model.encoder}, {ALONE}":
            return "alone" if b.corpus.fingerprint == a.corpus.fingerprint else None
        if b.model.weights == UNTRAINED and same_text:
            return "untrained"
        same_weights = (a.model.weights, a.model.encoder) == (b.model.weights, b.model.encoder)
        return "shuffled" if same_weights and a.control == "none" and b.control.startswith(SHUFFLED) else None

    def to_json(self) -> dict[str, Any]:
        """The same in JSON's types."""
        return _adapter().dump_python(self, mode="json")

    @classmethod
    def from_json(cls, document: object) -> RunInfo:
        """The inverse of `to_json`. Raises ValueError for a document that it can't have written."""
        return _adapter().validate_python(document)


@cache
def _adapter() -> TypeAdapter[RunInfo]:
    from pydantic import TypeAdapter

    return TypeAdapter(RunInfo)
