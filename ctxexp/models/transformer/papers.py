"""The checkpoints of papers: where they are, and how their files are told from others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedCheckpoint:
    """A checkpoint of a paper: its hub ids (older names hold the same commits), the pinned commit, and the SHA-256
    of model.safetensors there (empty: none is on record)."""

    ids: tuple[str, ...]
    revision: str
    weights_sha256: str = ""


# The commits that the `main` branches have stood at since the safetensors files were added; the hashes are quoted by
# many independent public projects, the weights' beside the revision or the file's size.
PUBLISHED_CHECKPOINTS = {
    "bert": PublishedCheckpoint(
        ids=("google-bert/bert-base-cased", "bert-base-cased"),
        revision="cd5ef92a9fb2f889e972770a36d4ed042daf221e",
        weights_sha256="1d8bdcee6021e2c25f0325e84889b61c2eb26b843eef5659c247af138d64f050",
    ),
    "gpt2": PublishedCheckpoint(
        ids=("openai-community/gpt2", "gpt2"),
        revision="607a30d783dfa663caf39e06633721c8d4cfcd7e",
        weights_sha256="248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707",
    ),
    # BERT-flow's (Li 2020).
    "bert-base-uncased": PublishedCheckpoint(
        ids=("google-bert/bert-base-uncased", "bert-base-uncased"),
        revision="86b5e0934494bd15c9632b12f734a8a67f723594",
        weights_sha256="68d45e234eb4a928074dfd868cead0219ab85354cc53d20e772753c6bb9169d3",
    ),
    "bert-large-uncased": PublishedCheckpoint(
        ids=("google-bert/bert-large-uncased", "bert-large-uncased"),
        revision="6da4b6a26a1877e173fca3225479512db81a5e5b",
    ),
}


def published_checkpoint(checkpoint: str) -> PublishedCheckpoint | None:
    """The paper's checkpoint that this hub id, or an older name of it, stands for; None for any other."""
    return next((one for one in PUBLISHED_CHECKPOINTS.values() if checkpoint in one.ids), None)
