"""The claims on static vectors distilled from contextual ones (Ethayarajh 2019, Section 4.3, Table 1).

A benchmark is won where the score's difference has its interval above 0; a tie is no win. Runs bring no intervals of
scores: they follow from how many items are covered, and differences add standard errors in squares as if two models
were tried on other items, which errs on the wide side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ctxexp.results import Key
from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.evidence import Evidence, Family
from ctxexp_papers.claims.spans import Z, widening
from ctxexp_papers.papers.ethayarajh_2019.claim import WINS, claim
from ctxexp_papers.papers.ethayarajh_2019.protocol import MODELS

MEASURE = "static_vectors"
ITEMS = {  # pairs, questions or words of a benchmark, all of them covered
    "simlex999": 999, "men": 3000, "ws353": 353, "rw": 2034, "google": 19_544, "msr": 8000, "semeval2012": 3218,
    "bless": 200, "ap": 402,
}  # fmt: skip
BENCHMARKS = tuple(ITEMS)
SHARES = ("google", "msr", "bless", "ap")  # accuracy or purity; the others are correlations
MARGIN = 0.05  # a score no further outside two others is between them
FILES = ("glove", "fasttext")
HALF = len(ITEMS) // 2 + 1  # benchmarks that decide: of so many, any one may be the one counted wrongly


@dataclass(frozen=True)
class Score:
    """A benchmark's value and its standard error (0: a released point)."""

    value: float
    error: float

    def beats(self, other: Score, by: float = 0.0, *, ways: int = 1) -> bool | None:
        """Whether it is more than `by` higher than another: True or False by the difference's interval, None if that
        spans it. Any of HALF benchmarks may be the one counted wrongly, and be lost in so many `ways`: intervals are as
        wide as that needs."""
        effect, error = self.value - other.value, Z * math.hypot(self.error, other.error)
        if effect - widening(HALF) * error > by:
            return True
        return False if effect + widening(HALF * ways) * error <= by else None


Scores = Mapping[int, dict[str, Score]]  # layer -> benchmark -> score


def _scores(family: Family, model: str) -> tuple[Evidence | None, Scores]:
    """The newest run with static vectors, and its scores by layer; for a file of vectors the only layer."""
    for evidence in family.members:
        if evidence.model != model:
            continue
        by_layer: dict[int, dict[str, Score]] = {}
        for name in BENCHMARKS:
            curve, covered = evidence.curve(Key(MEASURE, name)), evidence.curve(Key(MEASURE, f"{name}_covered"))
            for i, value in enumerate([] if curve is None else curve.tolist()):
                if math.isfinite(value):
                    share = 1.0 if covered is None else float(covered[i])
                    error = 0.0 if evidence.points else _error(name, value, share * ITEMS[name])
                    by_layer.setdefault(i, {})[name] = Score(value, error)
        if by_layer:
            return evidence, by_layer
    return None, {}


def _error(name: str, value: float, n: float) -> float:
    """The standard error of a correlation, or a share, over n items."""
    if n < 2:
        return math.inf
    return math.sqrt(max(value * (1 - value), 1 / n) / n) if name in SHARES else (1 - value**2) / math.sqrt(n - 1)


def _most(evidence: Evidence, wins: Mapping[str, bool | None], against: str, where: str = "") -> Check:
    """Whether more than half of the benchmarks are won; the effect is the share that is."""
    won = [name for name, win in wins.items() if win]
    close = [name for name, win in wins.items() if win is None]
    lost = [name for name, win in wins.items() if win is False]
    needed = len(wins) // 2 + 1
    passed = True if len(won) >= needed else False if len(won) + len(close) < needed else None
    brief = f"{len(won)} of {len(wins)}"
    text = f"{where + ': ' if where else ''}{brief} benchmarks {against}; not: {', '.join(lost) or 'none'}"
    text += (f"; too close: {', '.join(close)}" if close else "") + _covered(evidence, wins)
    brief = f"{where} {brief}".strip()
    return Check(evidence.model, "", passed, len(won) / len(wins), n=len(wins), text=text, link=evidence.link,
                 brief=brief)  # fmt: skip


def _covered(evidence: Evidence, scored: Mapping[str, bool | None]) -> str:
    """Which benchmarks have no score, and how much of those with one the vectors cover, where a run says so."""
    absent = [name for name in BENCHMARKS if name not in scored]
    curves = [evidence.curve(Key(MEASURE, f"{name}_covered")) for name in scored]
    shares = [float(c[min(1, len(c) - 1)]) for c in curves if c is not None]
    text = f"; no score: {', '.join(absent)}" if absent else ""
    return text + (f"; covered: {min(shares):.1%} to {max(shares):.1%}" if shares else "")


def _needs(model: str, who: str) -> Check:
    return Check(model, text=f"no {MEASURE} scores of {who} (metric=static_vectors; for files model=word_vectors)")


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    """Whether all are true: False as soon as one is not, None where one is open."""
    outcomes = list(verdicts)
    return False if False in outcomes else None if None in outcomes else True


def _above_files(family: Family, *, layers: Mapping[str, Sequence[int]]) -> list[Check]:
    """Each of these layers (negative: from the last) against both files of static vectors."""
    checks = []
    files = {name: next(iter(_scores(family, name)[1].values()), {}) for name in FILES}
    absent = [name for name, scores in files.items() if not scores]
    for model, which in layers.items():
        evidence, scores = _scores(family, model)
        last = max(scores, default=0)
        for layer in (i if i > 0 else last + 1 + i for i in which):
            if evidence is None or layer not in scores or absent:
                checks.append(_needs(model, " and ".join([*([model] if layer not in scores else []), *absent])))
                continue
            own = scores[layer]
            common = [name for name in own if all(name in rival for rival in files.values())]
            if not common:
                checks.append(_needs(model, "one benchmark in common"))
                continue
            ways = len(files) * sum(map(len, layers.values()))
            wins = {name: _all(own[name].beats(rival[name], ways=ways) for rival in files.values()) for name in common}
            checks.append(_most(evidence, wins, "above GloVe and fastText", f"layer {layer}"))
    return checks


def _bert_1_best(family: Family) -> list[Check]:
    evidence, scores = _scores(family, "bert")
    others = {name: _scores(family, name)[1] for name in (*FILES, "elmo", "gpt2")}
    absent = [name for name, by_layer in others.items() if not by_layer]
    if evidence is None or 1 not in scores or absent:
        return [_needs("bert", " and ".join([*(["bert"] if 1 not in scores else []), *absent]))]
    rivals = [rival for name, by_layer in others.items() for i, rival in by_layer.items() if i > 0 or name in FILES]
    rivals += [rival for i, rival in scores.items() if i > 1]
    ways = len(rivals)
    wins = {
        name: _all(own.beats(rival[name], ways=ways) for rival in rivals if name in rival)
        for name, own in scores[1].items()
    }
    return [_most(evidence, wins, "above every other")]


def _per_model(better: Callable[[Scores], dict[str, bool | None]], against: str) -> Callable[[Family], list[Check]]:
    def check(family: Family) -> list[Check]:
        checks = []
        for model in MODELS:
            evidence, scores = _scores(family, model)
            if evidence is None or len([i for i in scores if i > 0]) < 2:
                checks.append(_needs(model, f"two hidden layers of {model}"))
            else:
                checks.append(_most(evidence, better(scores), against))
        return checks

    return check


def _lower_better(scores: Scores) -> dict[str, bool | None]:
    first, last = scores[min(i for i in scores if i > 0)], scores[max(scores)]
    return {name: score.beats(last[name], ways=len(MODELS)) for name, score in first.items() if name in last}


def _gpt2_worst(family: Family) -> list[Check]:
    evidence, scores = _scores(family, "gpt2")
    others = {name: _scores(family, name)[1] for name in ("elmo", "bert")}
    absent = [name for name, by_layer in others.items() if 1 not in by_layer]
    if evidence is None or 1 not in scores or absent:
        return [_needs("gpt2", " and ".join([*(["gpt2"] if 1 not in scores else []), *absent]))]
    wins = {
        name: _all(other[1][name].beats(own, ways=len(others)) for other in others.values() if name in other[1])
        for name, own in scores[1].items()
    }
    return [_most(evidence, wins, "below ELMo and BERT, layer 1 of each")]


def _between(family: Family) -> list[Check]:
    """Whether every middle layer's score lies between those of layer 2 and of the last but one, on most benchmarks."""
    checks = []
    for model in ("bert", "gpt2"):
        evidence, scores = _scores(family, model)
        middle = [i for i in scores if 2 < i < max(scores, default=0) - 1]
        if evidence is None or not middle or 2 not in scores:
            checks.append(_needs(model, f"the layers between 2 and the last but one of {model}"))
            continue
        ends = scores[2], scores[max(scores) - 1]
        wins: dict[str, bool | None] = {}
        for name in ends[0]:
            if all(name in scores[i] for i in (*middle, max(scores) - 1)):
                low, high = sorted((end[name] for end in ends), key=lambda score: score.value)
                ways = 2 * 2 * len(middle)  # two models, two ends
                wins[name] = _all(_inside(scores[i][name], low, high, ways) for i in middle)
        checks.append(_most(evidence, wins, "with every middle layer between"))
    return checks


def _inside(score: Score, low: Score, high: Score, ways: int) -> bool | None:
    """Whether it lies between two others or within the margin of them."""
    return _all((score.beats(low, -MARGIN, ways=ways), high.beats(score, -MARGIN, ways=ways)))


CLAIMS = [
    claim(
        "static-beats-glove",
        "4.3, table 1",
        "First principal components of BERT's lower layers beat GloVe and fastText as static vectors.",
        "layers 1 and 2 of BERT, each: above both on more than half of the benchmarks",
        partial(_above_files, layers={"bert": (1, 2)}),
        ("bert",),
        shape=WINS,
    ),
    claim(
        "static-others-beat-glove",
        "4.3, table 1",
        "Those of the other layers of BERT and ELMo beat them on most benchmarks too.",
        "layers 1 and 2 of ELMo, the last two of BERT, each: above both on more than half of the benchmarks",
        partial(_above_files, layers={"elmo": (1, 2), "bert": (-2, -1)}),
        ("elmo", "bert"),
        shape=WINS,
    ),
    claim(
        "static-bert-1-best",
        "4.3, table 1",
        "Those of BERT's first layer are the best.",
        "layer 1 of BERT: above every other on more than half of the benchmarks; a tie is no win",
        _bert_1_best,
        ("bert",),
        shape=WINS,
    ),
    claim(
        "static-lower-better",
        "4.3, table 1",
        "Those of lower layers beat those of upper layers.",
        "layer 1 of each model: above its last layer on more than half of the benchmarks",
        _per_model(_lower_better, "above the last layer"),
        MODELS,
        shape=WINS,
    ),
    claim(
        "static-gpt2-worst",
        "4.3, table 1",
        "Those of GPT-2 are the worst.",
        "layer 1 of GPT-2: below layer 1 of ELMo and of BERT on more than half of the benchmarks",
        _gpt2_worst,
        ("gpt2",),
        shape=WINS,
    ),
    claim(
        "static-middle-between",
        "4.3, table 1",
        "Those of layers 3 to 10 lie between those of layers 2 and 11.",
        f"every layer between: its score between layer 2's and the last but one's, or within {MARGIN} of them, on more "
        "than half of the benchmarks",
        _between,
        ("bert", "gpt2"),
        shape=WINS,
    ),
]
