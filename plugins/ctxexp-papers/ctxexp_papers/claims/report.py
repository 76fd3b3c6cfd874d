"""The report: verdicts on the paper's claims, the same tests elsewhere, and what the released figures imply."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ctxexp.files.templates import render_page
from ctxexp.files.writing import write_text
from ctxexp.report.ethayarajh_2019 import released as reference
from ctxexp.report.negative_controls import ONE_TRAINING_RUN
from ctxexp_papers.claims import released
from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.paper import ABSTRACT, CLAIMS, Family, Finding, evaluate, own_weights
from ctxexp_papers.claims.verdict import OUTCOME_TEXTS, Claim, Outcome, reasons

TITLE = "The claims of Ethayarajh (2019), tested"
RULE = (
    "Tests and thresholds were fixed before any run of the paper's own weights was looked at, and with the released "
    "figures in view, but for those on trends and on the room above chance, which were made stricter later. Intervals "
    "decide: one that spans the bound leaves its test open; a trend over layers is decided only beyond what walks of "
    "the same steps give. A verdict is on the paper's claim and comes from runs of the paper's own weights "
    "(bert-base-cased, gpt2, the original ELMo, by the SHA-256 of their files), own text and own protocol alone; the "
    "same tests on anything else say what came out there."
)
NO_RUN = (
    "no finished run of the paper's own weights, text and protocol "
    "(python -m ctxexp -m experiment=ethayarajh_2019 weights=published model=bert,gpt2,elmo)"
)
HERE = "measured here, not a verdict"
PILLS: dict[Outcome, str] = {"pass": "yes", "only": "part", "fail": "no", "open": "open", "none": "open"}
Row = tuple[list[str], str]  # cells of a check, and the link to its run


class Verdict(NamedTuple):
    """On one claim: the outcome, the same in words, why it isn't another, what the released figures say of it, and
    what came out on the runs nearest to the paper's where these are none."""

    claim: Claim
    outcome: Outcome
    words: str
    why: str
    figures: str
    here: str = ""


@dataclass(frozen=True)
class ClaimsReport:
    """A verdict a claim (all "not run" unless `ran`: there are runs of the paper's own weights), the findings of every
    family, and derivations from the released figures."""

    verdicts: tuple[Verdict, ...]
    ran: bool
    findings: tuple[tuple[Family, tuple[Finding, ...]], ...]
    derived: tuple[released.Derivation, ...]


def build(families: Sequence[Family]) -> ClaimsReport:
    """The report on these families, the released figures added at the end."""
    every = [*families, released.family()]
    findings = tuple((family, tuple(evaluate(family))) for family in every)
    deciding = own_weights(families)
    own = next((result for family, result in findings if family is deciding), None)
    nearest = next(((family, result) for family, result in findings if family.kind == "other"), None)
    verdicts = []
    for i, figures in enumerate(findings[-1][1]):
        result: tuple[Outcome, str, str] = ("none", OUTCOME_TEXTS["published"]["none"], "")
        if own:
            result = own[i].outcome, own[i].words, own[i].why
        here = ""
        if result[0] == "none" and nearest:
            family, others = nearest
            here = _here(family, others[i])
            lacks = _departures(family, figures.claim.models) if here else ""
            result = "none", f"{OUTCOME_TEXTS['published']['none']}{': ' if lacks else ''}{lacks}", result[2]
        verdicts.append(Verdict(figures.claim, *result, released.says(figures), here))
    return ClaimsReport(tuple(verdicts), own is not None, findings, tuple(released.derivations()))


def _here(family: Family, finding: Finding) -> str:
    """The outcome on runs that give no verdict, in a few words; empty where nothing was measured."""
    values = released.says(finding)
    return f"{finding.words} ({family.title}{': ' if values else ''}{values})" if _is_measured(finding) else ""


def _is_measured(finding: Finding) -> bool:
    return any(check.is_measured for check in finding.checks)


def _departures(family: Family, models: Sequence[str]) -> str:
    """Reasons why a family's runs of these models give no verdict, each once with its models."""
    by_reason: dict[str, list[str]] = {}
    for model, reasons_ in family.departures.items():
        if any(model in name for name in models):
            for reason in reasons_:
                by_reason.setdefault(reason, []).append(model)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in by_reason.items())


def text(report: ClaimsReport) -> str:
    """For a terminal: the verdicts, then a line a test."""
    width = max(len(claim.id) for claim in CLAIMS)
    lines = [TITLE, "", "verdicts (* in the abstract)"]
    if unrun := _unrun(report):
        lines.append(f"  {unrun}" + " Tests on your own runs stand below." * (len(report.findings) > 1))
    for claim, _, words, why, figures, here in report.verdicts:
        lines.append(
            f"  {_starred(claim):<{width + 1}}  {words.partition(':')[0]:<9} {claim.statement} ({_place(claim)})"
        )
        why = "; ".join(filter(None, [words.partition(": ")[2], why]))
        if why:
            lines.append(f"  {'':<{width + 1}}  {'':<9} ({why})")
        if here:
            lines.append(f"  {'':<{width + 1}}  {'':<9} {HERE}: {here}")
        if figures:
            lines.append(f"  {'':<{width + 1}}  {'':<9} released figures: {figures}")
    for family, findings in report.findings:
        lines += ["", _heading(family)]
        untold: dict[str, list[str]] = {}
        for finding in findings:
            test_lines = [f"    {_line(check)}" for check in finding.checks if check.is_measured]
            if test_lines:
                lines += [f"  {finding.claim.id:<{width}}  {finding.words}", *test_lines]
            else:
                untold.setdefault(finding.words, []).append(finding.claim.id)
        for words, ids in untold.items():
            sentence = f"{words}: all of them" if len(ids) == len(findings) else f"{words}: {', '.join(ids)}"
            lines += textwrap.wrap(sentence, 110, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
        if family.controls:
            lines += ["  without context", *(f"    {line}" for line in family.controls)]
        links = dict.fromkeys(f"{m.label or m.model}: {m.link}" for m in family.members if m.link)
        lines += ["  runs", *(f"    {link}" for link in links)] if links else []
    lines += ["", "what follows from the released figures"]
    lines += [f"  {derivation.text}" for derivation in report.derived]
    return "\n".join(lines)


def markdown(report: ClaimsReport) -> str:
    """For a repository or a note: the same as tables, with statements, tests and links."""
    lines = [
        f"# {TITLE}",
        "",
        RULE,
        "",
        "## Verdicts",
        "",
        *([unrun, ""] if (unrun := _unrun(report)) else []),
        f"| claim | section | statement | verdict | why | the released figures | {HERE} |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| `{c.id}`{'*' * (c.id in ABSTRACT)} | {c.section} | {_cell(c.statement)} | {_cell(words)} | {_cell(why)} "
        f"| {_cell(figures)} | {_cell(here)} |"
        for c, _, words, why, figures, here in report.verdicts
    ]
    lines += ["", "\\* in the abstract", "", "## Tests", "", "| claim | test |", "|---|---|"]
    lines += [f"| `{claim.id}` | {_cell(claim.test)} |" for claim in CLAIMS]
    for family, findings in report.findings:
        lines += ["", f"## {_heading(family).capitalize()}", ""]
        lines += ["| claim | outcome | model | reading | as claimed | effect | 95% interval | n | | run |",
                  "|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
        for finding in findings:
            outcomes = [check for check in finding.checks if check.is_measured]
            rest = reasons(finding.checks) or ([finding.why] if not finding.checks else [])
            for check in [*outcomes, *(Check("", text=why) for why in rest)]:
                cells = [f"`{finding.claim.id}`", finding.words, *_cells(check)]
                link = f"[run]({check.link})" if check.link.startswith("http") else _cell(check.link)
                lines.append("| " + " | ".join([*map(_cell, cells), link]) + " |")
        if family.controls:
            lines += ["", "Without context:", "", *(f"- {_cell(line)}" for line in family.controls)]
    lines += ["", "## What follows from the released figures", ""]
    lines += [f"- {derivation.text}" for derivation in report.derived]
    lines += ["", f"Source: {reference.SOURCE}; {reference.CAVEAT}.", ""]
    return "\n".join(lines)


def page(report: ClaimsReport) -> str:
    """One HTML page that fetches nothing."""
    return render_page(
        "ctxexp_papers.claims",
        "page.html",
        title=TITLE,
        rule=RULE,
        why=_unrun(report),
        verdicts=[(*verdict, PILLS[verdict.outcome], _place(verdict.claim)) for verdict in report.verdicts],
        abstract=ABSTRACT,
        sections=[(*_section(family, findings), family.controls) for family, findings in report.findings],
        here=HERE,
        derived=[derivation.text for derivation in report.derived],
        source=f"Released figures: {reference.SOURCE}; {reference.CAVEAT}.",
    )


def write(report: ClaimsReport, folder: Path) -> list[Path]:
    """claims.md and claims.html in the folder, which is made if need be; their paths."""
    pages = {"claims.md": markdown(report), "claims.html": page(report)}
    return [write_text(folder / name, content) for name, content in pages.items()]


def _heading(family: Family) -> str:
    if family.kind == "released":
        return f"the same tests on {family.title} (points without intervals: no verdict)"
    models = ", ".join(family.models())
    once = f" ({ONE_TRAINING_RUN.lower()})" if len(family.models()) > 1 else ""
    return f"{'' if family.kind == 'published' else 'the same tests on '}{family.title}: {models}{once}"


def _unrun(report: ClaimsReport) -> str:
    """Why no verdict could be reached; empty if some could."""
    return "" if report.ran else f"Not run: {NO_RUN}."


def _place(claim: Claim) -> str:
    """Where the claim stands in the paper: "section 4.2", "figure 2"."""
    return f"section {claim.section}" if claim.section[0].isdigit() else claim.section


def _starred(claim: Claim) -> str:
    return claim.id + "*" * (claim.id in ABSTRACT)


def _line(check: Check) -> str:
    model, reading, passed, effect, interval, n, text = _cells(check)
    row = f"{model:<10} {passed:<4} {effect:>7} {interval:<18}"
    return f"{row} {'n ' + n if n else '':<9} {reading + ': ' if reading else ''}{text}".rstrip()


def _cells(check: Check) -> list[str]:
    """model, reading, as claimed, effect, interval, n, in words."""
    passed = {True: "yes", False: "no", None: "open" if check.is_measured else ""}[check.passed]
    interval = f"[{check.low:.3f}, {check.high:.3f}]" if math.isfinite(check.low) else ""
    effect = f"{check.effect:.3f}" if math.isfinite(check.effect) else ""
    n = f"{check.n:,.0f}" if math.isfinite(check.n) else ""
    return [check.model, check.variant, passed, effect, interval, n, check.text]


def _cell(words: str) -> str:
    """A table cell of Markdown: one line, its bars escaped."""
    return " ".join(words.split()).replace("|", "\\|")


def _section(family: Family, findings: Sequence[Finding]) -> tuple[str, list[tuple[Finding, str, list[Row], str]]]:
    """A family's title, and of each finding its pill, the cells and link of each check, and why there are no more."""
    heading = _heading(family)
    rows = [(f, PILLS[f.outcome], [(_cells(c), c.link) for c in f.checks if c.is_measured], _rest(f)) for f in findings]
    return heading[0].upper() + heading[1:], rows


def _rest(finding: Finding) -> str:
    """Why checks of a finding were not made."""
    return "; ".join(reasons(finding.checks) or ([finding.why] if not finding.checks else []))
