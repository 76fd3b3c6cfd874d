"""The paper's own experiment: weights, text and choices."""

from __future__ import annotations

from ctxexp.models.transformer import PUBLISHED_CHECKPOINTS
from ctxexp_papers.claims.protocol import PinnedWeights, Protocol

MODELS = ("elmo", "bert", "gpt2")
"""The models that the paper speaks of, by their registered names."""

WEIGHTS = {
    "elmo": PinnedWeights(
        "elmo_2x4096_512_2048cnn_2xhighway_weights.hdf5",
        "",
        "AllenNLP published the file without a checksum, and it is on no hub under its authors' name",
    ),
    "bert": PinnedWeights(
        "model.safetensors",  # 435,755,784 bytes
        PUBLISHED_CHECKPOINTS["bert"].weights_sha256,
        "two public projects that quote it beside this revision or this size, independently of each other",
        PUBLISHED_CHECKPOINTS["bert"].ids[0],
        PUBLISHED_CHECKPOINTS["bert"].revision,
    ),
    "gpt2": PinnedWeights(
        "model.safetensors",  # 548,105,171 bytes
        PUBLISHED_CHECKPOINTS["gpt2"].weights_sha256,
        "ten public projects that quote it as the file's LFS SHA-256 at this revision",
        PUBLISHED_CHECKPOINTS["gpt2"].ids[0],
        PUBLISHED_CHECKPOINTS["gpt2"].revision,
    ),
}
"""The paper's weights by model."""

TEXT = "6efdd4fcba3e0372c9a99ce4f03b3df3"
"""The fingerprint of the paper's text: the 12,544 test pairs of STS 2012 to 2016 (dataset=sts_2012_2016)."""

PROTOCOL = Protocol(
    "bert-base-cased, gpt2 and the original ELMo, on the texts of STS 2012 to 2016, words in 5 contexts or more, each "
    "weighed the same, so that means over words depend on the size of the text (experiment=ethayarajh_2019)",
    WEIGHTS,
    corpus="sts_2012_2016",
    fingerprint=TEXT,
    min_contexts=5,
    words={"weights": "equal"},
)
