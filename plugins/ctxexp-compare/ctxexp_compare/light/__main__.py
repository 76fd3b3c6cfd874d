"""`python -m ctxexp_light check REFERENCE CANDIDATE`, and `floor FILE cosine=.83`: what needs NumPy alone."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from .files import SUFFIXES, read_matrix
from .floor import Floor
from .pin import Pin
from .server import Server
from .vectors import from_vectors
from .verdict import Verdict, judge, with_effects

USAGE = """python -m ctxexp_light check REFERENCE CANDIDATE [text=FILE] [cosine=.83] [rounding=float16] [model=] [key=]
    REFERENCE: a pin, or a file of vectors (.npy, .npz, .safetensors); CANDIDATE: such a file, or a server's URL
    text: of a file and a server: the texts, one a line; rounding: float16, bfloat16, 8bit, 4bit
    model: its name at the server; key: the environment variable that holds the server's key
    exit status: 0 the same, or rounded no more than rounding= allows; 1 not; 2 they can't be compared
python -m ctxexp_light floor FILE [OTHER] cosine=.83 [length=6,150]
    how many of unrelated pairs reach it; with OTHER the cosine there that lets through as many"""
ROUNDINGS = {"8bit": "8 bits", "4bit": "4 bits"}


def check(reference: str, candidate: str, options: Mapping[str, str]) -> Verdict:
    """Compare vectors of the same texts. Raises ValueError or OSError for what can't be read."""
    texts = Path(options["text"]).read_text(encoding="utf-8").splitlines() if options.get("text") else []
    noise, has_length = 0.0, True
    if Path(reference).suffix in SUFFIXES:
        a = _matrix(reference)
    else:
        pin = Pin.load(reference)
        a, texts = pin.vectors, [pin.texts[i] for i in pin.vector_texts]
        noise, has_length = pin.sentence_noise, pin.has_length
    if candidate.startswith(("http://", "https://")):
        if len(texts) != len(a):
            raise ValueError(f"{reference} has {len(a)} vectors, and text= {len(texts)} lines: expected one each")
        b = Server(candidate, options.get("model", ""), options.get("key", ""))(texts)
    else:
        b = _matrix(candidate)
    if len(a) != len(b) or not len(a):
        raise ValueError(f"{reference} has {len(a)} vectors of whole texts, {candidate} {len(b)}: expected the same")
    there = np.isfinite(b).all(axis=1)  # of a text that a server refuses there is none
    a, b = a[there], b[there]
    verdict = judge(a, b, from_vectors(a, b), noise=noise, has_length=has_length)
    return with_effects(verdict, a, b, cosine=float(options["cosine"]) if options.get("cosine") else None)


def floor(file: str, other: str, options: Mapping[str, str]) -> list[str]:
    """How many unrelated pairs reach a cosine, or what it is in another model."""
    here, cosine = Floor.load(file), float(options["cosine"])
    if other:
        carried = here.carry(Floor.load(other), cosine)
        if carried.reason:
            return [f"it can't be carried: {carried.reason}"]
        return [f"{carried.cosine:.3f} [{carried.low:.3f}, {carried.high:.3f}]; {carried.share:.2%} reach either"]
    sizes = [float(part) for part in options["length"].split(",")] if options.get("length") else []
    length = (sizes[0], sizes[-1]) if sizes else None
    low, high = here.domain_range(cosine, length=length)
    return [f"{here.probability(cosine, length=length):.2%} of unrelated pairs reach it ({low:.2%} to {high:.2%})"]


def _matrix(file: str) -> np.ndarray:
    x = read_matrix(Path(file))
    if x is None:
        raise ValueError(f"{file} holds no vectors of texts (n, dim)")
    return x


def main(args: Sequence[str]) -> int:
    """The exit status of a command line."""
    options = dict(word.split("=", 1) for word in args[1:] if "=" in word and "://" not in word.split("=")[0])
    files = [word for word in args[1:] if "=" not in word or "://" in word.split("=")[0]]
    try:
        if args[:1] == ["check"] and len(files) == 2:
            verdict = check(files[0], files[1], options)
            print(*verdict.sentences, sep="\n")
            rounding = options.get("rounding", "none")
            return 0 if verdict.passes(ROUNDINGS.get(rounding, rounding)) else 1  # type: ignore[arg-type]
        if args[:1] == ["floor"] and len(files) in (1, 2) and "cosine" in options:
            print(*floor(files[0], files[1] if files[1:] else "", options), sep="\n")
            return 0
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
