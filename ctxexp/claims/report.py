"""The report: verdicts on the paper's claims, the same tests elsewhere, and what the released figures imply."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxexp import reference
from ctxexp.claims import ABSTRACT, CLAIMS, Family, Finding, evaluate, own_weights, released
from ctxexp.claims.checks import Check
from ctxexp.claims.evidence import CORPUS
from ctxexp.claims.verdict import VERDICTS, Claim, reasons
from ctxexp.files import write_text

TITLE = "The claims of Ethayarajh (2019), tested"
RULE = (
    "Tests and thresholds were fixed before any run was looked at. A verdict is on the paper's claim and comes "
    "from runs of the paper's own weights (bert-base-cased, gpt2, the original ELMo), without transform or "
    "control, alone; the same tests on anything else say what came out there."
)
NO_RUN = "no finished run of the paper's own weights (weights=published)"
_PAGE = Path(__file__).with_name("page.html")


@dataclass(frozen=True)
class Report:
    """A verdict a claim, with its reason; the findings of every family; derivations from the released figures."""

    verdicts: tuple[tuple[Claim, str, str], ...]
    findings: tuple[tuple[Family, tuple[Finding, ...]], ...]
    derived: tuple[released.Derivation, ...]


def build(families: Sequence[Family]) -> Report:
    """The report on these families, the released figures added at the end."""
    every = [*families, released.family()]
    findings = tuple((family, tuple(evaluate(family))) for family in every)
    deciding = own_weights(families)
    own = next((found for family, found in findings if family is deciding), None)
    where = f"on {deciding.corpus}, not the paper's text" if deciding and deciding.corpus != CORPUS else ""
    verdicts = tuple(
        (claim, own[i].words, "; ".join(filter(None, [where, own[i].why])))
        if own
        else (claim, VERDICTS["none"], NO_RUN)
        for i, claim in enumerate(CLAIMS)
    )
    return Report(verdicts, findings, tuple(released.derivations()))


def text(report: Report) -> str:
    """For a terminal: the verdicts, then a line a test."""
    width = max(len(claim.id) for claim in CLAIMS)
    lines = [TITLE, "", "verdicts (* in the abstract)"]
    if unrun := _unrun(report):
        lines.append(f"  {unrun}" + " Tests on your own runs stand below." * bool(report.findings))
    for claim, words, why in report.verdicts:
        lines.append(f"  {_starred(claim):<{width + 1}}  {words:<9} {claim.statement}")
        if why and why != NO_RUN:
            lines.append(f"  {'':<{width + 1}}  {'':<9} ({why})")
    for family, findings in report.findings:
        lines += ["", _heading(family)]
        untold: dict[str, list[str]] = {}
        for finding in findings:
            shown = [f"    {_line(check)}" for check in finding.checks if check.passed is not None]
            if shown:
                lines += [f"  {finding.claim.id:<{width}}  {finding.words}", *shown]
            else:
                untold.setdefault(finding.words, []).append(finding.claim.id)
        for words, ids in untold.items():
            said = f"{words}: all of them" if len(ids) == len(findings) else f"{words}: {', '.join(ids)}"
            lines += textwrap.wrap(said, 110, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
        links = dict.fromkeys(f"{m.label or m.model}: {m.link}" for m in family.members if m.link)
        lines += ["  runs", *(f"    {link}" for link in links)] if links else []
    lines += ["", "what follows from the released figures"]
    lines += [f"  {derivation.said}" for derivation in report.derived]
    return "\n".join(lines)


def markdown(report: Report) -> str:
    """For a repository or a note: the same as tables, with statements, tests and links."""
    lines = [
        f"# {TITLE}",
        "",
        RULE,
        "",
        "## Verdicts",
        "",
        "| claim | statement | verdict | why |",
        "|---|---|---|---|",
    ]
    lines += [f"| `{c.id}`{'*' if c.id in ABSTRACT else ''} | {_cell(c.statement)} | {words} | {_cell(why)} |"
              for c, words, why in report.verdicts]  # fmt: skip
    lines += ["", "\\* in the abstract", "", "## Tests", "", "| claim | test |", "|---|---|"]
    lines += [f"| `{claim.id}` | {_cell(claim.test)} |" for claim in CLAIMS]
    for family, findings in report.findings:
        lines += ["", f"## {_heading(family).capitalize()}", ""]
        lines += ["| claim | outcome | model | reading | as claimed | effect | 95% interval | n | | run |",
                  "|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
        for finding in findings:
            shown = [check for check in finding.checks if check.passed is not None]
            rest = reasons(finding.checks) or ([finding.why] if not finding.checks else [])
            for check in [*shown, *(Check("", said=why) for why in rest)]:
                cells = [f"`{finding.claim.id}`", finding.words, *_cells(check)]
                link = f"[run]({check.link})" if check.link.startswith("http") else _cell(check.link)
                lines.append("| " + " | ".join([*map(_cell, cells), link]) + " |")
    lines += ["", "## What follows from the released figures", ""]
    lines += [f"- {derivation.said}" for derivation in report.derived]
    lines += ["", f"Source: {reference.SOURCE}; {reference.CAVEAT}.", ""]
    return "\n".join(lines)


def page(report: Report) -> str:
    """One HTML page that fetches nothing."""
    verdicts = "".join(
        f"<tr><th><code>{claim.id}</code>{'<sup>*</sup>' if claim.id in ABSTRACT else ''}</th>"
        f"<td>{html.escape(claim.statement)}<small>{html.escape(claim.test)}</small></td>"
        f"<td>{_pill(words)}<small>{html.escape(why if why != NO_RUN else '')}</small></td></tr>\n"
        for claim, words, why in report.verdicts
    )
    sections = "".join(_section(family, findings) for family, findings in report.findings)
    derived = "".join(f"<li>{html.escape(derivation.said)}</li>\n" for derivation in report.derived)
    parts = {
        "TITLE": html.escape(TITLE),
        "RULE": html.escape(RULE),
        "WHY": html.escape(_unrun(report)),
        "VERDICTS": verdicts,
        "SECTIONS": sections,
        "DERIVED": derived,
        "SOURCE": html.escape(f"Released figures: {reference.SOURCE}; {reference.CAVEAT}."),
    }
    head, *rest = _PAGE.read_text(encoding="utf-8").split("@@")  # text, name, text ...: no value is searched
    return "".join([head, *(parts[piece] if i % 2 == 0 else piece for i, piece in enumerate(rest))])


def write(report: Report, folder: Path) -> list[Path]:
    """claims.md and claims.html in the folder, which is made if need be; their paths."""
    pages = {"claims.md": markdown(report), "claims.html": page(report)}
    return [write_text(folder / name, content) for name, content in pages.items()]


def _heading(family: Family) -> str:
    if family.kind == "released":
        return f"the same tests on {family.title} (they bring no intervals: signs and bounds only)"
    models = ", ".join(family.models())
    return f"{'' if family.kind == 'published' else 'the same tests on '}{family.title}: {models}"


def _unrun(report: Report) -> str:
    """Why no verdict could be reached; empty if some could."""
    return f"Not run: {NO_RUN}." if all(why == NO_RUN for _, _, why in report.verdicts) else ""


def _starred(claim: Claim) -> str:
    return claim.id + "*" * (claim.id in ABSTRACT)


def _line(check: Check) -> str:
    model, reading, passed, effect, interval, n, said = _cells(check)
    shown = f"{model:<10} {passed:<4} {effect:>7} {interval:<18}"
    return f"{shown} {'n ' + n if n else '':<9} {reading + ': ' if reading else ''}{said}".rstrip()


def _cells(check: Check) -> list[str]:
    """model, reading, as claimed, effect, interval, n, in words."""
    passed = {True: "yes", False: "no", None: ""}[check.passed]
    interval = f"[{check.low:.3f}, {check.high:.3f}]" if math.isfinite(check.low) else ""
    effect = f"{check.effect:.3f}" if math.isfinite(check.effect) else ""
    n = f"{check.n:,.0f}" if math.isfinite(check.n) else ""
    return [check.model, check.variant, passed, effect, interval, n, check.said]


def _cell(words: str) -> str:
    """A table cell of Markdown: one line, its bars escaped."""
    return " ".join(words.split()).replace("|", "\\|")


def _pill(words: str) -> str:
    kind = "no" if words in ("fails", "not as claimed") else "open" if words in ("not run", "not measured") else "yes"
    kind = "part" if " only under " in words else kind
    return f'<span class="pill {kind}">{html.escape(words)}</span>'


def _section(family: Family, findings: Sequence[Finding]) -> str:
    rows = ""
    for finding in findings:
        shown = [check for check in finding.checks if check.passed is not None]
        rest = reasons(finding.checks) or ([finding.why] if not finding.checks else [])
        span = len(shown) + bool(rest)
        first = f'<th rowspan="{span}"><code>{finding.claim.id}</code><br>{_pill(finding.words)}</th>'
        for check in shown:
            model, reading, passed, effect, interval, n, said = map(html.escape, _cells(check))
            link = html.escape(check.link, quote=True)
            run = f'<a href="{link}">run</a>' if check.link.startswith("http") else link
            rows += (
                f"<tr>{first}<td>{model}</td><td>{reading}</td><td class='{passed}'>{passed}</td>"
                f"<td class=number>{effect}</td><td class=number>{interval}</td><td class=number>{n}</td>"
                f"<td>{said}</td><td>{run}</td></tr>\n"
            )
            first = ""
        if rest:
            why = html.escape("; ".join(rest))
            rows += f"<tr>{first}<td colspan=8 class=open>{why}</td></tr>\n"
    names = ("claim", "model", "reading", "as claimed", "effect", "95% interval", "n", "", "")
    head = "".join(f"<th>{name}</th>" for name in names)
    title = html.escape(_heading(family)[0].upper() + _heading(family)[1:])
    table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table>"
    return f"<h2>{title}</h2>\n<div class=table>{table}</div>\n"
