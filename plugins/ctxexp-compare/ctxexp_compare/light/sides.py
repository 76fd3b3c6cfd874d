"""The two places of a check: arrays, files of vectors, pins, servers and functions of texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from .files import SUFFIXES, read_matrix
from .pin import Pin
from .server import BATCH, Server
from .vectors import SAME, UNEVEN, Explanation, direction_error, from_vectors, root_mean_square, row_errors, unit
from .verdict import LEAK, Verdict, judge, symptom, with_effects

ASKED = 6  # texts that a server is asked for again
Explain = Callable[[Sequence[str], np.ndarray, np.ndarray], Iterable[Explanation]]


@dataclass(frozen=True)
class Side:
    """A place of vectors: `rows` (n, dim) in hand, or `ask`, which gives those of texts, so many at once.

    `texts` are what rows are of, with `lengths` in tokens, where that is known. `noise` is what reruns do, `has_length`
    whether it is known how long vectors are to be, `serves` whether equal requests may have unequal answers.
    """

    title: str
    rows: np.ndarray | None = None
    ask: Callable[[Sequence[str], int], np.ndarray] | None = None
    texts: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    noise: float = 0.0
    has_length: bool = True
    serves: bool = False

    @classmethod
    def of_array(cls, x: np.ndarray, title: str = "the array") -> Side:
        """Raises ValueError for other than finite rows."""
        return cls(title, matrix(x, title))

    @classmethod
    def of_pin(cls, pin: Pin) -> Side:
        return cls(
            pin.title, pin.vectors, texts=pin.texts, lengths=pin.lengths, noise=pin.noise, has_length=pin.has_length
        )

    @classmethod
    def of_function(cls, ask: Callable[[list[str]], object], title: str = "the function") -> Side:
        return cls(title, ask=lambda texts, batch: np.asarray(ask(list(texts))), serves=True)

    @classmethod
    def of_server(cls, url: str, model: str = "", key: str = "") -> Side:
        """Raises OSError where the key is missing."""
        server = Server(url, model, key)
        return cls(server.title, ask=server, serves=True)

    @classmethod
    def of_file(cls, file: Path) -> Side | None:
        """A file of vectors, or a pin; None for a file of other arrays. Raises ValueError or OSError."""
        if file.suffix not in SUFFIXES:
            return replace(cls.of_pin(Pin.load(file)), title=file.name)
        x = read_matrix(file)
        return None if x is None else cls.of_array(x, file.name)

    def vectors(self, texts: Sequence[str], batch: int = BATCH) -> np.ndarray:
        """(n, dim) of the texts; NaN for one that is refused. Raises ValueError or OSError."""
        if self.rows is None:
            assert self.ask is not None
            return matrix(self.ask(texts, batch), self.title, allows_nan=True)
        if texts and len(texts) != len(self.rows):
            raise ValueError(f"{self.title} has {len(self.rows)} rows, the text {len(texts)}: expected one each")
        return self.rows


def matrix(x: np.ndarray, title: str, *, allows_nan: bool = False) -> np.ndarray:
    """x itself. Raises ValueError for other than rows of finite numbers."""
    if x.ndim != 2 or not np.issubdtype(x.dtype, np.number) or not (allows_nan or np.isfinite(x).all()):
        raise ValueError(f"{title}: expected finite numbers (texts, dimensions), got shape {x.shape} of {x.dtype}")
    return x


def compare(
    one: Side,
    other: Side,
    texts: Sequence[str] = (),
    *,
    queries: Sequence[str] = (),
    cosine: float | None = None,
    batch: int = BATCH,
    explain: Explain | None = None,
) -> Verdict:
    """The verdict on two sides of the same texts.

    Args:
        one: The reference.
        other: The candidate.
        texts: The texts; empty: those of a side that knows them.
        queries: Texts whose nearest among `texts` are looked at.
        cosine: A threshold of the reference, whose answer in the candidate is wanted.
        batch: Texts at once.
        explain: What the reference would give of texts under causes that fit both sides' vectors.

    Returns:
        The verdict.

    Raises:
        ValueError: Sides of unlike numbers of rows, or texts that are missing.
        OSError: A server that can't be asked.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(50, 8))
        >>> compare(Side.of_array(x), Side.of_array(x / 2)).cause
        'normalising'
    """
    texts = texts or one.texts or other.texts
    if not texts and (one.rows is None or other.rows is None):
        raise ValueError("text=: which texts are these the vectors of? a file with one a line")
    if queries and (one.ask is None or other.ask is None):
        raise ValueError("queries=: their vectors are asked for, which files and pins can't give")
    a, b = one.vectors(texts, batch), other.vectors(texts, batch)
    if len(a) != len(b):
        raise ValueError(f"{one.title} has {len(a)} rows, {other.title} {len(b)}: expected the same texts")
    there = np.isfinite(a).all(axis=1) & np.isfinite(b).all(axis=1)
    if not there.any():
        raise ValueError(f"{other.title} gives no vector of any text")
    kept = [text for text, is_there in zip(texts, there, strict=False) if is_there]
    lengths = [n for n, is_there in zip(one.lengths, there, strict=False) if is_there]
    one, a, b = replace(one, lengths=tuple(lengths)), a[there], b[there]
    verdict = _judge(one, other, kept, a, b, batch, explain)
    notes = [] if there.all() else [f"note: {(~there).sum()} of {len(there)} texts are refused, maybe as too long"]
    if verdict.verdict == "different" and not verdict.cause and explain is None:
        notes.append("note: pooling, prompts, layers and tokenizers are told where the reference is a model")
    if not one.has_length and verdict.verdict != "different":
        notes.append(f"note: nothing in the files of {one.title} says how long vectors are: directions were compared")
    pair = (one.vectors(queries, batch), other.vectors(queries, batch)) if queries else None
    return with_effects(replace(verdict, notes=(*verdict.notes, *notes)), a, b, queries=pair, cosine=cosine)


def _judge(
    one: Side, other: Side, texts: Sequence[str], a: np.ndarray, b: np.ndarray, batch: int, explain: Explain | None
) -> Verdict:
    plain = judge(a, b, noise=one.noise, has_length=one.has_length)
    if plain.verdict == "same":
        return plain
    leaks = ""
    if other.serves and texts:
        first, again, alone, some = _asked_again(other, texts, batch)
        if (far := root_mean_square(row_errors(first, again))) > UNEVEN * SAME:
            detail = f"two equal requests are answered by vectors that differ by {far:.2g} of their length"
            return plain.with_cause("unstable", detail)
        leaks = _leak(a[some], b[some], alone)

    def explanations() -> Iterable[Explanation]:
        yield from from_vectors(a, b)
        if explain is not None:
            yield from explain(texts, a, b)

    verdict = judge(a, b, explanations(), noise=one.noise, has_length=one.has_length)
    if leaks and "padding" not in verdict.cause:
        return plain.with_cause(LEAK, leaks)
    if verdict.cause or a.shape != b.shape or not texts:
        return verdict
    if repeated := _repeats(texts, b):
        return verdict.with_cause("unstable", repeated)
    if verdict.verdict == "rounded":
        return verdict
    lengths = one.lengths or [len(text.split()) for text in texts]
    cause, detail = symptom(texts, lengths, row_errors(unit(a), unit(b)), max(4 * one.noise, SAME))
    return replace(verdict, cause=cause, detail=detail or verdict.detail)


def _asked_again(
    other: Side, texts: Sequence[str], batch: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Some texts' vectors twice in one request, and each alone, and the texts' numbers: of the shorter ones, the very
    longest may be refused."""
    order = np.argsort([len(text) for text in texts], kind="stable")[: max(ASKED, 3 * len(texts) // 4)]
    some = order[np.unique(np.linspace(0, len(order) - 1, ASKED).astype(int))]
    asked = [texts[i] for i in some]
    alone = np.concatenate([other.vectors([text], 1) for text in asked])
    return other.vectors(asked, batch), other.vectors(asked, batch), alone, some


def _leak(a: np.ndarray, b: np.ndarray, alone: np.ndarray) -> str:
    """What a text's company does to its vector, in words: where one alone is nearer to the reference's."""
    if a.shape != alone.shape or (far := root_mean_square(row_errors(alone, b))) <= UNEVEN * SAME:
        return ""
    among, by_itself = (direction_error(a, x) for x in (b, alone))
    return f"a text alone and among others get vectors that differ by {far:.2g}" if by_itself < among / 2 else ""


def _repeats(texts: Sequence[str], b: np.ndarray) -> str:
    """Whether equal texts have unequal vectors, in words."""
    first = dict[str, int]()
    for i, text in enumerate(texts):
        far = float(row_errors(b[first.setdefault(text, i)][None], b[i][None])[0])
        if far > UNEVEN * SAME:
            return f"{text[:40]!r} stands there twice, its vectors differ by {far:.2g} of their length"
    return ""
