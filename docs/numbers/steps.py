"""What is typed to make each part of the docs that models have a share in."""

from __future__ import annotations

from dataclasses import dataclass

SWEEP = "mlruns/results/*/summary"


@dataclass(frozen=True)
class Step:
    """`commands` are typed in an empty folder, and what they leave at `made` there is taken by the Part in the module
    of the step's name; without `made` they are typed in the checkout, and write by themselves."""

    commands: str
    made: str = ""
    needs: tuple[str, ...] = ()
    """Variables of the environment: folders of data."""


STEPS = {
    "golden": Step("python -m tests.golden --write"),
    "card": Step('python -m docs.numbers.card --sts "$STS" --write', needs=("STS",)),
    "gallery": Step("python -m docs.numbers.gallery"),
    "explorer": Step("python -m docs.numbers.explorer"),
    "court": Step(
        'python -m ctxexp claims released="$RELEASED" model=gpt2,bert,elmo,smollm2,minilm,glove out=claims',
        "claims",
        ("RELEASED", "STS"),
    ),
    "precision": Step("python -m docs.numbers.precision"),
    "notebooks": Step("python tests/test_notebooks.py"),
    "multiverse": Step("python -m ctxexp -m experiment=multiverse", SWEEP),
    "two_spaces": Step("python -m ctxexp compare bert gpt2 elmo minilm smollm2 layers=8", "compare"),
    "what_is_context": Step(
        "python -m ctxexp -m experiment=what_is_context model=bert,gpt2,elmo,smollm2 dataset=polysemy,semcor_sample",
        SWEEP,
        ("SEMCOR",),
    ),
    "by_class": Step(
        "python -m ctxexp -m dataset=semcor_sample metric=by_class control=no_sinks model=bert,gpt2,elmo,smollm2",
        SWEEP,
        ("SEMCOR",),
    ),
    "usages": Step(
        'python -m ctxexp -m dataset=wic dataset.path="$WIC" metric=wic model=bert,minilm\n'
        'python -m ctxexp dataset=wic dataset.path="$WIC" metric=wic model=smollm2 dtype=bfloat16\n'
        'python -m ctxexp -m dataset=dwug dataset.path="$DWUG" dataset.subset=subset1,subset2 metric=semantic_change '
        "model=bert,minilm",
        "mlruns",
        ("WIC", "DWUG"),
    ),
    "first_word": Step("python -m ctxexp -m experiment=first_word dataset=polysemy,sts_b_given", SWEEP, ("STS",)),
    "league": Step(
        'python -m ctxexp -m experiment=calibration_league model=bert,gpt2,elmo dataset.path="$STS"', SWEEP, ("STS",)
    ),
    "table_1": Step(
        'python -m ctxexp -m experiment=table_1 model=glove,minilm,smollm2 dataset.path="$STS" '
        'metric.static_vectors.data="$BENCHMARKS"',
        SWEEP,
        ("STS", "BENCHMARKS"),
    ),
    "probe": Step(
        "ctxexp probe use=frozen,mix,all out=probe/mini\n"
        "ctxexp probe use=frozen,mix,all weights=untrained out=probe/untrained",
        "probe",
    ),
    "contrastive": Step(
        'ctxexp train objective=contrastive folder=trained text="$CORPUS"\n'
        'ctxexp train objective=contrastive contrastive.untrained=true steps=100 folder=untrained text="$CORPUS"\n'
        "python -m ctxexp -m dataset=sts_b metric=[sts,sentence_geometry] sentence.pooling=mean "
        'model=bert weights=mini,untrained transform=none,whitening,flow dataset.path="$STS"\n'
        "python -m ctxexp -m dataset=sts_b metric=[sts,sentence_geometry] sentence.pooling=mean "
        'model=trained/export,untrained/export transform=none,whitening,flow dataset.path="$STS"',
        "mlruns",
        ("CORPUS", "STS"),
    ),
    "distil": Step(
        'ctxexp distil minilm out=distil/minilm data="$STS"\nctxexp distil bert out=distil/bert data="$STS"',
        "distil",
        ("STS",),
    ),
    "softmax_link": Step("ctxexp link gpt2 bert", "link"),
    "label_probe": Step("ctxexp probe model=bert,gpt2,elmo labels=pos,sense control=none,alone", SWEEP),
    "split_words": Step("ctxexp split-words gpt2 bert", "split_words"),
    "training_steps": Step(
        'ctxexp train -m model=bert,gpt2 size=quick tracking=null text="$TEXT"\n'
        "ctxexp steps outputs/minis/bert/checkpoints outputs/minis/gpt2/checkpoints "
        "metric=[anisotropy,self_similarity,first_word_length]",
        SWEEP,
        ("TEXT",),
    ),
    "penalty": Step("python -m docs.numbers.penalty", needs=("TEXT",)),
    "points": Step("python -m docs.numbers.points"),
    "atlas": Step("python -m docs.numbers.atlas all"),
    "drift": Step("python -m docs.numbers.drift bert,gpt2,minilm"),
    "itself": Step("python -m docs.numbers.itself"),
    "known_model": Step("python -m docs.numbers.known_model"),
    "pins": Step("python -m docs.numbers.pins"),
    "sinks": Step("python -m docs.numbers.sinks"),
    "word_mix": Step("python -m docs.numbers.word_mix", needs=("STS",)),
    "floors": Step("python -m docs.numbers.floors", needs=("STS",)),
}
