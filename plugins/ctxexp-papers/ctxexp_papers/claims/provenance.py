"""Whether a run is the paper's own experiment: its weights by their SHA-256, its text by fingerprint, its protocol."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ctxexp.models.transformer.checkpoints import hub_seconds
from ctxexp.models.transformer.papers import PUBLISHED_CHECKPOINTS
from ctxexp.results.run_info import RunInfo


@dataclass(frozen=True)
class PinnedWeights:
    """A file of the paper's own weights: its SHA-256 (empty: none is on record), and where that was found."""

    file: str
    sha256: str
    source: str
    repository: str = ""  # of the hub, which is asked where no SHA-256 is on record
    revision: str = ""


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

MIN_CONTEXTS = 5
WORDS = {"fold_case": "False", "deduplicate": "True", "sample": "None", "punctuation": "drop"}
"""How the protocol counts words (conf/config.yaml); `conf/experiment/ethayarajh_2019.yaml` leaves them so."""
ENCODING = {"pooling": "mean", "final_norm": True, "dtype": "float32", "prefix": "as_tokenizer"}


def departures(info: RunInfo) -> list[str]:
    """Differences between a run and the paper's own experiment, a phrase each; empty if there are none."""
    return [*_weights(info), *_text(info), *_protocol(info)]


def _weights(info: RunInfo) -> list[str]:
    pinned = WEIGHTS.get(info.model.name)
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
        return [f"not the paper's weights (SHA-256 {digest[:12]}..., the paper's {pinned.file} has {expected[:12]}...)"]
    if doubt := info.model.details.get("tokenizer_doubt"):
        return [f"maybe not the paper's tokenizer ({doubt})"]
    return []


def _text(info: RunInfo) -> list[str]:
    if info.corpus.fingerprint == TEXT:
        return []
    return [f"not the paper's text (corpus {info.corpus.name or 'unknown'}; the paper's is dataset=sts_2012_2016)"]


def _protocol(info: RunInfo) -> list[str]:
    """Departures from the protocol; what a run doesn't state, since its parts have no such option, isn't one."""
    reasons = []
    corpus, details = info.corpus, info.model.details
    if corpus.min_contexts != MIN_CONTEXTS:
        reasons.append(f"min_contexts={corpus.min_contexts}, the paper's is {MIN_CONTEXTS}")
    if info.model.layers:
        reasons.append(f"layers {', '.join(map(str, info.model.layers))} only")
    if corpus.max_contexts is not None:
        reasons.append(f"words.max_contexts={corpus.max_contexts}")
    if corpus.one_pass:
        reasons.append("one_pass.shards")
    reasons += [f"words.{k}={v}" for k, usual in WORDS.items() if (v := str(corpus.choices.get(k, usual))) != usual]
    reasons += [f"{k}={details[k]}" for k, usual in ENCODING.items() if details.get(k, usual) != usual]
    reasons += [f"{k}={details[k]}" for k in ("quantized", "dequantized") if details.get(k)]
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
            pinned.repository, revision=pinned.revision, files_metadata=True, timeout=hub_seconds()
        )
        files = {file.rfilename: file for file in info.siblings or []}
        lfs = files[pinned.file].lfs if pinned.file in files else None
    except Exception:  # which exceptions mean "no network" depends on the hub library's HTTP client
        return ""
    return str(lfs.sha256) if lfs else ""
