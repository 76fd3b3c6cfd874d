"""The claims on explainable variance and on single words (Ethayarajh 2019, Sections 4.1 and 4.3)."""

from __future__ import annotations

import numpy as np

from ctxexp.claims.checks import Check, Z, every_layer, intervals, missing
from ctxexp.claims.contexts import each, lacking
from ctxexp.claims.evidence import PAPER, SAMPLED, Evidence, Family
from ctxexp.claims.verdict import Claim

VARIANCE = "max_explainable_variance"
DEFINITIONS = {
    "the released code": f"{VARIANCE}_released",
    "the uncentred share (Definition 3)": VARIANCE,
    "the centred share": f"{VARIANCE}_centred",
}
BASELINES = {"sampled baseline": "adjusted", "size-matched baseline": "size_matched_adjusted"}
READINGS = {
    f"{definition}, {baseline}": f"{measure}/{level}"
    for definition, measure in DEFINITIONS.items()
    for baseline, level in BASELINES.items()
}
LINE = 0.05  # of variance
MANY = 0.10  # of the words
THIRD = (0.25, 0.35)  # "about 30%" of variance
STOP_WORDS = ("the", "of", "to", "and", "a")
LOWEST = 0.10  # of all words, by self-similarity


def _below_line(family: Family) -> list[Check]:
    return [
        each(family, model, key, every_layer, below=LINE).under(reading)
        for reading, key in READINGS.items()
        for model in PAPER
    ]


def _raw_figures(family: Family) -> list[Check]:
    found = []
    for definition, measure in DEFINITIONS.items():
        key = f"{measure}/raw"
        found += [each(family, model, key, every_layer, below=LINE).under(definition) for model in ("elmo", "bert")]
        evidence = family.find("gpt2", key)
        if evidence is None or len(evidence.curves[key]) < 4:
            found.append(missing("gpt2", lacking(family, "gpt2", key)).under(definition))
            continue
        whole, low, high = intervals(evidence, key, family.kind != "released")
        assert whole is not None
        curve = whole[2:-1]
        if not np.isfinite(curve).all():
            found.append(
                missing("gpt2", f"{key} is undefined in some of layers 2 to {len(whole) - 2}").under(definition)
            )
            continue
        ends = (float(low[2:-1].mean()), float(high[2:-1].mean()))
        if family.kind == "released":
            ends = (float("nan"), float("nan"))
        inside = THIRD[0] <= curve.mean() <= THIRD[1]
        said = f"mean of layers 2 to {len(evidence.curves[key]) - 2}"
        n = evidence.n(measure, 2)
        found.append(Check("gpt2", definition, bool(inside), float(curve.mean()), *ends, n, said, evidence.link))
    return found


def _below_baseline(family: Family) -> list[Check]:
    """Share of words whose raw value is below the sampled baseline, in the hidden layer where that is rarest."""
    found = []
    for definition, measure in DEFINITIONS.items():
        for model in PAPER:
            evidence, table = _table(family, model, measure, column="adjusted_1")
            if evidence is None or table is None:
                found.append(missing(model, _no_table(family, model, measure, sampled=True)).under(definition))
                continue
            columns = [name for name in table if name.startswith("adjusted_") and name != "adjusted_0"]
            shares = []
            for name in columns:
                values = _numbers(table[name])
                values = values[np.isfinite(values)]
                if len(values):
                    shares.append((float((values < 0).mean()), len(values), name))
            if not shares:
                found.append(missing(model, f"{measure} is undefined").under(definition))
                continue
            share, n, name = min(shares)
            low, high = wilson(share * n, n)
            said = f"rarest in layer {name.rpartition('_')[2]}, commonest {max(shares)[0]:.0%}"
            found.append(Check(model, definition, low > MANY, share, low, high, n, said, evidence.link))
    return found


def _stop_words_lowest(family: Family) -> list[Check]:
    """The share of words that the highest of the stop words exceeds, by self-similarity averaged over layers."""
    found = []
    for model in PAPER:
        evidence, table = _table(family, model, "self_similarity")
        if evidence is None or table is None:
            found.append(missing(model, _no_table(family, model, "self_similarity")))
            continue
        values = _numbers(table["mean"])
        known = {word: v for word, v in zip(table["word"], values, strict=True) if np.isfinite(v)}
        held = [word for word in STOP_WORDS if word in known]
        every = np.array(list(known.values()))
        if not held:
            found.append(missing(model, f"none of {', '.join(STOP_WORDS)} is among its words"))
            continue
        ranks = {word: float((every < known[word]).mean()) for word in held}
        highest = max(ranks, key=lambda word: ranks[word])
        low, high = wilson(ranks[highest] * len(every), len(every))
        said = "words below: " + ", ".join(f"{word} {rank:.1%}" for word, rank in ranks.items())
        found.append(Check(model, "", high < LOWEST, ranks[highest], low, high, len(every), said, evidence.link))
    return found


def wilson(count: float, n: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share, `count` of `n`."""
    p, middle = count / n, 1 + Z**2 / n
    half = Z * np.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    centre = p + Z**2 / (2 * n)
    return max(0.0, float((centre - half) / middle)), min(1.0, float((centre + half) / middle))


def _table(
    family: Family, model: str, name: str, *, column: str = ""
) -> tuple[Evidence | None, dict[str, list[str]] | None]:
    """The newest run's word table. With `column`, adjusted values, only of runs whose baseline is the paper's kind."""
    for evidence in family.members:
        if evidence.model != model or (column and evidence.info.get("baseline") not in SAMPLED):
            continue
        if (table := evidence.tables(name)) and (not column or column in table):
            return evidence, table
    return None, None


def _no_table(family: Family, model: str, name: str, *, sampled: bool = False) -> str:
    if family.find(model) is None:
        return "no run"
    if family.kind == "released":
        return "the released per-layer file has no single words"
    return f"no word table {name}.csv{' by a sampled baseline' if sampled else ''} in its runs"


def _numbers(column: list[str]) -> np.ndarray:
    return np.array([float(cell) if cell else np.nan for cell in column])


CLAIMS = [
    Claim(
        "variance-below-5",
        "On average less than 5% of the variance in a word's representations can be explained by a static embedding.",
        f"adjusted maximum explainable variance: its interval is below {LINE} in every layer from 1, by definition and "
        "baseline",
        _below_line,
        PAPER,
        tuple(READINGS),
    ),
    Claim(
        "variance-raw",
        "Before adjusting it is below 5% in ELMo and BERT, and about 30% in GPT-2's layers 2 to 11.",
        f"raw maximum explainable variance: below {LINE} in every layer from 1 (ELMo, BERT); between {THIRD[0]} and "
        f"{THIRD[1]} as the mean of layers 2 to the last but one (GPT-2)",
        _raw_figures,
        PAPER,
        tuple(DEFINITIONS),
    ),
    Claim(
        "variance-below-baseline",
        "For many words the raw maximum explainable variance is below the baseline.",
        f"share of such words: its interval is above {MANY} in every layer from 1",
        _below_baseline,
        PAPER,
        tuple(DEFINITIONS),
    ),
    Claim(
        "finite-senses",
        "Contextual models do not merely assign one of a finite number of sense representations to a word.",
        "an inference from variance-below-5: it takes its verdict",
        lambda family: [],
        PAPER,
        needs=("variance-below-5",),
    ),
    Claim(
        "stop-words-lowest",
        "Stop words (the, of, to, and, a) have among the lowest self-similarity of all words.",
        f"share of words below the highest of the five, by the mean over layers: its interval is below {LOWEST}",
        _stop_words_lowest,
        PAPER,
    ),
]
