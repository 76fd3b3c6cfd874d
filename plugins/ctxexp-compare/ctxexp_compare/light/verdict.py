"""The verdict of a check: same, rounded, or different and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from .floor import FEWEST, Carried, Floor
from .vectors import (
    GRADES,
    SAME,
    UNEVEN,
    Explanation,
    Share,
    changed_neighbours,
    direction_error,
    grade,
    is_even,
    root_mean_square,
    row_errors,
    unit,
)

Name = Literal["same", "rounded", "different"]
CLEARLY = 0.5  # of the plain error: what an explanation leaves, at most
SCALE = 0.005  # of a factor common to all rows: no rounding moves one so far
LENGTHS = "normalising"
LEAK = "batch that leaks"
REMEDIES = {
    "pooling": "serve with the reference's pooling (1_Pooling/config.json, --pooling), or if yours is meant: pooling=",
    LENGTHS: "divide each vector by its length on both sides, or on neither",
    "prompt": "put the same prompt before each text on both sides",
    "projection": "serve the modules behind the network too (modules.json lists them)",
    "dimensions cut": "ask for all dimensions, or cut the reference's too",
    "dimensions permuted": "one side has its columns in another order: embed all texts anew with one of them",
    "another layer": "take the last hidden state",
    "before the norm": "apply the network's last norm",
    "one token off": "pool the tokens that the reference pools, special ones as well",
    "tokenizer": "give the server the reference's tokenizer files",
    "padding": "pass the attention mask to the network and to the pooling",
    LEAK: "send the server one text a request (batch=1 checks that), or repair how it makes several at once",
    "unstable": "switch dropout and sampling off, and ask one replica",
    "text cut": "set the same longest text on both sides (max_seq_length, --max-batch-tokens, truncate)",
    "weights": "load the reference's weights, or make a new reference",
    "rows missing": "look for texts that the candidate couldn't embed",
    "rows swapped": "sort the answers by their index",
    "rotated": "vectors of one side can't be mixed with the other's: embed all texts with one of them",
}


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    `error` is how far vectors lie from the reference's, root mean square over rows in lengths of a vector, `noise` what
    reruns of one side may do, `worst` that of the furthest row and `row` its number. `rounding` is what rounds so far,
    of what is different what remains beside the cause. `cause` is a key of REMEDIES, or empty where none fits.
    `neighbours` is the share of the ten nearest that change, `cosine` the threshold that answers to `asked`. `layers`
    has a row a layer where layers were compared.
    """

    verdict: Name
    cause: str = ""
    detail: str = ""
    rounding: str = ""
    error: float = 0.0
    noise: float = SAME
    worst: float = 0.0
    row: int = 0
    n: int = 0
    neighbours: Share | None = None
    asked: float | None = None
    cosine: Carried | None = None
    is_search: bool = False
    notes: tuple[str, ...] = ()
    layers: tuple[dict[str, Any], ...] = ()

    def with_cause(self, cause: str, detail: str) -> Verdict:
        """Different, by this cause."""
        return replace(self, verdict="different", cause=cause, detail=detail, rounding="")

    def passes(self, rounding: str = "none") -> bool:
        """Whether it is the same, or rounded no more than this."""
        grades = ["none", *GRADES]
        is_allowed = self.verdict == "rounded" and grades.index(self.rounding) <= grades.index(rounding)
        return self.verdict == "same" or is_allowed

    @property
    def remedy(self) -> str:
        """What to do, of known causes."""
        return "; ".join(REMEDIES[cause] for cause in self.cause.split(" and ") if cause)

    @property
    def sentences(self) -> list[str]:
        """The verdict in a line, what to do, what it does to a search and to a threshold, and notes."""
        return [self._first(), *([f"to do: {self.remedy}"] if self.remedy else []), *self._effects(), *self.notes]

    def _first(self) -> str:
        far = f"vectors differ by {self.error:.2g} of their length" if np.isfinite(self.error) else ""
        if self.verdict == "same":
            return f"same: {far} (within {self.noise:.2g}, what reruns, batches and threads do)" if self.n else "same"
        if self.verdict == "rounded":
            return f"rounded, as {self.rounding} would: {far}, the furthest by {self.worst:.2g}"
        named = f"{self.cause} ({self.detail})" if self.cause and self.detail else self.cause or self.detail
        rest = f"; beside that rounded, as {self.rounding} would" if self.cause and self.rounding else ""
        return f"different: {'; '.join(filter(None, [named or 'no known cause fits', far]))}{rest}"

    def _effects(self) -> list[str]:
        lines = []
        if (share := self.neighbours) is not None and self.verdict != "same":
            of = "documents of each query" if self.is_search else "of each text"
            lines.append(
                f"of the ten nearest {of} {share.value:.0%} change (95%: {share.low:.0%} to {share.high:.0%}; "
                f"{share.n} {'queries' if self.is_search else 'texts'})"
            )
        if self.asked is not None and self.cosine is not None:
            answer = self.cosine
            ends = f"95%: {answer.low:.3f} to {answer.high:.3f}"
            found = f"{answer.cosine:.3f} ({ends}): {answer.share:.2%} of pairs of these texts reach either"
            found = f"none: {answer.reason}" if answer.reason else found
            lines.append(f"to a cosine of {self.asked:g} answers {found}")
        return lines


def judge(
    a: np.ndarray,
    b: np.ndarray,
    explanations: Iterable[Explanation] = (),
    *,
    noise: float = 0.0,
    has_length: bool = True,
) -> Verdict:
    """Compare vectors of the same texts.

    Args:
        a: The reference's (n, dim).
        b: The candidate's (n, columns).
        explanations: What the reference would give under each cause, likely ones first; looked at only as far as is
            needed.
        noise: How far reruns of one side lie apart.
        has_length: Whether the reference says how long vectors are; False: directions alone are compared.

    Returns:
        The verdict.

    Example:
        >>> a = np.random.default_rng(0).normal(size=(40, 8))
        >>> judge(a, a).verdict, judge(a, a / 2).cause, judge(a, a[:, ::-1]).cause
        ('same', 'normalising', '')
    """
    tolerance = max(4 * noise, SAME)
    if not has_length:
        a, b = unit(a), unit(b)
    plain = _plain(a, b, tolerance)
    if plain.cause or plain.verdict == "same" or (plain.verdict == "rounded" and plain.rounding == "float16"):
        return plain
    best, left = None, CLEARLY * direction_error(a, b)
    # the directions agree: a cause must do better than lengths alone
    if left < CLEARLY**2 * plain.error and _lengths(a, b):
        best, left = Explanation("", "", a), 2 * left
    for one in () if left <= tolerance else explanations:
        if one.vectors.shape == b.shape and (error := direction_error(one.vectors, b)) < 0.8 * left:
            best, left = one, error
            if error <= tolerance:
                break
    if best is None or left > GRADES["8bit"]:
        return plain if plain.verdict == "rounded" else replace(plain, rounding="")
    cause = best.cause
    lengths = _lengths(best.vectors, b)
    is_long = has_length and lengths and not (cause.startswith("dimensions cut") and "1" in lengths)
    rest = row_errors(unit(best.vectors), unit(b))
    more = "" if left <= tolerance or is_even(rest) else f"something else too, most in row {int(rest.argmax()) + 1}"
    detail = "; ".join(filter(None, [best.detail, lengths if is_long else "", more]))
    causes = [*([cause] if cause else []), *([LENGTHS] if is_long else [])]
    return replace(
        plain, verdict="different", cause=" and ".join(causes), detail=detail,
        rounding=grade(left) if left > tolerance and not more else "",
    )  # fmt: skip


def _plain(a: np.ndarray, b: np.ndarray, tolerance: float) -> Verdict:
    """The verdict without explanations."""
    if a.shape != b.shape:
        detail = f"{b.shape[1]} dimensions, expected {a.shape[1]}"
        return Verdict("different", detail=detail, error=np.inf, noise=tolerance, worst=np.inf, n=len(a))
    errors = row_errors(a, b)
    error, row = root_mean_square(errors), int(errors.argmax())
    facts = Verdict("different", error=error, noise=tolerance, worst=float(errors[row]), row=row, n=len(a))
    if error <= tolerance and errors[row] <= UNEVEN * tolerance:
        return replace(facts, verdict="same")
    if grade(error) and is_even(errors):
        return replace(facts, verdict="rounded", rounding=grade(error))
    zeros, moved = int((~np.asarray(b).any(axis=1)).sum()), int((errors > UNEVEN * tolerance).sum())
    if zeros:
        return replace(facts, cause="rows missing", detail=f"{zeros} of {len(b)} are zero")
    return replace(facts, detail=f"{moved} of {len(b)} rows differ, number {row + 1} most" if moved < len(b) else "")


def _lengths(a: np.ndarray, b: np.ndarray) -> str:
    """How b's lengths differ from a's, in words; empty where they don't by more than rounding."""
    of_a, of_b = (np.linalg.norm(np.asarray(x, np.float64), axis=1) for x in (a, b))
    ratios = of_b / np.where(of_a > 0, of_a, 1)
    if np.median(np.abs(ratios - 1)) <= SCALE:
        return ""
    if np.abs(of_b - 1).max() < GRADES["bfloat16"]:
        return "each vector has length 1, which the reference's haven't"
    if np.abs(of_a - 1).max() < 1e-3:
        return "vectors aren't divided by their length, as the reference's are"
    if ratios.std() < GRADES["bfloat16"] * ratios.mean():
        return f"lengths are {ratios.mean():.3g} times the reference's"
    return "lengths differ"


def with_effects(
    verdict: Verdict,
    a: np.ndarray,
    b: np.ndarray,
    *,
    queries: tuple[np.ndarray, np.ndarray] | None = None,
    cosine: float | None = None,
) -> Verdict:
    """The verdict with what the difference does to neighbours, and to a threshold where one is asked for."""
    answer = None
    if cosine is not None and len(a) >= FEWEST:
        answer = Floor.of_vectors(a).carry(Floor.of_vectors(b), cosine, fewest=FEWEST)
    return replace(
        verdict, neighbours=changed_neighbours(a, b, queries), asked=cosine, cosine=answer,
        is_search=queries is not None,
    )  # fmt: skip


def symptom(texts: Sequence[str], sizes: Sequence[int], errors: np.ndarray, tolerance: float) -> tuple[str, str]:
    """The cause and its detail where some kind of texts alone moved; empty where no kind fits.

    Args:
        texts: The texts.
        sizes: Their lengths in tokens, or in words where tokens aren't known.
        errors: Of each text's vector (n,).
        tolerance: From where on one counts as moved.
    """
    moved, lengths = errors > UNEVEN * tolerance, np.asarray(sizes)
    if not moved.any() or moved.all():
        return "", ""
    stayed, longest = lengths[~moved], lengths[moved]
    if longest.min() > stayed.max():
        return "text cut", f"texts of more than {stayed.max()} tokens alone differ"
    kinds = {
        "capitals": [text != text.lower() for text in texts],
        "letters beyond ASCII": [not text.isascii() for text in texts],
        "blanks or breaks in a row": [text != " ".join(text.split()) for text in texts],
    }
    for kind, has in kinds.items():
        if moved[~np.array(has)].sum() == 0 and moved[np.array(has)].mean() > 0.5:
            return "tokenizer", f"texts with {kind} alone differ"
    return "", ""
