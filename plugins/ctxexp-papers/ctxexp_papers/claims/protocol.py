"""Whether a run is a paper's own experiment: its weights by their SHA-256, its text by fingerprint, its choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from ctxexp.results import RunInfo

WORDS = {"fold_case": "False", "deduplicate": "True", "sample": "None", "punctuation": "drop"}
"""How words are counted by default (conf/ctxexp.yaml)."""
ENCODING = {"pooling": "mean", "final_norm": True, "dtype": "float32", "prefix": "as_tokenizer"}


@dataclass(frozen=True)
class PinnedWeights:
    """A file of a paper's own weights: its SHA-256 (empty: none is on record), and where that was found."""

    file: str
    sha256: str
    source: str
    repository: str = ""  # of the hub, which is asked where no SHA-256 is on record
    revision: str = ""


@dataclass(frozen=True)
class Protocol:
    """A paper's own experiment. `scope` says in words on which models, text and choices its claims are decided.

    Attributes:
        checkpoints: Weights by registered model.
        corpus: The data set's name, as in `dataset=`.
        fingerprint: That of its text.
        min_contexts: Least occurrences of a word.
        words: Choices of words (`words.*`) that differ from a default run's.
        encoding: Choices of the encoder that differ from them.
    """

    scope: str
    checkpoints: Mapping[str, PinnedWeights] = field(default_factory=dict)
    corpus: str = ""
    fingerprint: str = ""
    min_contexts: int | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    encoding: Mapping[str, object] = field(default_factory=dict)

    def departures(self, info: RunInfo) -> list[str]:
        """Differences between a run and the paper's own experiment, a phrase each; empty if there are none."""
        return [*self._weights(info), *self._text(info), *self._choices(info)]

    def _weights(self, info: RunInfo) -> list[str]:
        pinned = self.checkpoints.get(info.model.name)
        if pinned is None:
            return [f"weights of {info.model.name or 'an unnamed model'}, which the paper doesn't measure"]
        if info.model.weights == "untrained" or info.model.details.get("untrained"):
            return ["not the paper's weights (untrained)"]
        digest = str(info.model.details.get("weights_sha256") or "")
        if not digest:
            return ["weights not verified (the run states no SHA-256 of them; run it again)"]
        expected = pinned.sha256 or from_hub(pinned)
        if not expected:
            return [f"weights not verified (no SHA-256 of {pinned.file} is on record)"]
        if digest != expected:
            text = f"SHA-256 {digest[:12]}..., the paper's {pinned.file} has {expected[:12]}..."
            return [f"not the paper's weights ({text})"]
        if warnings := info.model.details.get("warnings"):
            return [f"maybe not the paper's model ({warnings})"]
        return []

    def _text(self, info: RunInfo) -> list[str]:
        if info.corpus.fingerprint == self.fingerprint:
            return []
        name = info.corpus.name or "unknown"
        return [f"not the paper's text (corpus {name}; the paper's is dataset={self.corpus})"]

    def _choices(self, info: RunInfo) -> list[str]:
        """Departures from the protocol; what a run doesn't state, since its parts have no such option, isn't one."""
        reasons = []
        corpus, details = info.corpus, info.model.details
        words, encoding = {**WORDS, **self.words}, {**ENCODING, **self.encoding}
        if corpus.min_contexts != self.min_contexts:
            reasons.append(f"min_contexts={corpus.min_contexts}, the paper's is {self.min_contexts}")
        if info.model.layers:
            reasons.append(f"layers {', '.join(map(str, info.model.layers))} only")
        if corpus.max_contexts is not None:
            reasons.append(f"words.max_contexts={corpus.max_contexts}")
        if corpus.one_pass:
            reasons.append("one_pass.shards")
        reasons += [f"words.{k}={v}" for k, usual in words.items() if (v := str(corpus.choices.get(k, usual))) != usual]
        reasons += [f"{k}={details[k]}" for k, usual in encoding.items() if details.get(k, usual) != usual]
        reasons += [f"{k}={details[k]}" for k in ("kwargs", "dequantized") if details.get(k)]
        if info.transform.name != "none":
            reasons.append(f"transform {info.transform.name}")
        if info.control != "none":
            reasons.append(f"control {info.control}")
        return [f"not the paper's protocol ({', '.join(reasons)})"] if reasons else []


@cache
def from_hub(pinned: PinnedWeights) -> str:
    """The SHA-256 that the hub's own metadata give for the file at the pinned revision; empty where the hub doesn't
    answer, or isn't to be asked (HF_HUB_OFFLINE)."""
    from huggingface_hub import HfApi, constants

    if not pinned.repository or constants.HF_HUB_OFFLINE:
        return ""
    try:
        info = HfApi(endpoint=constants.ENDPOINT).model_info(
            pinned.repository, revision=pinned.revision, files_metadata=True, timeout=constants.HF_HUB_ETAG_TIMEOUT
        )
        files = {file.rfilename: file for file in info.siblings or []}
        lfs = files[pinned.file].lfs if pinned.file in files else None
    except Exception:  # which exceptions mean "no network" depends on the hub library's HTTP client
        return ""
    return str(lfs.sha256) if lfs else ""
