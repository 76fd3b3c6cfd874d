"""Which of the plugins that we publish brings a name: what an unknown name's message says."""

from __future__ import annotations

PUBLISHED: dict[str, dict[str, tuple[str, ...]]] = {
    "ctxexp-first-word": {
        "dataset": ("sts_b_given",),
        "experiment": ("first_word",),
        "first_position": ("as_tokenized", "bos", "dot", "no_first", "unit_norm"),
    },
    "ctxexp-glove": {"model": ("glove",)},
    "ctxexp-minilm": {"model": ("minilm",)},
    "ctxexp-smollm2": {"model": ("smollm2",)},
    "ctxexp-sentence-transformers": {"model": ("sentence_transformer",)},
    "ctxexp-calibration": {
        "dataset": ("qnli",),
        "experiment": ("calibration_league", "li_2020"),
        "metric": ("edit_distance", "qnli", "sentence_geometry"),
        "transform": ("clusterwise", "flow", "rank", "weighted_removal"),
    },
    "ctxexp-card": {"command": ("card", "diff")},
    "ctxexp-compare": {"command": ("compare",), "sink": ("compare",)},
    "ctxexp-datasets": {"dataset": ("huggingface",)},
    "ctxexp-multiverse": {
        "experiment": ("multiverse",),
        "metric": ("multiverse",),
    },
    "ctxexp-one-pass": {"metric": ("one_pass",)},
    "ctxexp-ray": {"engine": ("ray",)},
    "ctxexp-senses": {
        "dataset": ("dwug", "semcor", "semcor_sample", "wic"),
        "experiment": ("what_is_context",),
        "metric": (
            "by_class",
            "self_similarity_by_class",
            "semantic_change",
            "sense_separation_by_class",
            "variance_components",
            "variance_components_by_class",
            "wic",
        ),
    },
    "ctxexp-claims": {"command": ("claims",)},
    "ctxexp-frequency": {"metric": ("degeneration", "frequency", "frequency_geometry"), "experiment": ("frequency",)},
    "ctxexp-train": {"command": ("probe", "train")},
    "ctxexp-twins": {"baseline": ("frequency_matched", "position_matched")},
    "ctxexp-words": {
        "command": ("bench-words",),
        "metric": ("static_vectors", "static_vectors_centred", "static_vectors_mean", "table_1"),
        "experiment": ("table_1",),
    },
    "ctxexp-isotropy": {
        "metric": (
            "cluster_adjusted_similarity",
            "curvature",
            "effective_rank",
            "first_component",
            "intrinsic_dimension",
            "isoscore",
            "isoscore_star",
            "matrix_entropy",
            "participation_ratio",
            "partition_isotropy",
            "rogue_dimensions",
            "symmetry",
        )
    },
}


HYDRAS: dict[str, dict[str, tuple[str, ...]]] = {  # Hydra's own plugins, which others publish
    "hydra-optuna-sweeper": {"hydra/sweeper": ("optuna",)},
    "hydra-ax-sweeper": {"hydra/sweeper": ("ax",)},
    "hydra-nevergrad-sweeper": {"hydra/sweeper": ("nevergrad",)},
    "hydra-submitit-launcher": {"hydra/launcher": ("submitit_local", "submitit_slurm")},
    "hydra-ray-launcher": {"hydra/launcher": ("ray", "ray_aws")},
    "hydra-rq-launcher": {"hydra/launcher": ("rq",)},
}


def brought_by(kind: str, name: str) -> str:
    """`; pip install ... brings it`, or nothing where no plugin that we know does."""
    found = [plugin for plugin, names in {**PUBLISHED, **HYDRAS}.items() if name in names.get(kind, ())]
    return "".join(f"; the plugin {plugin} brings it: pip install {plugin}" for plugin in found)
