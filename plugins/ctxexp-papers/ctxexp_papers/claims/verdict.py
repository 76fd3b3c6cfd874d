"""From tests to a verdict: the finding of a claim's tests on a source, and the claim's verdict over all sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.paper import Claim
from ctxexp_papers.claims.source import Kind, Source, is_mini, model_label

Outcome = Literal["pass", "only", "fail", "open", "none"]
OUTCOME_TEXTS: dict[Kind, dict[Outcome, str]] = {
    "protocol": {"pass": "holds", "only": "open: holds only under", "fail": "fails", "open": "open", "none": "not run"},
    "other": {
        "pass": "as claimed", "only": "as claimed only under", "fail": "not as claimed", "open": "open",
        "none": "not measured",
    },
    "points": {
        "pass": "figures agree", "only": "figures agree only under", "fail": "figures disagree", "open": "figures open",
        "none": "not released",
    },
}  # fmt: skip
"""By kind of source: on the paper's claim itself, which only its own protocol or released results decide; what came out
of the same test on anything else; and on which side released points lie, which have no intervals to decide by."""

RULINGS = ("holds", "fails", "open", "not run")
RULING_OF: dict[Outcome, str] = {"pass": "holds", "fail": "fails", "open": "open", "only": "open", "none": "not run"}
"""A verdict in a word: one that hangs on a choice is open."""


@dataclass(frozen=True)
class Finding:
    """A claim's outcome on a source.

    `variants`: specifications it is as claimed under, where others differ; `failed`: those it isn't under, where no
    other decides; `open`: how many others are open or weren't measured. `why`: what was missing.
    """

    claim: Claim
    source: Source
    outcome: Outcome
    variants: tuple[str, ...]
    checks: tuple[Check, ...]
    why: str = ""
    open: int = 0
    failed: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The outcome in words: a verdict only on the paper's own experiment."""
        text = OUTCOME_TEXTS[self.source.kind][self.outcome]
        if self.outcome == "open" and self.failed:
            no = OUTCOME_TEXTS[self.source.kind]["fail"]
            return f"{text}: {no} under {' and '.join(self.failed)}, {self.open} other{_s(self.open)} not decided"
        if self.outcome != "only":
            return text
        rest = f" ({self.open} other reading{_s(self.open)} open or not measured)" if self.open else ""
        return f"{text} {' or '.join(self.variants)}{rest}"

    @property
    def is_measured(self) -> bool:
        return any(check.is_measured for check in self.checks)

    @property
    def is_on_models(self) -> bool:
        """Whether it is a verdict on offered models, of which the paper speaks in general."""
        return self.source.kind == "other" and bool(self.claim.general) and self.outcome != "none"

    @property
    def on_models(self) -> str:
        """Such a verdict in words, with the models that it is on: "fails on gpt2 (mini), smollm2"."""
        models = dict.fromkeys(model_label(c.model) for c in _counted(self.claim, self.source, self.checks) if c.model)
        words = OUTCOME_TEXTS["protocol"][self.outcome]
        choice = f" {' or '.join(self.variants)}" if self.outcome == "only" else ""
        return f"{words}{choice} on {', '.join(models)}"


@dataclass(frozen=True)
class Verdict:
    """On a claim: the finding that decides (None: nothing does), and those beside it, which are no verdict.

    `why` says what a claim without a verdict needs, or why two of the paper's own sources leave it open.
    """

    claim: Claim
    finding: Finding | None
    beside: tuple[Finding, ...] = ()
    why: str = ""
    is_split: bool = False  # the paper's own sources decide differently

    @property
    def on_models(self) -> Finding | None:
        """The verdict on offered models where there is none on the paper's protocol."""
        if self.outcome != "none":
            return None
        return next((finding for finding in self.beside if finding.is_on_models), None)

    @property
    def ruling_on_models(self) -> str:
        """holds, fails or open, on offered models; empty without such a verdict."""
        return RULING_OF[self.on_models.outcome] if self.on_models else ""

    @property
    def outcome(self) -> Outcome:
        if self.is_split:
            return "open"
        return self.finding.outcome if self.finding else "none"

    @property
    def ruling(self) -> str:
        """holds, fails, open or not run."""
        return RULING_OF[self.outcome]

    @property
    def words(self) -> str:
        """The verdict in words, with the choice that it hangs on."""
        if self.is_split or self.finding is None:
            return self.ruling
        return self.finding.words


def judge(claim: Claim, source: Source) -> Finding:
    """The finding of the claim's tests on this source."""
    checks = tuple(claim.check(source)) if isinstance(source, claim.on) else ()
    counted = _counted(claim, source, checks)
    models = claim.models or tuple(dict.fromkeys(check.model for check in counted))
    passed: list[str] = []
    failed: list[str] = []
    open_: list[str] = []
    for variant in claim.variants:
        states = {model: _state(checks, model, variant) for model in models}
        undecided = None in states.values() or not states
        (failed if False in states.values() else open_ if undecided else passed).append(variant)
    outcome: Outcome = "none"
    if passed:
        outcome = "pass" if len(passed) == len(claim.variants) else "only"
    elif not open_:
        outcome = "fail"
    elif any(check.is_measured and check.model in models for check in checks) and (failed or _is_open(checks, models)):
        outcome = "open"
    variants = tuple(passed) if outcome == "only" else ()
    why = _why(claim, models, checks, open_)
    return Finding(claim, source, outcome, variants, checks, why, len(open_), tuple(failed))


def decide(claim: Claim, findings: Sequence[Finding]) -> Verdict:
    """The claim's verdict from its findings on every source, in the paper's order: the first of its own protocol that
    says anything decides, and leaves it open where another of them says otherwise. Off-protocol nothing decides."""
    own = [f for f in findings if f.source.kind == "protocol" and (f.outcome != "none" or f.is_measured)]
    deciding = [f for f in own if f.outcome != "none"]
    sides = {f.outcome for f in deciding} & {"pass", "fail"}
    best = next((f for f in deciding if f.outcome in sides), deciding[0] if deciding else None)
    beside = tuple(f for f in findings if f is not best and (f.is_measured or f.outcome != "none"))
    if len(sides) == 2:
        why = "; ".join(f"{f.source.title}: {f.words}" for f in deciding)
        return Verdict(claim, best, beside, f"the paper's own results don't agree: {why}", is_split=True)
    if best is None:
        reasons_ = [f"{f.source.title}: {f.why}" for f in own if f.why]
        return Verdict(claim, None, beside, "; ".join(reasons_) or f"needs {claim.evidence}")
    return Verdict(claim, best, beside, best.why if best.outcome in ("open", "only") else "")


def reasons(checks: Sequence[Check]) -> list[str]:
    """Reasons why checks were not measured, each once with its models: "bert, gpt2: no ... in its runs"."""
    by_reason: dict[str, dict[str, None]] = {}
    for check in checks:
        if not check.is_measured and check.text:
            by_reason.setdefault(check.text, {})[check.model] = None
    return [": ".join(filter(None, [", ".join(models), why])) for why, models in by_reason.items()]


def _counted(claim: Claim, source: Source, checks: Sequence[Check]) -> Sequence[Check]:
    """The checks that decide: on offered models those of instances, a model that says nothing left out."""
    if source.kind != "other" or not claim.general:
        return checks
    measured = {check.model for check in checks if check.is_measured}
    return [c for c in checks if c.model in measured and (claim.minis or not is_mini(c.model))]


def _state(checks: Sequence[Check], model: str, variant: str) -> bool | None:
    """False once a test of the model failed, True if all passed, None where one is open."""
    states = [check.passed for check in checks if check.model == model and check.variant == variant]
    return False if False in states else None if not states or None in states else True


def _is_open(checks: Sequence[Check], models: Sequence[str]) -> bool:
    return any(check.is_measured and check.passed is None and check.model in models for check in checks)


def _why(claim: Claim, models: Sequence[str], checks: Sequence[Check], open_: Sequence[str]) -> str:
    """The reasons for an open claim: models without a run, then curves that runs lack."""
    absent = [m for m in models if not any(c.model == m for c in checks)]
    lacks = reasons([check for check in checks if check.variant in open_])
    return "; ".join([*([f"no run of {', '.join(absent)}"] if absent else []), *lacks])


def _s(n: int) -> str:
    return "s" * (n != 1)
