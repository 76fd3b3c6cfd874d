"""Where a model's files are: a folder, the hub's cache, or the hub; safetensors or GGUF, never a silent fallback."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ctxexp.errors import ModelError, error_text, line
from ctxexp.files import file_sha256, user_path
from ctxexp.models.transformer.gguf import check_gguf
from ctxexp.models.transformer.ledger import conversion


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint found on this machine.

    `source` is what was asked for, `revision` the hub's commit (empty for a folder), `weights_hash` the sha256 of the
    weights (16 hex digits; of the single file, or of the shards' hashes), `content_hash` that of every file that can
    change a vector. `folder` is the file itself where that is GGUF. `weights_sha256` is the digest of the single file's
    content, 64 hex digits; empty where that wasn't read: the hub's cache names files by digests that anyone may write.
    `revision_name` is the branch, tag or commit of the hub that was asked for, if any was. `initializer_range` is the
    standard deviation of weights that are drawn anew, where the files don't state it (GGUF has no such field) and it is
    known from elsewhere.

    Example:
        >>> from ctxexp.models.minis import folder
        >>> Checkpoint.of(str(folder("bert"))).source == str(folder("bert"))
        True
    """

    source: str
    revision: str
    folder: Path
    weights_hash: str
    content_hash: str
    weights_sha256: str = ""
    revision_name: str = ""
    initializer_range: float | None = None

    @property
    def is_gguf(self) -> bool:
        return self.folder.is_file()

    @property
    def identity(self) -> str:
        """The checkpoint's part of the vectors' cache key: the hub's id and commit, with the weights' digest where they
        were read, or the digest of a folder's content (moving it changes nothing)."""
        if not self.revision:
            return f"sha256:{self.content_hash}"
        read = f" weights sha256:{self.weights_sha256[:16]}" if self.weights_sha256 else ""
        return f"{self.source}@{self.revision}{read}"

    @classmethod
    def of(cls, source: str, revision: str | None = None) -> Checkpoint:
        """The checkpoint of that folder, GGUF file or hub id, downloaded if not cached and the hub answers; else
        `ModelError`."""
        path = local_path(source, revision)
        if path is None:
            paper = published_checkpoint(source)
            ids = tuple(dict.fromkeys([source, *(paper.ids if paper else ())]))
            pinned = revision or (paper.revision if paper else None)
            here = _from_cache(ids, pinned) or (None if revision else _from_cache(ids, None)) or _download(ids, pinned)
            return replace(here, revision_name=revision or "")
        if path.is_dir():
            return folder_checkpoint(path, source=str(path))
        digest = _sha256(path)[:16]
        return cls(str(path), "", path, digest, digest)

    @staticmethod
    def training_step(name: str) -> int | None:
        """The step of a revision or folder of that name; None for a name of no step.

        Example:
            >>> names = ("step1000", "checkpoint-500", "global_step3", "main", "bert-base-2")
            >>> [Checkpoint.training_step(name) for name in names]
            [1000, 500, 3, None, None]
        """
        match = _STEP.search(name)
        return int(match[1]) if match else None

    @property
    def weight_files(self) -> list[Path]:
        """Its safetensors files, in order."""
        return weight_files(self.folder)

    @property
    def sentence_settings(self) -> dict[str, Any]:
        """The settings of sentence-transformers for this transformer, under whichever of its file names, as in
        sentence_roberta_config.json; the first file that has any counts."""
        files = sorted(
            self.folder.glob("sentence_*_config.json"), key=lambda path: path.name != "sentence_bert_config.json"
        )
        try:
            return next(filter(None, (dict(json.loads(path.read_text(encoding="utf-8"))) for path in files)), {})
        except (OSError, ValueError, TypeError) as error:
            raise ModelError(f"{files[0]} is no JSON object: {error}; copy or download it again") from None


def label_of(source: str) -> str:
    """A model's label in figures: the last part of its hub id, folder or file name, without `.gguf`; of a checkpoint
    that is named by its step, `step8`, the training's name too."""
    name = (Path(source).name or Path(source).resolve().name).removesuffix(".gguf")
    return f"{training_of(Path(source))} {name}".strip() if Checkpoint.training_step(name) is not None else name


def local_path(checkpoint: str, revision: str | None = None) -> Path | None:
    """The folder or GGUF file of that checkpoint; None for a hub id. `ModelError` if it can be none of these; no more
    is read than a file's first bytes."""
    folder = user_path(checkpoint)
    if folder.exists() or folder.suffix == ".gguf":
        if not folder.is_dir():
            check_gguf(folder)
        if revision is not None:
            kind = "folder" if folder.is_dir() else "file"
            raise ModelError(
                f"revision={revision} names a commit of the hub, and {checkpoint} is a {kind}: leave it out"
            )
        return folder
    if folder.is_absolute() or checkpoint.startswith((".", "~")) or checkpoint.count("/") > 1:
        raise ModelError(
            f"no folder {folder} (checkpoint={checkpoint}); expected a folder of a model, a GGUF file or a hub id"
        )
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", checkpoint):
        raise ModelError(f"checkpoint={checkpoint!r} is neither a folder nor a hub id such as bert-base-cased")
    return None


def from_hub(ids: tuple[str, ...], revision: str | None) -> Checkpoint:
    """The first of `ids` (names of one model) that is cached whole, else the first one downloaded."""
    return _from_cache(ids, revision) or _download(ids, revision)


def _from_cache(ids: tuple[str, ...], revision: str | None) -> Checkpoint | None:
    for name in ids:
        if folder := cached_folder((name,), revision):
            return folder_checkpoint(folder, source=name, revision=folder.name)
    return None


def cached_folder(ids: tuple[str, ...], revision: str | None) -> Path | None:
    """The folder of the first of `ids` that the hub's cache has whole; None if it has none. Raises ModelError for what
    is no hub id."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    for name in ids:
        try:
            folder = Path(snapshot_download(name, revision=revision, local_files_only=True))
        except LocalEntryNotFoundError:
            continue
        except HFValidationError as error:
            raise ModelError(f"checkpoint={name!r} is not a hub id: {error}") from error
        if is_complete(folder):
            return folder
    return None


def is_complete(folder: Path) -> bool:
    """Whether a folder of the hub's cache holds config, weights and a tokenizer: tools that need only some of the files
    leave the others out."""
    tokenizer = any((folder / name).is_file() for name in TOKENIZER_FILES)
    return (folder / "config.json").is_file() and bool(weight_files(folder)) and tokenizer


def folder_checkpoint(folder: Path, *, source: str, revision: str = "") -> Checkpoint:
    """The checkpoint in `folder`, hashed; `ModelError` if it has no config or no safetensors weights. Of a hub's
    `revision` the digests are those that its cache names large files by, but for a paper's, which are held against the
    record."""
    by_name = bool(revision) and published_checkpoint(source) is None
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} has no config.json, so it is no transformers checkpoint; {conversion(folder)}")
    weights = weight_files(folder)
    if not weights:
        for index in sorted(folder.glob("*.index.json")):
            if missing := sorted(name for name in _index_files(index) if not (folder / name).is_file()):
                raise ModelError(
                    f"{folder} lacks {len(missing)} of the parts that {index.name} names ({', '.join(missing[:3])}): "
                    "copy or download them again"
                )
        raise ModelError(f"{folder} has no model.safetensors; {conversion(folder)}")
    hashes = {path.name: _sha256(path, by_name=by_name) for path in weights}
    others = [p for p in folder.iterdir() if p.is_file() and _changes_vectors(p) and p.name not in hashes]
    every = hashes | {path.name: _sha256(path, by_name=by_name) for path in others}
    single = next(iter(hashes.values())) if len(hashes) == 1 else _combine(hashes)
    read = "" if by_name or len(hashes) > 1 else single
    return Checkpoint(source, revision, folder, single[:16], _combine(every)[:16], read)


TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
)
_IGNORED = {"generation_config.json", "README.txt", "requirements.txt"}  # these change no vector
ADAPTER = "adapter_model.safetensors"
WEIGHTS = (  # the last are of a module of sentence-transformers, such as 2_Dense
    "model.safetensors", "model-*-of-*.safetensors", "[0-9]_*/model.safetensors",
)  # fmt: skip
SUFFIXES = (".json", ".txt", ".model", ".py", ".codes", ".bpe", ".tiktoken", ".spm")


def _changes_vectors(path: Path) -> bool:
    """Whether a file may be read with a model's weights: settings, a tokenizer's files, code, an adapter."""
    return (path.suffix in SUFFIXES and path.name not in _IGNORED) or path.name == ADAPTER


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of the model in `folder`, in order; empty unless all of them are there."""
    index = folder / "model.safetensors.index.json"
    names = {"model.safetensors"}
    if not (folder / "model.safetensors").is_file() and index.is_file():
        names = _index_files(index)
    files = [folder / name for name in sorted(names)]
    return files if all(path.is_file() for path in files) else []


def _index_files(index: Path) -> set[str]:
    """The files that an index of shards names."""
    try:
        return {Path(name).name for name in json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{index} is no index of weights ({error_text(error)}); copy or download it again") from None


def _combine(hashes: dict[str, str]) -> str:
    lines = "".join(f"{name} {digest}\n" for name, digest in sorted(hashes.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def _sha256(path: Path, *, by_name: bool = False) -> str:
    blob = path.resolve()
    if by_name and blob.parent.name == "blobs" and re.fullmatch("[0-9a-f]{64}", blob.name):
        return blob.name  # the hub's cache names large files by their sha256
    return file_sha256(path)


def _download(ids: tuple[str, ...], revision: str | None) -> Checkpoint:
    from huggingface_hub import HfApi, constants, snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    name = ids[0]
    at = f" at revision {revision}" if revision else ""
    named = f"{name}{at}{_owner_hint(name)}"
    try:
        HfApi().model_info(name, revision=revision, timeout=constants.HF_HUB_ETAG_TIMEOUT)  # a download tries for long
        folder = Path(
            snapshot_download(
                name,
                revision=revision,
                allow_patterns=[*WEIGHTS, ADAPTER, *(f"*{s}" for s in SUFFIXES)],
                ignore_patterns=["[!0-9]*/*", *_IGNORED],
                endpoint=constants.ENDPOINT,
            )
        )
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:  # one that is gated among these
        raise ModelError(f"{constants.ENDPOINT} gives no {named}: {line(str(error))}") from None
    except Exception as error:  # which exceptions mean "no network" depends on the hub library's HTTP client
        raise ModelError(
            f"no checkpoint {named}: not in the hub's cache ({constants.HF_HUB_CACHE}), and the hub at "
            f"{constants.ENDPOINT} gives none ({error_text(error)}). Either run `hf download {name}"
            f"{at.replace(' at revision', ' --revision')}` on a machine with network and point HF_HOME at its cache, "
            "or give a folder with model.checkpoint=<folder>"
        ) from None
    return folder_checkpoint(folder, source=name, revision=folder.name)


OWNERS = {  # of models that are called by their name alone, by how it begins
    "sentence-transformers": "all- paraphrase- multi-qa- distiluse- msmarco-",
    "intfloat": "e5- multilingual-e5",
    "BAAI": "bge-",
    "thenlper": "gte-",
    "nomic-ai": "nomic-embed",
    "answerdotai": "ModernBERT",
    "microsoft": "deberta mpnet phi-",
    "HuggingFaceTB": "SmolLM",
    "EleutherAI": "pythia gpt-neo",
    "Qwen": "Qwen",
    "meta-llama": "Llama Meta-Llama",
    "google": "gemma electra- flan-t5",
    "allenai": "OLMo longformer",
}


def _owner_hint(name: str) -> str:
    """`; did you mean OWNER/NAME?` of a name without its owner; empty for another."""
    begins = ((owner, start) for owner, starts in OWNERS.items() for start in starts.split())
    owner = next((owner for owner, start in begins if name.lower().startswith(start.lower())), "")
    return f"; did you mean {owner}/{name}?" if owner and "/" not in name else ""


_STEP = re.compile(r"(?:^|[-_ ])(?:step|checkpoint|ckpt|iter)[-_]?(\d+)$", re.IGNORECASE)
_FOLDERS = ("checkpoints",)  # of a training's folder, whose name is no model's


def training_of(folder: Path) -> str:
    """The name of the training whose checkpoints lie beside this one: `gpt2` of `gpt2/checkpoints/step8`."""
    return next((part for part in reversed(folder.parent.parts) if part not in _FOLDERS), "")


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
