"""Huh et al. (2024), *The Platonic Representation Hypothesis*: are spaces alike, beyond the words they share?"""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np

from ctxexp_papers.claims.checks import Bound, Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import KINDS, NEEDED, NOT_OWN, Sampled, Samples, has_measures, in_layers, learned
from ctxexp_papers.claims.source import Inputs, Source, has_twin, model_label

ABSTRACT = "the abstract, arXiv 2405.07987"
LOCAL, GLOBAL = "mutual_knn", "cka"
MEASURES = (LOCAL, GLOBAL)
SAMPLES, ROWS = 20, 400


def pairs(inputs: Inputs, paper: str) -> list[Source]:
    """Every two offered models, each in its middle layer, over the same occurrences: similarity adjusted by random
    order within words (0: chance; 1: a space with itself), raw, and of the untrained twins where both have one."""
    models = [m for m in (inputs.models if has_measures() else ()) if m.split()[0] in KINDS and "weights=" not in m]
    members = []
    for one, other in combinations(models, 2):
        found = _compared(inputs, one, other, ())
        if found is None:
            continue
        both = {KINDS[m.split()[0]] for m in (one, other)} and all(map(has_twin, (one, other)))
        twin = _compared(inputs, one, other, ("weights=untrained",)) if both else None
        members.append(Sampled(f"{model_label(one)}-{model_label(other)}", found, (), twin or {}))
    if not members:
        return []
    command = f"python -m ctxexp claims paper={paper} model='{','.join(models)}'"
    departures = {m.model: [NOT_OWN] for m in members}
    return [Samples("other", "middle layers over the same words of the run's text", departures, [], command, members)]


def _compared(inputs: Inputs, one: str, other: str, options: tuple[str, ...]) -> dict[str, np.ndarray] | None:
    """(samples, 1) by measure, raw and adjusted; None where the models don't have the same occurrences."""
    from ctxexp_compare.face import parse_measures
    from ctxexp_compare.measure import Sample

    from ctxexp_papers.claims.samples import text_samples

    spaces = [space for model in (one, other) if (space := inputs.space(model, *options)) is not None]
    if len(spaces) < 2 or not np.array_equal(spaces[0].spans, spaces[1].spans):
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
            values.setdefault(f"{measure.name} raw", []).append(raw)
            values.setdefault(measure.name, []).append((raw - chance) / (measure.self_score_at(len(sample)) - chance))
    return {name: np.array(column)[:, None] for name, column in values.items()}


def alike(source: Samples) -> list[Check]:
    """A check a pair of models and measure: whether they are alike beyond the words that they share."""
    members = source.of(statistic=LOCAL)
    return [
        in_layers(m, m.values[name], Bound(above=0.0), ways=len(members)).under(name)
        for name in MEASURES
        for m in members
    ]


def more_than_untrained(source: Samples) -> list[Check]:
    """Whether trained models are more alike than the same networks untrained."""
    members = [m for m in source.of(statistic=LOCAL) if m.twin]
    return [learned(m, m.values[name][:, 0], m.twin[name][:, 0]).under(name) for name in MEASURES for m in members]


claim = partial(
    Claim,
    on=(Samples,),
    variants=MEASURES,
    general="pairs of models",
    quote_source=ABSTRACT,
    evidence=f"the paper's language and vision models on its image captions; two or more model= give the same tests of "
    f"pairs of language models ({NEEDED})",
)
CLAIMS = (
    claim(
        id="models-agree",
        section="3",
        statement="Models trained apart represent the same words in alike ways.",
        quote="the ways by which different neural networks represent data are becoming more aligned",
        test="similarity of the middle layers of each pair of models, adjusted by chance within words: its interval "
        "over samples of sentences above 0, by mutual nearest neighbours and by CKA",
        null="one space's rows in random order within words: what two spaces share by which word stands where",
        reason="0: chance within words, which two random vectors a word reach",
        reversal="pairs of models that share no more than their words",
        check=alike,
    ),
    claim(
        id="training-aligns",
        section="3",
        statement="Training aligns them: untrained networks are less alike.",
        quote_source="",
        test="a pair's similarity less that of its untrained twins: both intervals above 0",
        null="the untrained twins, which share the text, the tokenizer and the shape",
        reason="0: as much without training is no convergence",
        reversal="untrained networks that are as alike: a random network too keeps which contexts are alike",
        check=more_than_untrained,
    ),
)


def paper() -> Paper:
    """The paper's claims on pairs of models; that on growth with size needs models of several sizes."""
    return Paper(
        name="huh_2024",
        title="The claims of Huh et al. (2024), The Platonic Representation Hypothesis, tested",
        citation=(
            "Minyoung Huh, Brian Cheung, Tongzhou Wang and Phillip Isola (2024), Position: The Platonic "
            "Representation Hypothesis. ICML"
        ),
        url="https://arxiv.org/abs/2405.07987",
        protocol=Protocol("78 vision models and language models of several sizes, on image captions"),
        claims=CLAIMS,
        sources=partial(pairs, paper="huh_2024"),
        abstract=("models-agree",),
    )
