"""The checkpoints of papers: where they are, and how their files are told from others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class PublishedCheckpoint:
    """A checkpoint of a paper: its hub ids (older names hold the same commits), the pinned commit, the SHA-256 of
    model.safetensors there (empty: none is on record), the numbers that its tokenizer gives to special pieces, and the
    SHA-256 of its vocabulary (`ctxexp.models.transformer.checks.vocabulary_sha256`; empty: none is on record)."""

    ids: tuple[str, ...]
    revision: str
    weights_sha256: str = ""
    special_pieces: Mapping[str, int] = field(default_factory=dict)
    vocabulary_sha256: str = ""


_BERT_PIECES = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103}  # of all of Google's BERTs
# Of Google's vocab.txt, cased and uncased, by which DeepLearningExamples of NVIDIA and others check their downloads.
_CASED = "eeaa9875b23b04b4c54ef759d03db9d1ba1554838f8fb26c5d96fa551df93d02"
_UNCASED = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
# The commits that the `main` branches have stood at since the safetensors files were added; the hashes are quoted by
# many independent public projects, the weights' beside the revision or the file's size.
PUBLISHED_CHECKPOINTS = {
    "bert": PublishedCheckpoint(
        ids=("google-bert/bert-base-cased", "bert-base-cased"),
        revision="cd5ef92a9fb2f889e972770a36d4ed042daf221e",
        weights_sha256="1d8bdcee6021e2c25f0325e84889b61c2eb26b843eef5659c247af138d64f050",
        special_pieces=_BERT_PIECES,
        vocabulary_sha256=_CASED,
    ),
    "gpt2": PublishedCheckpoint(
        ids=("openai-community/gpt2", "gpt2"),
        revision="607a30d783dfa663caf39e06633721c8d4cfcd7e",
        weights_sha256="248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707",
        special_pieces={"<|endoftext|>": 50256},
        # Made of OpenAI's encoder.json, whose own SHA-256 is 196139668be6... (tiktoken checks downloads by it).
        vocabulary_sha256="2d5ce813bdd43a428e2a9ae5e86a22fe1a594a6e7171d84d445ba4101f3a964d",
    ),
    # BERT-flow's (Li 2020).
    "bert-base-uncased": PublishedCheckpoint(
        ids=("google-bert/bert-base-uncased", "bert-base-uncased"),
        revision="86b5e0934494bd15c9632b12f734a8a67f723594",
        weights_sha256="68d45e234eb4a928074dfd868cead0219ab85354cc53d20e772753c6bb9169d3",
        special_pieces=_BERT_PIECES,
        vocabulary_sha256=_UNCASED,
    ),
    "bert-large-uncased": PublishedCheckpoint(
        ids=("google-bert/bert-large-uncased", "bert-large-uncased"),
        revision="6da4b6a26a1877e173fca3225479512db81a5e5b",
        special_pieces=_BERT_PIECES,
        vocabulary_sha256=_UNCASED,
    ),
}


def published_checkpoint(checkpoint: str) -> PublishedCheckpoint | None:
    """The paper's checkpoint that this hub id, or an older name of it, stands for; None for any other."""
    return next((one for one in PUBLISHED_CHECKPOINTS.values() if checkpoint in one.ids), None)
