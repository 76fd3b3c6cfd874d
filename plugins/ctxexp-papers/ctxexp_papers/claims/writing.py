"""The report as files: claims.md, claims.json, and claims.html, a page that sorts and unfolds its rows."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctxexp.files import render_page
from ctxexp.report import write_file
from ctxexp_papers.claims import report
from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.court import Trial
from ctxexp_papers.claims.figure import forest
from ctxexp_papers.claims.source import model_label
from ctxexp_papers.claims.verdict import RULINGS, Finding, Verdict


def write(trials: Sequence[Trial], folder: Path) -> list[Path]:
    """The three files in the folder, which is made if need be; their paths."""
    files = {"claims.md": report.markdown(trials), "claims.json": as_json(trials), "claims.html": page(trials)}
    return [write_file(folder / name, content) for name, content in files.items()]


def as_json(trials: Sequence[Trial]) -> str:
    """Every paper's verdicts with what decides them and what stands beside; NaN as null."""
    return json.dumps([_paper(trial) for trial in trials], indent=1, ensure_ascii=False)


def _paper(trial: Trial) -> dict[str, Any]:
    paper = trial.paper
    return {
        "paper": paper.name,
        "citation": paper.citation,
        "url": paper.url,
        "protocol": paper.protocol.scope,
        "counts": trial.counts(),
        "counts_on_models": trial.counts_on_models(),
        "claims": [_claim(trial, verdict) for verdict in trial.verdicts],
    }


def _claim(trial: Trial, verdict: Verdict) -> dict[str, Any]:
    claim = verdict.claim
    return {
        "claim": claim.id,
        "place": claim.place,
        "statement": claim.statement,
        "quote": claim.quote,
        "quote_checked_against": claim.quote_source,
        "test": claim.test,
        "null": claim.null,
        "threshold": claim.reason,
        "reversal": claim.reversal,
        "contradicts": list(claim.contradicts),
        "verdict": verdict.ruling,
        "words": verdict.words,
        "verdict_on_models": verdict.ruling_on_models or None,
        "words_on_models": verdict.on_models.on_models if verdict.on_models else None,
        "general": claim.general or None,
        "why": report.lacks(trial, verdict),
        "decided_by": _finding(verdict.finding) if verdict.finding else None,
        "not_verdicts": [_finding(finding) for finding in verdict.beside],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "on": finding.source.title,
        "kind": finding.source.kind,
        "outcome": finding.words,
        "command": finding.source.command or None,
        "checks": [_check(check) for check in finding.checks],
    }


def _check(check: Check) -> dict[str, Any]:
    numbers = {name: getattr(check, name) for name in ("effect", "low", "high", "n")}
    numbers = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    about = {"model": check.model, "specification": check.variant or None, "as_claimed": check.passed}
    return {**about, **numbers, "text": check.text, "link": check.link or None}


def page(trials: Sequence[Trial]) -> str:
    """One HTML page that fetches nothing: a row a claim, sortable, which unfolds to its test, figure and command."""
    rows = [(trial, verdict, _row(trial, verdict)) for trial in trials for verdict in trial.verdicts]
    totals = {ruling: sum(trial.counts()[ruling] for trial in trials) for ruling in RULINGS}
    return render_page(
        "ctxexp_papers.claims",
        "page.html",
        title=trials[0].paper.title if len(trials) == 1 else "Papers' claims, tested",
        tone=report.TONE,
        totals=totals,
        decided=report.decided(trials),
        trials=trials,
        rows=rows,
        here=report.HERE,
        apart=report.ON_MODELS,
    )


def _row(trial: Trial, verdict: Verdict) -> dict[str, Any]:
    """The text of a row, and that which it unfolds to."""
    decided = verdict.finding or verdict.on_models
    shown = decided or next((finding for finding in verdict.beside if finding.is_measured), None)
    checks = [check for check in shown.checks if check.is_measured] if shown else []
    labels = {check.model: model_label(check.model) for check in checks} | trial.paper.labels
    return {
        "on": decided.source.title if decided else "",
        "apart": verdict.on_models.on_models if verdict.on_models else "",
        "effect": report.says(trial.paper, decided) if decided else "",
        "interval": _interval(checks) if decided else "",
        "why": report.lacks(trial, verdict),
        "figures": report.figures(trial.paper, verdict),
        "beside": report.beside(trial.paper, verdict),
        "figure": forest(checks, labels),
        "figure_of": "" if shown is None or decided else f"{report.HERE}: {shown.source.title}",
        "checks": [(report.check_cells(check), check.link) for check in checks],
        "command": (decided or shown).source.command if shown else "",
        "quotation": report.quotation(verdict.claim),
    }


def _interval(checks: Sequence[Check]) -> str:
    """The interval of the only check, else how many there are."""
    if len(checks) == 1 and math.isfinite(checks[0].low):
        return f"[{checks[0].low:.3f}, {checks[0].high:.3f}]"
    return f"{len(checks)} tests" if len(checks) > 1 else ""
