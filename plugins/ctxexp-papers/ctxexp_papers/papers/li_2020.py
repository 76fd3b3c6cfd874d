"""Li et al. (2020), BERT-flow: what are a language model's products, and does a flow make sentence vectors better?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.drawn import draw_instances, drawn_if_possible, within
from ctxexp_papers.claims.fits import explained, fit, free_products, softmax_loss, tied_products
from ctxexp_papers.claims.pairs import RatedPairs, cosines, encode, parts_of, sentence_pairs
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import SAMPLES, Sampled, Samples, exceeds
from ctxexp_papers.claims.source import Inputs, Source

ABSTRACT = "the abstract, ACL Anthology 2020.emnlp-main.733"
PAIRS = 1400  # all 1,379 of the test set
NOT_OWN_WEIGHTS = "not the paper's weights"
WORDS = {"12 words": 12, "24 words": 24}
FREE, TIED = "free contexts", "contexts tied to the table"
DRAWS = 8
NARROW = 6  # of which part of the sufficient width the rival has
START = 0.3


def instance(words: int, rng: np.random.Generator) -> Mapping[str, float]:
    """Of a drawn distribution, by variant: what share of the products' variance within contexts PMI + log p explains,
    and what it explains beyond log p alone, and beyond that in a model of a sixth of the width."""
    values = {}
    for variant, contexts in ((FREE, 2 * words), (TIED, words)):
        often = rng.permutation(1 / np.arange(1, words + 1))
        joint = often * np.exp(rng.normal(size=(contexts, words))) * rng.gamma(2, size=(contexts, 1))
        joint /= joint.sum()
        formula = np.log(joint / joint.sum(axis=1, keepdims=True))  # PMI + log p
        wide, narrow = (_fitted(joint, width, variant, rng) for width in (words, words // NARROW))
        share = explained(wide, formula, axis=1)
        log_p = np.broadcast_to(np.log(joint.sum(axis=0)), joint.shape)
        values[f"link, {variant}"] = share
        values[f"beyond log p, {variant}"] = share - explained(wide, log_p, axis=1)
        values[f"beyond narrow, {variant}"] = share - explained(narrow, formula, axis=1)
    return values


def _fitted(joint: np.ndarray, width: int, variant: str, rng: np.random.Generator) -> np.ndarray:
    """Products (contexts, words) of the model of this width at its optimum."""
    contexts, words = joint.shape
    table = START * rng.normal(size=(words, width))
    if variant == TIED:
        return fit(softmax_loss(joint), tied_products, (START * rng.normal(size=(width, width)), table))
    return fit(softmax_loss(joint), free_products, (START * rng.normal(size=(contexts, width)), table))


def drawn(draws: int = DRAWS) -> Samples:
    """Language models at their optimum."""
    cases = {name: (partial(instance, n), (2020, n)) for name, n in WORDS.items()}
    return draw_instances("li_2020", "softmax models fitted to distributions drawn here", cases, draws)


def linked(source: Samples) -> list[Check]:
    """Whether the formula explains the products, more than frequency does and more than those of too narrow a model."""
    checks = []
    for variant in (FREE, TIED):
        bounds = {
            f"link, {variant}": Bound(above=1 - NONE),
            f"beyond log p, {variant}": Bound(above=NONE),
            f"beyond narrow, {variant}": Bound(above=NONE),
        }
        checks += within(source, bounds, variant)
    return checks


def on_pairs(inputs: Inputs) -> list[Samples]:
    """Offered encoders on pairs of the STS benchmark, in disjoint samples: Spearman's rho of similarity with ratings,
    by the mean of the last two layers and by that mean mapped by a flow."""
    models = [m for m in inputs.models if m.split()[0] == "bert"]
    pairs = sentence_pairs(PAIRS) if models else None
    if pairs is None:
        return []
    members = [_of_pairs(model, pairs) for model in models]
    command = f"STS=<folder of STSbenchmark> python -m ctxexp claims paper=li_2020 model='{','.join(models)}'"
    departures = {m.model: [NOT_OWN_WEIGHTS] for m in members}
    return [Samples("other", "pairs of the STS benchmark", departures, [], command, members)]


def _of_pairs(model: str, pairs: RatedPairs) -> Sampled:
    from ctxexp_measures.calibration.flow.transform import Flow

    from ctxexp.maths import spearman

    vectors = encode(model, [*pairs.first, *pairs.second])
    n = len(pairs.gold)
    mean = (vectors.means(-2) + vectors.means(-1)).astype(np.float32) / 2
    known = np.isfinite(mean).all(axis=1)
    flowed = np.full_like(mean, np.nan)
    flowed[known] = Flow(device="cpu").fit(mean[known]).apply(mean[known])
    both, flow = (cosines(x[:n], x[n:]) for x in (mean, flowed))
    finite = np.flatnonzero(np.isfinite(both))
    parts = [finite[part] for part in parts_of(len(finite), SAMPLES)]
    return Sampled(
        model,
        {
            name: np.array([[spearman(similarity[rows], pairs.gold[rows])] for rows in parts])
            for name, similarity in (("last two", both), ("flow", flow))
        },
    )


def gains(source: Samples) -> list[Check]:
    """Whether the rank correlation by the flow exceeds that before."""
    members = source.of("encoder", statistic="flow")
    return [
        exceeds(
            Sampled(m.model, {}), m.values["flow"][:, 0], m.values["last two"][:, 0], ways=len(members), text="of rho"
        )
        for m in members
    ]


def sources(inputs: Inputs) -> list[Source]:
    """Fitted models, and pairs of sentences."""
    return [*drawn_if_possible(inputs, drawn), *on_pairs(inputs)]


CLAIMS = (
    Claim(
        id="softmax-link",
        section="3.1",
        statement="At a language model's optimum the product of a context and a word is PMI + log p(word) + a constant "
        "of the context.",
        quote="We first reveal the theoretical connection between the masked language model pre-training objective and "
        "the semantic similarity task theoretically",
        quote_source=ABSTRACT,
        test="softmax models fitted to their optimum on drawn distributions, wide enough for any: the share of the "
        f"products' variance within contexts that PMI + log p explains, slope 1, above {1 - NONE}; more than log p "
        f"alone does, and more than in a model of a {NARROW}th of the width, by {NONE}: intervals over draws",
        null="a share on the line; frequency alone; a model too narrow for the distribution",
        reason=f"{NONE} of the variance: an optimum is reached but for the descent's tolerance",
        reversal="distributions whose optimum has other products. Of narrow models, as language models are for their "
        "vocabularies, nothing is said",
        evidence="nothing but drawn distributions, which `ctxexp claims paper=li_2020` makes",
        check=linked,
        on=(Samples,),
        models=tuple(WORDS),
        variants=(FREE, TIED),
    ),
    Claim(
        id="flow-gains",
        section="4.2",
        statement="Mapped to a Gaussian by a flow that is fitted to them, sentence vectors are better than before.",
        quote="obtains significant performance gains over the state-of-the-art sentence embeddings on a variety of "
        "semantic textual similarity tasks",
        quote_source=ABSTRACT,
        test="Spearman's rho of similarity with the ratings, by the flow (2 levels, one epoch, fitted to these "
        "sentences) of the mean of the last two layers less by that mean: its interval over samples of pairs above 0",
        null="no difference between both",
        reversal="encoders whose vectors a flow leaves as good, or makes worse",
        check=gains,
        on=(Samples,),
        general="BERT without fine-tuning",
        reason="0: the paper says better and more, and its tables have no intervals",
        evidence="BERT-base and BERT-large; model=bert with STS=<folder of STSbenchmark> in the environment, and "
        "ctxexp-measures, gives the same test",
    ),
)


def paper() -> Paper:
    """The paper's claims on the link and on the flow; its tables of all seven tasks are ctxexp-measures's
    `experiment=li_2020`."""
    return Paper(
        name="li_2020",
        title="The claims of Li et al. (2020), BERT-flow, tested",
        citation=(
            "Bohan Li, Hao Zhou, Junxian He, Mingxuan Wang, Yiming Yang and Lei Li (2020), On the Sentence Embeddings "
            "from Pre-trained Language Models. EMNLP, pp. 9119-9130"
        ),
        url="https://aclanthology.org/2020.emnlp-main.733",
        protocol=Protocol("of the theorem: any distribution; of models: BERT-base and BERT-large"),
        claims=CLAIMS,
        sources=sources,
        abstract=("softmax-link", "flow-gains"),
        rule="Only the abstract could be checked here: sections are from memory.",
    )
