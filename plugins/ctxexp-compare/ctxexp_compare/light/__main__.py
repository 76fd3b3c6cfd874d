"""`python -m ctxexp_light check REFERENCE CANDIDATE`, and `floor FILE cosine=.83`: what needs NumPy alone."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from .floor import Floor, said
from .sides import Side, compare

USAGE = """python -m ctxexp_light check REFERENCE CANDIDATE [text=FILE] [cosine=.83] [rounding=float16] [model=] [key=]
    REFERENCE: a pin, or a file of vectors (.npy, .npz, .safetensors); CANDIDATE: such a file, or a server's URL
    text: of a file and a server: the texts, one a line; rounding: float16, bfloat16, 8bit, 4bit
    model: its name at the server; key: the environment variable that holds the server's key
    exit status: 0 the same, or rounded no more than rounding= allows; 1 not; 2 they can't be compared
python -m ctxexp_light floor FILE [OTHER] cosine=.83
    how many of unrelated pairs reach it; with OTHER the cosine there that lets through as many"""


def check(places: Sequence[str], options: Mapping[str, str]) -> int:
    """Print the verdict; the exit status."""
    texts = Path(options["text"]).read_text(encoding="utf-8").splitlines() if options.get("text") else []
    one, other = (_side(place, options) for place in places)
    verdict = compare(one, other, texts, cosine=float(options["cosine"]) if options.get("cosine") else None)
    print(*verdict.sentences, sep="\n")
    return 0 if verdict.passes(options.get("rounding", "none")) else 1


def _side(place: str, options: Mapping[str, str]) -> Side:
    if place.startswith(("http://", "https://")):
        return Side.of_server(place, options.get("model", ""), options.get("key", ""))
    side = Side.of_file(Path(place))
    if side is None:
        raise ValueError(f"{place} holds no vectors of texts (n, dim)")
    return side


def floor(files: Sequence[str], options: Mapping[str, str]) -> int:
    """Print how many unrelated pairs reach a cosine, or what it is in another model."""
    here, cosine = Floor.load(files[0]), float(options["cosine"])
    if len(files) > 1:
        print(said(here.carry(Floor.load(files[1]), cosine)))
        return 0
    low, high = here.domain_range(cosine)
    print(f"{here.probability(cosine):.2%} of unrelated pairs reach it ({low:.2%} to {high:.2%})")
    return 0


def main(args: Sequence[str]) -> int:
    """The exit status of a command line."""
    options = dict(word.split("=", 1) for word in args[1:] if "=" in word and "://" not in word.split("=")[0])
    files = [word for word in args[1:] if "=" not in word or "://" in word.split("=")[0]]
    try:
        if args[:1] == ["check"] and len(files) == 2:
            return check(files, options)
        if args[:1] == ["floor"] and len(files) in (1, 2) and "cosine" in options:
            return floor(files, options)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
