"""Ethayarajh (2019), *How Contextual are Contextualized Word Representations?*: its claims, fixed before any run of
the paper's own weights was looked at."""

from __future__ import annotations

from ctxexp.report.references import CAVEAT, SOURCE
from ctxexp_papers.claims.evidence import families
from ctxexp_papers.claims.paper import Paper
from ctxexp_papers.claims.source import Inputs, Source
from ctxexp_papers.papers.ethayarajh_2019 import curves, per_word, polysemy, released
from ctxexp_papers.papers.ethayarajh_2019.protocol import PROTOCOL

CLAIMS = (*curves.CLAIMS, polysemy.CLAIM)
"""Every claim, in the paper's order."""

RULE = (
    "Tests and thresholds were fixed before any run of the paper's own weights was looked at, and with the released "
    "figures in view, but for those on trends and on the room above chance, which were made stricter later. Intervals "
    "decide: one that spans the bound leaves its test open; a trend over layers is decided only beyond what walks "
    "give. A verdict is on the paper's claim and comes from runs of the paper's own weights "
    "(bert-base-cased, gpt2, the original ELMo, by the SHA-256 of their files), own text and own protocol, or from "
    "the authors' released per-word files; the same tests on anything else say what came out there."
)


def sources(inputs: Inputs) -> list[Source]:
    """Runs by family, the authors' per-word files where their folder is named, and their per-layer figures."""
    chosen = {text.split()[0] for text in inputs.models}
    runs = [pair for pair in inputs.runs if not chosen or pair[0].info.model.name in chosen]
    every = [*families(runs, PROTOCOL), per_word.source(inputs), *polysemy.sources(inputs)]
    found: list[Source] = [source for source in every if source is not None]
    found.sort(key=lambda source: source.kind != "protocol")
    return [*found, released.family()]


def notes() -> list[str]:
    """What follows from the released figures, and where they are from."""
    source = f"Source of the released figures: {SOURCE}; {CAVEAT}."
    return [*(derivation.text for derivation in released.derivations()), source]


def paper() -> Paper:
    """The paper's claims."""
    return Paper(
        name="ethayarajh_2019",
        title="The claims of Ethayarajh (2019), tested",
        citation=(
            "Kawin Ethayarajh (2019), How Contextual are Contextualized Word Representations? Comparing the Geometry "
            "of BERT, ELMo, and GPT-2 Embeddings. EMNLP-IJCNLP, pp. 55-65, doi:10.18653/v1/D19-1006"
        ),
        url="https://aclanthology.org/D19-1006",
        protocol=PROTOCOL,
        claims=CLAIMS,
        sources=sources,
        released="github.com/kawine/contextual",
        labels=released.NAMES,
        abstract=("anisotropic", "same-word-closer", "self-similarity-falls", "variance-below-5"),
        rule=RULE,
        notes=notes,
    )
