"""What ships, by its registered name, as a config finds it: in which file a class lies is no test's business."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ctxexp.command import registry

KINDS = ("model", "dataset", "control", "transform", "metric", "baseline", "sink", "engine")
GROUPS = (*KINDS, "weights", "experiment")  # of config files


def shipped(kind: Any, name: str) -> Any:
    """The class or function behind the name."""
    return registry().find(kind, name).factory


def mini(name: str) -> Path:
    """The folder of a small model that comes along."""
    return Path(shipped("model", name).model_files[0].find())


Anisotropy = shipped("metric", "anisotropy")
Contextuality = shipped("metric", "contextuality")
IntraSentenceSimilarity = shipped("metric", "intra_sentence_similarity")
MaxExplainableVariance = shipped("metric", "max_explainable_variance")
SelfSimilarity = shipped("metric", "self_similarity")
SenseSeparation = shipped("metric", "sense_separation")
STS = shipped("metric", "sts")
WordNorm = shipped("metric", "word_norm")

OnePerSentence = shipped("baseline", "one_per_sentence")
SizeMatched = shipped("baseline", "size_matched")
Uniform = shipped("baseline", "uniform")

AllButTheTop = shipped("transform", "all_but_the_top")
Center = shipped("transform", "center")
Nothing = shipped("transform", "none")
Standardize = shipped("transform", "standardize")
UnitNorm = shipped("transform", "unit_norm")
Whitening = shipped("transform", "whitening")

Alone = shipped("control", "alone")
NoFirst = shipped("control", "no_first")
NoSinks = shipped("control", "no_sinks")
Shuffled = shipped("control", "shuffled")

MlflowSink = shipped("sink", "mlflow")

bert = shipped("model", "bert")
elmo = shipped("model", "elmo")
gpt2 = shipped("model", "gpt2")
huggingface = shipped("model", "huggingface")
random_words = shipped("model", "random_words")
word_vectors = shipped("model", "word_vectors")

polysemy = shipped("dataset", "polysemy")
sick_r = shipped("dataset", "sick_r")
sts = shipped("dataset", "sts")
sts_2012_2016 = shipped("dataset", "sts_2012_2016")
sts_b = shipped("dataset", "sts_b")
text = shipped("dataset", "text")
