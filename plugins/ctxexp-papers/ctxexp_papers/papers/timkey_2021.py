"""Timkey & van Schijndel (2021), *All Bark and No Bite*: do one to five dimensions make the cosines of a layer?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.drawn import draw_instances, drawn_if_possible, within
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import Samples, TextSample, in_layers, measured
from ctxexp_papers.claims.source import Inputs, Source

TOP = (1, 3, 5)
READINGS = tuple(f"the {k} largest" if k > 1 else "the largest" for k in TOP)
DOMINATE = 0.5
ABSTRACT = "the abstract, ACL Anthology 2021.emnlp-main.372"
WIDTHS = {"d = 50": 50, "d = 200": 200}
EVEN, WIDE = "similarity in all dimensions", "similarity in the wide dimensions"
DRAWN_PAIRS, DRAWS = 500, 12
SPREAD = 0.2  # of dimensions that are narrow and carry nothing, in standard deviations of those that carry


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """Shares of the largest dimensions in the mean cosine."""
    from ctxexp_measures.isotropy.sample import RogueDimensions

    found = RogueDimensions().values(x)
    is_anisotropic = found.get("mean_cosine", np.nan) > NONE
    return {
        f"share, {name}": found.get(f"top_{k}", np.nan) if is_anisotropic else np.nan
        for k, name in zip(TOP, READINGS, strict=True)
    }


def _cosines(x: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    u = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return np.asarray(np.vecdot(u[pairs[0]], u[pairs[1]]))


def rogue(d: int, rng: np.random.Generator) -> np.ndarray:
    """One to three dimensions (rows, k) that carry nothing: far from the origin, and as spread as up to d others."""
    shape = (2 * DRAWN_PAIRS, int(rng.integers(1, 4)))
    mean = rng.uniform(1, 3, shape[1]) * rng.choice([-1, 1], shape[1])
    return np.asarray(np.sqrt(d) * (mean + rng.uniform(0.3, 1, shape[1]) * rng.normal(size=shape)))


def instance(d: int, rng: np.random.Generator) -> Mapping[str, float]:
    """Of pairs of vectors whose similarity is known by their making, with rogue dimensions beside it: Spearman's rho of
    cosines with it, standardised less raw (gain), less scaled at random (beyond scaling), and of a space without the
    rogue dimensions less standardised (lost); the rogue dimensions' share of the mean cosine. By variant: which of the
    other dimensions carry similarity."""
    from ctxexp_measures.isotropy.sample import contributions

    from ctxexp.maths import spearman

    values: dict[str, float] = {}
    for variant in (EVEN, WIDE):
        carries = np.arange(d) < (d if variant == EVEN else d // 2)
        similarity = rng.uniform(0, 1, DRAWN_PAIRS)
        one, other = rng.normal(size=(2, DRAWN_PAIRS, d))
        like = similarity[:, None] * one + np.sqrt(1 - similarity[:, None] ** 2) * other
        clean = np.concatenate([one, np.where(carries, like, other)]) * np.where(carries, 1.0, SPREAD)
        added = rogue(d, rng)
        x = np.concatenate([clean, added], axis=1)
        scaled = x * np.exp(rng.normal(size=x.shape[1]))
        standardised = (x - x.mean(axis=0)) / x.std(axis=0)
        pairs = np.arange(2 * DRAWN_PAIRS).reshape(2, -1)
        raw, plain, random, bare = (spearman(_cosines(y, pairs), similarity) for y in (x, standardised, scaled, clean))
        each = contributions(x)
        values |= {
            f"rogue share, {variant}": np.nan if each is None else float(each[d:].sum() / each.sum()),
            f"gain, {variant}": plain - raw,
            f"beyond scaling, {variant}": plain - random,
            f"lost, {variant}": bare - plain,
        }
    return values


def drawn(draws: int = DRAWS) -> Samples:
    """Spaces with rogue dimensions."""
    cases = {name: (partial(instance, d), (2021, d)) for name, d in WIDTHS.items()}
    return draw_instances("timkey_2021", "spaces with one to three rogue dimensions, drawn here", cases, draws)


def by_variant(source: Samples, bounds: Mapping[str, Bound]) -> list[Check]:
    return [
        check
        for variant in (EVEN, WIDE)
        for check in within(source, {f"{name}, {variant}": bound for name, bound in bounds.items()}, variant)
    ]


def dominate(source: Samples) -> list[Check]:
    """A check a model and number of dimensions, over its layers beyond the input."""
    checks = []
    for name in READINGS:
        members = source.of("decoder", "encoder", statistic=f"share, {name}")
        for m in members:
            values = m.values[f"share, {name}"][:, 1:]
            hidden = type(m)(m.model, {}, m.layers[1:])
            checks.append(in_layers(hidden, values, Bound(above=DOMINATE), least=0.501, ways=len(members)).under(name))
    return checks


def sources(inputs: Inputs) -> list[Source]:
    """Drawn spaces, and the offered Transformers."""
    return [
        *drawn_if_possible(inputs, drawn),
        *measured(inputs, "timkey_2021", statistics, title="the run's text", kinds=("decoder", "encoder")),
    ]


standardised = partial(
    Claim,
    on=(Samples,),
    section="abstract",
    quote="simple postprocessing techniques such as standardization are able to correct for rogue dimensions and "
    "reveal underlying representational quality",
    quote_source=ABSTRACT,
    models=tuple(WIDTHS),
    variants=(EVEN, WIDE),
    evidence="nothing but drawn spaces, which `ctxexp claims paper=timkey_2021` makes",
)
CLAIMS = (
    standardised(
        id="standardising-corrects",
        statement="Standardising dimensions corrects for rogue ones, which make most of the mean cosine.",
        test="in spaces with one to three rogue dimensions, whose share of the mean cosine is above a half, Spearman's "
        "rho of cosines with a similarity that is known: standardised less raw above .05, and above .05 more than "
        "after scaling at random: intervals over draws",
        null="rogue dimensions that do no harm; scaling each dimension by a random factor",
        reason=f"{NONE} of rho: less is no correction to speak of",
        reversal="rogue dimensions that standardising leaves in place",
        check=partial(
            by_variant,
            bounds={
                "rogue share": Bound(above=DOMINATE),
                "gain": Bound(above=NONE),
                "beyond scaling": Bound(above=NONE),
            },
        ),
    ),
    standardised(
        id="standardising-reveals",
        statement="What it reveals is as good as the space without the rogue dimensions.",
        test="the same rho without the rogue dimensions less that of the standardised space: its interval within .05 "
        "of 0, where all other dimensions carry the similarity, and where the wide ones do",
        null="a loss on the margin",
        reason=f"{NONE} of rho; narrow dimensions that carry nothing are given as much weight as the others",
        reversal="spaces in which standardising loses nothing whatever the other dimensions are",
        check=partial(by_variant, bounds={"lost": Bound(within=NONE)}),
    ),
    Claim(
        id="few-dominate",
        section="abstract",
        quote="We find that a small number of rogue dimensions, often just 1-3, dominate these measures.",
        quote_source=ABSTRACT,
        statement="In most anisotropic layers one to five dimensions make more than half of the mean cosine.",
        test="their share of the mean cosine of random words: its interval over samples of sentences above a half in "
        "more than half of the hidden layers whose mean cosine exceeds .05",
        null="a share of a half; layers without a mean cosine, whose shares are noise over noise, are left out",
        reason="a half, for `dominate`",
        reversal="layers whose mean cosine is spread over many dimensions",
        evidence="GPT-2, BERT, RoBERTa and XLNet on the paper's Wikipedia sentences, which are not released; model= "
        "gives the same tests of a Transformer",
        check=dominate,
        on=(Samples,),
        variants=READINGS,
        general="Transformers",
    ),
)


def paper() -> Paper:
    """The paper's claims."""
    return Paper(
        name="timkey_2021",
        title="The claims of Timkey & van Schijndel (2021), All Bark and No Bite, tested",
        citation=(
            "William Timkey and Marten van Schijndel (2021), All Bark and No Bite: Rogue Dimensions in Transformer "
            "Language Models Obscure Representational Quality. EMNLP, pp. 4527-4546"
        ),
        url="https://arxiv.org/abs/2109.04404",
        protocol=Protocol(
            "of the claims on standardising: spaces of known similarity; of models: GPT-2, BERT, RoBERTa and XLNet on "
            "sentences of Wikipedia"
        ),
        claims=CLAIMS,
        sources=sources,
        abstract=("standardising-corrects", "standardising-reveals", "few-dominate"),
        rule="Only the abstract could be checked here, which says 1-3 dimensions; five are a reading that the paper's "
        "tables are remembered to have.",
    )
