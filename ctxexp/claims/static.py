"""The claims on static vectors distilled from contextual ones (Ethayarajh 2019, Section 4.3.2, Table 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite

from ctxexp.claims.checks import Check, missing
from ctxexp.claims.evidence import PAPER, Evidence, Family
from ctxexp.claims.verdict import Claim
from ctxexp.claims.words import wilson

MEASURE = "static_vectors"
BENCHMARKS = ("simlex999", "men", "ws353", "rw", "google", "msr", "semeval2012", "bless", "ap")
FILES = ("glove", "fasttext")

Scores = Mapping[int, dict[str, float]]  # layer -> benchmark -> score


def _scores(family: Family, model: str) -> tuple[Evidence | None, Scores]:
    """The newest run with static vectors, and its scores by layer; for a file of vectors the only layer."""
    for evidence in family.members:
        if evidence.model == model:
            curves = {name: c for name in BENCHMARKS if (c := evidence.curve(f"{MEASURE}/{name}")) is not None}
            if curves:
                count = max(map(len, curves.values()))
                by_layer = {
                    i: {name: float(c[i]) for name, c in curves.items() if i < len(c) and isfinite(c[i])}
                    for i in range(count)
                }
                return evidence, {i: scores for i, scores in by_layer.items() if scores}
    return None, {}


def _most(evidence: Evidence, wins: Mapping[str, bool], against: str) -> Check:
    """More than half of the benchmarks won; the effect is their share, with Wilson's interval over benchmarks."""
    won = [name for name, win in wins.items() if win]
    low, high = wilson(len(won), len(wins))
    lost = ", ".join(name for name in wins if name not in won) or "none"
    said = f"{len(won)} of {len(wins)} benchmarks {against}; not: {lost}{_covered(evidence, wins)}"
    return Check(evidence.model, "", 2 * len(won) > len(wins), len(won) / len(wins), low, high, len(wins), said,
                 evidence.link)  # fmt: skip


def _covered(evidence: Evidence, scored: Mapping[str, bool]) -> str:
    """Which benchmarks have no score, and how much of those with one the vectors cover, where a run says so."""
    absent = [name for name in BENCHMARKS if name not in scored]
    curves = [evidence.curve(f"{MEASURE}/{name}_covered") for name in scored]
    shares = [float(c[min(1, len(c) - 1)]) for c in curves if c is not None]
    said = f"; no score: {', '.join(absent)}" if absent else ""
    return said + (f"; covered: {min(shares):.1%} to {max(shares):.1%}" if shares else "")


def _needs(model: str, who: str) -> Check:
    return missing(model, f"no {MEASURE} scores of {who} (metric=static_vectors; for files model=word_vectors)")


def _beats_files(family: Family) -> list[Check]:
    evidence, scores = _scores(family, "bert")
    files = {name: next(iter(_scores(family, name)[1].values()), None) for name in FILES}
    absent = [name for name, found in files.items() if not found]
    if evidence is None or 1 not in scores or absent:
        return [_needs("bert", " and ".join([*(["bert"] if 1 not in scores else []), *absent]))]
    rivals = [found for found in files.values() if found]
    common = [name for name in scores[1] if all(name in rival for rival in rivals)]
    if not common:
        return [_needs("bert", "one benchmark in common")]
    wins = {name: all(scores[1][name] > rival[name] for rival in rivals) for name in common}
    return [_most(evidence, wins, "above GloVe and fastText")]


def _bert_1_best(family: Family) -> list[Check]:
    evidence, scores = _scores(family, "bert")
    others = {name: _scores(family, name)[1] for name in (*FILES, "elmo", "gpt2")}
    absent = [name for name, found in others.items() if not found]
    if evidence is None or 1 not in scores or absent:
        return [_needs("bert", " and ".join([*(["bert"] if 1 not in scores else []), *absent]))]
    rivals = [rival for name, found in others.items() for i, rival in found.items() if i > 0 or name in FILES]
    rivals += [rival for i, rival in scores.items() if i > 1]
    wins = {name: all(value >= rival[name] for rival in rivals if name in rival) for name, value in scores[1].items()}
    return [_most(evidence, wins, "highest (ties count)")]


def _per_model(better: Callable[[Scores], dict[str, bool]], said: str) -> Callable[[Family], list[Check]]:
    def check(family: Family) -> list[Check]:
        found = []
        for model in PAPER:
            evidence, scores = _scores(family, model)
            if evidence is None or len([i for i in scores if i > 0]) < 2:
                found.append(_needs(model, f"two hidden layers of {model}"))
            else:
                found.append(_most(evidence, better(scores), said))
        return found

    return check


def _lower_better(scores: Scores) -> dict[str, bool]:
    first, last = scores[min(i for i in scores if i > 0)], scores[max(scores)]
    return {name: value > last[name] for name, value in first.items() if name in last}


def _gpt2_worst(family: Family) -> list[Check]:
    evidence, scores = _scores(family, "gpt2")
    others = {name: _scores(family, name)[1] for name in ("elmo", "bert")}
    absent = [name for name, found in others.items() if 1 not in found]
    if evidence is None or 1 not in scores or absent:
        return [_needs("gpt2", " and ".join([*(["gpt2"] if 1 not in scores else []), *absent]))]
    wins = {
        name: all(value < found[1][name] for found in others.values() if name in found[1])
        for name, value in scores[1].items()
    }
    return [_most(evidence, wins, "below ELMo and BERT, layer 1 of each")]


def _between(family: Family) -> list[Check]:
    """Share of the middle layers' scores between those of layer 2 and of the last but one; all must be, per benchmark
    on most."""
    found = []
    for model in ("bert", "gpt2"):
        evidence, scores = _scores(family, model)
        middle = [i for i in scores if 2 < i < max(scores, default=0) - 1]
        if evidence is None or not middle or 2 not in scores:
            found.append(_needs(model, f"the layers between 2 and the last but one of {model}"))
            continue
        low, high = scores[2], scores[max(scores) - 1]
        wins = {
            name: all(min(low[name], high[name]) <= scores[i][name] <= max(low[name], high[name]) for i in middle)
            for name in low
            if all(name in scores[i] for i in (*middle, max(scores) - 1))
        }
        found.append(_most(evidence, wins, "with every middle layer between"))
    return found


CLAIMS = [
    Claim(
        "static-beats-glove",
        "First principal components of BERT's lower layers beat GloVe and fastText as static vectors.",
        "layer 1 of BERT: above both on more than half of the benchmarks",
        _beats_files,
        ("bert",),
    ),
    Claim(
        "static-bert-1-best",
        "Those of BERT's first layer are the best.",
        "layer 1 of BERT: the highest of all, ties counting, on more than half of the benchmarks",
        _bert_1_best,
        ("bert",),
    ),
    Claim(
        "static-lower-better",
        "Those of lower layers beat those of upper layers.",
        "layer 1 of each model: above its last layer on more than half of the benchmarks",
        _per_model(_lower_better, "above the last layer"),
        PAPER,
    ),
    Claim(
        "static-gpt2-worst",
        "Those of GPT-2 are the worst.",
        "layer 1 of GPT-2: below layer 1 of ELMo and of BERT on more than half of the benchmarks",
        _gpt2_worst,
        ("gpt2",),
    ),
    Claim(
        "static-middle-between",
        "Those of layers 3 to 10 lie between those of layers 2 and 11.",
        "every layer between: its score between layer 2's and the last but one's, on more than half of the benchmarks",
        _between,
        ("bert", "gpt2"),
    ),
]
