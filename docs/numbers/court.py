"""The verdicts on papers' claims: a row a claim, of the reports that `ctxexp claims` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from docs.numbers.part import Part, markdown

PROTOCOL, MODELS, NONE = "protocol", "models", "not run"
HEAD = [
    "paper",
    "claim",
    "what it says",
    "verdict",
    "effect: of a test that breaks it, else the widest",
    "on what",
    "what it must not call an effect",
]
RULINGS = ("holds", "fails", "open")


def _kept(made: Path) -> pd.DataFrame:
    """A row a claim of every claims.json below the folder."""
    reports = [paper for path in sorted(made.rglob("claims.json")) for paper in json.loads(path.read_text("utf-8"))]
    rows = [_row(report["paper"], claim) for report in reports for claim in report["claims"]]
    return pd.DataFrame(rows).sort_values("paper", kind="stable")


def _row(paper: str, claim: Mapping[str, Any]) -> dict[str, Any]:
    own, models = claim["verdict"] != NONE, claim["verdict_on_models"]
    finding = claim["decided_by"] if own else None
    if not own and models:
        finding = next(one for one in claim["not_verdicts"] if one["kind"] == "other")
    checks = [check for check in finding["checks"] if check["effect"] is not None] if finding else []
    if not own and models:  # those that the verdict names: minis are no instances of large models
        named = claim["words_on_models"].rpartition(" on ")[2].replace(" (mini)", "").split(", ")
        checks = [check for check in checks if check["model"].replace(" (mini)", "") in named]
    return {
        "paper": paper,
        "claim": claim["claim"],
        "place": claim["place"],
        "statement": claim["statement"],
        "quote": claim["quote"],
        "checked": claim["quote_checked_against"],
        "null": claim["null"],
        "decided_on": PROTOCOL if own else MODELS if models else NONE,
        "ruling": claim["verdict"] if own else models or NONE,
        "words": claim["words"] if own else claim["words_on_models"] or _needs(claim),
        "source": finding["on"] if finding else "",
        "effect": _effect(checks),
        "command": finding["command"] if finding else "",
    }


def _needs(claim: Mapping[str, Any]) -> str:
    """That the claim wasn't run, and the evidence it needs."""
    _, needs, what = claim["why"].partition("needs ")
    return f"{NONE}: {needs}{what}" if needs else NONE


def _effect(checks: list[Mapping[str, Any]]) -> str:
    """The effect of a test that breaks the claim, else of that whose interval is widest, with its model where there are
    several."""
    if not checks:
        return ""
    widest = max(
        [c for c in checks if c["as_claimed"] is False] or checks,
        key=lambda c: -1.0 if c["low"] is None else c["high"] - c["low"],
    )
    interval = "" if widest["low"] is None else f" [{widest['low']:.3g}, {widest['high']:.3g}]"
    where = ", ".join(filter(None, (widest["model"], widest["specification"]))) if len(checks) > 1 else ""
    return f"{widest['effect']:.3g}{interval}" + (f" ({where}; {len(checks)} tests)" if where else "")


def counts(numbers: pd.DataFrame, on: str) -> dict[str, int]:
    """How many claims hold, fail and are open on this."""
    rulings = numbers[numbers["decided_on"] == on]["ruling"]
    return {ruling: int((rulings == ruling).sum()) for ruling in RULINGS}


def table(numbers: pd.DataFrame) -> str:
    """The counts in a sentence each, and a row a claim, those that were decided first."""
    numbers = numbers.fillna("")
    lines = []
    for on, words in (
        (PROTOCOL, "On the papers' own protocol, results or instances"),
        (MODELS, "On offered models alone"),
    ):
        found = counts(numbers, on)
        papers = numbers[(numbers["decided_on"] == on)]["paper"].nunique()
        parts = ", ".join(f"{n} {ruling}" for ruling, n in found.items())
        lines.append(f"- {words}: {sum(found.values())} claims of {papers} papers ({parts}).")
    lines.append(f"- Not run: {int((numbers['decided_on'] == NONE).sum())}.")
    order = {PROTOCOL: 0, MODELS: 1, NONE: 2}
    rows = sorted(numbers.to_dict("records"), key=lambda row: (order[row["decided_on"]], row["paper"]))
    cells = [
        (
            f"`{row['paper']}`",
            f"`{row['claim']}`",
            _statement(row),
            f"{'on models: ' * (row['decided_on'] == MODELS)}{row['words']}",
            row["effect"],
            row["source"],
            row["null"],
        )
        for row in rows
    ]
    body = markdown(HEAD, [[_cell(text) for text in row] for row in cells])
    return "\n".join(lines) + f'\n\n<div class="sortable" markdown="1">\n\n{body}\n\n</div>'


def _statement(row: Mapping[str, Any]) -> str:
    """What it says here, and in the paper's words."""
    return f'{row["statement"]} *"{row["quote"]}"* ({row["place"]}; {row["checked"]})'


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


PART = Part(mark="court", page="docs/measures/court.md", numbers="court.csv", kept=_kept, table=table)
