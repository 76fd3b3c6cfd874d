"""Damage to cached vectors: each is noticed, the sentences are encoded again, and the numbers are the same."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from . import Silent
from .damages import OF_LENGTH, Damage, copy_over, swap
from .plugin import CORPORA, Drawn, open_store


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every kind of damage in turn, at drawn places."""
    kinds = [list(DAMAGES.items())[i] for i in np.random.default_rng(seed).permutation(len(DAMAGES))]
    for number in range(count):
        name, damage = kinds[number % len(kinds)]
        yield name, partial(try_case, folder / str(number), damage, seed, number)


def try_case(cache: Path, damage: Damage, seed: int, number: int) -> None:
    """Makes two entries, damages one, and opens it again."""
    made, other = (open_store(cache, "one", name).path for name in CORPORA)
    before = content(made)
    damage(made, other, np.random.default_rng([seed, number]))
    changed = content(made) != before
    with heard() as words:
        store = open_store(cache, "one")
    if bool(store.n_encoded) != changed:
        raise Silent("the damage was not noticed" if changed else "an undamaged entry was encoded again")
    words = [line for line in words if "vectors of one take up to" not in line]  # what encoding again needs
    if len(words) != changed or not all(w.endswith("encoding it again") and "\n" not in w for w in words):
        raise Silent(f"expected one line that says so, got {words}")
    check(store)
    again = open_store(cache, "one")
    if again.n_encoded:
        raise Silent("the entry was not made whole")
    check(again)
    shutil.rmtree(cache)


@contextmanager
def heard() -> Iterator[list[str]]:
    """What is logged inside, which nobody else hears."""
    words: list[str] = []
    log, handler = logging.getLogger("ctxexp"), logging.Handler()
    handler.emit = lambda record: words.append(record.getMessage())  # type: ignore[method-assign]
    before = log.handlers, log.propagate
    log.handlers, log.propagate = [handler], False
    try:
        yield words
    finally:
        log.handlers, log.propagate = before


def check(store: Any, name: str = "one") -> None:
    """Raises Silent unless every row of the first text is its word's vector."""
    for i, expected in enumerate(Drawn(name).encode(CORPORA["one"].sentences)):
        s = store.stored_of[i]
        own = slice(store.offsets[s], store.offsets[s + 1])
        if tuple(store.vocabulary[code] for code in store.unit_codes[own]) != expected.units:
            raise Silent(f"sentence {i} has other words")
        if any(not np.array_equal(store.layer(k)[own], expected.layers[k]) for k in range(3)):
            raise Silent(f"sentence {i} has other vectors")


def content(entry: Path) -> str:
    """What tells the entry's bytes from others."""
    found = hashlib.sha256()
    for path in sorted(entry.iterdir()):
        found.update(path.name.encode() + (path.read_bytes() if path.is_file() else b"/"))
    return found.hexdigest()


def in_a_file(damage: Damage, pattern: str = "*") -> Damage:
    """To a drawn file of the entry, beside that of the other entry."""

    def of_file(entry: Path, other: Path, rng: np.random.Generator) -> None:
        path = Path(rng.choice(sorted(map(str, entry.glob(pattern)))))
        damage(path, other / path.name, rng)

    return of_file


def said(text: bytes) -> Damage:
    return lambda entry, other, rng: (entry / "meta.json").write_bytes(text)


DAMAGES: dict[str, Damage] = {
    **{name: in_a_file(damage) for name, damage in OF_LENGTH.items()},
    "another entry's meta": in_a_file(copy_over, "meta.json"),
    "entries swapped": swap,
    "meta is empty": said(b"{}"),
    "meta is null": said(b"null"),
    "meta is no JSON": said(b'{"meta": {'),
    "meta is no UTF-8": said(b"\xff\xfe"),
    "meta of other keys": said(b'{"format": 2}'),
}
