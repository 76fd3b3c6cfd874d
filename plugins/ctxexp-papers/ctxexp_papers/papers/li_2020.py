"""Li et al. (2020), BERT-flow: does a word's frequency decide where it lies?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import NEEDED, Sampled, Samples, TextSample, exceeds, measured
from ctxexp_papers.claims.source import Inputs, Source

INPUT, LAST = "input layer", "last layer"
PLACES = {INPUT: 0, LAST: -1}
KINDS = ("decoder", "encoder", "recurrent")
NEIGHBOURS = 3


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """Spearman's rho of rarity with a word's length, its distance to its three nearest words, and one less the cosine
    to them."""
    from ctxexp_frequency.neighbours import nearest

    from ctxexp.maths.correlation import spearman

    rarity = -np.asarray(sample.count, np.float64)
    near = nearest(x, k=NEIGHBOURS, by=("l2", "cosine"))
    return {
        "norm": spearman(rarity, np.linalg.norm(x, axis=1)),
        "distance": spearman(rarity, near["l2"].mean(NEIGHBOURS)),
        "angle": spearman(rarity, -near["cosine"].mean(NEIGHBOURS)),
    }


def rises(source: Samples, statistic: str) -> list[Check]:
    """A check a model and layer: whether it rises with rarity."""
    members = source.of(*KINDS, statistic=statistic)
    return [
        exceeds(Sampled(m.model, {}), m.values[statistic][:, at], ways=len(members), text="Spearman's rho").under(name)
        for name, at in PLACES.items()
        for m in members
    ]


def sources(inputs: Inputs) -> list[Source]:
    title = "an occurrence of each word of the run's text, by how often it stands there"
    return [*measured(inputs, "li_2020", statistics, title=title, kinds=KINDS, by_word=True)]


claim = partial(
    Claim,
    on=(Samples,),
    section="3.2",
    variants=tuple(PLACES),
    null="values without order: rho is 0",
    reason="0: the paper says closer and sparser, not by how much",
    reversal="rare words that are as near, or nearer",
    evidence=f"BERT-base and BERT-large with their training text's word ranks; model= gives the same tests of a model "
    f"({NEEDED})",
)
CLAIMS = (
    claim(
        id="frequent-near-origin",
        statement="Frequent words lie closer to the origin.",
        test="Spearman's rho of rarity with a word's length: its interval over disjoint samples of words above 0",
        check=partial(rises, statistic="norm"),
    ),
    claim(
        id="rare-lie-sparse",
        statement="Rare words lie further from their nearest words.",
        test="Spearman's rho of rarity with the mean distance to the three nearest words of the sample: its interval "
        "above 0",
        check=partial(rises, statistic="distance"),
    ),
    claim(
        id="sparse-by-angle",
        statement="That isn't for their lengths alone: by angle too they lie further.",
        test="Spearman's rho of rarity with one less the mean cosine to the three nearest words: its interval above 0",
        check=partial(rises, statistic="angle"),
    ),
)


def paper() -> Paper:
    """The paper's claims on words; those on sentences are ctxexp-calibration's `experiment=li_2020`."""
    return Paper(
        name="li_2020",
        title="The claims of Li et al. (2020), BERT-flow, tested",
        citation=(
            "Bohan Li, Hao Zhou, Junxian He, Mingxuan Wang, Yiming Yang and Lei Li (2020), On the Sentence Embeddings "
            "from Pre-trained Language Models. EMNLP, pp. 9119-9130"
        ),
        url="https://aclanthology.org/2020.emnlp-main.733",
        protocol=Protocol("BERT-base and BERT-large, words by their rank in Wikipedia"),
        claims=CLAIMS,
        sources=sources,
        rule="The wording of section 3.2 could not be checked here: the statements are paraphrases. Words are ranked "
        "by the run's own text, which is small.",
    )
