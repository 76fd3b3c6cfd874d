"""How often nominal 95% intervals hold the truth: random sets of real sentences, and planted documents drawn anew.

`python -m benchmarks.interval_coverage planted OUT` and `python -m benchmarks.interval_coverage sts OUT --data FOLDER`
add a row a draw, curve and layer to OUT/planted.csv and OUT/sts.csv; `python -m docs.numbers interval_coverage=OUT`
makes the page's table of them. Draw -1 is the whole text, or a planted one twenty times as long.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import ctxexp
from benchmarks.bench import factory
from ctxexp import Corpus, EncodedSentence, Encoder, Metric, Pair, Results, Sentence
from ctxexp.command import Experiment, configured
from ctxexp.results import LAYER

Metrics = Mapping[str, Callable[[], Metric]]


CHEAP: Metrics = {
    name: factory("metric", name) for name in ("anisotropy", "intra_sentence_similarity", "self_similarity")
}
EXPLAINED = factory("metric", "max_explainable_variance")
VARIANCE: Metrics = {
    "max_explainable_variance": EXPLAINED,
    "max_explainable_variance_centred": partial(EXPLAINED, definition="centred"),
}
ALONE = factory("baseline", "one_per_sentence")(size=1000, redraws=0, exact=True)
STATISTICS = ("mean_cosine", "raw", "adjusted", "share_of_room", "all")
Draw = dict[str, np.ndarray]
"""By curve, its values and the ends of their intervals, (3, n_layers)."""


@dataclass
class Text:
    """A text and its vectors: of each sentence the words that have some, and these (n_layers, n_words, dim)."""

    corpus: Corpus
    words: Sequence[Sequence[str]]
    vectors: Sequence[np.ndarray]


def planted(
    rng: np.random.Generator, words: np.ndarray, *, n: int, size: tuple[int, int] = (2, 20), topics: int = 10
) -> Text:
    """n sentences of 4 to 12 words in documents of so many, each of a topic, whose words are ten times as frequent
    there; and each document has favourites of its own: counts vary up to six times as much as Poisson's. A vector is
    common direction + word + document + sentence + noise, more of it in frequent words; the second layer has more
    context than the first."""
    n_words, dim = words.shape
    sizes = rng.integers(size[0], size[1] + 1, n)
    document = np.repeat(np.arange(n), sizes)[:n]
    lengths = rng.integers(4, 13, n)
    share = 1 / (np.arange(n_words) + 3.7)
    parts = []
    for of_document in np.split(lengths, np.flatnonzero(np.diff(document)) + 1):
        weights = share * np.where(np.arange(n_words) % topics == rng.integers(topics), 10.0, 1.0) if topics else share
        weights = weights * rng.gamma(1.0, size=n_words) if size[1] > 1 else weights
        parts.append(rng.choice(n_words, of_document.sum(), p=weights / weights.sum()))
    codes, where = np.concatenate(parts), np.repeat(np.arange(n), lengths)
    axes = np.linspace(1.5, 0.3, dim)
    context = 0.4 * rng.normal(size=(n, dim)) * axes
    if size[1] > 1:
        context += 0.4 * rng.normal(size=(n, dim))[document] * axes
    noise = (1.2 - 0.2 * np.log10(codes + 1))[:, None] * rng.normal(size=(len(codes), dim))
    common = 3 * np.eye(dim)[0] + words[codes]
    layers = [(common + more * (context[where] + noise)).astype(np.float32) for more in (0.6, 0.9)]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    texts = [[f"w{c}" for c in part] for part in np.split(codes, offsets[1:-1])]
    sentences = tuple(Sentence.of([*words_of, f"s{i}"]) for i, words_of in enumerate(texts))  # no two are equal
    corpus = Corpus("planted", sentences, documents=tuple(document.tolist()) if size[1] > 1 else None)
    return Text(corpus, texts, np.split(np.stack(layers), offsets[1:-1], axis=1))


class Known(Encoder):
    """A text's vectors by sentence; those of a planted one end in a word without any, which tells them apart."""

    def __init__(self, text: Text) -> None:
        self.name, (self.n_layers, _, self.dim) = "known", text.vectors[0].shape
        self.known = dict(zip(text.corpus.sentences, zip(text.words, text.vectors, strict=True), strict=True))

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        return (EncodedSentence(*self.known[sentence]) for sentence in batch)


def of_text(text: Text, metrics: str | Metrics, *, bootstrap: int, **options: object) -> Draw:
    """Each curve of a text, and each difference of its neighbouring layers' shares."""
    with TemporaryDirectory() as cache:
        choices: dict[str, Any] = {"cache.folder": cache, "figures.explorer": 0, **options}
        known, alone = Known(text), None if metrics == "one_pass" else ALONE  # whose chance is exact as it is
        return curves(
            ctxexp.measure(
                known,
                text.corpus,
                metrics=metrics,
                baseline=alone,
                bootstrap=bootstrap,
                options=choices,
                progress=False,
            )
        )


def curves(results: Results) -> Draw:
    """Mean cosine, raw, adjusted and share of the room of all measures, and the steps of the latter."""
    found = {}
    for key, one in results.by_key.items():
        if key.place == LAYER and not key.baseline and key.statistic in STATISTICS:
            found[f"{key.measure}/{key.statistic}"] = np.stack([one.value, one.low, one.high])
            if key.statistic == "share_of_room" and results.n_layers > 1:
                upper = list(range(1, results.n_layers))
                step = results.difference(results, key, layers=upper, others=[i - 1 for i in upper])
                found[f"{key.measure}/step"] = np.stack(step)
    return found


def of_shards(text: Text, shards: int, *, bootstrap: int) -> Draw:
    """The curves that one pass gives."""
    found = of_text(text, "one_pass", bootstrap=bootstrap, **{"one_pass.shards": shards})
    return {curve: values for curve, values in found.items() if curve.partition("/")[0] in CHEAP}


def of_pairs(rng: np.random.Generator, *, n: int, degree: int, bootstrap: int) -> Draw:
    """STS on pairs of fresh sentences, each in `degree` of them: sentences of their own hardness, pairs of theirs."""
    x = (rng.normal(size=(n, 12)) + 0.5).astype(np.float32)
    ends = np.concatenate([rng.permutation(n).reshape(-1, 2) for _ in range(degree)])
    hard = rng.normal(size=n)
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosine = np.vecdot(u[ends[:, 0]], u[ends[:, 1]])
    gold = cosine + 0.15 * hard[ends].sum(axis=1) + 0.2 * rng.normal(size=len(ends))
    pairs = tuple(Pair(int(a), int(b), float(g)) for (a, b), g in zip(ends, gold, strict=True))
    words = [[f"s{i}"] for i in range(n)]
    text = Text(Corpus("pairs", tuple(map(Sentence.of, words)), pairs), words, x[None, :, None].swapaxes(0, 1))
    return of_text(text, "sts", bootstrap=bootstrap)


def coverage(draws: Sequence[Draw]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Share of intervals that hold the mean value, and the intervals' mean width over the true one, by curve and
    layer."""
    found = {}
    for key in draws[0]:
        value, low, high = np.stack([draw[key] for draw in draws], axis=1)
        truth, sd = value.mean(axis=0), value.std(axis=0, ddof=1)
        found[key] = ((low <= truth) & (truth <= high)).mean(axis=0), (high - low).mean(axis=0) / (2 * 1.959964 * sd)
    return found


def keep(out: Path, draws: Iterator[tuple[int, str, Draw]]) -> None:
    """Add a row a world, draw, curve and layer to the file as they come: a run that is cut off has kept its draws."""
    out.parent.mkdir(parents=True, exist_ok=True)
    for number, world, draw in draws:
        rows = [
            [world, number, curve, layer, *ends]
            for curve, values in draw.items()
            for layer, ends in enumerate(values.T.tolist())
        ]
        frame = pd.DataFrame(rows, columns=["world", "draw", "curve", "layer", "value", "low", "high"])
        frame.to_csv(out, mode="a", header=not out.exists(), index=False, float_format="%.7g")
        print(out.name, world, number, flush=True)


def planted_draws(asked: argparse.Namespace) -> Iterator[tuple[int, str, Draw]]:
    """Draws of planted documents, and of pairs."""
    words = 0.8 * np.random.default_rng(0).normal(size=(5000, 16))
    if not asked.first:
        longest = planted(np.random.default_rng(1), words, n=20 * asked.sentences)
        yield -1, "planted", of_text(longest, CHEAP, bootstrap=0)
    for i in range(asked.first, asked.first + asked.draws):
        text = planted(np.random.default_rng([2, i]), words, n=asked.sentences)
        yield i, "planted", of_text(text, {**CHEAP, **VARIANCE}, bootstrap=asked.bootstrap)
        for degree, n in ((1, 400), (5, 200)):
            rng = np.random.default_rng([2 + degree, i])
            yield i, f"pairs {degree}", of_pairs(rng, n=n, degree=degree, bootstrap=asked.bootstrap)


def sts_draws(asked: argparse.Namespace) -> Iterator[tuple[int, str, Draw]]:
    """Draws of sentences out of all of the STS tasks."""
    options = {"dataset": "sts", "dataset.split": "all", "dataset.path": asked.data, "cache.folder": asked.cache}
    options |= {"cache.limit_gb": None, "figures.explorer": 0}
    choices: dict[str, Any] = {"metrics": CHEAP, "baseline": ALONE, "bootstrap": 0, "options": options}
    experiment = Experiment(configured(asked.model, None, **choices))
    layers, occurrences, _ = experiment.study.space(experiment.vectors)
    sentences, by = experiment.study.corpus.sentences, occurrences.by_sentence
    rows = {int(key): by.rows[a:b] for key, (a, b) in zip(by.keys, pairwise(by.starts), strict=True)}
    every = [layers.layer(i) for i in layers.layer_numbers]
    distinct = np.sort(np.array(occurrences.distinct.keys, np.int64))
    if not asked.first:
        yield -1, "sts", curves(ctxexp.measure(asked.model, **choices, progress=False))
    for i in range(asked.first, asked.first + asked.draws):
        chosen = np.sort(np.random.default_rng([7, i]).choice(distinct, asked.sentences, replace=False)).tolist()
        part = Text(
            Corpus("part", tuple(sentences[j] for j in chosen)),
            [[word for word in sentences[j].words if experiment.words.form(word) is not None] for j in chosen],
            [np.stack([np.asarray(layer[rows[j]]) for layer in every]) for j in chosen],
        )
        metrics = {**CHEAP, "max_explainable_variance": EXPLAINED}
        yield i, "sts", of_text(part, metrics, bootstrap=asked.bootstrap)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("world", choices=("planted", "sts"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw, to go on")
    parser.add_argument("--bootstrap", type=int, default=500)
    parser.add_argument("--sentences", type=int, default=1500, help="of a draw")
    parser.add_argument("--data", help="sts: the folder of the pairs")
    parser.add_argument("--model", default="minilm", help="sts: a model")
    parser.add_argument("--cache", default="vectors", help="sts: the folder that its vectors are kept in")
    asked = parser.parse_args()
    keep(asked.out / f"{asked.world}.csv", {"planted": planted_draws, "sts": sts_draws}[asked.world](asked))


if __name__ == "__main__":
    logging.getLogger("ctxexp").setLevel(logging.ERROR)
    main()
