"""The commands that make each part of the docs that shows numbers of models."""

from __future__ import annotations

import pandas as pd
from ctxexp_measures.senses.components.figure import DECIMALS

from docs.numbers import collect, tables
from docs.numbers.part import Drawing, Part, Step, rounded

STS_RUNS = (
    'python -m ctxexp -m dataset=sts_b metric=[sts,sentence_geometry] sentence.pooling=mean dataset.path="$STS" '
    "transform=none,whitening,flow"
)
SENTENCES = (  # the first 105, which are of seven ambiguous words
    'python -c \'from ctxexp.command import registry; text = registry().find("dataset", "polysemy").factory(); '
    'print(*(one.text for one in text.sentences[:105]), sep="\\n")\' > sentences.txt'
)

STEPS: dict[str, Step] = {
    "golden": Step("python -m tests.golden --write"),
    "card": Step("python -m docs.numbers.card", needs=("STS",)),
    "pictures": Step("python -m docs.numbers.pictures"),
    "notebooks": Step("python tests/test_notebooks.py"),
    "atlas": Step("python -m docs.numbers.atlas all"),
    "sinks": Step("python -m docs.numbers.sinks"),
    "word_mix": Step("python -m docs.numbers.word_mix", needs=("STS",)),
    "floors": Step("python -m docs.numbers.floors", needs=("STS",)),
    "court": Part(
        mark="court",
        page="docs/measures/court.md",
        numbers="court.csv",
        commands='python -m ctxexp claims released="$RELEASED" model=gpt2,bert,elmo,smollm2,minilm,glove out=claims',
        output_glob="claims",
        needs=("RELEASED", "SEMCOR", "STS"),
        collect=lambda output: pd.read_csv(output / "claims.csv"),
        table=tables.court,
    ),
    "follows": Part(
        mark="follows",
        page="docs/measures/court.md",
        numbers="follows.csv",
        commands="python -m ctxexp claims out=claims",
        output_glob="claims",
        collect=lambda output: pd.read_csv(output / "follows.csv"),
        table=tables.follows,
    ),
    "multiverse": Part(
        mark="multiverse",
        page="docs/how-to/test-the-papers-claims.md",
        numbers="multiverse.csv",
        commands="python -m ctxexp -m experiment=multiverse",
        collect=collect.multiverse,
        table=tables.multiverse,
        figures={"multiverse.png": "multiverse.png"},
    ),
    "contextuality": Part(
        mark="contextuality",
        page="docs/measures/contextuality.md",
        numbers="contextuality.csv",
        commands="python -m ctxexp -m model=bert,gpt2,elmo,minilm,smollm2 control=none,alone "
        "metric=[contextuality,self_similarity,intra_sentence_similarity,anisotropy]",
        output_glob="mlruns",
        collect=collect.contextuality,
        table=tables.contextuality,
    ),
    "known_contextuality": Part(  # of what `python -m benchmarks.known_contextuality FOLDER` writes
        mark="known contextuality",
        page="docs/measures/known-contextuality.md",
        numbers="known_contextuality.csv",
        collect=collect.known_contextuality,
        table=tables.known_contextuality,
    ),
    "two_spaces": Part(
        mark="numbers",
        page="docs/measures/two-spaces.md",
        numbers="two_spaces.csv",
        commands="python -m ctxexp compare bert gpt2 elmo minilm smollm2 layers=8",
        output_glob="compare",
        collect=collect.two_spaces,
        table=tables.two_spaces,
        figures={f"two_spaces_{measure}.png": f"compare_{measure}.png" for measure in tables.COMPARISONS},
    ),
    "what_is_context": Part(
        mark="what is context",
        page="docs/measures/variance-components.md",
        numbers="what_is_context.csv",
        commands="python -m ctxexp -m experiment=what_is_context model=bert,gpt2,elmo,smollm2",
        collect=rounded("table_what_is_context.csv", DECIMALS),
        table=tables.what_is_context,
        figures={"what_is_context.png": "what_is_context.png"},
    ),
    "first_word": Part(
        mark="first word",
        page="docs/measures/attention-sink.md",
        numbers="first_word.csv",
        commands="python -m ctxexp -m experiment=first_word dataset=polysemy,sts_b_given",
        needs=("STS",),
        collect=rounded("table_first_word.csv"),
        table=tables.first_word,
        figures={"first_word.png": "first_word.png"},
    ),
    "league": Part(
        mark="calibration league",
        page="docs/measures/transforms.md",
        numbers="calibration_league.csv",
        commands='python -m ctxexp -m experiment=calibration_league model=bert,gpt2,elmo dataset.path="$STS"',
        needs=("STS",),
        collect=collect.league,
        table=tables.league,
        figures={"calibration_league.png": "isotropy_against_spearman.png"},
    ),
    "contrastive": Part(
        mark="contrastive",
        page="docs/how-to/calibrate-and-compare-sentences.md",
        numbers="contrastive.csv",
        commands='ctxexp train objective=contrastive folder=trained text="$CORPUS"\n'
        'ctxexp train objective=contrastive contrastive.untrained=true steps=100 folder=untrained text="$CORPUS"\n'
        f"{STS_RUNS} model=bert weights=mini,untrained\n{STS_RUNS} model=trained/export,untrained/export",
        output_glob="mlruns",
        needs=("CORPUS", "STS"),
        collect=collect.contrastive,
        table=tables.contrastive,
    ),
    "distil": Part(
        mark="distil",
        page="docs/how-to/word-vectors.md",
        numbers="distil.csv",
        commands='ctxexp distil minilm out=distil/minilm data="$STS"',
        output_glob="distil",
        needs=("STS",),
        collect=collect.distil,
        table=tables.distil,
    ),
    "label_probe": Drawing(
        commands="ctxexp probe model=bert,gpt2,elmo labels=pos,sense",
        figures={"probe_layers.png": "probe_layers.png"},
    ),
    "training_steps": Drawing(
        commands='ctxexp train -m model=bert,gpt2 size=quick tracking=null text="$TEXT"\n'
        "ctxexp steps outputs/minis/bert/checkpoints outputs/minis/gpt2/checkpoints "
        "metric=[contextuality,anisotropy,first_word_length]",
        needs=("TEXT",),
        figures={"training_steps.png": "training_steps.png"},
    ),
    "minis": Part(
        mark="trainings",
        page="docs/how-to/train-and-follow.md",
        numbers="trainings.csv",
        commands='ctxexp train -m model=bert,gpt2 seed=0,1,2 size=quick tracking=null keep=null text="$TEXT"\n'
        'ctxexp train -m model=elmo seed=0,1,2 words=1200000 steps=256 tracking=null keep=null text="$TEXT" '
        "model.options.lstm.dim=256 model.options.lstm.projection_dim=32 "
        "'model.options.char_cnn.filters=[[1,8],[2,8],[3,16],[4,32],[5,64]]'",
        output_glob="outputs/minis",
        needs=("TEXT",),
        collect=collect.minis,
        table=tables.minis,
    ),
    "points": Drawing(
        commands=f"{SENTENCES}\n"
        "python -m ctxexp -m model=smollm2 model.prefix=bos dataset=text dataset.path=sentences.txt "
        "model.point=residual,attention,mlp metric=variance_components",
        figures={"inside_a_block.png": "what_is_context.png"},
    ),
    "interval_coverage": Part(  # of what `python -m benchmarks.interval_coverage` left in a folder
        mark="interval coverage",
        page="docs/measures/intervals.md",
        numbers="interval_coverage.csv",
        collect=collect.interval_coverage,
        table=tables.interval_coverage,
    ),
}
