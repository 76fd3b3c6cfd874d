"""From tests to a verdict: claims, and the findings of their tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.evidence import Family

Outcome = Literal["pass", "only", "fail", "open", "none"]
OUTCOME_TEXTS: dict[str, dict[Outcome, str]] = {
    "published": {"pass": "holds", "only": "holds only under", "fail": "fails", "open": "open", "none": "not run"},
    "other": {
        "pass": "as claimed", "only": "as claimed only under", "fail": "not as claimed", "open": "open",
        "none": "not measured",
    },
    "released": {
        "pass": "figures agree", "only": "figures agree only under", "fail": "figures disagree", "open": "figures open",
        "none": "not released",
    },
}  # fmt: skip
"""By kind of evidence: on the paper's claim itself, which only its own weights, text and protocol decide; what came out
of the same test on anything else; and on which side the released figures lie, which have no intervals to decide by."""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, where it stands there, and its test, fixed before any run was looked at.

    `check` tests it on a family: checks by model and variant. `variants` are the readings under which it is tested, in
    the order of reporting ("" if there is one); `needs` names the claims it follows from, whose outcome it takes.
    """

    id: str
    section: str
    statement: str
    test: str
    check: Callable[[Family], list[Check]]
    models: tuple[str, ...]
    variants: tuple[str, ...] = ("",)
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """A claim's outcome on a family; `variants` those it is as claimed under, `open` how many others weren't measured,
    `why` what was missing."""

    claim: Claim
    family: Family
    outcome: Outcome
    variants: tuple[str, ...]
    checks: tuple[Check, ...]
    why: str = ""
    open: int = 0

    @property
    def words(self) -> str:
        """The outcome in words: a verdict only on the paper's own experiment."""
        text = OUTCOME_TEXTS[self.family.kind][self.outcome]
        if self.outcome != "only":
            return text
        rest = f" ({self.open} other reading{'s' if self.open > 1 else ''} open or not measured)" if self.open else ""
        return f"{text} {' or '.join(self.variants)}{rest}"


def judge(claim: Claim, family: Family, known: Sequence[Finding] = ()) -> Finding:
    """The finding of the claim's tests on this family; `known` are the findings on claims that it follows from."""
    if claim.needs:
        return _follow(claim, family, known)
    checks = tuple(claim.check(family))
    passed: list[str] = []
    failed: list[str] = []
    open_: list[str] = []
    for variant in claim.variants:
        states = {model: _state(checks, model, variant) for model in claim.models}
        (failed if False in states.values() else open_ if None in states.values() else passed).append(variant)
    outcome: Outcome = "none"
    if passed:
        outcome = "pass" if len(passed) == len(claim.variants) else "only"
    elif not open_:
        outcome = "fail"
    elif any(check.is_measured and check.passed is None and check.model in claim.models for check in checks):
        outcome = "open"
    variants = tuple(passed) if outcome == "only" else ()
    return Finding(claim, family, outcome, variants, checks, _why(claim, checks, open_), len(open_))


def _state(checks: Sequence[Check], model: str, variant: str) -> bool | None:
    """False once a test of the model failed, True if all passed, None where one is open."""
    states = [check.passed for check in checks if check.model == model and check.variant == variant]
    return False if False in states else None if not states or None in states else True


def reasons(checks: Sequence[Check]) -> list[str]:
    """Reasons why checks were not measured, each once with its models: "bert, gpt2: no ... in its runs"."""
    by_reason: dict[str, dict[str, None]] = {}
    for check in checks:
        if not check.is_measured and check.text:
            by_reason.setdefault(check.text, {})[check.model] = None
    return [": ".join(filter(None, [", ".join(models), why])) for why, models in by_reason.items()]


def _why(claim: Claim, checks: Sequence[Check], open_: Sequence[str]) -> str:
    """The reasons for an open claim: models without a run, then curves that runs lack."""
    absent = [m for m in claim.models if not any(c.model == m for c in checks)]
    lacks = reasons([check for check in checks if check.variant in open_])
    return "; ".join([*([f"no run of {', '.join(absent)}"] if absent else []), *lacks])


def _follow(claim: Claim, family: Family, known: Sequence[Finding]) -> Finding:
    """An inference stands where everything that it rests on stands; the weakest of those decides."""
    order: list[Outcome] = ["fail", "none", "open", "only", "pass"]
    basis = [finding for finding in known if finding.claim.id in claim.needs]
    if len(basis) < len(claim.needs):
        return Finding(claim, family, "none", (), (), f"rests on {' and '.join(claim.needs)}")
    weakest = min(basis, key=lambda finding: order.index(finding.outcome))
    grounds = " and on ".join(f"{finding.claim.id} ({finding.words})" for finding in basis)
    why = f"an inference, no better founded than the weaker of what it rests on: {grounds}"
    return Finding(claim, family, weakest.outcome, weakest.variants, (), why, weakest.open)
