"""Changed pieces of a tokenizer and forged weights: refused or doubted aloud, and never in a verdict."""

from __future__ import annotations

import functools
import json
import os
import shutil
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import tiny_models

from ctxexp import Encoder
from ctxexp.models import minis
from ctxexp.models.huggingface import bert, gpt2, huggingface
from ctxexp.models.transformer import checkpoints

from . import Lost, Silent
from .damage import heard

KINDS = ("bert", "roberta", "gpt2", "qwen2", "llama", "t5")
ROWS = 230  # of each table here: all vocabularies that are tried have from half of it to as many pieces
FILES = ("tokenizer.json", "tokenizer_config.json")
PAPERS = {"bert": bert, "gpt2": gpt2}


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each kind of exchange in turn; models, pieces and weights are drawn."""
    whole = functools.cache(lambda kind: checkpoint(kind, folder / "whole" / kind))
    for place in range(count):
        rng = np.random.default_rng([seed, place])
        name, change = list(CHANGES.items())[place % len(CHANGES)]
        own = folder / str(place)

        def attempt(change: Any = change, rng: np.random.Generator = rng, own: Path = own) -> None:
            own.mkdir()
            with mock.patch.dict(os.environ, CTXEXP_CACHE=str(own / "cache")):  # no earlier load's description
                change(whole, own, rng)
            shutil.rmtree(own)

        yield name, attempt


def checkpoint(kind: str, folder: Path) -> Path:
    """A checkpoint whose table has ROWS rows, which other models' pieces fit, and whose config has its own numbers."""
    from transformers import AutoModel, AutoTokenizer

    tiny_models.make(kind, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder)
    model.resize_token_embeddings(max(ROWS, len(tokenizer)))
    for role in ("pad", "bos", "eos"):
        setattr(model.config, f"{role}_token_id", getattr(tokenizer, f"{role}_token_id"))
    model.save_pretrained(folder)
    return folder


def load(folder: Path) -> tuple[Encoder, list[str]]:
    """The folder's encoder, and what was said while it was loaded."""
    with heard() as lines:
        encoder = huggingface(checkpoint=str(folder), device="cpu")
        encoder.details  # noqa: B018  # which loads it
    return encoder, lines


def require_doubt(folder: Path) -> None:
    """Raises Silent unless the checkpoint is refused, or its tokenizer doubted aloud and in what runs say of it."""
    encoder, lines = load(folder)
    doubts = str(encoder.details.get("warnings", "")).splitlines()
    if not doubts or not all(any(doubt in line for line in lines) for doubt in doubts):
        raise Silent(f"measured without a word: {doubts}, {lines}")


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


Whole = Callable[[str], Path]


def own_tokenizer(whole: Whole, own: Path, rng: np.random.Generator) -> None:
    """A model with its own pieces is measured without a word, whatever its folder is called."""
    kind = str(rng.choice([*KINDS, "mini bert", "mini gpt2"]))
    source = minis.folder(kind.removeprefix("mini ")) if kind.startswith("mini") else whole(kind)
    encoder, lines = load(shutil.copytree(source, own / f"bert-base-cased-{rng.integers(99)}"))
    if lines or "warnings" in encoder.details:
        raise Lost(f"{kind}'s own tokenizer is doubted: {lines}")


# ------------------------------------------------------------------ changed special pieces


def numbers(whole: Whole, own: Path, rng: np.random.Generator) -> None:
    """config.json or the template around text says another number of a special piece than the vocabulary."""
    kind = str(rng.choice(["bert", "roberta", "llama", "t5"]))
    target = shutil.copytree(whole(kind), own / "model")
    content = json.loads((target / FILES[0]).read_text(encoding="utf-8"))
    template = content["post_processor"]
    template = template if "special_tokens" in template else template["processors"][-1]
    pieces = list(template["special_tokens"])
    if rng.random() < 0.5:
        piece = pieces[rng.integers(len(pieces))]
        template["special_tokens"][piece]["ids"] = [int(rng.integers(8, 100))]
        (target / FILES[0]).write_text(json.dumps(content), encoding="utf-8")
    else:
        role = {"bert": ["pad"], "t5": ["pad", "eos"]}.get(kind, ["pad", "bos", "eos"])
        key = f"{role[rng.integers(len(role))]}_token_id"
        edit(target / "config.json", lambda config: config.update({key: int(rng.integers(8, 100))}))
    require_doubt(target)


# ------------------------------------------------------------------ papers' models


@contextmanager
def hub(own: Path, kind: str) -> Iterator[Path]:
    """A hub's cache with the shipped model under the name and commit of the paper's; its snapshot's folder."""
    from huggingface_hub import constants

    paper = checkpoints.PUBLISHED_CHECKPOINTS[kind]
    snapshot = own / "hub" / f"models--{paper.ids[0].replace('/', '--')}" / "snapshots" / paper.revision
    shutil.copytree(minis.folder(kind), snapshot, ignore=shutil.ignore_patterns("*.md", "*.csv", "run.json"))
    with (
        mock.patch.object(constants, "HF_HUB_CACHE", str(own / "hub")),
        mock.patch.object(constants, "HF_HUB_OFFLINE", True),
    ):
        yield snapshot


def forged(whole: Whole, own: Path, rng: np.random.Generator) -> None:
    """Other weights under the pinned snapshot's names, which claims give no verdict on."""
    kind = str(rng.choice(list(PAPERS)))
    with hub(own, kind) as snapshot:
        forge(snapshot, kind, rng)
        with heard():
            encoder = PAPERS[kind](weights="published", device="cpu")
            details = dict(encoder.details)
    no_verdict(kind, details)


def forge(snapshot: Path, kind: str, rng: np.random.Generator) -> None:
    """Changes nothing, one number, all, or the layers' order; the file may be a link named by the true digest."""
    from safetensors.numpy import load_file, save_file

    file = snapshot / "model.safetensors"
    weights = load_file(file)
    names = sorted(name for name in weights if weights[name].dtype == np.float16)  # as they are shipped
    how = rng.integers(4)
    if how == 1:
        flat = weights[names[rng.integers(len(names))]].reshape(-1)
        flat[rng.integers(len(flat))] += 1e-3
    elif how == 2:
        scale = np.float16(rng.uniform(0.5, 1.5))
        weights = {name: value * scale if name in names else value for name, value in weights.items()}
    elif how == 3:
        two = [name for name in names if weights[name].shape == weights[names[-1]].shape][:2]
        weights[two[0]], weights[two[-1]] = weights[two[-1]], weights[two[0]]
    save_file(weights, file, {"format": "pt"})
    if rng.random() < 0.5:
        blob = snapshot.parents[1] / "blobs" / checkpoints.PUBLISHED_CHECKPOINTS[kind].weights_sha256
        blob.parent.mkdir()
        file.rename(blob)
        file.symlink_to(blob)


def no_verdict(kind: str, details: dict[str, Any]) -> None:
    """Raises Silent if claims about the model hold or fail, on text and protocol that are the paper's."""
    try:
        from ctxexp_papers.claims import court, report
        from ctxexp_papers.claims.source import Inputs
        from ctxexp_papers.papers import ethayarajh_2019
        from ctxexp_papers.papers.ethayarajh_2019.protocol import TEXT
    except ImportError:
        raise unittest.SkipTest("the plugin ctxexp-papers is not installed") from None
    from ctxexp.metrics.contextuality import Anisotropy
    from ctxexp.results.run_info import describe
    from tests.made import results_with, told

    curve = np.linspace(0.1, 0.6, 13)
    named = {"anisotropy/mean_cosine": curve}
    named |= {"anisotropy/mean_cosine_ci_low": curve - 0.01, "anisotropy/mean_cosine_ci_high": curve + 0.01}
    info = told(
        name=kind, title=kind, weights="published", corpus="sts_2012_2016", fingerprint=TEXT, n_layers=13,
        measures={"anisotropy": describe("anisotropy", Anisotropy())}, min_contexts=5, details=details,
    )  # fmt: skip
    made = court.try_paper(ethayarajh_2019.paper(), Inputs([(results_with(named, info=info), "")]))
    if odd := [v.words for v in made.verdicts if v.outcome != "none"]:
        raise Silent(f"a verdict on {details.get('weights_sha256')}: {odd}")
    reasons = [report.lacks(made, verdict) for verdict in made.verdicts]
    if not any("not the paper's" in why or "not verified" in why for why in reasons):
        raise Silent("no verdict, and nothing says why")


def doubtful(whole: Whole, own: Path, rng: np.random.Generator) -> None:
    """The paper's digest in what a run says, beside a tokenizer that is doubted: no verdict."""
    kind = str(rng.choice(list(PAPERS)))
    target = shutil.copytree(minis.folder(kind), own / "model")
    content = json.loads((target / "config.json").read_text())
    roles = [role for role in ("pad", "bos", "eos") if isinstance(content.get(f"{role}_token_id"), int)]
    key = f"{roles[rng.integers(len(roles))]}_token_id"
    edit(target / "config.json", lambda config: config.update({key: config[key] + int(rng.integers(1, 50))}))
    encoder, _ = load(target)
    if "warnings" not in encoder.details:
        raise Silent(f"{key} of another number is not noticed")
    no_verdict(kind, dict(encoder.details) | {"weights_sha256": checkpoints.PUBLISHED_CHECKPOINTS[kind].weights_sha256})


CHANGES: dict[str, Callable[[Whole, Path, np.random.Generator], None]] = {
    "its own tokenizer": own_tokenizer,
    "forged weights": forged,
    "another number of a special piece": numbers,
    "a doubted tokenizer": doubtful,
}
