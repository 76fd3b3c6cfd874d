"""How well floors hold on sentences of other domains, into the README of ctxexp-compare.

`STS=FOLDER python -m docs.numbers.floors MODEL ...`, a folder of the SemEval sets: the threshold of 5%, of the floor as
it is, of 100 sentences of the domain, and of one constant for all layers and domains of a model. With `carried` before
the models: the cosine of one model in another, of every two of them both ways, on four other domains.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from ctxexp_compare import Floor
from ctxexp_compare.floors.make import domain_sentences, floor_of_domains
from ctxexp_compare.floors.sample import collect, sampled
from ctxexp_compare.light.fit import fit_rows
from ctxexp_compare.light.floor import ALLOWED, CARRYING, OWN_PAIRS
from ctxexp_compare.light.pairs import WORDS, Rows

from ctxexp import Sentence
from ctxexp.datasets import tokenizer
from docs.numbers.marked import write_marked
from docs.numbers.part import ROOT, markdown

DOMAINS = {name: f"STS2014-test/STS.input.{name}.txt" for name in ("deft-forum", "headlines", "images", "tweet-news")}
FRESH = {
    "MSRpar": "STS2012-test/STS.input.MSRpar.txt", "MSRvid": "STS2012-test/STS.input.MSRvid.txt",
    "OnWN": "STS2012-test/STS.input.surprise.OnWN.txt",
    "answers-students": "STS2015-test/STS.input.answers-students.txt",
}  # fmt: skip  # for carried cosines, whose gate was set with the others in view
OWN, TESTED = 100, 300  # sentences of each domain: adapted to, and held out
DRAWS = 20  # of the own sentences
PAIRS = 20_000
LEVEL = 0.05
CARRIED = (0.05, 0.01, 0.002)  # of the embedded text's unrelated pairs, in the model that a cosine is carried from
Cell = tuple[float, np.ndarray, np.ndarray]  # the share as it is, those of the draws, the cosines


def domain_texts(folder: Path, files: Mapping[str, str]) -> dict[str, list[Sentence]]:
    """The distinct sentences of each domain, shuffled."""
    texts, read = {}, tokenizer("english", lower=False)
    for name, file in files.items():
        lines = (folder / file).read_text(encoding="utf-8").splitlines()
        distinct = list(dict.fromkeys(part.strip() for line in lines for part in line.split("\t")[:2] if part.strip()))
        order = np.random.default_rng(0).permutation(len(distinct))
        texts[name] = [read(distinct[i]) for i in order.tolist()]
    return texts


def part_of(rows: Rows, which: np.ndarray) -> Rows:
    """Some of the rows."""
    return Rows(rows.vectors[:, which], rows.sentence[which], rows.domain[which], rows.word[which])


def cells(model: str, texts: dict[str, list[Sentence]]) -> list[Cell]:
    """A cell a domain and layer: of the model's own pooling of sentences, of words where it has none."""
    encoder, registers, title = domain_sentences(model, None, [])
    made = floor_of_domains(encoder, registers, title, "embedded sentences")
    kind = made.kinds[min(1, len(made.kinds) - 1)]
    found = []
    for name, sentences in texts.items():
        chosen = sampled({name: sentences}, TESTED + 2 * OWN, 0)
        rows = collect(encoder, chosen, np.random.default_rng(0))[kind]
        held = rows.sentence <= TESTED
        tested, rest = part_of(rows, held), np.unique(rows.sentence[~held])
        pairs = tested.pairs(np.random.default_rng(1), PAIRS)
        own = []
        for i in range(DRAWS):
            mine = np.isin(rows.sentence, np.random.default_rng(i).choice(rest, OWN, replace=False))
            fit = fit_rows({kind: part_of(rows, mine)}, 1, most=OWN_PAIRS)
            own.append(Floor(title, "own", made.layers, (kind,), ("own",), *fit))
        for at, layer in enumerate(made.layers):
            cosines = tested.cosines(at, pairs)
            thresholds = [floor.threshold(LEVEL, layer=layer, pooling=kind) for floor in (made, *own)]
            shares = [float(np.mean(cosines >= at)) for at in thresholds]
            found.append((shares[0], np.array(shares[1:]), cosines))
    return found


class Model(NamedTuple):
    """A model's floor of the embedded text; by domain those of draws of own sentences and that of the other domains,
    and the cosines of the tested pairs."""

    title: str
    embedded: Floor
    own: dict[str, list[Floor]]
    others: dict[str, Floor]
    cosines: dict[str, np.ndarray]


def read_model(name: str, texts: dict[str, list[Sentence]]) -> Model:
    """The last layer of a model, by its own pooling."""
    encoder, registers, title = domain_sentences(name, None, [])
    embedded = floor_of_domains(encoder, registers, title, "embedded sentences", is_question=True)
    kind = next(kind for kind in embedded.kinds if kind != WORDS)
    chosen = sampled(texts, len(texts) * (TESTED + 2 * CARRYING), 0)
    rows = collect(encoder, chosen, np.random.default_rng(0))[kind]
    rows = Rows(rows.vectors[-1:], rows.sentence, rows.domain, rows.word)
    own, others, cosines = dict[str, list[Floor]](), dict[str, Floor](), dict[str, np.ndarray]()
    for at, domain in enumerate(texts):
        mine = np.flatnonzero(rows.domain == at)
        tested, rest = part_of(rows, mine[:TESTED]), mine[TESTED:]
        cosines[domain] = tested.cosines(0, tested.pairs(np.random.default_rng(1), PAIRS))
        drawn = [np.random.default_rng(i).choice(rest, CARRYING, replace=False) for i in range(DRAWS)]
        own[domain] = [Floor.of_vectors(rows.vectors[0, one]) for one in drawn]
        left = part_of(rows, np.flatnonzero(rows.domain != at))
        left = replace(left, domain=left.domain - (left.domain > at))
        names = tuple(one for one in texts if one != domain)
        fit = fit_rows({kind: left}, len(names), most=OWN_PAIRS)
        others[domain] = Floor(title, "other domains", embedded.layers, (kind,), names, *fit)
    return Model(title, embedded, own, others, cosines)


def carried_cells(one: Model, other: Model) -> np.ndarray:
    """(cells, 2) of cosines carried from a model to another, for each domain, cosine and draw of own sentences: whether
    the floors of the other domains let through in the domain what the first model does there, and whether those of own
    sentences let through what they say; NaN where it isn't carried."""
    found = []
    for domain, cosines in one.cosines.items():
        for level in CARRIED:
            cosine = one.embedded.threshold(level)
            passed = (cosines >= cosine).mean()
            carried = one.others[domain].carry(other.others[domain], cosine)
            hit = abs((other.cosines[domain] >= carried.cosine).mean() - passed) <= ALLOWED
            beyond = np.nan if carried.reason else hit
            for a, b in zip(one.own[domain], other.own[domain], strict=True):
                carried = a.carry(b, cosine)
                said = abs((other.cosines[domain] >= carried.cosine).mean() - carried.share) <= ALLOWED
                found.append([beyond, np.nan if carried.reason else said])
    return np.array(found, np.float64)


def carried_table(names: list[str], texts: dict[str, list[Sentence]]) -> str:
    """A row a pair of models, both ways, and one of all."""
    models = [read_model(name, texts) for name in names]
    cells = {
        f"{a.title}, {b.title}": np.concatenate([carried_cells(a, b), carried_cells(b, a)])
        for a, b in combinations(models, 2)
    }
    cells["all"] = np.concatenate([*cells.values()])
    rows = []
    for pair, found in cells.items():
        known = np.isfinite(found)
        shares = [
            f"{k.mean():.0%}: {f[k].mean():.0%}" if k.any() else "0%" for f, k in zip(found.T, known.T, strict=True)
        ]
        rows.append([pair, str(len(found)), *shares])
        print(*rows[-1], flush=True)
    return markdown(["models", "cells", "the other domains", f"{CARRYING} own sentences"], rows)


def threshold_table(names: list[str], texts: dict[str, list[Sentence]]) -> str:
    """A row a model: in how many cells the threshold of LEVEL lets through about that."""
    rows = []
    for model in names:
        own = cells(model, texts)
        constant = float(np.quantile(np.concatenate([cosines for _, _, cosines in own]), 1 - LEVEL))
        reached = np.array([np.mean(cosines >= constant) for _, _, cosines in own])
        shares = [reached, np.array([one for one, _, _ in own]), np.array([drawn for _, drawn, _ in own])]
        ends = [np.quantile(part, (0.025, 0.975)) for part in shares]
        within = [np.mean((part >= LEVEL / 2) & (part <= LEVEL * 2)) for part in shares]
        told = [f"{low:.1%} to {high:.1%}; {w:.0%}" for (low, high), w in zip(ends, within, strict=True)]
        rows.append([model, str(len(own)), f"{constant:.4f}: {told[0]}", *told[1:]])
        print(*rows[-1], flush=True)
    return markdown(["model", "cells", "one cosine", "the embedded text's floor", f"{OWN} own sentences"], rows)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    names = sys.argv[1:]
    is_carried = names[:1] == ["carried"]
    texts = domain_texts(Path(os.environ["STS"]), FRESH if is_carried else DOMAINS)
    text = carried_table(names[1:], texts) if is_carried else threshold_table(names, texts)
    write_marked(ROOT / "plugins" / "ctxexp-compare" / "README.md", "carried" if is_carried else "floors", text)
