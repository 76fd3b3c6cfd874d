"""A study: what it hands on to the places that it is measured in, and what it says of itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ctxexp
from ctxexp import Block, Corpus, EncodedSentence, Encoder, Group, Metric, Pair, Results, Sentence
from ctxexp.command import Experiment, Progress, configured
from ctxexp.maths import mean_cosine
from ctxexp.model import EmbeddingTable
from ctxexp.results import Key
from tests.measuring_helpers import Hashed, sentences
from tests.shipped import Center, NoFirst, SelfSimilarity, Standardize

CORPUS = Corpus.of("text", sentences(40))


def experiment(
    folder: Path, *options: str, text: Corpus = CORPUS, encoder: Encoder | None = None, **choices: Any
) -> Experiment:
    progress = choices.pop("progress", None)
    usual = {"metrics": {"s": SelfSimilarity}, "bootstrap": 0}
    options = (f"cache.folder={folder / 'cache'}", "figures.explorer=0", *options)
    return Experiment(configured(encoder or Hashed(), text, options, **(usual | choices)), progress)


def ran(folder: Path, *options: str, **choices: Any) -> Results:
    return experiment(folder, *options, **choices).run(folder / "run")


class Heard(Progress):
    """Writes the stages down."""

    def __init__(self) -> None:
        super().__init__(bars=False)
        self.names: list[str] = []
        self.counts: dict[str, tuple[float, str, float]] = {}  # of units: all, their kind, and those that were done

    @contextmanager
    def stage(self, name: str, total: float, unit: str = "it") -> Iterator[Any]:
        self.names.append(name)
        with super().stage(name, total, unit) as stage:
            yield stage
            self.counts[name] = total, unit, getattr(stage, "done", -1)


class Tabled(Metric):
    """How many rows an embedding table has; 0 in a layer."""

    over, measures_embedding_tables = "corpus", True

    def __init__(self) -> None:
        self.n = 0

    def update(self, group: Group) -> None:
        self.n += len(group.table.tokens) if group.table else 0

    def compute(self) -> dict[str, float]:
        return {"rows": self.n}


class WithTable(Hashed):
    name = "with a table"

    def tables(self, sentences: Sequence[Sentence]) -> list[EmbeddingTable]:
        return [EmbeddingTable("input", ["a", "b", "c"], np.eye(3, dtype=np.float32), None)]


def test_the_space_is_the_one_that_is_measured(tmp_path: Path) -> None:
    """Whatever sentences would be pooled to: they are no part of it."""
    results = ran(tmp_path, transform=Standardize)
    mine = experiment(tmp_path, "sentence.pooling=cls", "sentence.mixes=[[1,9]]", transform=Standardize)
    layers, occurrences, positions = mine.study.space(mine.vectors)
    words = occurrences.by_word
    for i, expected in enumerate(results.by_name["s/raw"]):
        rows = [layers.layer(i)[words.rows[a:b]] for a, b in zip(words.starts, words.starts[1:], strict=False)]
        weights = occurrences.mixed_words.weights(np.ones(len(words), bool))
        assert np.average([mean_cosine(x) for x in rows], weights=weights) == pytest.approx(expected, abs=1e-6)
    assert sorted(positions.tolist()) == sorted(i for s in CORPUS.sentences for i in range(len(s)))


def test_a_given_progress_shows_each_stage(tmp_path: Path) -> None:
    whole, space = Heard(), Heard()
    ran(tmp_path, progress=whole)
    other = experiment(tmp_path / "other", progress=space)
    other.study.space(other.vectors, space)
    assert [name for name in whole.names if name not in space.names] == ["measuring"]
    assert len(space.names) == 1  # what is encoded
    assert whole.counts["measuring"] == (2, "layers", 2)


def test_tables_are_a_place_of_models_that_have_some(tmp_path: Path) -> None:
    having, without, unasked = Heard(), Heard(), Heard()
    results = ran(tmp_path, progress=having, encoder=WithTable(), metrics={"t": Tabled})
    assert results.by_name["t.input/rows"] == 3
    assert results.info.tables["input"].rows == 3
    assert "t.input/rows" not in ran(tmp_path, progress=without, metrics={"t": Tabled}).by_name
    ran(tmp_path, progress=unasked, encoder=WithTable())
    heard = ["measuring embedding tables" in one.names for one in (having, without, unasked)]
    assert heard == [True, False, False]


def test_a_text_that_fits_itself_counts_its_sentences_once(tmp_path: Path) -> None:
    twice = replace(CORPUS, sentences=CORPUS.sentences * 2)
    fit = ran(tmp_path, "words.deduplicate=false", text=twice, transform=Center).info.transform.fit
    assert fit is not None
    assert (fit.text, fit.transductive, fit.overlap, fit.sentences) == ("target", True, 1, 40)
    assert ran(tmp_path).info.transform.fit is None


class Asked(Metric):
    """Keeps the corpora that it was asked whether it can measure."""

    over = "word"

    def __init__(self, corpora: list[Corpus]) -> None:
        self.corpora = corpora

    def require(self, corpus: Corpus) -> None:
        self.corpora.append(corpus)

    def update(self, group: Group) -> None: ...

    def compute(self) -> dict[str, float]:
        return {}


class AskedForPairs(Asked):
    over = "pair"


BOUND = ("words.max_contexts=6", "words.max_sentences=5")


def test_pairs_are_asked_for_in_the_whole_text(tmp_path: Path) -> None:
    """And words among those that a bound leaves."""
    whole = replace(CORPUS, pairs=(Pair(0, 1, 1.0, "x"), Pair(2, 3, 2.0, "x")))
    words: list[Corpus] = []
    pairs: list[Corpus] = []
    metrics = {"s": SelfSimilarity, "words": partial(Asked, words), "pairs": partial(AskedForPairs, pairs)}
    some = experiment(tmp_path, *BOUND, text=whole, metrics=metrics)
    assert "s" in some.run(tmp_path).tables  # though pairs are measured after words
    asked = words[0].fingerprint, pairs[0].fingerprint
    assert asked == (some.corpus.fingerprint, whole.fingerprint)
    assert asked[0] != asked[1]


def test_a_bound_and_a_control_are_told(tmp_path: Path) -> None:
    told = ran(tmp_path, *BOUND).info
    assert (told.corpus.max_contexts, told.corpus.text_sentences) == (6, 40)
    assert told.corpus.text_words == CORPUS.n_words
    plain = ran(tmp_path).info
    assert (plain.corpus.max_contexts, plain.corpus.text_sentences, plain.corpus.text_words) == (None, 0, 0)
    assert (plain.control, plain.corpus.left_out, plain.pooling.name) == ("none", 0, "")
    without = ran(tmp_path, control=NoFirst()).info
    assert (without.control, without.corpus.left_out) == ("no first word", 40)


class Recorded(Center):
    def record(self) -> Any:
        return {"step": [0, 1], "loss": [0.5, 0.25]}


def test_what_a_fit_leaves_is_a_table(tmp_path: Path) -> None:
    table = ran(tmp_path, transform=Recorded).tables["transform_fit"]
    assert table["loss"].tolist() == [0.5, 0.25] * 2  # a layer each
    assert "transform_fit" not in ran(tmp_path, transform=Center).tables


def test_units_count_for_words_as_chosen(tmp_path: Path) -> None:
    for options, forms in (
        ([], ["The", "the", None]),
        (["words.fold_case=true"], ["the", "the", None]),
        (["words.punctuation=keep"], ["The", "the", "."]),
    ):
        assert [experiment(tmp_path, *options).words.form(unit) for unit in ("The", "the", ".")] == forms


class Coarseness(Metric):
    """The machine epsilon below which rows are equal."""

    over = "corpus"

    def update(self, group: Group) -> None: ...

    def update_block(self, block: Block) -> None:
        self.eps = block.eps

    def compute(self) -> dict[str, float]:
        return {"eps": self.eps}


@pytest.mark.parametrize(
    ("computed", "stored", "bits"),
    [("bfloat16", "float32", 23), ("float16", "float16", 10), ("bfloat16", "float16", 7)],
)
def test_rows_are_as_coarse_as_what_they_were_computed_in(
    computed: str, stored: str, bits: int, tmp_path: Path
) -> None:
    """Where they are kept in a half type; what is kept whole was made whole."""

    class Rounded(Hashed):
        name, dtype = f"rounded {computed} {stored}", computed

        def encode(self, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
            for one in super().encode(batch):
                yield EncodedSentence(one.units, one.layers.astype(stored))

    assert ran(tmp_path, encoder=Rounded(), metrics={"c": Coarseness}).by_name["c/eps"].tolist() == [2.0**-bits] * 2


def test_a_seed_of_0_and_1000_resamples_are_the_defaults() -> None:
    text = ["The river bank was steep.", "The bank lent money.", "Money flowed like a river."]
    metrics = {"s": SelfSimilarity}
    plain = ctxexp.measure("bert", text, metrics=metrics, min_contexts=2, progress=False)
    named = ctxexp.measure(
        "bert", text, metrics=metrics, min_contexts=2, bootstrap=1000, progress=False, options=["seed=0"]
    )
    assert plain.replicates[Key("s", "raw")].shape == (5, 1000)
    np.testing.assert_array_equal(plain.replicates[Key("s", "adjusted")], named.replicates[Key("s", "adjusted")])
    assert (plain.info.seed, plain.info.bootstrap) == (0, 1000)
