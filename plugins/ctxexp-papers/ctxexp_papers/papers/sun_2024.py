"""Sun et al. (2024), *Massive Activations*: a few entries a thousand times the median, at the first word, constant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import Bound, Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import Sampled, Samples, TextSample, in_layers, learned, measured, middle
from ctxexp_papers.claims.source import Inputs, Source

ABSTRACT = "the abstract, arXiv 2402.17762"
TIMES = 1000.0  # the median, from which on an activation is massive
FEW, MOST, CONSTANT = 10.0, 0.9, 0.25
PREFIXES = {"BOS in front": "bos", "a dot in front": "."}
SENTENCES = 400


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """Of a sample's sentences: the largest activation over the median (log10, mean); how many are massive; which share
    of these stands in first words; and the coefficient of variation of the largest one's dimension over first words."""
    ratios, counts, first = [], [], []
    for rows in sample.sentences(np.abs(x)):
        relative = rows / max(float(np.median(rows)), np.finfo(np.float64).tiny)
        massive = relative >= TIMES
        ratios.append(np.log10(relative.max()))
        if massive.any():
            counts.append(massive.sum())
            first.append(massive[0].sum() / massive.sum())
    starts = x[sample.is_first]
    largest = int(np.abs(starts).mean(axis=0).argmax())
    column = starts[:, largest]
    return {
        "log ratio": float(np.mean(ratios)),
        "count": float(np.mean(counts)) if counts else np.nan,
        "first": float(np.mean(first)) if first else np.nan,
        "variation": float(column.std() / abs(column.mean())) if counts else np.nan,
    }


def at_middle(source: Samples, statistic: str, bound: Bound) -> list[Check]:
    """A check a decoder, in its middle layer."""
    members = source.of("decoder", statistic=statistic)
    checks = []
    for m in members:
        values = m.values[statistic][:, middle(m)][:, None]
        if not np.isfinite(values).all():
            checks.append(Check(m.model, text="no massive activation in the middle layer of some sample"))
        else:
            checks.append(in_layers(Sampled(m.model, {}), values, bound, ways=len(members)))
    return checks


def is_learned(source: Samples) -> list[Check]:
    """Whether the largest activation is larger than in the untrained twin."""
    checks = []
    for m in source.of("decoder", statistic="log ratio"):
        at = middle(m)
        twin = m.twin["log ratio"][:, at] if m.twin else None
        checks.append(learned(m, m.values["log ratio"][:, at], twin))
    return checks


def sources(inputs: Inputs) -> list[Source]:
    """Offered decoders as tokenized, with their twins, and with a BOS or a dot in front."""
    found = _measured(inputs, twins=True)
    if not found:
        return []
    members = found[0].members
    for name, prefix in PREFIXES.items():
        with_prefix = _measured(inputs, f"model.prefix={prefix}")[0].members
        pairs = zip(members, with_prefix, strict=True)
        members = [replace(m, values={**m.values, f"log ratio, {name}": p.values["log ratio"]}) for m, p in pairs]
    return [replace(found[0], members=members)]


def _measured(inputs: Inputs, *options: str, twins: bool = False) -> list[Samples]:
    return measured(
        inputs,
        "sun_2024",
        statistics,
        title="words by their first pieces, sentence by sentence, as tokenized",
        kinds=("decoder",),
        twins=twins,
        sentences=SENTENCES,
        options=("model.pooling=first", *options),
    )


def leave_words(source: Samples) -> list[Check]:
    """Whether words have massive activations as tokenized, and none with another token in front."""
    checks = []
    for name in PREFIXES:
        members = source.of("decoder", statistic=f"log ratio, {name}")
        for m in members:
            for statistic, bound in (("log ratio", Bound(above=3.0)), (f"log ratio, {name}", Bound(below=3.0))):
                values = m.values[statistic][:, [middle(m)]]
                check = in_layers(Sampled(m.model, {}), values, bound, ways=2 * len(members))
                checks.append(replace(check, text=statistic).under(name))
    return checks


claim = partial(
    Claim,
    on=(Samples,),
    general="large language models",
    minis=False,
    evidence="LLaMA2, Mixtral and others on the paper's sequences; model=smollm2 gives the same tests",
    quote_source=ABSTRACT,
    null="a value on the line, in the middle layer, which is fixed beforehand",
)
CLAIMS = (
    claim(
        id="exist",
        section="2",
        statement="In the middle layer some activations are a thousand times the median.",
        quote="very few activations exhibit significantly larger values than others (e.g., 100,000 times larger)",
        test="log10 of a sentence's largest activation over its median: its interval over samples of sentences above 3",
        reason="a thousand times the median is the paper's definition of massive (recalled, not checked)",
        reversal="decoders whose largest activation is a hundred times the median",
        check=partial(at_middle, statistic="log ratio", bound=Bound(above=np.log10(TIMES))),
    ),
    claim(
        id="few",
        section="2",
        statement="They are very few: at most ten in a sentence of that many words times hundreds of dimensions.",
        quote="very few activations exhibit significantly larger values than others",
        test="number of massive activations in a sentence that has any: its interval below 10",
        reason="10, of some ten thousand",
        reversal="sentences with dozens of them",
        check=partial(at_middle, statistic="count", bound=Bound(below=FEW)),
    ),
    claim(
        id="at-the-start",
        section="2",
        statement="They stand at the start of the text.",
        quote="",
        quote_source="",
        test="the share of them in first words: its interval above nine in ten",
        reason="nine in ten: the paper names delimiters beside the start",
        reversal="massive activations in words between",
        check=partial(at_middle, statistic="first", bound=Bound(above=MOST)),
    ),
    claim(
        id="leave-the-words",
        section="2",
        statement="They belong to whatever token comes first: with one in front of the text no word has any.",
        quote="",
        quote_source="",
        test="log10 of a sentence's largest activation over its median, among words alone: above 3 as tokenized, below "
        "3 with a BOS or a dot in front, which is encoded and not measured: intervals over samples",
        reason="a thousand times the median, as above",
        reversal="decoders whose words keep theirs behind another token",
        check=leave_words,
        variants=tuple(PREFIXES),
    ),
    claim(
        id="constant",
        section="3",
        statement="Their value hardly depends on the text.",
        quote="their values largely stay constant regardless of the input",
        test="the coefficient of variation of the largest one's dimension over first words: its interval below .25",
        reason=".25: a quarter of its size, of which several thousand sentences' first words, all different, are free",
        reversal="values that vary with the word as much as others do",
        check=partial(at_middle, statistic="variation", bound=Bound(below=CONSTANT)),
    ),
    claim(
        id="learned",
        section="3",
        statement="They come of training.",
        quote="",
        quote_source="",
        test="log10 of the largest activation over the median less the untrained twin's: both intervals above 0",
        reason="0: as large without training is not learned",
        reversal="untrained networks with activations as large",
        check=is_learned,
    ),
)


def paper() -> Paper:
    """The paper's claims on words; those on attention and on setting them to 0 aren't tried."""
    return Paper(
        name="sun_2024",
        title="The claims of Sun et al. (2024), Massive Activations, tested",
        citation=(
            "Mingjie Sun, Xinlei Chen, J. Zico Kolter and Zhuang Liu (2024), Massive Activations in Large Language "
            "Models. COLM"
        ),
        url="https://arxiv.org/abs/2402.17762",
        protocol=Protocol("LLaMA2 and other large models on sequences of RedPajama"),
        claims=CLAIMS,
        sources=sources,
        abstract=("exist", "few", "constant"),
    )
