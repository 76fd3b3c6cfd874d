"""The report on papers' claims: counts, verdicts, the tests behind them; as text and Markdown."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from ctxexp.report.references import NO_CONTEXT, ONE_TRAINING_RUN
from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.court import Trial
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.source import Source, model_label
from ctxexp_papers.claims.verdict import RULINGS, Finding, Verdict, reasons

TONE = (
    "A verdict is on a sentence and its test, not on a paper or its authors: a claim that fails under a stricter test "
    "may have been well founded by the methods of its day. Authors are asked before a verdict on their paper is "
    "published with a release."
)
HERE = "measured here, not a verdict"
ON_MODELS = "on your models, counted apart"
NOT_DRAWN = (
    "theorems and claims on measures are tried on drawn instances with any of paper=, model=, released= and out="
)


def table(trials: Sequence[Trial], *, has_draws: bool = True) -> str:
    """For a terminal: a row a paper with its counts, those on offered models apart."""
    rows = _count_rows(trials)
    width = max(len(row[0]) for row in rows)
    lines = [f"{name:<{width}}  " + "  ".join(f"{cell:>7}" for cell in cells) for name, *cells in rows]
    lines += ["", decided(trials)]
    lines += [] if has_draws else [NOT_DRAWN]
    return "\n".join([*lines, "each paper's verdicts, tests and needs: ctxexp claims paper=NAME", TONE])


def _count_rows(trials: Sequence[Trial]) -> list[tuple[str, ...]]:
    """Head, a row a paper, and a row of sums: verdicts on the protocol, then those on offered models where any are."""
    apart = any(sum(t.counts_on_models().values()) for t in trials)
    head = (*RULINGS, *(f"model:{ruling}" for ruling in RULINGS[:-1] if apart))
    counts = [(*t.counts().values(), *(t.counts_on_models().values() if apart else ())) for t in trials]
    rows = [(t.paper.name, len(t.verdicts), *row) for t, row in zip(trials, counts, strict=True)]
    rows.append(("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])))
    return [("paper", "claims", *head), *(tuple(map(str, row)) for row in rows)]


def decided(trials: Sequence[Trial]) -> str:
    """How many claims are decided, and on what, in a sentence."""
    own = [sum(t.counts()[r] for r in RULINGS[:-1]) for t in trials]
    models = [sum(t.counts_on_models().values()) for t in trials]
    every = sum(len(t.verdicts) for t in trials)
    text = f"{sum(own)} of {every} claims, of {sum(map(bool, own))} papers, are decided on the paper's own protocol"
    apart = (
        f"; {sum(models)} more, of {sum(map(bool, models))} papers, on the offered models alone" if any(models) else ""
    )
    return f"{text}, its released results or instances that need no model{apart}. Open counts as decided."


def says(paper: Paper, finding: Finding) -> str:
    """The outcome of a claim's tests in a few words, model by model under the first reading: "GPT-2: 6 of 12"; empty
    where none was measured."""
    reading = finding.claim.variants[0]
    by_name: dict[str, list[str]] = {}
    for check in finding.checks:
        if check.is_measured and check.variant == reading and check.brief:
            label = paper.labels[check.model] if check.model in paper.labels else model_label(check.model)
            by_name.setdefault(label, []).append(check.brief)
    return "; ".join(f"{name}: {', '.join(briefs)}" if name else ", ".join(briefs) for name, briefs in by_name.items())


def figures(paper: Paper, verdict: Verdict) -> str:
    """What released points say of the claim, empty where they say nothing."""
    points = [f for f in verdict.beside if f.source.kind == "points"]
    return "; ".join(filter(None, (says(paper, finding) for finding in points)))


def on_models(paper: Paper, verdict: Verdict) -> str:
    """The verdict on offered models, where there is none on the protocol; else empty."""
    finding = verdict.on_models
    if finding is None:
        return ""
    values = says(paper, finding)
    return f"{finding.on_models} ({finding.source.title}{': ' if values else ''}{values})"


def beside(paper: Paper, verdict: Verdict) -> str:
    """What came out on the nearest evidence that gives no verdict; empty where nothing was measured."""
    others = (f for f in verdict.beside if f.source.kind == "other" and f.is_measured and f is not verdict.on_models)
    other = next(others, None)
    if other is None:
        return ""
    values = says(paper, other)
    return f"{other.words} ({other.source.title}{': ' if values else ''}{values})"


def lacks(trial: Trial, verdict: Verdict) -> str:
    """Why there is no verdict, or why it is open: departures of the runs that there are, then what is missing."""
    why = [verdict.why]
    if verdict.outcome == "none":
        nearest = next((source for source, _ in trial.findings if source.kind == "other" and source.departures), None)
        why.insert(0, _departures(nearest, verdict.claim.models) if nearest else "")
    return "; ".join(filter(None, why))


def text(trial: Trial) -> str:
    """For a terminal: the verdicts, then a line a test."""
    paper = trial.paper
    width = max(len(claim.id) for claim in paper.claims)
    starred = " (* in the abstract)" if paper.abstract else ""
    counts = ", ".join(f"{n} {ruling}" for ruling, n in trial.counts().items())
    lines = [paper.title, "", f"verdicts{starred}: {counts}"]
    for verdict in trial.verdicts:
        claim = verdict.claim
        lines.append(f"  {_starred(paper, claim):<{width + 1}}  {verdict.words:<9} {claim.statement} ({claim.place})")
        notes = [f"{ON_MODELS}: {said}"] if (said := on_models(paper, verdict)) else []
        notes += [f"({lacks(trial, verdict)})"] if lacks(trial, verdict) else []
        notes += [f"{HERE}: {here}"] if (here := beside(paper, verdict)) else []
        notes += [f"released figures: {said}"] if (said := figures(paper, verdict)) else []
        lines += [f"  {'':<{width + 1}}  {'':<9} {note}" for note in notes]
    for source, findings in trial.findings:
        lines += ["", heading(source), *_tests(findings, width)]
        if source.controls:
            lines += ["  without context", *(f"    {line}" for line in source.controls)]
        lines += ["  runs", *(f"    {link}" for link in links)] if (links := source.links()) else []
    if notes := list(paper.notes()):
        lines += ["", "notes", *(f"  {note}" for note in notes)]
    return "\n".join([*lines, "", TONE])


def _tests(findings: Sequence[Finding], width: int) -> list[str]:
    """A line a test that was made; then, in one sentence an outcome, the claims without one."""
    lines: list[str] = []
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
    return lines


def markdown(trials: Sequence[Trial]) -> str:
    """For a repository or a note: the same as tables, with statements, tests and links."""
    lines = ["# Papers' claims, tested", "", TONE, "", decided(trials), "", *counts_table(trials)]
    for trial in trials:
        lines += ["", *_paper_lines(trial)]
    return "\n".join([*lines, ""])


def counts_table(trials: Sequence[Trial]) -> list[str]:
    """A Markdown table: a row a paper with its counts, those on offered models apart."""
    head, *rows = _count_rows(trials)
    names = [name.replace("model:", "on models: ") for name in head]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    return lines + ["| " + " | ".join((f"`{name}`" if name != "all" else name, *cells)) + " |" for name, *cells in rows]


def _paper_lines(trial: Trial) -> list[str]:
    paper = trial.paper
    lines = [f"## {paper.title}", "", f"{paper.citation}. <{paper.url}>", "", f"Protocol: {paper.protocol.scope}.", ""]
    lines += [paper.rule, ""] if paper.rule else []
    lines += [
        f"| claim | place | statement | verdict | on what | why | {ON_MODELS} | the released figures | {HERE} |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for verdict in trial.verdicts:
        claim = verdict.claim
        on = verdict.finding.source.title if verdict.finding else ""
        words = (claim.place, claim.statement, verdict.words, on, lacks(trial, verdict), on_models(paper, verdict))
        cells = [*words, figures(paper, verdict), beside(paper, verdict)]
        lines.append(f"| `{claim.id}`{'*' * (claim.id in paper.abstract)} | " + " | ".join(map(_cell, cells)) + " |")
    lines += ["", "\\* in the abstract", ""] if paper.abstract else [""]
    lines += [
        "| claim | test | null | threshold | what would change the verdict | quote |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| `{c.id}` | " + " | ".join(map(_cell, (c.test, c.null, c.reason, c.reversal, quotation(c)))) + " |"
        for c in paper.claims
    ]
    for source, findings in trial.findings:
        lines += ["", f"### {heading(source)[:1].upper()}{heading(source)[1:]}", ""]
        lines += [f"`{source.command}`", ""] if source.command else []
        lines += ["| claim | outcome | model | reading | as claimed | effect | 95% interval | n | | run |",
                  "|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
        for finding in findings:
            for check in [*(c for c in finding.checks if c.is_measured), *(Check("", text=w) for w in rest(finding))]:
                row = (f"`{finding.claim.id}`", finding.words, *check_cells(check))
                link = f"[run]({check.link})" if check.link.startswith("http") else _cell(check.link)
                lines.append("| " + " | ".join([*map(_cell, row), link]) + " |")
        if source.controls:
            lines += ["", f"{NO_CONTEXT}:", "", *(f"- {_cell(line)}" for line in source.controls)]
    notes = [f"- {note}" for note in paper.notes()]
    return [*lines, "", "### Notes", "", *notes] if notes else lines


def quotation(claim: Claim) -> str:
    """The paper's own words and where they were checked."""
    return f'"{claim.quote}" (checked: {claim.quote_source})'


def heading(source: Source) -> str:
    """A source in a line: what it is, and whether it gives verdicts."""
    models = ", ".join(source.models())
    if source.kind == "points":
        return f"the same tests on {source.title} (points without intervals: no verdict)"
    once = f" ({ONE_TRAINING_RUN.lower()})" if len(source.models()) > 1 and source.links() else ""
    prefix = "" if source.kind == "protocol" else "the same tests on "
    return f"{prefix}{source.title}{': ' if models else ''}{models}{once}"


def rest(finding: Finding) -> list[str]:
    """Why checks of a finding were not made."""
    return reasons(finding.checks) or ([finding.why] if not finding.checks and finding.why else [])


def check_cells(check: Check) -> list[str]:
    """model, reading, as claimed, effect, interval, n, in words."""
    passed = {True: "yes", False: "no", None: "open" if check.is_measured else ""}[check.passed]
    interval = f"[{check.low:.3f}, {check.high:.3f}]" if math.isfinite(check.low) else ""
    effect = f"{check.effect:.3f}" if math.isfinite(check.effect) else ""
    n = f"{check.n:,.0f}" if math.isfinite(check.n) else ""
    return [check.model, check.variant, passed, effect, interval, n, check.text]


def _departures(source: Source, models: Sequence[str]) -> str:
    """Reasons why a source of these models gives no verdict, each once with its models."""
    by_reason: dict[str, list[str]] = {}
    for model, reasons_ in source.departures.items():
        if not models or any(model in name for name in models):
            for reason in reasons_:
                by_reason.setdefault(reason, []).append(model)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in by_reason.items())


def _starred(paper: Paper, claim: Claim) -> str:
    return claim.id + "*" * (claim.id in paper.abstract)


def _line(check: Check) -> str:
    model, reading, passed, effect, interval, n, text = check_cells(check)
    row = f"{model:<10} {passed:<4} {effect:>7} {interval:<18}"
    return f"{row} {'n ' + n if n else '':<9} {reading + ': ' if reading else ''}{text}".rstrip()


def _cell(words: str) -> str:
    """A table cell of Markdown: one line, its bars escaped."""
    return " ".join(words.split()).replace("|", "\\|")
