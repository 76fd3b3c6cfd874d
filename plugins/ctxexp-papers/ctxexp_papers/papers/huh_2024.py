"""Huh et al. (2024), *The Platonic Representation Hypothesis*: are spaces alike, beyond the words they share?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import combinations

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.drawn import draw_instances, drawn_if_possible, within
from ctxexp_papers.claims.fits import contrast_loss, explained, fit, kernel_products, softmax_loss
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import KINDS, NOT_OWN, Sampled, Samples, in_layers
from ctxexp_papers.claims.source import Inputs, Source, model_label

ABSTRACT = "the abstract, arXiv 2405.07987"
LOCAL, GLOBAL = "mutual_knn", "cka"
MEASURES = (LOCAL, GLOBAL)
SAMPLES, ROWS = 20, 400
EVENTS = {"12 events": 12, "30 events": 30}
ENDLESS, BINARY = "InfoNCE, endless negatives", "binary contrast"
DRAWS, NARROW, START = 12, 4, 0.3
OWN_COMPANY = 30.0  # times as often as by chance an event is met beside itself


def pairs(inputs: Inputs, paper: str) -> list[Source]:
    """Every two offered models, each in its middle layer, over the same occurrences: similarity adjusted by random
    order within words (0: chance; 1: a space with itself)."""
    models = [m for m in inputs.models if m.split()[0] in KINDS and "weights=" not in m]
    members = []
    for one, other in combinations(models, 2):
        found = _compared(inputs, one, other)
        if found is not None:
            members.append(Sampled(f"{model_label(one)}-{model_label(other)}", found))
    if not members:
        return []
    command = f"python -m ctxexp claims paper={paper} model='{','.join(models)}'"
    departures = {m.model: [NOT_OWN] for m in members}
    return [Samples("other", "middle layers over the same words of the run's text", departures, [], command, members)]


def _compared(inputs: Inputs, one: str, other: str) -> dict[str, np.ndarray] | None:
    """(samples, 1) by measure, adjusted; None where the models don't have the same occurrences."""
    from ctxexp_compare.face import parse_measures
    from ctxexp_compare.measure import Sample

    from ctxexp_papers.claims.samples import text_samples

    spaces = [inputs.space(model) for model in (one, other)]
    if not np.array_equal(spaces[0].spans, spaces[1].spans):
        return None
    parts = [text_samples(space, samples=SAMPLES, rows=ROWS) for space in spaces]
    layers = [space.layers.layer(space.layers.layer_numbers[len(space.layers.layer_numbers) // 2]) for space in spaces]
    values: dict[str, list[float]] = {}
    for a, b in zip(*parts, strict=True):
        words = np.unique(a.word, return_inverse=True)[1]
        sample = Sample(a.sentence, words=words, strata=words)
        rows = [np.asarray(layer[part.rows], np.float64) for layer, part in zip(layers, (a, b), strict=True)]
        rows = [x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in rows]
        for measure in parse_measures(",".join(MEASURES)):
            one_side, other_side = (measure.prepare_side(x, sample) for x in rows)
            raw = measure.score(one_side, other_side).value
            chance = measure.chance(one_side, other_side, sample, 1).mean
            values.setdefault(measure.name, []).append((raw - chance) / (measure.self_score_at(len(sample)) - chance))
    return {name: np.array(column)[:, None] for name, column in values.items()}


def instance(events: int, rng: np.random.Generator) -> Mapping[str, float]:
    """Of a drawn distribution of pairs of events, each met beside itself the most, by variant (the objective): which
    share of the variance of an optimal learner's kernel PMI explains, and what it explains beyond the log of how often
    pairs meet, and beyond that of a kernel of a quarter of the width."""
    noise = rng.normal(size=(events, events))
    often = rng.permutation(1 / np.sqrt(np.arange(1, events + 1)))
    joint = np.outer(often, often) * np.exp(0.3 * (noise + noise.T) / np.sqrt(2))
    joint[np.diag_indices(events)] *= OWN_COMPANY
    joint /= joint.sum()
    log_p = np.log(joint.sum(axis=0))
    pmi = np.log(joint) - log_p - log_p[:, None]
    values = {}
    for variant, loss in ((ENDLESS, softmax_loss(joint, log_p)), (BINARY, contrast_loss(joint))):
        starts = [(START * rng.normal(size=(events, width)), np.zeros(1)) for width in (events, events // NARROW)]
        wide, narrow = (fit(loss, kernel_products, start) for start in starts)
        share = explained(wide, pmi)
        values[f"kernel, {variant}"] = share
        values[f"beyond joint, {variant}"] = share - explained(wide, np.log(joint))
        values[f"beyond narrow, {variant}"] = share - explained(narrow, pmi)
    return values


def drawn(draws: int = DRAWS) -> Samples:
    """Contrastive learners at their optimum."""
    cases = {name: (partial(instance, n), (2024, n)) for name, n in EVENTS.items()}
    return draw_instances("huh_2024", "contrastive learners fitted to distributions drawn here", cases, draws)


def sources(inputs: Inputs) -> list[Source]:
    """Drawn distributions, and pairs of the offered models."""
    return [*drawn_if_possible(inputs, drawn), *pairs(inputs, "huh_2024")]


def is_pmi(source: Samples) -> list[Check]:
    """Whether an optimal kernel is the PMI, more than it is the joint probability's logarithm and than a narrow one."""
    checks = []
    for variant in (ENDLESS, BINARY):
        bounds = {
            f"kernel, {variant}": Bound(above=1 - NONE),
            f"beyond joint, {variant}": Bound(above=NONE),
            f"beyond narrow, {variant}": Bound(above=NONE),
        }
        checks += within(source, bounds, variant)
    return checks


def alike(source: Samples) -> list[Check]:
    """A check a pair of models and measure: whether they are alike beyond the words that they share."""
    members = source.of(statistic=LOCAL)
    return [
        in_layers(m, m.values[name], Bound(above=0.0), ways=len(members)).under(name)
        for name in MEASURES
        for m in members
    ]


CLAIMS = (
    Claim(
        id="kernel-is-pmi",
        section="4.2",
        statement="A contrastive learner at its optimum has the pointwise mutual information of events as its kernel, "
        "up to a constant.",
        quote="A family of contrastive learners converge to a representation of",
        quote_source="the section's title, arXiv 2405.07987",
        test="kernels of one encoder, fitted to their optimum on drawn distributions of pairs in which each event is "
        f"met beside itself the most ({OWN_COMPANY:g} times as often as by chance): the share of the kernel's variance "
        f"that PMI explains, slope 1, above {1 - NONE}; more than the log of the joint probability does, and more than "
        f"in a kernel of a quarter of the width, by {NONE}: intervals over draws, under both objectives",
        null="a share on the line; how often pairs meet; a kernel too narrow for the distribution",
        reason=f"{NONE} of the variance: an optimum is reached but for the descent's tolerance",
        reversal="such distributions whose optimal kernel is another. Where events aren't their own best company PMI "
        "may be no kernel at all, and nothing is said",
        evidence="nothing but drawn distributions, which `ctxexp claims paper=huh_2024` makes",
        check=is_pmi,
        on=(Samples,),
        models=tuple(EVENTS),
        variants=(ENDLESS, BINARY),
    ),
    Claim(
        id="models-agree",
        section="3",
        statement="Models trained apart represent the same words in alike ways.",
        quote="the ways by which different neural networks represent data are becoming more aligned",
        quote_source=ABSTRACT,
        test="similarity of the middle layers of each pair of models, adjusted by chance within words: its interval "
        "over samples of sentences above 0, by mutual nearest neighbours and by CKA",
        null="one space's rows in random order within words: what two spaces share by which word stands where",
        reason="0: chance within words, which two random vectors a word reach",
        reversal="pairs of models that share no more than their words",
        evidence="the paper's language and vision models on its image captions; two or more model= give the same tests "
        "of pairs of language models",
        check=alike,
        on=(Samples,),
        variants=MEASURES,
        general="pairs of models",
    ),
)


def paper() -> Paper:
    """The paper's claims on kernels and on pairs of models; that on growth with size needs models of several sizes."""
    return Paper(
        name="huh_2024",
        title="The claims of Huh et al. (2024), The Platonic Representation Hypothesis, tested",
        citation=(
            "Minyoung Huh, Brian Cheung, Tongzhou Wang and Phillip Isola (2024), Position: The Platonic "
            "Representation Hypothesis. ICML"
        ),
        url="https://arxiv.org/abs/2405.07987",
        protocol=Protocol(
            "of the kernel: any such distribution; of models: 78 vision models and language models of several sizes, "
            "on image captions"
        ),
        claims=CLAIMS,
        sources=sources,
        abstract=("models-agree",),
        rule="Of the kernel's claim the section's title could be checked; its conditions are from memory.",
    )
