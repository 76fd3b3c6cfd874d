"""`python -m docs.numbers.card [--sts FOLDER] [--write]`: the tables of the minis' card."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ctxexp import CtxexpError, Results, measure
from ctxexp.results import Key
from docs.numbers import records
from docs.numbers.marked import write_marked
from docs.numbers.part import MINIS, one_run_each, polysemy
from docs.numbers.records import markdown

CARD = MINIS.with_name("CARD.md")
MARK = "measured"
MODELS = ("bert", "gpt2", "elmo")
WEIGHTS = ("mini", "untrained")
SELF = "self_similarity"
SHARE, RAW, CHANCE, ADJUSTED = (Key(SELF, name) for name in ("share_of_room", "raw", "baseline", "adjusted"))
FIRST = 100  # sentences that are measured alone too: what a test can repeat in a second
FUNCTION_WORDS = ("the", "of", "to", "and", "a")

Found = Mapping[str, Results]
"""One model's runs: `words`, `first`, `sts`, `whitened`."""


def measured(model: str, weights: str, sts: Path) -> Found:
    """Everything that the card says of one model."""
    chosen = {"weights": weights, "device": "cpu"}
    pairs = {**chosen, "dataset": "sts_b", "dataset.path": str(sts)}
    return {
        "sts": measure(model, metrics="sts", options=pairs),  # first: a wrong folder is said at once
        "whitened": measure(model, metrics="sts", transform="whitening", options=pairs),
        "words": measure(model, metrics=["self_similarity", "sense_separation"], options=chosen),
        "first": beginning(model, weights),
    }


def beginning(model: str, weights: str, *options: str) -> Results:
    """Of the first sentences alone."""
    corpus = replace(polysemy(), sentences=polysemy().sentences[:FIRST], senses=(), tags={})
    chosen = [f"weights={weights}", "device=cpu", *options]
    return measure(model, corpus, metrics="self_similarity", baseline="b100", options=chosen)


def section(found: Mapping[tuple[str, str], Found]) -> str:
    """The tables, in Markdown: curves by layer, last layers with their intervals, single words."""
    names = [f"{model}-mini" if weights == "mini" else "untrained" for model, weights in found]

    def row(title: str, cell: Callable[[Results, Key], str], part: str, key: Key) -> list[str]:
        return [title, *(cell(of[part], key) for of in found.values())]

    tables = [
        markdown([["layer 0, 1, ...", *names],
            row("self-similarity, share of the room above chance", by_layer, "words", SHARE),
            row("self-similarity, raw", by_layer, "words", RAW),
            row("chance", by_layer, "words", CHANCE),
            row("self-similarity, adjusted", by_layer, "words", ADJUSTED),
            row("same sense minus other sense, cosine", by_layer, "words", Key("sense_separation", "raw")),
            row("STS-B test, Spearman × 100, mean of words", by_layer, "sts", Key("sts", "all")),
            row("the same, whitened on these sentences", by_layer, "whitened", Key("sts", "all")),
            row(f"self-similarity, raw, first {FIRST} sentences alone", by_layer, "first", RAW),
        ]),
        markdown([["last layer, 95% interval", *names],
            row("self-similarity, share of the room above chance", at_last, "words", SHARE),
            row("self-similarity, raw", at_last, "words", RAW),
            row("self-similarity, adjusted", at_last, "words", ADJUSTED),
            row("same sense minus other sense, cosine", at_last, "words", Key("sense_separation", "raw")),
            row("STS-B test", at_last, "sts", Key("sts", "all")),
            row("the same, whitened", at_last, "whitened", Key("sts", "all")),
        ]),
        markdown([["trained less untrained, 95% interval", *(f"{model}-mini" for model in MODELS)],
            gains("self-similarity, share of the room above chance, last layer", found, "words", SHARE, last),
            gains("the same, the layer before", found, "words", SHARE, before_last),
            gains("same sense minus other sense, last layer", found, "words", Key("sense_separation", "raw"), last),
            gains("STS-B test, last layer", found, "sts", Key("sts", "all"), last),
            gains("the same, each at its best layer", found, "sts", Key("sts", "all"), best),
            gains("STS-B test, whitened, last layer", found, "whitened", Key("sts", "all"), last),
        ]),
        markdown([["words of lower self-similarity, mean over layers", *FUNCTION_WORDS, "lowest of all"], *(
            [f"{model}-mini" if weights == "mini" else f"{model}, untrained", *standing(of["words"])]
            for (model, weights), of in found.items()
        )]),
    ]  # fmt: skip
    return "\n\n".join(tables) + one_run_each(MODELS)


def by_layer(results: Results, key: Key) -> str:
    return " ".join(number(value) for value in results.by_key[key].value)


def at_last(results: Results, key: Key) -> str:
    value, low, high = (number(ends[-1]) for ends in results.by_key[key])
    return f"{value} [{low}, {high}]"


Layer = Callable[[np.ndarray], int]
"""Which layer of a curve is meant."""


def last(curve: np.ndarray) -> int:
    return len(curve) - 1


def before_last(curve: np.ndarray) -> int:
    return len(curve) - 2


def best(curve: np.ndarray) -> int:
    return int(curve.argmax())


def gains(title: str, found: Mapping[tuple[str, str], Found], part: str, key: Key, layer: Layer) -> list[str]:
    """Each model's value less its untrained twin's, on the same resamples of the text."""
    cells = []
    for model in MODELS:
        trained, untrained = (found[model, weights][part] for weights in WEIGHTS)
        at, against = ([layer(results.by_key[key].value)] for results in (trained, untrained))
        value, low, high = map(number, np.ravel(trained.difference(untrained, key, layers=at, others=against)))
        cells.append(f"{value} [{low}, {high}]")
    return [title, *cells]


def standing(results: Results) -> Iterator[str]:
    """The share of words of lower self-similarity than each function word, and the five lowest."""
    table = results.tables["self_similarity"]
    words, means = np.array(table["word"]), np.asarray(table["mean"], float)
    for word in FUNCTION_WORDS:
        yield f"{(means < means[words == word][0]).mean():.0%}" if word in words else "-"
    yield ", ".join(words[np.argsort(means, kind="stable")[:5]])


def number(value: float) -> str:
    """Three figures: ".670", "1", "9.72", "36.4"."""
    if abs(value) > 1.0005:
        return f"{value:.2f}" if abs(value) < 9.995 else f"{value:.1f}"
    text = f"{value:.3f}".replace("0.", ".", 1)
    return {"1.000": "1", "-.000": ".000"}.get(text, text)


def recorded() -> dict[str, str]:
    """The tables that records beside the weights make, by their marks."""
    folders = {model: MINIS / model for model in MODELS}
    known = {model: json.loads((folder / "run.json").read_text()) for model, folder in folders.items()}
    tables = {"losses": records.losses(known), "curves": records.curves(folders), "budget": records.budget(known)}
    return {mark: markdown(rows) for mark, rows in tables.items()}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.numbers.card", description=__doc__)
    parser.add_argument("--sts", type=Path, help="the folder that holds STSbenchmark; none: what needs no measuring")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {CARD.name}")
    asked = parser.parse_args(arguments)
    try:
        tables = recorded()
        if asked.sts:
            tables[MARK] = section({(m, w): measured(m, w, asked.sts.absolute()) for m in MODELS for w in WEIGHTS})
        for mark, table in tables.items():
            print(table, end="\n\n")
            if asked.write:
                write_marked(CARD, mark, table)
    except CtxexpError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
