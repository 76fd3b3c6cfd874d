"""How well the threshold of 5% holds on sentences of other domains, into the README of ctxexp-compare: of the floor as
it is, adapted to 100 sentences of the domain, and of one constant for all layers and domains of a model.

`STS=FOLDER python -m docs.numbers.floors MODEL ...`, a folder of the SemEval sets.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import numpy as np
from ctxexp_compare import Floor
from ctxexp_compare.floors.fit import fit_rows
from ctxexp_compare.floors.floor import ADAPT_PAIRS
from ctxexp_compare.floors.make import domain_sentences, floor_of_domains
from ctxexp_compare.floors.sample import WORDS, Pairs, Rows, collect, sampled

from ctxexp import Sentence
from ctxexp.datasets import tokenizer
from docs.numbers.marked import write_marked
from docs.numbers.part import ROOT, markdown

DOMAINS = ("deft-forum", "headlines", "images", "tweet-news")  # of STS 2014
OWN, TESTED = 100, 300  # sentences of each domain: adapted to, and held out
DRAWS = 20  # of the own sentences
PAIRS = 20_000
LEVEL, ALLOWED = 0.05, 0.05
Cell = tuple[float, np.ndarray, np.ndarray]  # the share as it is, those of the draws, the cosines


def domain_texts(folder: Path) -> dict[str, list[Sentence]]:
    """The distinct sentences of each domain, shuffled."""
    texts, read = {}, tokenizer("english", lower=False)
    for name in DOMAINS:
        lines = (folder / "STS2014-test" / f"STS.input.{name}.txt").read_text(encoding="utf-8").splitlines()
        distinct = list(dict.fromkeys(part.strip() for line in lines for part in line.split("\t")[:2] if part.strip()))
        order = np.random.default_rng(0).permutation(len(distinct))
        texts[name] = [read(distinct[i]) for i in order.tolist()]
    return texts


def part_of(rows: Rows, which: np.ndarray) -> Rows:
    """Some of the rows."""
    return Rows(rows.vectors[:, which], rows.sentence[which], rows.domain[which], rows.length[which], rows.word[which])


def share(floor: Floor, kind: str, layer: int, rows: Rows, pairs: Pairs, cosines: np.ndarray) -> float:
    """The share of pairs that reach the threshold of LEVEL, each at its own lengths."""
    lengths, which = np.unique(rows.lengths(pairs), axis=0, return_inverse=True)
    at = [floor.threshold(LEVEL, length=tuple(pair), layer=layer, pooling=kind) for pair in lengths.tolist()]
    return float((cosines >= np.array(at)[which.ravel()]).mean())


def cells(model: str, texts: dict[str, list[Sentence]]) -> list[Cell]:
    """A cell a domain and layer: of the model's own pooling of sentences, of words where it has none."""
    encoder, registers, title = domain_sentences(model, None, [])
    made = floor_of_domains(encoder, registers, title, "embedded sentences")
    kind = made.kinds[min(1, len(made.kinds) - 1)]
    found = []
    for name, sentences in texts.items():
        chosen = sampled({name: sentences}, TESTED + 2 * OWN, 0)
        rows = collect(encoder, chosen, [kind] if kind != WORDS else [], np.random.default_rng(0))[kind]
        held = rows.sentence <= TESTED
        tested, rest = part_of(rows, held), np.unique(rows.sentence[~held])
        pairs = tested.pairs(np.random.default_rng(1), PAIRS)
        own = []
        for i in range(DRAWS):
            mine = np.isin(rows.sentence, np.random.default_rng(i).choice(rest, OWN, replace=False))
            fit = fit_rows({kind: part_of(rows, mine)}, 1, most=ADAPT_PAIRS)
            own.append(Floor(title, "own", made.layers, (kind,), ("own",), *fit))
        for at, layer in enumerate(made.layers):
            cosines = tested.cosines(at, pairs)
            shares = [share(floor, kind, layer, tested, pairs, cosines) for floor in (made, *own)]
            found.append((shares[0], np.array(shares[1:]), cosines))
    return found


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    texts = domain_texts(Path(os.environ["STS"]))
    every = {model: cells(model, texts) for model in sys.argv[1:]}
    rows = []
    for model, own in every.items():
        constant = float(np.quantile(np.concatenate([cosines for _, _, cosines in own]), 1 - LEVEL))
        reached = np.array([np.mean(cosines >= constant) for _, _, cosines in own])
        shares = [reached, np.array([one for one, _, _ in own]), np.array([drawn for _, drawn, _ in own])]
        ends = [np.quantile(part, (0.025, 0.975)) for part in shares]
        within = [np.mean((part >= LEVEL / 2) & (part <= LEVEL * 2)) for part in shares]
        told = [f"{low:.1%} to {high:.1%}; {w:.0%}" for (low, high), w in zip(ends, within, strict=True)]
        rows.append([model, str(len(own)), f"{constant:.4f}: {told[0]}", *told[1:]])
        print(*rows[-1], f"{np.mean(abs(shares[-1] - LEVEL) <= ALLOWED):.1%} within {ALLOWED}", flush=True)
    columns = ["model", "cells", "one cosine", "the embedded text's floor", f"{OWN} own sentences"]
    write_marked(ROOT / "plugins" / "ctxexp-compare" / "README.md", "floors", markdown(columns, rows))
