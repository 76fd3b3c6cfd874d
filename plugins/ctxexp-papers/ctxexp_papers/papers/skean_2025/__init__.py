"""Skean et al. (2025), *Layer by Layer*: are middle layers better than the last? Is that learned, what foretells it?"""

from __future__ import annotations

from functools import partial

from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.source import Inputs, Source
from ctxexp_papers.papers.skean_2025 import predictors, scores
from ctxexp_papers.papers.skean_2025.scores import (
    MODELS,
    MOST,
    NEARLY,
    PYTHIA,
    SUBSETS,
    TASKS,
    WITH_INPUT,
    LayerScores,
    above_ends,
    above_last,
    gain_in_range,
    learned,
    mid_depth,
    nearly_every_task,
)

__all__ = ["MODELS", "PYTHIA", "SUBSETS", "TASKS", "LayerScores", "paper"]

TEXT = "arXiv 2502.02013, as published at ICML 2025 (PMLR 267)"


def sources(inputs: Inputs) -> list[Source]:
    """The released results, where their folder is named; then offered decoders on one of the paper's tasks."""
    return [*scores.sources(inputs), *predictors.sources(inputs)]


NULL = (
    "layers of equal truth: of so many the best looks better; the layer is held out, and a bound over all layers at "
    "once decides"
)
TEST = (
    "mean over tasks of the score in the middle layer chosen on the other tasks, less {rival}: its bootstrap interval "
    "over tasks, and the simultaneous one of the true best middle layer, above 0 in every model"
)
NEEDS = "the released results, github.com/OFSkean/information_flow (released=<folder with mteb_by_layer.csv.xz>)"
claim = partial(Claim, on=(LayerScores,), variants=tuple(SUBSETS), evidence=NEEDS, quote_source=TEXT)
CLAIMS = (
    claim(
        id="middle-above-last",
        section="4.1",
        statement="A middle layer is better than the last on average over tasks, in every model.",
        quote="Intermediate layers of language models consistently outperform final layers across all architectures "
        "and tasks",
        test=TEST.format(rival="the last layer's"),
        null=NULL,
        reason="0: the paper says better, not by how much",
        reversal="a model whose middle layers all lie below its last",
        check=above_last,
        models=tuple(MODELS),
    ),
    claim(
        id="middle-above-ends",
        section="4.1.2",
        statement="The best layer is in the middle: better than both the input layer and the last, in every model.",
        quote="the best layer often resides around the mid-depth of the network",
        test=TEST.format(rival="that of the better of input and last layer, chosen likewise"),
        null=f"{NULL}; a layer is better than the last for no other reason than not being the last",
        reason="0; the input layer, which knows no context, is the control that the last layer isn't",
        reversal="small models whose middle layers exceed their input layer",
        check=above_ends,
        models=WITH_INPUT,
    ),
    claim(
        id="nearly-every-task",
        section="4.1.2",
        statement="In nearly every task a middle layer is better than the last.",
        quote="In nearly every task, some intermediate layer outperforms the final layer.",
        test=f"share of tasks in which the layer chosen on the other tasks exceeds the last: Wilson's interval above "
        f"{NEARLY:.0%} in every model",
        null="of several layers of equal truth some one exceeds the last in nearly every task by chance: the best "
        "layer of each task itself proves nothing",
        reason="four tasks in five: `nearly every` is more, but 32 tasks can't establish nine in ten",
        reversal="a layer that wins nearly all of the tasks on which it wasn't chosen",
        check=nearly_every_task,
        models=tuple(MODELS),
    ),
    claim(
        id="gain-2-to-16",
        section="4.1",
        statement="The gain over the last layer is 2 to 16 points.",
        quote="The absolute improvement ranges from 2% to as high as 16% on average",
        quote_source="",
        test="the gain of the middle layer chosen on the other tasks over the last layer: its interval, and the "
        "simultaneous one of any middle layer, between 2 and 16 points in every model",
        null="a gain on either end of the range",
        reason="2 and 16, the paper's own numbers, read as points of the mean score",
        reversal="a model whose gain is below 2 points, or above 16",
        check=gain_in_range,
        models=tuple(MODELS),
    ),
    claim(
        id="best-at-mid-depth",
        section="4.1.2",
        statement="In most Pythia models the best layer lies in the middle half of the depth.",
        quote="the best layer often resides around the mid-depth of the network",
        test="mean score of the best layer from a quarter to three quarters of the depth, less that of the best one "
        "outside, each chosen on the other tasks: its interval, and the simultaneous one, above 0 in more than half of "
        "the models",
        null="layers of equal truth: the best looks better wherever it lies",
        reason="a quarter and three quarters: the paper says around the mid-depth, and gives no bounds; more than half "
        "of the models, for `often`",
        reversal="two models or more whose best layer lies in the outer quarters",
        check=mid_depth,
        models=(MOST,),
    ),
    claim(
        id="gain-is-learned",
        section="4.1.2",
        statement="The gain of the middle layers over the last comes of training.",
        quote="these sweet spots are not random but tied to how intermediate layers are processing information",
        test="gain over the last layer of Pythia-410m less that of the same network at step 1, task by task: its "
        "interval above 0",
        null="the untrained network's gain: its last layer is the furthest from the input, and worse for that alone",
        reason="0: as much as without training is not learned",
        reversal="a trained gain beyond the untrained one's interval",
        check=learned,
        models=("pythia-410m",),
    ),
    *predictors.CLAIMS,
)


def paper() -> Paper:
    """The paper's claims."""
    return Paper(
        name="skean_2025",
        title="The claims of Skean et al. (2025), Layer by Layer, tested",
        citation=(
            "Oscar Skean, Md Rifat Arefin, Dan Zhao, Niket Patel, Jalal Naghiyev, Yann LeCun, Ravid Shwartz-Ziv "
            "(2025), Layer by Layer: Uncovering Hidden Representations in Language Models. ICML, PMLR 267"
        ),
        url="https://arxiv.org/abs/2502.02013",
        protocol=Protocol("models and tasks of the authors' released MTEB results, averaged over 32 tasks"),
        claims=CLAIMS,
        sources=sources,
        released="github.com/OFSkean/information_flow",
    )
