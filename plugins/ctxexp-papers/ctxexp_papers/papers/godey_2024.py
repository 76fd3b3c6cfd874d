"""Godey, de la Clergerie & Sagot (2024): is anisotropy inherent to self-attention? Untrained blocks, and models."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.drawn import drawn_if_possible
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import (
    Sampled,
    Samples,
    TextSample,
    exceeds,
    in_layers,
    learned,
    measured,
    middle,
)  # fmt: skip
from ctxexp_papers.claims.source import Inputs, Source

ABSTRACT = "the abstract, arXiv 2401.12143"
BLOCK = "untrained block"
DRIFTS = (0.0, 1.0, 4.0, 16.0)
"""Lengths of the common vector, as multiples of the embeddings' mean length."""
SEQUENCES, LENGTH = 2, 512  # the paper has 16 of 512; here each of the drawn blocks has two of its own


def untrained_block(seed: int, *, sequences: int = SEQUENCES, length: int = LENGTH) -> Mapping[str, float]:
    """An untrained block of BERT-base's shape and initialisation on random embeddings with a common vector of growing
    length: the outputs' mean cosine less the inputs', and how sharp attention is, by drift."""
    import torch
    from transformers import BertConfig, BertModel

    from ctxexp.maths import mean_cosine

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = BertConfig(num_hidden_layers=1, vocab_size=2000, attn_implementation="eager")
        network = BertModel(config, add_pooling_layer=False).eval()
        table = network.embeddings.word_embeddings.weight.detach()
        x = table[torch.randint(1, len(table), (sequences, length))]
        drift = torch.nn.functional.normalize(torch.randn(config.hidden_size), dim=0) * table[1:].norm(dim=1).mean()
        values = {}
        for times in DRIFTS:
            with torch.no_grad():
                hidden = network.encoder(x + times * drift).last_hidden_state
                attention = network.encoder.layer[0].attention.self(x + times * drift)[1]
            hidden = hidden[:, ::8].reshape(-1, config.hidden_size).double().numpy()
            values[f"cosine {times:g}"] = float(mean_cosine(hidden))
            values[f"sharpness {times:g}"] = float(attention.amax(dim=-1).mean() * length)
    return values


def drawn(draws: int = 6) -> Samples:
    """Untrained blocks, each with its own weights and embeddings."""
    rows = [untrained_block(seed) for seed in range(draws)]
    values = {key: np.array([[row[key]] for row in rows]) for key in rows[0]}
    command = "python -m ctxexp claims paper=godey_2024"
    title = f"untrained blocks as BERT initialises them, drawn here, on {LENGTH} random embeddings"
    return Samples("protocol", title, command=command, members=[Sampled(BLOCK, values)])


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """The mean cosine of random words, and of all but first words."""
    from ctxexp.maths import mean_cosine

    return {"cosine": float(mean_cosine(x)), "later": float(mean_cosine(x[~sample.is_first]))}


def sources(inputs: Inputs) -> list[Source]:
    """The offered Transformers with their untrained twins; untrained blocks."""
    kinds = ("decoder", "encoder")
    found = measured(inputs, "godey_2024", statistics, title="the run's text", kinds=kinds, twins=True)
    return [*drawn_if_possible(inputs, drawn), *found]


def drifts(source: Samples, statistic: str) -> list[Check]:
    """Whether a value of the untrained block rises with every longer common vector."""
    checks = []
    for m in source.members:
        if f"{statistic} 0" not in m.values:
            continue
        curve = np.concatenate([m.values[f"{statistic} {times:g}"] for times in DRIFTS], axis=1)
        checks.append(in_layers(Sampled(m.model, {}), np.diff(curve, axis=1), Bound(above=0.0)))
    return checks


def inherent(source: Samples) -> list[Check]:
    """Whether every hidden layer of every Transformer is anisotropic."""
    members = source.of("decoder", "encoder", statistic="cosine")
    checks = []
    for name, statistic in READINGS.items():
        for m in members:
            hidden = Sampled(m.model, {}, m.layers[1:])
            check = in_layers(hidden, m.values[statistic][:, 1:], Bound(above=NONE), ways=len(members))
            checks.append(check.under(name))
    return checks


def untrained_too(source: Samples) -> list[Check]:
    """Whether untrained networks are anisotropic in their last layer."""
    members = [m for m in source.of("decoder", "encoder", statistic="cosine") if m.twin]
    return [exceeds(Sampled(m.model, {}), m.twin["cosine"][:, -1], NONE, ways=len(members)) for m in members]


def training_adds(source: Samples) -> list[Check]:
    """Whether training makes the middle layer more anisotropic than the untrained twin's."""
    members = [m for m in source.of("decoder", "encoder", statistic="cosine") if m.twin]
    return [learned(m, m.values["cosine"][:, middle(m)], m.twin["cosine"][:, middle(m)]) for m in members]


READINGS = {"all words": "cosine", "without first words": "later"}
claim = partial(
    Claim,
    on=(Samples,),
    general="Transformers",
    null="a mean cosine on the margin",
    evidence="the paper's models; model= gives the same tests of a Transformer",
    reason=f"{NONE}, the margin of equivalence for cosines: anything above 0 would be met by a mean of rounding",
)
of_block = partial(
    claim,
    general="",
    null="a value that a longer common vector leaves as it is",
    reason="0: the paper shows a rise, and gives no size that could be checked",
    reversal="a block whose value falls as the drift grows",
    evidence="nothing but untrained blocks, which `ctxexp claims paper=godey_2024` draws",
    models=(BLOCK,),
)
CLAIMS = (
    claim(
        id="inherent",
        section="3",
        statement="Every hidden layer of every Transformer is anisotropic.",
        quote="Our observations suggest that anisotropy is actually inherent to Transformers-based models.",
        quote_source=ABSTRACT,
        test="the mean cosine of random words: its interval over samples of sentences above .05 in every hidden layer",
        reversal="a trained Transformer with an isotropic layer",
        check=inherent,
        variants=tuple(READINGS),
        contradicts=("machina_2024/isotropic-exists",),
    ),
    claim(
        id="untrained-too",
        section="5",
        statement="It needs no training: untrained networks are anisotropic in their last layer.",
        test="the mean cosine in the last layer of the untrained twin: its interval above .05",
        reversal="untrained networks that are isotropic",
        check=untrained_too,
    ),
    claim(
        id="training-adds",
        section="5",
        statement="Training adds to it.",
        test="mean cosine in the middle layer less that of the untrained twin: both intervals above 0",
        null="the untrained twin's mean cosine",
        reversal="trained layers that are no more anisotropic than untrained ones",
        check=training_adds,
    ),
    of_block(
        id="drift-makes-it",
        section="5",
        statement="A common vector in the input of an untrained block makes its output anisotropic.",
        test="the output's mean cosine rises with each longer common vector (0, 1, 4 and 16 times the embeddings' "
        "length): intervals over drawn blocks above 0",
        check=partial(drifts, statistic="cosine"),
    ),
    of_block(
        id="drift-sharpens",
        section="5",
        statement="It sharpens attention.",
        test="the largest attention of a position, as a multiple of the even one, rises with each longer common vector",
        check=partial(drifts, statistic="sharpness"),
    ),
)


def paper() -> Paper:
    """The paper's claims; those on other modalities and on characters need its models."""
    return Paper(
        name="godey_2024",
        title="The claims of Godey et al. (2024), Anisotropy Is Inherent to Self-Attention, tested",
        citation=(
            "Nathan Godey, Éric de la Clergerie and Benoît Sagot (2024), Anisotropy Is Inherent to Self-Attention in "
            "Transformers. EACL (2024.eacl-long.3)"
        ),
        url="https://arxiv.org/abs/2401.12143",
        protocol=Protocol("models of several modalities; untrained blocks as BERT's, 16 sequences of 512"),
        claims=CLAIMS,
        sources=sources,
        rule="Only the abstract and the set-up of section 5 could be checked; the statements on untrained blocks are "
        "paraphrases.",
        abstract=("inherent",),
    )
