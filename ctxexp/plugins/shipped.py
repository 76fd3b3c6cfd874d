"""What ships with ctxexp, by the hooks that every plugin has: each name with the place of its factory."""

from __future__ import annotations

from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_models(register: Register) -> None:
    register("bert", "ctxexp.models.huggingface:bert")
    register("gpt2", "ctxexp.models.huggingface:gpt2")
    register("elmo", "ctxexp.models.elmo:elmo")
    register("huggingface", "ctxexp.models.huggingface:huggingface")
    register("random_words", "ctxexp.models.word_vectors:random_words")
    register("word_vectors", "ctxexp.models.word_vectors:word_vectors")


@hookimpl
def register_datasets(register: Register) -> None:
    register("polysemy", "ctxexp.datasets:polysemy")
    register("sts_2012_2016", "ctxexp.datasets.sts:sts_2012_2016")
    register("sts_b", "ctxexp.datasets.sts:sts_b")
    register("sick_r", "ctxexp.datasets.sts:sick_r")
    register("sts", "ctxexp.datasets.sts:sts")
    register("text", "ctxexp.datasets.text:text")


@hookimpl
def register_controls(register: Register) -> None:
    register("none", "ctxexp.controls:Uncontrolled")
    register("alone", "ctxexp.controls:Alone")
    register("shuffled", "ctxexp.controls:Shuffled")
    register("no_first", "ctxexp.controls:NoFirst")
    register("no_sinks", "ctxexp.controls:NoSinks")


@hookimpl
def register_transforms(register: Register) -> None:
    register("none", "ctxexp.transforms:Nothing")
    register("center", "ctxexp.transforms:Center")
    register("standardize", "ctxexp.transforms:Standardize")
    register("all_but_the_top", "ctxexp.transforms:AllButTheTop")
    register("unit_norm", "ctxexp.transforms:UnitNorm")
    register("whitening", "ctxexp.transforms:Whitening")


@hookimpl
def register_metrics(register: Register) -> None:
    register("contextuality", "ctxexp.metrics.contextuality:Contextuality")
    register("anisotropy", "ctxexp.metrics.similarity:Anisotropy")
    register("intra_sentence_similarity", "ctxexp.metrics.similarity:IntraSentenceSimilarity")
    register("max_explainable_variance", "ctxexp.metrics.similarity:MaxExplainableVariance")
    register("self_similarity", "ctxexp.metrics.similarity:SelfSimilarity")
    register("sense_separation", "ctxexp.metrics.annotated:SenseSeparation")
    register("sts", "ctxexp.metrics.annotated:STS")
    register("word_norm", "ctxexp.metrics.similarity:WordNorm")


@hookimpl
def register_baselines(register: Register) -> None:
    register("one_per_sentence", "ctxexp.baselines:OnePerSentence")
    register("size_matched", "ctxexp.baselines:SizeMatched")
    register("uniform", "ctxexp.baselines:Uniform")
    register("frequency_matched", "ctxexp.matched_baselines:FrequencyMatched")
    register("position_matched", "ctxexp.matched_baselines:PositionMatched")


@hookimpl
def register_sinks(register: Register) -> None:
    register("mlflow", "ctxexp.sinks.mlflow:MlflowSink")


@hookimpl
def register_engines(register: Register) -> None:
    register("local", "ctxexp.engines:Local")


@hookimpl
def register_commands(register: Register) -> None:
    for name in ("run", "demo", "ui", "report", "models", "cache", "upload", "plugins", "conform"):
        register(name, f"ctxexp.command.verbs:{name}")
