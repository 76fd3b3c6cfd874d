"""Files of vectors with planted faults, and what a passport says of them, into the how-to page that identifies a layer.

`python -m docs.numbers.passports`: 30 files of gpt2 (as they are, off by one, gaps, norms, scaled and shifted rows,
axes in another order); and, where nothing is to be named, files of random numbers and of the untrained network.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from ctxexp_compare.passport.match import make_passport
from ctxexp_compare.passport.report import describe

from ctxexp.command import Built, configured
from ctxexp.datasets import tokenizer
from ctxexp.models import TokenStates
from docs.numbers.marked import write_marked
from docs.numbers.part import ROOT, markdown

PAGE = ROOT / "docs" / "how-to" / "identify-a-layer.md"
TEXTS = ["The bank of the river was unbelievably wet.", "A bank lent us money.", "We sat on the bank, quietly."]
LAST = 4
NULLS = 100  # files of random numbers, and as many of the untrained network

Plant = Callable[[TokenStates], np.ndarray]


def layers(*numbers: int) -> Plant:
    return lambda s: s.layers[list(numbers)]


def with_last(change: Callable[[TokenStates], np.ndarray]) -> Plant:
    return lambda s: np.concatenate([s.layers[:LAST], change(s)[None]])


def before(s: TokenStates) -> np.ndarray:
    assert s.before_norm is not None
    return s.before_norm


def normed(s: TokenStates, *numbers: int) -> np.ndarray:
    assert s.normed is not None
    return np.asarray(s.normed[list(numbers)])


def unit(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


def noise(x: np.ndarray, share: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    z = rng.normal(size=x.shape)
    return np.asarray(x + share * unit(z) * np.linalg.norm(x, axis=-1, keepdims=True))


WHOLE = "layers 0 to 4 here are hidden_states[0] to hidden_states[4]"
PLANTED: dict[str, tuple[Plant, str]] = {  # the vectors, and a part of the sentence that names them
    "as it is": (lambda s: s.layers, WHOLE),
    "input layer missing": (
        layers(1, 2, 3, 4),
        "layers 0 to 3 here are hidden_states[1] to hidden_states[4]; layer 0 is missing",
    ),
    "two missing": (
        layers(2, 3, 4),
        "layers 0 to 2 here are hidden_states[2] to hidden_states[4]; layers 0 and 1 are missing",
    ),
    "last missing": (
        layers(0, 1, 2, 3),
        "layers 0 to 3 here are hidden_states[0] to hidden_states[3]; layer 4 is missing",
    ),
    "both ends missing": (
        layers(1, 2, 3),
        "layers 0 to 2 here are hidden_states[1] to hidden_states[3]; layers 0 and 4 are missing",
    ),
    "gap": (layers(0, 1, 3, 4), "layers 2 to 3 here are hidden_states[3] to hidden_states[4]; layer 2 is missing"),
    "every other": (
        layers(0, 2, 4),
        "layer 1 here is hidden_states[2]; layer 2 here is hidden_states[4]; layers 1 and 3 are missing",
    ),
    "one layer": (layers(2), "layer 0 here is hidden_states[2]; layers 0, 1, 3 and 4 are missing"),
    "reversed": (layers(4, 3, 2, 1, 0), "layer 0 here is hidden_states[4]; layer 1 here is hidden_states[3]"),
    "two swapped": (layers(0, 2, 1, 3, 4), "layer 1 here is hidden_states[2]; layer 2 here is hidden_states[1]"),
    "one twice": (layers(0, 1, 1, 3, 4), "layer 2 here is hidden_states[1]; layers 3 to 4"),
    "no final norm": (with_last(before), "layer 4 here is hidden_states[4] before the final norm"),
    "only the last, unnormed": (
        lambda s: before(s)[None],
        "layer 0 here is hidden_states[4] before the final norm; layers 0 to 3 are missing",
    ),
    "final norm on every layer": (
        lambda s: normed(s, 0, 1, 2, 3),
        "layers 0 to 3 here are hidden_states[0] to hidden_states[3] after the final norm; layer 4 is missing",
    ),
    "final norm on a middle layer": (
        lambda s: np.concatenate([s.layers[:2], normed(s, 2), s.layers[3:]]),
        "layer 2 here is hidden_states[2] after the final norm",
    ),
    "off by one and no final norm": (
        lambda s: np.concatenate([s.layers[1:LAST], before(s)[None]]),
        "layer 3 here is hidden_states[4] before the final norm; layer 0 is missing",
    ),
    "rows of length 1": (lambda s: unit(s.layers), f"{WHOLE}, scaled to length 1"),
    "last row-normalized": (
        with_last(lambda s: unit(s.layers[LAST])),
        "layer 4 here is hidden_states[4], scaled to length 1",
    ),
    "unnormed and scaled": (
        with_last(lambda s: unit(before(s))),
        "layer 4 here is hidden_states[4] before the final norm, scaled to length 1",
    ),
    "tokens first": (lambda s: s.layers.transpose(1, 0, 2), f"{WHOLE}; its axes are tokens, layers, columns"),
    "columns before tokens": (lambda s: s.layers.transpose(0, 2, 1), f"{WHOLE}; its axes are layers, columns, tokens"),
    "columns first": (lambda s: s.layers.transpose(2, 1, 0), f"{WHOLE}; its axes are columns, tokens, layers"),
    "tokens, columns, layers": (
        lambda s: s.layers.transpose(1, 2, 0),
        f"{WHOLE}; its axes are tokens, columns, layers",
    ),
    "the other memory order": (
        lambda s: np.ascontiguousarray(s.layers.transpose(0, 2, 1)).reshape(s.layers.shape),
        f"{WHOLE}; tokens and columns were read in the other memory order",
    ),
    "transposed and off by one": (
        lambda s: s.layers[1:].transpose(1, 0, 2),
        "layers 0 to 3 here are hidden_states[1] to hidden_states[4]; layer 0 is missing; its axes are tokens, layers",
    ),
    "rows a token late": (lambda s: np.roll(s.layers, 1, axis=1), f"{WHOLE}; row 1 here is token 0"),
    "rows a token early": (lambda s: np.roll(s.layers, -1, axis=1), f"{WHOLE}; row 0 here is token 1"),
    "words": (
        lambda s: np.stack([s.layers[:, a : a + n].mean(axis=1) for a, n in s.words.tolist()], axis=1),
        f"{WHOLE}; rows are words",
    ),
    "rounding of one percent": (lambda s: noise(s.layers, 0.01), f"{WHOLE} (rows differ by 0.0"),
    "another model's": (
        lambda s: np.random.default_rng(1).normal(size=s.layers.shape),
        "layer 0 here is no hidden state of this checkpoint (nearest: ",
    ),
}


KINDS = {  # of planted files, by their names
    "nothing": ("as it is", "rounding of one percent"),
    "layers missing or off by one": (
        "input layer missing", "two missing", "last missing", "both ends missing", "gap", "every other", "one layer",
    ),
    "layers in another order": ("reversed", "two swapped", "one twice"),
    "final norm missing, or where none was": (
        "no final norm", "only the last, unnormed", "final norm on every layer", "final norm on a middle layer",
        "off by one and no final norm",
    ),
    "rows scaled to length 1": ("rows of length 1", "last row-normalized", "unnormed and scaled"),
    "axes in another order": (
        "tokens first", "columns before tokens", "columns first", "tokens, columns, layers", "the other memory order",
        "transposed and off by one",
    ),
    "rows shifted, or of words": ("rows a token late", "rows a token early", "words"),
    "another model's": ("another model's",),
}  # fmt: skip


def states_of(model: str, *options: str) -> list[TokenStates]:
    """The token states of the texts."""
    encoder = Built(configured(model, options=list(options))).encoder
    return [encoder.token_states(tokenizer("english")(text)) for text in TEXTS]


def is_named(name: str, states: Sequence[TokenStates]) -> bool:
    """Whether the passport of the planted file of that name says it."""
    plant, expected = PLANTED[name]
    return expected in describe(make_passport([plant(s) for s in states], states))


def planted_table(states: Sequence[TokenStates]) -> str:
    """A row a kind of planted file."""
    named: dict[str, list[bool]] = defaultdict(list)
    for kind, names in KINDS.items():
        named[kind] = [is_named(name, states) for name in names]
    return markdown(["planted", "files", "named"], [[k, f"{len(own)}", f"{sum(own)}"] for k, own in named.items()])


def nulls(states: Sequence[TokenStates], n: int = NULLS) -> Iterator[tuple[str, int, int]]:
    """Of files in which no layer is the checkpoint's: their kind, how many layers they have, and how many of these get
    the name of a hidden state."""
    rngs = [np.random.default_rng(seed) for seed in range(n)]
    yield "random numbers", *_counts([[rng.normal(size=s.layers.shape) for s in states] for rng in rngs], states)
    orders = [rng.permutation(states[0].layers.shape[2]) for rng in rngs]
    yield "columns shuffled", *_counts([[s.layers[:, :, order] for s in states] for order in orders], states)
    untrained = ([s.layers for s in states_of("gpt2", "weights=untrained", f"seed={seed}")] for seed in range(n // 10))
    yield "untrained networks of the same shape", *_counts(untrained, states)


def _counts(
    files: Iterator[list[np.ndarray]] | list[list[np.ndarray]], states: Sequence[TokenStates]
) -> tuple[int, int]:
    found = [one for vectors in files for one in make_passport(vectors, states).layers]
    return len(found), sum(one.layer is not None for one in found)


def null_table(states: Sequence[TokenStates], n: int = NULLS) -> str:
    """A row a kind of file in which nothing is to be named."""
    rows = [[kind, f"{layers:,}", f"{named}"] for kind, layers, named in nulls(states, n)]
    return markdown(["nothing of this checkpoint", "layers", "named all the same"], rows)


if __name__ == "__main__":
    own = states_of("gpt2")
    write_marked(PAGE, "passports", planted_table(own) + "\n\n" + null_table(own))
