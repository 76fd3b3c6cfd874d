"""Sun et al. (2024), *Massive Activations*: a few entries a thousand times the median, and constant."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import Bound, Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import Sampled, Samples, TextSample, in_layers, measured, middle
from ctxexp_papers.claims.source import Inputs, Source

ABSTRACT = "the abstract, arXiv 2402.17762"
TIMES = 1000.0  # the median, from which on an activation is massive
FEW, CONSTANT = 10.0, 0.25
SENTENCES = 400


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """Of a sample's sentences: the largest activation over the median (log10, mean); how many are massive; and the
    coefficient of variation of the largest one's dimension over first words."""
    ratios, counts = [], []
    for rows in sample.sentences(np.abs(x)):
        relative = rows / max(float(np.median(rows)), np.finfo(np.float64).tiny)
        massive = relative >= TIMES
        ratios.append(np.log10(relative.max()))
        if massive.any():
            counts.append(massive.sum())
    starts = x[sample.is_first]
    largest = int(np.abs(starts).mean(axis=0).argmax())
    column = starts[:, largest]
    return {
        "log ratio": float(np.mean(ratios)),
        "count": float(np.mean(counts)) if counts else np.nan,
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


def sources(inputs: Inputs) -> list[Source]:
    """Offered decoders as tokenized."""
    return [
        *measured(
            inputs,
            "sun_2024",
            statistics,
            title="words by their first pieces, sentence by sentence, as tokenized",
            kinds=("decoder",),
            sentences=SENTENCES,
            options=("model.pooling=first",),
        )
    ]


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
        id="constant",
        section="3",
        statement="Their value hardly depends on the text.",
        quote="their values largely stay constant regardless of the input",
        test="the coefficient of variation of the largest one's dimension over first words: its interval below .25",
        reason=".25: a quarter of its size, of which several thousand sentences' first words, all different, are free",
        reversal="values that vary with the word as much as others do",
        check=partial(at_middle, statistic="variation", bound=Bound(below=CONSTANT)),
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
