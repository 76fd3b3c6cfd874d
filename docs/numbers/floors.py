"""How well a floor foretells texts of other domains, and what sentences of their own do to it, into the README of
ctxexp-compare: `STS=FOLDER python -m docs.numbers.floors`, a folder of the SemEval sets.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import numpy as np
from ctxexp_compare import Floor
from ctxexp_compare.floors.fit import calibration_error
from ctxexp_compare.floors.make import domain_sentences, floor_of_domains
from ctxexp_compare.floors.sample import Rows, collect, sampled

from ctxexp import Sentence
from ctxexp.datasets import tokenizer
from docs.numbers.marked import write_marked
from docs.numbers.part import ROOT, markdown

MODEL, POOLING = "minilm", "mean"
DOMAINS = ("deft-forum", "headlines", "images", "tweet-news")  # of STS 2014
OWN = (50, 100, 200, 400)
TESTED = 500  # sentences that are held out of each domain
SIZES = 5  # draws of the own sentences
PAIRS = 40_000


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


def errors(floor: Floor, rows: Rows) -> dict[str, float]:
    """The largest error of a probability on the held-out sentences: of the floor as it is, and adapted to some others
    of the domain, the mean over draws."""
    n = len(rows.length)
    held = part_of(rows, np.arange(n) < min(TESTED, n // 2))
    rest = np.arange(min(TESTED, n // 2), n)
    pairs = held.pairs(np.random.default_rng(1), PAIRS)
    cosines, sizes = held.cosines(-1, pairs), np.clip(held.lengths(pairs), *floor.lengths)
    every = np.ones(len(cosines), bool)
    kind = floor.kinds.index(POOLING)
    found = {"as it is": calibration_error(floor.coefficients[kind, -1], cosines, sizes, every)}
    for own in OWN:
        if own > len(rest):
            continue
        parts = []
        for seed in range(SIZES):
            chosen = np.random.default_rng(seed).choice(rest, own, replace=False)
            adapted = floor.adapt(rows.vectors[-1, chosen], rows.length[chosen].tolist(), pooling=POOLING)
            at = np.clip(held.lengths(pairs), *adapted.lengths)
            parts.append(calibration_error(adapted.coefficients[0, -1], cosines, at, every))
        found[str(own)] = float(np.mean(parts))
    return found


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    encoder, registers, title = domain_sentences(MODEL, None, [])
    made = floor_of_domains(encoder, registers, title, "embedded sentences")
    columns, rows = ["as it is", *map(str, OWN)], []
    for name, sentences in domain_texts(Path(os.environ["STS"])).items():
        chosen = sampled({name: sentences}, TESTED + max(OWN), 0)[name]
        found = errors(made, collect(encoder, {name: chosen}, [POOLING], np.random.default_rng(0))[POOLING])
        rows.append([name, *(f"{found[key]:.3f}" if key in found else "-" for key in columns)])
        print(*rows[-1], flush=True)
    write_marked(
        ROOT / "plugins" / "ctxexp-compare" / "README.md", "floors", markdown(["held-out domain", *columns], rows)
    )
