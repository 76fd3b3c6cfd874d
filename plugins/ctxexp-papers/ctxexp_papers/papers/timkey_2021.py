"""Timkey & van Schijndel (2021), *All Bark and No Bite*: do one to five dimensions make the cosines of a layer?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import NEEDED, Samples, TextSample, in_layers, measured
from ctxexp_papers.claims.source import Inputs, Source

TOP = (1, 3, 5)
READINGS = tuple(f"the {k} largest" if k > 1 else "the largest" for k in TOP)
DOMINATE = 0.5
PAIRS = 2000


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """Shares of the largest dimensions in the mean cosine, their excess over those of the rows in random axes; and how
    much more random pairs' cosines change without them than without as many random dimensions (1 - r^2)."""
    from ctxexp_isotropy.rogue import RogueDimensions, contributions

    rng = np.random.default_rng(len(x))
    d = x.shape[1]
    found = RogueDimensions().values(x)
    turned = RogueDimensions().values(x @ np.linalg.qr(rng.normal(size=(d, d)))[0])
    pairs = rng.integers(0, len(x), (2, PAIRS))
    each = contributions(x)
    order = np.argsort(-each) if each is not None else np.arange(d)
    whole = _cosines(x, pairs)
    values = {"mean cosine": found.get("mean_cosine", np.nan)}
    for k, name in zip(TOP, READINGS, strict=True):
        share = found.get(f"top_{k}", np.nan)
        values[f"share, {name}"] = share if values["mean cosine"] > NONE else np.nan
        values[f"excess, {name}"] = values[f"share, {name}"] - turned.get(f"top_{k}", np.nan)
        without = _cosines(np.delete(x, order[:k], axis=1), pairs)
        control = _cosines(np.delete(x, rng.permutation(d)[:k], axis=1), pairs)
        values[f"changed, {name}"] = _r2(whole, control) - _r2(whole, without)
    return values


def _cosines(x: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    u = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return np.asarray(np.vecdot(u[pairs[0]], u[pairs[1]]))


def _r2(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a, b)[0, 1] ** 2)


def above(source: Samples, statistic: str, bound: float, least: float) -> list[Check]:
    """A check a model and number of dimensions, over its layers beyond the input."""
    checks = []
    for name in READINGS:
        members = source.of("decoder", "encoder", statistic=f"{statistic}, {name}")
        for m in members:
            values = m.values[f"{statistic}, {name}"][:, 1:]
            hidden = type(m)(m.model, {}, m.layers[1:])
            checks.append(in_layers(hidden, values, Bound(above=bound), least=least, ways=len(members)).under(name))
    return checks


def sources(inputs: Inputs) -> list[Source]:
    return [*measured(inputs, "timkey_2021", statistics, title="the run's text", kinds=("decoder", "encoder"))]


claim = partial(
    Claim,
    on=(Samples,),
    evidence=f"GPT-2, BERT, RoBERTa and XLNet on the paper's Wikipedia sentences, which are not released; model= gives "
    f"the same tests of a Transformer ({NEEDED})",
    variants=READINGS,
    general="Transformers",
)
CLAIMS = (
    claim(
        id="few-dominate",
        section="abstract",
        quote="We find that a small number of rogue dimensions, often just 1-3, dominate these measures.",
        quote_source="the abstract, ACL Anthology 2021.emnlp-main.372",
        statement="In most anisotropic layers one to five dimensions make more than half of the mean cosine.",
        test="their share of the mean cosine of random words: its interval over samples of sentences above a half in "
        "more than half of the hidden layers whose mean cosine exceeds .05",
        null="a share of a half; layers without a mean cosine, whose shares are noise over noise, are left out",
        reason="a half, for `dominate`",
        reversal="layers whose mean cosine is spread over many dimensions",
        check=partial(above, statistic="share", bound=DOMINATE, least=0.501),
    ),
    claim(
        id="axes-not-directions",
        section="3",
        statement="It is axes of the network that do it, not any strong direction.",
        test="their share less that of as many axes of the same rows in a random rotation: its interval above .05 in "
        "more than half of these layers",
        null="the same rows in random axes, of which the largest too have more than an equal share",
        reason=f"{NONE} of the mean cosine",
        reversal="shares that any axes give",
        check=partial(above, statistic="excess", bound=NONE, least=0.501),
    ),
    claim(
        id="similarity-hangs-on-them",
        section="3",
        statement="Cosines of word pairs are other ones without these dimensions.",
        test="r^2 of random pairs' cosines with those without as many random dimensions, less that without the "
        "largest: its interval above .05 in more than half of the hidden layers",
        null="leaving out as many random dimensions",
        reason=f"{NONE} of the variance of cosines",
        reversal="cosines that hardly change without them",
        check=partial(above, statistic="changed", bound=NONE, least=0.501),
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
        protocol=Protocol("GPT-2, BERT, RoBERTa and XLNet on sentences of Wikipedia"),
        claims=CLAIMS,
        sources=sources,
        rule="Only the abstract could be checked here, which says 1-3 dimensions; five are a reading that the paper's "
        "tables are remembered to have. The other statements are paraphrases.",
    )
