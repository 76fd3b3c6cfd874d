"""What `ctxexp claims` shows and writes: counts by paper, verdicts, the tests behind them, and what merely follows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from ctxexp.report import Document, Table
from ctxexp_papers.claims.evidence import model_label
from ctxexp_papers.claims.kinds import Check, describe
from ctxexp_papers.claims.paper import Paper
from ctxexp_papers.claims.verdict import RULINGS, Finding, Trial, Verdict

TONE = (
    "A verdict is on a sentence and its test, not on a paper or its authors: a claim that fails under a stricter test "
    "may have been well founded by the methods of its day. Authors are asked before a verdict on their paper is "
    "published with a release."
)
COUNTED_APART = (
    "A verdict comes from the paper's own protocol or its authors' released results. Where a paper speaks of models in "
    "general, one on offered models is on these alone, and counted apart. Open counts as decided."
)
NOT_A_VERDICT = "measured here, not a verdict"


def overview(trials: Sequence[Trial]) -> Document:
    """A row a paper with its counts."""
    rows = []
    for trial in trials:
        own, models = trial.counts("protocol"), trial.counts("models")
        undecided = len(trial.verdicts) - sum(own.values()) - sum(models.values())
        apart = {f"{ruling} on models": n for ruling, n in models.items()}
        rows.append({"paper": trial.paper.name, "claims": len(trial.verdicts), **own, **apart, "not run": undecided})
    numbers = pd.DataFrame(rows)
    total = {"paper": "all", **numbers.drop(columns="paper").sum().to_dict()}
    cells = [[str(value) for value in row.values()] for row in (*rows, total)]
    table = Table("Papers' claims", numbers, list(numbers.columns), cells)
    sentences = [summary(_rows(trials)), "each paper's verdicts, tests and needs: ctxexp claims paper=NAME", TONE]
    return Document(sentences, {"papers": table})


def report(trials: Sequence[Trial]) -> Document:
    """The verdicts, the tests behind them, and what follows from definitions."""
    rows = _rows(trials)
    tables = {
        name: table for name, table in (("claims", verdicts(rows)), ("tests", _tests(trials))) if len(table.numbers)
    }
    if any(trial.paper.follows for trial in trials):
        tables["follows"] = follows(_consequences([trial.paper for trial in trials]))
    caveats = [f"{trial.paper.name}: {trial.paper.caveat}" for trial in trials if trial.paper.caveat]
    return Document([*caveats, summary(rows), TONE], tables)


def summary(rows: pd.DataFrame) -> str:
    """How many claims are decided, and on what, in a sentence."""
    parts = []
    for decided_on, where in (("protocol", "the papers' own protocol or results"), ("models", "offered models alone")):
        found = Counter(rows[rows["decided_on"] == decided_on]["ruling"]) if len(rows) else Counter()
        parts.append(f"{found.total()} on {where} ({', '.join(f'{found[one]} {one}' for one in RULINGS[:-1])})")
    return f"Of {len(rows)} claims {' and '.join(parts)} are decided."


def verdicts(rows: pd.DataFrame) -> Table:
    """The table of verdicts, a row a claim."""
    shown = [
        [
            f"`{row['paper']}` `{row['claim']}`",
            f"{row['statement']} *“{row['quote']}”* ({row['place']}; {row['checked']})",
            row["words"] + (f" ({row['on']})" if row["on"] else ""),
            row["effect"],
            row["caveat"],
        ]
        for row in rows.fillna("").to_dict("records")
    ]
    columns = ["claim", "what it says", "verdict", "effect that breaks it, else the widest", "caveat"]
    return Table("Verdicts on papers' claims", rows, columns, shown, [summary(rows), COUNTED_APART, TONE])


def _rows(trials: Sequence[Trial]) -> pd.DataFrame:
    rows = []
    for paper, verdict in ((trial.paper, verdict) for trial in trials for verdict in trial.verdicts):
        claim, finding = verdict.claim, verdict.finding
        rows.append({
            "paper": paper.name,
            "claim": claim.id,
            "place": claim.place,
            "statement": claim.statement,
            "quote": claim.quote,
            "checked": claim.source,
            "test": describe(claim.test),
            "decided_on": verdict.decided_on,
            "ruling": verdict.ruling,
            "words": words(verdict),
            "on": finding.source.title if finding else "",
            "effect": effect(finding) if finding else "",
            "caveat": claim.caveat,
            "command": finding.source.command if finding else "",
        })  # fmt: skip
    return pd.DataFrame(rows)


def words(verdict: Verdict) -> str:
    """The verdict, the readings that it hangs on, and the models that it is on; without one what it needs, and what
    came out on other evidence."""
    finding = verdict.finding
    if finding is None:
        others = [f for f in verdict.others if f.ruling != "not run"][:1]
        beside = "".join(f"; {NOT_A_VERDICT}: {f.words} on {', '.join(f.models)} ({f.source.title})" for f in others)
        return f"not run: {verdict.why}{beside}"
    on = f" on {', '.join(finding.models)}" if verdict.decided_on == "models" else ""
    why = f"; {verdict.why}" if verdict.own and verdict.why else ""
    return f"{finding.words}{on}{why}"


def effect(finding: Finding) -> str:
    """The effect of a test that breaks the claim, else of that whose interval is widest, with its model and reading
    where there are several."""
    decide = set(finding.models)
    checks = [c for c in finding.checks if c.is_measured and model_label(c.model) in decide]
    if not checks:
        return ""
    broken = [check for check in checks if check.passed is False]
    widest = max(broken or checks, key=lambda c: c.high - c.low if math.isfinite(c.low) else -1.0)
    where = ", ".join(filter(None, (widest.model, widest.reading)))
    return f"{widest.effect:.3g}{_interval(widest)}" + (f" ({where}; {len(checks)} tests)" if len(checks) > 1 else "")


def _interval(check: Check) -> str:
    return f" [{check.low:.3g}, {check.high:.3g}]" if math.isfinite(check.low) else ""


def _tests(trials: Sequence[Trial]) -> Table:
    rows, cells = [], []
    verdicts_ = [(trial.paper.name, verdict) for trial in trials for verdict in trial.verdicts]
    for paper, verdict in verdicts_:
        for finding in filter(None, [verdict.own, *verdict.others]):
            about = {"paper": paper, "claim": verdict.claim.id, "on": finding.source.title, "kind": finding.source.kind}
            for check in finding.checks:
                row = {"model": check.model, "reading": check.reading, "as_claimed": check.passed}
                row |= {name: getattr(check, name) for name in ("effect", "low", "high", "n", "text")}
                rows.append({**about, **row, "run": check.link})
                passed = {True: "yes", False: "no", None: "open" if check.is_measured else ""}[check.passed]
                value = f"{check.effect:.3f}{_interval(check)}" if check.is_measured else ""
                cells.append([verdict.claim.id, check.model, check.reading, passed, value, check.text])
    columns = ["claim", "model", "reading", "as claimed", "effect [95%]", "in words"]
    return Table("Tests", pd.DataFrame(rows), columns, cells)


def follows(rows: pd.DataFrame) -> Table:
    """The table of what follows from definitions, made of its numbers alone."""
    shown = [
        [
            f"`{row['paper']}` `{row['statement_id']}`",
            f"{row['statement']} *“{row['quote']}”* ({row['place']}; {row['checked']})",
            row["follows_from"],
        ]
        for row in rows.fillna("").to_dict("records")
    ]
    columns = ["statement", "what it says", "follows from"]
    note = (
        "Theorems, and statements on measures: what holds by algebra, or on drawn vectors, is no evidence on any model."
    )
    return Table("What follows from definitions", rows, columns, shown, [note])


def _consequences(papers: Sequence[Paper]) -> pd.DataFrame:
    return pd.DataFrame([
        {
            "paper": paper.name,
            "statement_id": one.id,
            "place": one.place,
            "statement": one.statement,
            "quote": one.quote,
            "checked": one.source,
            "follows_from": one.reason,
        }
        for paper in papers
        for one in paper.follows
    ])  # fmt: skip
