"""The claims on explainable variance and on single words (Ethayarajh 2019, Sections 4.1 and 4.3)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ctxexp.results import Key
from ctxexp_papers.claims.checks import Bound, Check, in_layers
from ctxexp_papers.claims.evidence import SAMPLED, Evidence, Family
from ctxexp_papers.claims.spans import NotMeasuredError
from ctxexp_papers.claims.statistics.shares import wilson
from ctxexp_papers.papers.ethayarajh_2019.claim import BOUND, INFERENCE, LOWEST_FIVE, SHARE, claim
from ctxexp_papers.papers.ethayarajh_2019.contexts import each
from ctxexp_papers.papers.ethayarajh_2019.protocol import MODELS

VARIANCE = "max_explainable_variance"
DEFINITIONS = {
    "the released code": f"{VARIANCE}_released",
    "the uncentred share (Definition 3)": VARIANCE,
    "the centred share": f"{VARIANCE}_centred",
}
BASELINES = {"sampled baseline": "adjusted", "size-matched baseline": "size_matched_adjusted"}
READINGS = {
    f"{definition}, {baseline}": Key.of(measure, level)
    for definition, measure in DEFINITIONS.items()
    for baseline, level in BASELINES.items()
}
LINE = 0.05  # of variance
MANY = 0.10  # of the words
THIRD = (0.25, 0.35)  # "about 30%" of variance
STOP_WORDS = ("the", "of", "to", "and", "a")
LOWEST = 0.10  # of all words, by self-similarity
ELMO_LOWEST = ("and", "of", "'s", "the", "to")
FEW = 0.01  # of the other words, that may be lower


def _below_line(family: Family) -> list[Check]:
    return [
        each(family, model, key, in_layers, bound=Bound(below=LINE), ways=len(MODELS)).under(reading)
        for reading, key in READINGS.items()
        for model in MODELS
    ]


def _raw_figures(family: Family) -> list[Check]:
    checks = []
    for definition, measure in DEFINITIONS.items():
        key = Key(measure, "raw")
        checks += [
            each(family, model, key, in_layers, bound=Bound(below=LINE), ways=len(MODELS)).under(definition)
            for model in ("elmo", "bert")
        ]
        checks.append(each(family, "gpt2", key, _about_a_third).under(definition))
    return checks


def _about_a_third(evidence: Evidence, key: Key) -> Check:
    """Whether the mean of the layers from 2 to the last but one is about 30%."""
    span = evidence.span(key)
    layers = list(range(2, len(span.value) - 1))
    if not layers:
        raise NotMeasuredError(f"{key} has no layers between 1 and the last")
    span.require(key, layers)
    value, low, high = (float(ends[layers].mean()) for ends in (span.value, span.low, span.high))
    inside, outside = low >= THIRD[0] and high <= THIRD[1], high < THIRD[0] or low > THIRD[1]
    passed = True if inside else False if outside else None
    n = evidence.n(key, 2)
    text = f"mean of layers 2 to {layers[-1]}"
    return Check(
        "gpt2", "", passed, *evidence.with_interval(value, low, high), n, text, evidence.link, f"{value:.3f}", THIRD
    )


def _below_baseline(family: Family) -> list[Check]:
    """Share of words whose raw value is below the sampled baseline, in the hidden layer where that is rarest."""
    checks = []
    for definition, measure in DEFINITIONS.items():
        for model in MODELS:
            evidence, table = _table(family, model, measure, column="adjusted_1")
            if evidence is None or table is None:
                checks.append(Check(model, definition, text=_no_table(family, model, measure, sampled=True)))
                continue
            shares = {name: (float((v < 0).mean()), len(v)) for name, v in _layers(table, "adjusted_") if len(v)}
            if not shares:
                checks.append(Check(model, definition, text=f"{measure} is undefined"))
                continue
            layer, (share, n) = min(shares.items(), key=lambda item: item[1][0])
            low, high = wilson(share * n, n)
            most = wilson(share * n, n, ways=len(MODELS) * len(shares))[1]
            passed = True if low > MANY else False if most <= MANY else None
            text = f"rarest in layer {layer}, commonest {max(shares.values())[0]:.0%}"
            checks.append(
                Check(model, definition, passed, share, low, high, n, text, evidence.link, f"{share:.0%}", (MANY,))
            )
    return checks


def _stop_words_lowest(family: Family) -> list[Check]:
    """The share of words that the highest of the stop words exceeds, in the hidden layer where that is most."""
    checks = []
    for model in MODELS:
        evidence, table = _table(family, model, "self_similarity")
        if evidence is None or table is None:
            checks.append(Check(model, text=_no_table(family, model, "self_similarity")))
            continue
        stop_rows = [i for i, word in enumerate(table["word"]) if word in STOP_WORDS]
        if not stop_rows:
            checks.append(Check(model, text=f"none of {', '.join(STOP_WORDS)} is among its words"))
            continue
        worst: dict[int, tuple[float, int, int]] = {}  # layer -> share below the highest of them, which, of how many
        for layer, values in _layers(table, "raw_", defined=False):
            defined_values = values[np.isfinite(values)]
            shares = [(float((defined_values < values[i]).mean()), i) for i in stop_rows if np.isfinite(values[i])]
            if shares:
                worst[layer] = *max(shares), len(defined_values)
        if not worst:
            checks.append(Check(model, text="the word table has no layers: run again"))
            continue
        layer, (share, i, n) = max(worst.items(), key=lambda item: item[1][0])
        low, high = wilson(share * n, n)
        least = wilson(share * n, n, ways=len(MODELS) * len(worst))[0]
        passed = True if high < LOWEST else False if least >= LOWEST else None
        within = sum(wilson(s * m, m)[1] < LOWEST for s, _, m in worst.values())
        brief = f"{within} of {len(worst)}"
        text = f"{brief} layers; in layer {layer} {share:.1%} of the words are below {table['word'][i]!r}"
        checks.append(Check(model, "", passed, share, low, high, n, text, evidence.link, brief, (LOWEST,)))
    return checks


def _elmo_lowest(family: Family) -> list[Check]:
    """The share of the other words below the highest of the five, by their means over layers."""
    evidence, table = _table(family, "elmo", "self_similarity")
    if evidence is None or table is None:
        return [Check("elmo", text=_no_table(family, "elmo", "self_similarity"))]
    means = table.set_index("word").filter(like="raw_").mean(axis=1).dropna()
    if missing := [word for word in ELMO_LOWEST if word not in means]:
        return [Check("elmo", text=f"{', '.join(missing)} not among its words")]
    others = means.drop(list(ELMO_LOWEST))
    lower = others[others < means[list(ELMO_LOWEST)].max()]
    low, high = wilson(len(lower), len(others))
    passed = True if high < FEW else False if low >= FEW else None
    text = f"others that are lower: {', '.join(map(str, lower.index[:5])) or 'none'}; the most alike: {means.idxmax()}"
    share, brief = len(lower) / len(others), f"{len(lower)} of {len(others):,} lower"
    return [Check("elmo", "", passed, share, low, high, len(others), text, evidence.link, brief, (FEW,))]


def _layers(table: pd.DataFrame, start: str, *, defined: bool = True) -> list[tuple[int, np.ndarray]]:
    """The hidden layers of a word table with their column of values; the defined ones only, or a value a row."""
    layers = []
    for name, cells in table.items():
        number = name.removeprefix(start)
        if name.startswith(start) and number.isdecimal() and int(number) > 0:
            values = cells.to_numpy(np.float64)
            layers.append((int(number), values[np.isfinite(values)] if defined else values))
    return layers


def _table(family: Family, model: str, name: str, *, column: str = "") -> tuple[Evidence | None, pd.DataFrame | None]:
    """The newest run's word table. With `column`, adjusted values, only of runs whose baseline is the paper's kind."""
    for evidence in family.members:
        if evidence.model != model or (column and evidence.info.baseline.name not in SAMPLED):
            continue
        if (table := evidence.tables.get(name)) is not None and (not column or column in table):
            return evidence, table
    return None, None


def _no_table(family: Family, model: str, name: str, *, sampled: bool = False) -> str:
    if family.find(model) is None:
        return "no run"
    if family.kind == "points":
        return "the released per-layer file has no single words"
    return f"no word table {name}.csv{' by a sampled baseline' if sampled else ''} in its runs"


CLAIMS = [
    claim(
        "variance-below-5",
        "4.3",
        "On average less than 5% of the variance in a word's representations can be explained by a static embedding.",
        f"adjusted maximum explainable variance: its interval is below {LINE} in every layer from 1, by definition and "
        "baseline",
        _below_line,
        MODELS,
        tuple(READINGS),
        quote="In all layers of ELMo, BERT, and GPT-2, on average, less than 5% of the variance in a word's "
        "contextualized representations can be explained by a static embedding for that word",
        shape=BOUND,
    ),
    claim(
        "variance-raw",
        "4.3",
        "Before adjusting it is below 5% in ELMo and BERT, and about 30% in GPT-2's layers 2 to 11.",
        f"raw maximum explainable variance: below {LINE} in every layer from 1 (ELMo, BERT); between {THIRD[0]} and "
        f"{THIRD[1]}, its interval included, as the mean of layers 2 to the last but one (GPT-2)",
        _raw_figures,
        MODELS,
        tuple(DEFINITIONS),
        shape=BOUND,
    ),
    claim(
        "variance-below-baseline",
        "4.3",
        "For many words the raw maximum explainable variance is below the baseline.",
        f"share of such words: its interval is above {MANY} in every layer from 1",
        _below_baseline,
        MODELS,
        tuple(DEFINITIONS),
        shape=SHARE,
    ),
    claim(
        "stop-words-lowest",
        "4.2",
        "In all layers stop words (the, of, to, and, a) have among the lowest self-similarity of all words.",
        f"share of words below the highest of the five: its interval is below {LOWEST} in every layer from 1",
        _stop_words_lowest,
        MODELS,
        shape=SHARE,
    ),
    claim(
        "elmo-lowest-words",
        "4.2",
        "The words of the lowest average self-similarity in ELMo are and, of, 's, the and to.",
        f"share of other words whose mean over layers is below the highest of the five: its interval is below {FEW}",
        _elmo_lowest,
        ("elmo",),
        shape=LOWEST_FIVE,
    ),
    claim(
        "finite-senses",
        "4.2 and 4.3",
        "Contextual models do not merely assign one of a finite number of sense representations to a word.",
        "an inference from variance-below-5 and stop-words-lowest: it takes the weaker verdict",
        lambda family: [],
        MODELS,
        needs=("variance-below-5", "stop-words-lowest"),
        shape=INFERENCE,
    ),
]
