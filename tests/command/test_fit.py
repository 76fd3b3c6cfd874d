"""The text that a transform is fitted on, for word and sentence measures: a run's numbers equal a fit by hand."""

from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ctxexp import Corpus, Group, Metric, Pair, Register, Results, Sentence, hookimpl
from ctxexp.command import Experiment
from ctxexp.errors import ConfigError, DataError
from ctxexp.report import shared_facts
from ctxexp.results import RunInfo
from ctxexp.vectors import cache as caches
from tests.composed import composed, registry_of
from tests.measuring_helpers import measure
from tests.sample_results import run_notes
from tests.shipped import OnePerSentence, SelfSimilarity, Standardize

WORDS = ["the", "bank", "of", "a", "river", ",", "money", "in", "water", "stone", "tree", "house", "long", "old"]


class Dot(Metric):
    """The mean product of a pair's vectors."""

    over = "pair"

    def __init__(self) -> None:
        self.dots = []

    def update(self, group: Group) -> None:
        self.dots.append((group.x[:, 0].astype(float) * group.x[:, 1]).sum(1))

    def compute(self) -> dict[str, float]:
        return {"raw": float(np.concatenate(self.dots).mean())}


def gold(*, split: str = "test") -> Corpus:
    """Pairs of random sentences, 20 a split."""
    numbers = {"test": [1], "train": [2], "all": [1, 2]}[split]
    sentences = []
    for number in numbers:
        rng = np.random.default_rng(number)
        sentences += [Sentence.of(rng.choice(WORDS, rng.integers(3, 9))) for _ in range(40)]
    pairs = tuple(Pair(i, i + 1, float(i), "x") for i in range(0, len(sentences), 2))
    return Corpus("gold", tuple(sentences), pairs)


class Plugin:
    @hookimpl
    def register_datasets(self, register: Register) -> None:
        register("gold", gold)
        register("plain", lambda: Corpus.of("plain", [["a", "b"]]))

    @hookimpl
    def register_metrics(self, register: Register) -> None:
        register("dot", Dot)


@pytest.fixture(scope="module")
def registry() -> Any:
    return registry_of([("toys", Plugin())])


@pytest.fixture(scope="module")
def config(registry: Any) -> Any:
    """The config of a run on the toys, with vectors in a folder."""

    def made(
        folder: Path, *overrides: str, metrics: tuple[str, ...] = ("dot",), dataset: str = "gold", **arguments: str
    ) -> Any:
        words = ["baseline=b100", "bootstrap=0", "min_contexts=2", "device=cpu", f"cache.folder={folder}"]
        node = {"name": dataset, **({"split": "test"} if dataset == "gold" else {}), **arguments}
        nodes = {name: {"name": name} for name in metrics}
        return composed(*words, *overrides, registry=registry, dataset=node, metric=nodes)

    return made


def ran(made: Any, folder: Path) -> Results:
    return Experiment(made).run(folder)


@pytest.mark.parametrize("fit_on", ["target", "train", "all", "nli"])
def test_both_kinds_of_measures_see_the_fitted_transform(fit_on: str, config: Any, tmp_path: Path) -> None:
    texts = {"target": gold(), "train": gold(split="train"), "all": gold(split="all")}
    texts["nli"] = Corpus("lines", gold(split="all").sentences[20:60])
    chosen = fit_on
    if fit_on == "nli":
        (tmp_path / "lines.txt").write_text("\n".join(s.text for s in texts["nli"].sentences))
        chosen = f"nli:{tmp_path / 'lines.txt'}"
    made = config(
        tmp_path,
        "transform=standardize",
        f"fit_on='{chosen}'",
        "sentence.mixes=[[1,3]]",
        metrics=("dot", "self_similarity"),
    )
    results = ran(made, tmp_path)

    encoder = Experiment(made).encoder
    rows, means = {}, {}  # by layer; a sentence's means by layer and mix
    for name, corpus in (("target", gold()), ("fit", texts[fit_on])):
        encoded = [one.layers[:, [unit != "," for unit in one.units]] for one in encoder.encode(corpus.sentences)]
        distinct = dict(zip(corpus.sentences, encoded, strict=True))
        rows[name] = np.concatenate([*distinct.values()], axis=1)
        vectors = np.stack([x.mean(axis=1) for x in encoded], axis=1)
        means[name] = [*vectors, (vectors[1] + vectors[3]) / 2]
    plain = Experiment(config(tmp_path, metrics=("self_similarity",)))
    store, index, _ = plain.study.space(plain.vectors)
    layers = [Standardize().fit(rows["fit"][i]).apply(store.layer(i)) for i in range(encoder.n_layers)]
    n = len(layers)
    space = SimpleNamespace(n_layers=n, layer_numbers=range(n), dim=store.dim, layer=layers.__getitem__)
    expected = measure(
        space, index, {"self_similarity": SelfSimilarity}, OnePerSentence(size=100), bootstrap=0
    ).by_name["self_similarity/raw"]
    np.testing.assert_allclose(results.by_name["self_similarity/raw"], expected, rtol=1e-6)

    dots = []
    for target, fit in zip(means["target"], means["fit"], strict=True):
        x = Standardize().fit(fit).apply(target).astype(float)
        dots.append((x[::2] * x[1::2]).sum(1).mean())
    np.testing.assert_allclose(results.by_name["dot/raw"], dots[:-1], rtol=1e-4, atol=1e-4)
    assert results.by_name["dot.layers_1_3/raw"] == pytest.approx(dots[-1], rel=1e-4, abs=1e-4)

    inside = {"target": 1.0, "train": 0.0, "all": 1.0, "nli": 0.5}[fit_on]
    n = {"target": 40, "train": 40, "all": 80, "nli": 40}[fit_on]
    named = "lines.txt" if fit_on == "nli" else fit_on
    said = {"text": named, "transductive": inside == 1, "overlap": inside, "sentences": n}
    assert vars(results.info.transform.fit) == said
    assert Experiment(made).title == "bert + standardize" + (f" fitted on {named}" if fit_on != "target" else "")
    facts = shared_facts([("a", results)])
    assert (f"fitted on {named}" in facts) == (fit_on != "target")
    assert "  mix layers_1_3: layers 1, 3" in run_notes(results).splitlines()


def test_a_run_encodes_what_its_metrics_need(config: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Pair metrics alone ask for no words, word metrics alone for no sentences."""
    caplog.set_level(logging.WARNING)
    made = config(tmp_path / "pairs", "sentence.pooling=mean", "min_contexts=1000")
    results = ran(made, tmp_path)
    (entry,) = caches.entries(tmp_path / "pairs")
    assert "sentences=mean,mean_text,cls,last" in entry.encoder
    assert results.info.encoded == 40
    assert (results.info.pooling.name, results.info.pooling.details["long"]) == ("mean", "truncate")
    assert Experiment(made).title == "bert"  # a sweep over poolings tells its runs apart
    encoder = Experiment(made).encoder
    view = encoder.sentence_encoder()
    x = np.stack([one.layers[2, one.units.index("mean")] for one in view.encode(gold().sentences)]).astype(float)
    assert results.by_name["dot/raw"][2] == pytest.approx((x[::2] * x[1::2]).sum(1).mean(), rel=1e-6)

    made = config(tmp_path / "few", "min_contexts=1000")
    ran(made, tmp_path)
    assert not caplog.records

    made = config(tmp_path / "words", "sentence.pooling=nonsense", "sentence.mixes=[[99]]", metrics=("word_norm",))
    results = ran(made, tmp_path)
    (entry,) = caches.entries(tmp_path / "words")
    assert "sentences=" not in entry.encoder
    assert results.info.pooling == RunInfo().pooling


@pytest.mark.parametrize(
    ("overrides", "dataset", "message"),
    [
        ((), "plain", "dot: compares gold sentence pairs, but data set 'plain' has none"),
        (("sentence.mixes=[[9]]",), "gold", r"no layer 9 \(in \[9\]\): the model has layers 0 to 4"),
        (
            ("model.weights=untrained", "sentence.pooling=pooler", "sentence.mixes=[last2]"),
            "gold",
            r"pooler gives vectors in the last layer \(4\) only, so there is no mix last2: layers 3, 4",
        ),
        (
            ("control=no_first", "sentence.pooling=mean"),
            "gold",
            r"control=no_first leaves word rows out, but sentence\.pooling=mean pools inside the encoder",
        ),
    ],
)
def test_misuse_is_refused_before_any_encoding(
    config: Any, tmp_path: Path, overrides: tuple[str, ...], dataset: str, message: str
) -> None:
    made = config(tmp_path, *overrides, dataset=dataset)
    with pytest.raises((ConfigError, DataError), match=message):
        ran(made, tmp_path)
    assert not caches.entries(tmp_path)


def test_the_fitted_text_is_loaded_only_where_it_is_another(config: Any, tmp_path: Path) -> None:
    def text(*overrides: str, **dataset: str) -> Corpus | None:
        source = Experiment(config(tmp_path, *overrides, **dataset)).load_fit_text
        return source() if source else None

    assert text("transform=center") is None
    assert text("fit_on=train") is None  # nothing is fitted
    assert text("transform=center", "fit_on=train", split="train") is None  # it is the measured text
    found = text("transform=center", "fit_on=train")
    assert found.sentences == gold(split="train").sentences


def test_sentences_come_from_lines_and_from_pairs(config: Any, tmp_path: Path) -> None:
    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return str(path)

    def texts(path: str) -> list[str]:
        load = Experiment(config(tmp_path, "transform=center", f"fit_on='nli:{path}'")).load_fit_text
        return [s.text for s in load().sentences]

    snli = [
        {"gold_label": "-", "sentence1": "A man.", "sentence2": 'He said "hi'},
        {"sentence1": "A man.", "sentence2": ""},
    ]
    lines = "\n".join(map(json.dumps, snli))
    assert texts(write("a.jsonl", lines + "\n")) == ["A man.", 'He said "hi']  # each once, empty ones not at all
    assert texts(write("a.jsonl.gz", lines)) == ["A man.", 'He said "hi']
    assert texts(write("b.jsonl", json.dumps({"premise": "P", "hypothesis": "H"}))) == ["P", "H"]
    table = 'gold_label\tsentence1\tx\tsentence2\nneutral\tA "man.\t-\tB.\r\n\n-\tC\t-\tD\t-\n'
    assert texts(write("c.tsv", table)) == texts(write("c.txt", table)) == ['A "man.', "B.", "C", "D"]
    assert texts(write("d.txt", "one line\n\n two\tlines \none line\n")) == ["one line", "two\tlines"]
    (tmp_path / "none").mkdir()
    for path, message in (
        (str(tmp_path / "gone"), r"no such file or folder: .*gone \(fit_on=nli:"),
        (str(tmp_path / "none"), r"no \.jsonl, \.tsv, \.txt file in .*none"),
        (write("bare.tsv", "a\tb\n"), r"bare\.tsv: no column 'sentence1' or 'premise'; it has 'a', 'b'"),
        (write("empty.txt", "\n"), r"empty\.txt has no sentence"),
        (write("a.conllu", "1\tA\n"), r"a file named \*\.conllu isn't read"),
    ):
        with pytest.raises(DataError, match=message):
            texts(path)
