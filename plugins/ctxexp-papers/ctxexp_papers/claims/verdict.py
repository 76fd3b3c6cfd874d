"""From what a user offers to verdicts: the evidence on a paper, the finding of a claim's tests on a source, and the
claim's verdict over all sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ctxexp_papers.claims.evidence import Inputs, Source, is_mini, model_label
from ctxexp_papers.claims.kinds import Check, try_claim
from ctxexp_papers.claims.models import of_models
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.released import READERS
from ctxexp_papers.claims.runs import of_runs

Ruling = Literal["holds", "fails", "open", "not run"]
RULINGS: tuple[Ruling, ...] = ("holds", "fails", "open", "not run")


@dataclass(frozen=True)
class Finding:
    """A claim's outcome on a source: over all its models and readings; `why` says what was missing.

    `holding`: the readings whose tests are passed; `failing`: those that it fails under.
    """

    claim: Claim
    source: Source
    ruling: Ruling
    checks: tuple[Check, ...]
    holding: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    why: str = ""

    @property
    def words(self) -> str:
        """The ruling with the readings that it hangs on, and what passes its tests too."""
        under = f" under {' and '.join(self.holding)}" * (len(self.holding) < len(self.claim.readings))
        artefacts = ", ".join(self.claim.passed_by)
        passed = f"passed{under} (also where all is {artefacts})" if artefacts else f"holds{under}"
        parts = [passed * bool(self.holding)]
        parts += [f"fails under {' and '.join(self.failing)}" * bool(self.failing)]
        hangs = ", ".join(filter(None, parts)) if self.ruling == "open" else ""
        return f"open: {hangs}" if hangs else self.ruling

    @property
    def models(self) -> list[str]:
        """The names of the models that decide."""
        counted = _counted(self.claim, self.source, self.checks)
        return list(dict.fromkeys(model_label(check.model) for check in counted if check.is_measured))


@dataclass(frozen=True)
class Verdict:
    """On a claim: `own`, the finding on the paper's protocol, and `others`, which give no verdict on the claim.

    `on_models`: the finding on offered models, where the paper speaks of models in general: a verdict on these alone.
    """

    claim: Claim
    own: Finding | None
    others: tuple[Finding, ...] = ()
    why: str = ""

    @property
    def on_models(self) -> Finding | None:
        if self.own is not None or not self.claim.general:
            return None
        return next((finding for finding in self.others if finding.ruling != "not run"), None)

    @property
    def finding(self) -> Finding | None:
        """The finding that decides, on the paper's protocol, else on offered models."""
        return self.own or self.on_models

    @property
    def decided_on(self) -> str:
        return "protocol" if self.own else "models" if self.on_models else "not run"

    @property
    def ruling(self) -> Ruling:
        return self.finding.ruling if self.finding else "not run"


@dataclass(frozen=True)
class Trial:
    """A paper's verdicts, one a claim in the paper's order."""

    paper: Paper
    verdicts: tuple[Verdict, ...]

    def counts(self, decided_on: str) -> dict[str, int]:
        """How many claims hold, fail and are open on the paper's protocol, or on offered models."""
        found = Counter(verdict.ruling for verdict in self.verdicts if verdict.decided_on == decided_on)
        return {ruling: found[ruling] for ruling in RULINGS[:-1]}


def try_paper(paper: Paper, inputs: Inputs) -> Trial:
    """The paper's verdicts on what is offered."""
    return try_sources(paper, gather(paper, inputs))


def gather(paper: Paper, inputs: Inputs) -> list[Source]:
    """The evidence on the paper's claims: its own first."""
    evidence, tests = paper.evidence, paper.measurements()
    found: list[Source] = []
    if reader := evidence.get("released"):
        found += READERS[reader](inputs, paper.name, tests)
    if "runs" in evidence:
        found += of_runs(inputs, evidence, tests)
    if paper.claims and not {"released", "runs"} & set(evidence):
        found += of_models(inputs, paper.name, evidence, tests)
    return sorted(found, key=lambda source: source.kind != "protocol")


def try_sources(paper: Paper, sources: Sequence[Source]) -> Trial:
    """The paper's verdicts on these sources, the first of them preferred."""
    return Trial(paper, tuple(decide(claim, [judge(claim, source) for source in sources]) for claim in paper.claims))


def judge(claim: Claim, source: Source) -> Finding:
    """The finding of the claim's tests on this source: it holds where each model passes under each reading (and nothing
    else would), fails where under each some model doesn't, and is open else, if anything is decided or measured."""
    checks = tuple(try_claim(claim.test, claim.readings, claim.models, source))
    counted = _counted(claim, source, checks)
    models = claim.models or tuple(dict.fromkeys(check.model for check in counted))
    passed: list[str] = []
    failed: list[str] = []
    for reading in claim.readings:
        states = [_state(counted, model, reading) for model in models]
        if False in states:
            failed.append(reading)
        elif states and None not in states:
            passed.append(reading)
    n, is_open = len(claim.readings), any(c.is_measured and c.passed is None and c.model in models for c in counted)
    ruling: Ruling = "not run"
    if len(passed) == n:
        ruling = "open" if claim.passed_by else "holds"
    elif len(failed) == n:
        ruling = "fails"
    elif passed or is_open or (failed and any(c.is_measured for c in counted)):
        ruling = "open"
    absent = [model for model in models if not any(check.model == model for check in checks)]
    lacking = dict.fromkeys(f"{c.model}: {c.text}" for c in checks if not c.is_measured and c.text)
    why = "; ".join([*([f"nothing of {', '.join(absent)}"] if absent else []), *lacking])
    return Finding(claim, source, ruling, checks, tuple(passed), tuple(failed), why)


def decide(claim: Claim, findings: Sequence[Finding]) -> Verdict:
    """The claim's verdict from its findings on every source: the first of its own protocol that holds or fails decides,
    else the first that is open; where two of them differ it is open. Off-protocol nothing decides."""
    own = [f for f in findings if f.source.kind == "protocol"]
    deciding = [f for f in own if f.ruling != "not run"]
    sides = {f.ruling for f in deciding} & {"holds", "fails"}
    best = next((f for f in deciding if f.ruling in sides), deciding[0] if deciding else None)
    others = tuple(f for f in findings if f.source.kind == "other" and any(c.is_measured for c in f.checks))
    if best is not None and len(sides) == 2:
        why = "; ".join(f"{f.source.title}: {f.words}" for f in deciding)
        best = Finding(claim, best.source, "open", best.checks)
        return Verdict(claim, best, others, f"the paper's own results don't agree: {why}")
    if best is None:
        reasons = [f"{f.source.title}: {f.why}" for f in own if f.why]
        for finding in others[:1] if not claim.general else ():
            reasons += [f"{model}: {'; '.join(those)}" for model, those in finding.source.departures.items()]
        return Verdict(claim, None, others, "; ".join([*reasons, f"needs {claim.needs}"]))
    return Verdict(claim, best, others, best.why if best.ruling == "open" else "")


def _counted(claim: Claim, source: Source, checks: Sequence[Check]) -> Sequence[Check]:
    """The checks that decide: on offered models those of instances, a model that says nothing left out."""
    if source.kind != "other" or not claim.general:
        return checks
    measured = {check.model for check in checks if check.is_measured}
    return [c for c in checks if c.model in measured and (claim.minis or not is_mini(c.model))]


def _state(checks: Sequence[Check], model: str, reading: str) -> bool | None:
    """False once a test of the model failed, True if all passed, None where one is open."""
    states = [check.passed for check in checks if check.model == model and check.reading == reading]
    return False if False in states else None if not states or None in states else True
