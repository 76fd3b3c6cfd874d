"""Machina & Mercer (2024), *Anisotropy is Not Inherent to Transformers*: isotropic last layers, by the final norm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import Sampled, Samples, TextSample, exceeds, in_layers, measured
from ctxexp_papers.claims.source import Inputs, Source

ABSTRACT = "the abstract, NAACL 2024 (2024.naacl-long.274)"
ANY, SENTENCES = "any of the models", 400


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """The mean cosine of random words."""
    from ctxexp.maths import mean_cosine

    return {"cosine": float(mean_cosine(x))}


def sources(inputs: Inputs) -> list[Source]:
    """Offered decoders, with their final norm and without."""
    choices = {"kinds": ("decoder",), "sentences": SENTENCES, "title": "the run's text"}
    normed = measured(inputs, "machina_2024", statistics, **choices)  # type: ignore[arg-type]
    if not normed:
        return []
    before = measured(inputs, "machina_2024", statistics, options=("model.final_norm=false",), **choices)  # type: ignore[arg-type]
    joined = [
        replace(m, values={**m.values, "before": b.values["cosine"]})
        for m, b in zip(normed[0].members, before[0].members, strict=True)
    ]
    return [replace(normed[0], members=joined)]


def isotropic_exists(source: Samples) -> list[Check]:
    """Whether the last layer of some model is isotropic; a claim on one of many can't fail by any number of others
    that the paper doesn't name, so that each is as wide as so many looks need."""
    members = source.of("decoder", statistic="cosine")
    checks = [in_layers(Sampled(m.model, {}), m.values["cosine"][:, -1:], Bound(within=NONE)) for m in members]
    if not checks:
        return []
    best = next((c for c in checks if c.passed), next((c for c in checks if c.passed is None), checks[0]))
    if source.kind == "other" and not best.passed:  # others than the paper's can prove that one exists, not that none
        best = replace(best, passed=None)
    text = "; ".join(f"{c.model}: {c.brief}" for c in checks)
    return [replace(best, model=ANY, text=text)]


def norm_makes_isotropic(source: Samples) -> list[Check]:
    members = source.of("decoder", statistic="before")
    return [
        exceeds(Sampled(m.model, {}), m.values["before"][:, -1], m.values["cosine"][:, -1], ways=len(members))
        for m in members
    ]


claim = partial(
    Claim,
    on=(Samples,),
    section="4",
    quote_source=ABSTRACT,
    evidence="the Pythia models; model= gives the same tests of a decoder",
)
CLAIMS = (
    claim(
        id="isotropic-exists",
        statement="There are Transformers whose last layer is isotropic.",
        quote="we identify a set of Transformer models with isotropic embedding spaces, the large Pythia models",
        test="the mean cosine of random words in a model's last layer: its interval within .05 of 0, in one model",
        null="a mean cosine on the margin",
        reason=f"{NONE}, the margin of equivalence for cosines",
        reversal="large Pythia models whose last layers are anisotropic",
        check=isotropic_exists,
        models=(ANY,),
        general="Transformers",
        contradicts=("godey_2024/inherent",),
    ),
    claim(
        id="final-norm",
        statement="The final layer norm makes the last layer more isotropic.",
        quote="the large Pythia models optimize their final Layer Norm for isotropy",
        test="mean cosine of the last layer before the final norm less that after it: its interval above 0",
        null="a norm that changes nothing",
        reason="0: the paper says for isotropy, not by how much",
        reversal="a final norm after which words are more alike",
        check=norm_makes_isotropic,
    ),
)


def paper() -> Paper:
    """The paper's claims on final models; those on training need Pythia's checkpoints."""
    return Paper(
        name="machina_2024",
        title="The claims of Machina & Mercer (2024), Anisotropy is Not Inherent to Transformers, tested",
        citation=(
            "Anemily Machina and Robert Mercer (2024), Anisotropy is Not Inherent to Transformers. NAACL, pp. 4892-4907"
        ),
        url="https://aclanthology.org/2024.naacl-long.274",
        protocol=Protocol("the Pythia models and their checkpoints"),
        claims=CLAIMS,
        sources=sources,
        abstract=("isotropic-exists", "final-norm"),
    )
